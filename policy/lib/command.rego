# Which commands a command entry of policy/trust/data.yaml covers, and which commands run what they are given.
#
# catalogd itself knows the launchers and interpreters below too (internal/reach/interpreter.go), on purpose: taking one
# out here lets nothing more run, adding one does make the policy stricter.
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

# digest(observed) says in words what the command's file was found to be.
digest(observed) := observed.sha256 if {
	observed.sha256 != ""
} else := "which can't be read"

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

# npx -c and npm exec -c hand a line to the shell; -yc is -y and -c, and --cal is --call.
runs_code(cmd) if {
	some name in bases(cmd)
	name in {"npx", "npm", "pnpm", "pnpx", "yarn", "bunx"}
	some arg in cmd.args
	regex.match(`^(-[A-Za-z]*c|--c(a(ll?)?)?(=.*)?|--shell-mode)$`, arg)
}

# These run any command when their first word says so.
runs_code(cmd) if {
	some name in bases(cmd)
	[name, cmd.args[0]] in [
		["uv", "run"], ["pnpm", "exec"], ["yarn", "exec"], ["bun", "exec"], ["npm", "explore"], ["poetry", "run"],
		["pipenv", "run"], ["hatch", "run"], ["conda", "run"], ["direnv", "exec"],
	]
}

# The dynamic linker runs the program that it is given.
runs_code(cmd) if {
	some name in bases(cmd)
	regex.match(`^ld(-|\.so)`, name)
}

launchers := {
	"env", "xargs", "parallel", "nohup", "nice", "ionice", "setsid", "stdbuf", "timeout", "time", "watch", "sudo", "doas",
	"su", "runuser", "ssh", "chroot", "unshare", "nsenter", "flock", "script", "strace", "expect", "find", "awk", "gawk",
	"mawk", "nawk", "busybox", "toybox", "make", "cmd", "osascript", "pkexec", "gosu", "su-exec", "sg", "newgrp", "runcon",
	"systemd-run", "start-stop-daemon", "run-parts", "dbus-run-session", "tini", "dumb-init", "taskset", "chrt", "prlimit",
	"numactl", "setarch", "linux32", "linux64", "unbuffer", "rlwrap", "entr", "fakeroot", "proxychains", "proxychains4",
	"torsocks", "firejail", "bwrap", "ltrace", "valgrind", "perf", "gdb", "lldb", "socat", "eval", "exec", "iex", "ghci",
}

# The interpreters, with the flags that may stand before the script: they bring no code and take no value.
interpreters := object.union(shells, languages)

shells := {name: {"-e", "-u", "-eu", "--noprofile", "--norc"} |
	some name in ["sh", "ash", "bash", "rbash", "dash", "zsh", "ksh", "rksh", "mksh", "fish", "csh", "tcsh"]
}

languages := {
	"pwsh": set(), # its -e takes a whole program, encoded
	"powershell": set(),
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
	"wish": set(),
	"Rscript": set(),
	"julia": set(),
	"guile": set(),
	"groovy": set(),
	"scala": set(),
	"elixir": set(),
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

# Neither an option (sh takes +c for -c), nor what the caller fills in, nor a URL that brings the code along
# (deno run data:...), nor standard input by its name as a file.
is_file(arg) if {
	not regex.match(`^[-+]`, arg)
	not contains(arg, "{")
	not regex.match(`^[A-Za-z][A-Za-z0-9+.-]*:`, arg)
	not regex.match(`(^|/)(dev/(.*/)?stdin|fd/[0-9]+)$`, concat("/", [s | some s in split(arg, "/"); not s in {"", "."}]))
	not arg in {"", "eval", "repl", "inspect", "debug"}
}

# steering(name): setting the environment variable makes a command load or run something else.
steering(name) if {
	regex.match(`^(LD_|DYLD_|GLIBC_|GIT_|(?i)(npm|pnpm|yarn)_|BASH_FUNC_|LUA_|GUILE_|JULIA_|R_|BUNDLE_|GEM_|UV_|PIP_|DENO_|BUN_|ERL_|CORECLR_|PHP|OPENSSL_)`, name)
}

steering(name) if {
	name in {
		"PATH", "NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED",
		"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONUSERBASE", "PYTHONPLATLIBDIR",
		"PYTHONPYCACHEPREFIX", "PYTHONEXECUTABLE", "PYTHONWARNINGS", "PERL5OPT", "PERL5LIB", "PERLLIB", "PERL5DB", "PERL5SHELL",
		"RUBYOPT", "RUBYLIB", "RUBYSHELL", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_OPTS", "CLASSPATH",
		"DOTNET_STARTUP_HOOKS", "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "IFS", "PS4", "PROMPT_COMMAND", "ZDOTDIR", "FPATH",
		"CDPATH", "SHELL", "GCONV_PATH", "AWKPATH", "AWKLIBPATH", "TCLLIBPATH", "MAKEFLAGS", "TAR_OPTIONS", "RSYNC_RSH",
		"SSH_ASKPASS", "SUDO_ASKPASS", "EDITOR", "VISUAL", "PAGER", "MANPAGER", "LESSOPEN", "LESSCLOSE", "BROWSER", "GOFLAGS",
		"RUSTC_WRAPPER", "COREPACK_NPM_REGISTRY", "DOCKER_HOST", "KUBECONFIG",
	}
}
