# Which commands a command entry of policy/trust/data.yaml covers, and which commands run what they are given.
package catalogd.lib.command

# covers(entry, cmd): cmd (input.target.command) is the entry's command, begins with its arguments and runs in its
# directory. The directory counts because a relative script or file is another one elsewhere.
covers(entry, cmd) if {
	named(entry.command[0], cmd)
	cmd.dir == object.get(entry, "dir", "")
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

# place(cmd) says in words where cmd runs, if not where every command does.
place(cmd) := "" if {
	cmd.dir == ""
} else := sprintf(" in dir %s", [json.marshal(cmd.dir)])

free_to_follow(entry, _) if not entry.exact
free_to_follow(entry, cmd) if count(cmd.args) == count(entry.command) - 1

# bases(cmd) are the names by which the command is known: as declared, and as the file that it resolves to.
bases(cmd) := {base(cmd.declared), base(cmd.path)}

base(p) := regex.replace(p, `^.*/`, "")

# runs_code(cmd): the command runs code or other commands that its arguments hold.
runs_code(cmd) if {
	some name in bases(cmd)
	name in launchers
}

# Shells and language interpreters are fine with a script file in front (node server.js, python -u -m server), and with
# nothing else.
runs_code(cmd) if {
	some name in bases(cmd)
	harmless := interpreters[regex.replace(name, `[0-9.]+$`, "")]
	not runs_file(behind(cmd.args, harmless))
}

# npx -c and npm exec -c hand a line to the shell.
runs_code(cmd) if {
	some name in bases(cmd)
	name in {"npx", "npm", "pnpm", "yarn", "bunx"}
	some arg in cmd.args
	regex.match(`^(-c|--call(=.*)?)$`, arg)
}

launchers := {
	"env", "xargs", "parallel", "nohup", "nice", "ionice", "setsid", "stdbuf", "timeout", "time", "watch", "sudo", "doas",
	"su", "runuser", "ssh", "chroot", "unshare", "nsenter", "flock", "script", "strace", "expect", "find", "awk", "gawk",
	"mawk", "nawk", "busybox", "toybox", "make", "cmd", "osascript",
}

# The interpreters, with the flags that may stand before the script: they bring no code and take no value.
interpreters := object.union(shells, languages)

shells := {name: {"-e", "-u", "-eu", "--noprofile", "--norc"} |
	some name in ["sh", "ash", "bash", "dash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "pwsh", "powershell"]
}

languages := {
	"python": {"-u", "-I", "-E", "-s", "-S", "-B", "-O", "-OO", "-b", "-q", "-P"},
	"pypy": {"-u", "-I", "-E", "-s", "-S", "-B"},
	"node": {"--no-warnings", "--enable-source-maps", "--no-deprecation"},
	"nodejs": {"--no-warnings"},
	"deno": {"run"},
	"bun": {"run"},
	"ruby": {"-w"},
	"perl": {"-w", "-T"},
	"php": {"-f"},
	"lua": set(),
	"luajit": set(),
	"tclsh": set(),
	"Rscript": set(),
	"julia": set(),
}

# behind(args, harmless) are the arguments from the first one that is not harmless.
behind(args, harmless) := array.slice(args, first, count(args)) if {
	first := min({i | some i, arg in args; not arg in harmless})
} else := []

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
