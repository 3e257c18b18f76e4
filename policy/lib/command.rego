# Which commands a command entry of policy/trust/data.yaml covers, and which commands run what they are given.
package catalogd.lib.command

# covers(entry, cmd): cmd (input.target.command) is the entry's command and begins with its arguments.
covers(entry, cmd) if {
	named(entry.command[0], cmd)
	leading := array.slice(entry.command, 1, count(entry.command))
	array.slice(cmd.args, 0, count(leading)) == leading
	free_to_follow(entry, cmd)
}

# A name with a leading slash is the file that runs, any other is the command as it is declared.
named(name, cmd) if {
	startswith(name, "/")
	name == cmd.path
}

named(name, cmd) if {
	not startswith(name, "/")
	name == cmd.declared
}

free_to_follow(entry, _) if not entry.exact
free_to_follow(entry, cmd) if count(cmd.args) == count(entry.command) - 1

# bases(cmd) are the names by which the command is known: as declared, and as the file that it resolves to.
bases(cmd) := {base(cmd.declared), base(cmd.path)}

base(p) := regex.replace(p, `^.*/`, "")

# runs_code(cmd): the command runs code or other commands that its arguments hold.
runs_code(cmd) if {
	some name in bases(cmd)
	name in runners
}

# Language interpreters are fine with a script file in front (node server.js, python -m server), and nothing else.
runs_code(cmd) if {
	some name in bases(cmd)
	regex.match(`^(python|pypy|node|nodejs|deno|bun|ruby|perl|php|lua|luajit|tclsh|Rscript|osascript)[0-9.]*$`, name)
	not runs_file(cmd.args)
}

# npx -c and npm exec -c hand a line to the shell.
runs_code(cmd) if {
	some name in bases(cmd)
	name in {"npx", "npm", "pnpm", "yarn", "bunx"}
	some arg in cmd.args
	regex.match(`^(-c|--call(=.*)?)$`, arg)
}

runners := {
	"sh", "ash", "bash", "dash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "cmd", "powershell", "pwsh", "busybox",
	"toybox", "env", "xargs", "parallel", "sudo", "doas", "su", "ssh", "timeout", "nice", "nohup", "setsid", "stdbuf",
	"chroot", "unshare", "nsenter", "watch", "script", "expect", "awk", "gawk", "mawk", "nawk",
}

runs_file(args) if is_file(args[0])

runs_file(args) if {
	args[0] == "-m"
	is_file(args[1])
}

is_file(arg) if {
	arg != ""
	not startswith(arg, "-")
	not contains(arg, "{")
	not arg in {"eval", "repl"}
}

# steering(name): setting the environment variable makes a command load or run something else.
steering(name) if {
	regex.match(`^(LD_|DYLD_|GIT_|NPM_CONFIG_|npm_config_|BASH_FUNC_)`, name)
}

steering(name) if {
	name in {
		"PATH", "NODE_OPTIONS", "NODE_PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PERL5OPT", "PERL5LIB",
		"RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "BASH_ENV", "ENV", "SHELLOPTS", "IFS", "GCONV_PATH",
	}
}
