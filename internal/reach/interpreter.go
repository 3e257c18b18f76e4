package reach

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision/trust"
)

// An interpreter turns arguments into code, so that trust in the program says nothing about what will run. A policy can
// mean exactly that (Trust.Interpreter); else a program below must be given a fixed script or module.
//
// The shipped policy has these tables too (policy/lib/command.rego), on purpose: there a person sees them, may change them
// and is told by a deny reason; here they still hold under a policy that somebody wrote without them. A test makes sure
// that whatever the policy knows is known here.
//
// launchers run what their arguments name, whatever that is.
var launchers = []string{
	"env", "xargs", "nohup", "nice", "ionice", "setsid", "stdbuf", "timeout", "time", "watch", "sudo", "doas", "su", "runuser",
	"ssh", "chroot", "unshare", "nsenter", "flock", "script", "strace", "busybox", "toybox", "parallel", "find", "awk", "gawk",
	"mawk", "nawk", "osascript", "expect", "make", "eval", "exec", "cmd", "pkexec", "gosu", "su-exec", "sg", "newgrp", "runcon",
	"systemd-run", "start-stop-daemon", "run-parts", "dbus-run-session", "tini", "dumb-init", "taskset", "chrt", "prlimit",
	"numactl", "setarch", "linux32", "linux64", "unbuffer", "rlwrap", "entr", "fakeroot", "proxychains", "proxychains4",
	"torsocks", "firejail", "bwrap", "ltrace", "valgrind", "perf", "gdb", "lldb", "socat", "iex", "ghci",
}

// interpreters maps each family's name, version digits taken off, to the options that may stand before the script: they
// take no value and bring no code. Any other option counts as one that may.
var interpreters = map[string][]string{
	"sh": ofShells, "ash": ofShells, "bash": ofShells, "rbash": ofShells, "dash": ofShells, "zsh": ofShells, "ksh": ofShells,
	"rksh": ofShells, "mksh": ofShells, "fish": ofShells, "csh": ofShells, "tcsh": ofShells, "pwsh": nil, "powershell": nil,
	"python": {"-u", "-I", "-E", "-s", "-S", "-B", "-O", "-OO", "-b", "-q", "-P"}, "pypy": {"-u", "-I", "-E", "-s", "-S", "-B"},
	"node": {"--no-warnings", "--enable-source-maps", "--no-deprecation"}, "nodejs": {"--no-warnings"},
	"perl": {"-w", "-T"}, "ruby": {"-w"}, "php": {"-f"}, "lua": nil, "luajit": nil, "tclsh": nil, "wish": nil, "Rscript": nil,
	"julia": nil, "guile": nil, "deno": nil, "bun": nil, "groovy": nil, "scala": nil, "elixir": nil,
}

var ofShells = []string{"-e", "-u", "-eu", "--noprofile", "--norc"}

// shellFlags are the options by which a package runner hands its argument to a shell. npm takes -yc for -y -c, and the
// beginning of a name for the name.
var shellFlags = map[string]*regexp.Regexp{
	"npx": npmCall, "npm": npmCall, "pnpx": npmCall, "yarn": npmCall,
	"pnpm": regexp.MustCompile(`^(-[A-Za-z]*c|--shell-mode)$`), "bunx": regexp.MustCompile(`^(-e|--eval)(=|$)`),
}

var npmCall = regexp.MustCompile(`^(-[A-Za-z]*c|--c(a(ll?)?)?(=.*)?)$`)

// subcommands run any command when they stand first.
var subcommands = map[string]string{
	"uv": "run", "pnpm": "exec", "yarn": "exec", "bun": "exec", "npm": "explore", "poetry": "run", "pipenv": "run", "hatch": "run",
	"conda": "run", "direnv": "exec",
}

// linker is a dynamic linker's name: it runs the program that it is given.
var linker = regexp.MustCompile(`^ld(-|\.so)`)

// InlineCode says why a command may run code that its arguments hold, or is empty. Both names of the program count: the
// declared one, and that of the file that it resolved to. Start refuses such a command unless the decision means it
// (Trust.Interpreter).
func InlineCode(c trust.Command) string {
	for _, path := range []string{c.Declared, c.Path} {
		name := filepath.Base(path)
		name = strings.TrimSuffix(name, ".exe")
		family := strings.TrimRight(name, "0123456789.")
		if slices.Contains(launchers, name) || slices.Contains(launchers, family) || linker.MatchString(name) {
			return fmt.Sprintf("%s runs whatever its arguments say", name)
		}
		if quiet, ok := interpreters[family]; ok {
			if why := script(family, c.Args, quiet); why != "" {
				return fmt.Sprintf("%s %s", name, why)
			}
		}
		if word := subcommands[name]; word != "" && len(c.Args) > 0 && c.Args[0] == word {
			return fmt.Sprintf("%s %s runs whatever its arguments say", name, word)
		}
		for _, arg := range c.Args {
			if flag := shellFlags[name]; flag != nil && flag.MatchString(arg) {
				return fmt.Sprintf("%s %s runs its argument in a shell", name, arg)
			}
		}
	}
	return ""
}

// scriptOf is the file that an interpreter is told to run, as the command line has it, or the module (python -m); empty
// where the command is no interpreter or its first element that is no harmless option names no file.
func scriptOf(c trust.Command) (script string, module bool) {
	for _, path := range []string{c.Declared, c.Path} {
		family := strings.TrimRight(strings.TrimSuffix(filepath.Base(path), ".exe"), "0123456789.")
		quiet, ok := interpreters[family]
		if !ok {
			continue
		}
		args := c.Args
		for len(args) > 0 && slices.Contains(quiet, args[0]) {
			args = args[1:]
		}
		switch {
		case len(args) > 1 && args[0] == "-m":
			return args[1], true
		case len(args) > 1 && args[0] == "run" && (family == "deno" || family == "bun"):
			args = args[1:]
		}
		if len(args) > 0 && variable(args[0]) == "" {
			return args[0], false
		}
	}
	return "", false
}

// script checks that a fixed script follows the harmless options.
func script(family string, args, quiet []string) string {
	for i, arg := range args {
		switch {
		case slices.Contains(quiet, arg):
			continue
		case (family == "python" || family == "pypy") && arg == "-m" && i+1 < len(args):
			return variable(args[i+1])
		case (family == "deno" || family == "bun") && arg == "run" && i+1 < len(args):
			return variable(args[i+1])
		case family == "deno" || (family == "bun" && !strings.ContainsAny(arg, "./")):
			return fmt.Sprintf("%s may run code that its arguments hold", arg)
		}
		return variable(arg)
	}
	return "reads its code from standard input"
}

var (
	// address is a URL in place of a file; it may bring the code along (data:).
	address = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
	// input is standard input by its name as a file.
	input = regexp.MustCompile(`(^|/)(dev/(.*/)?stdin|fd/[0-9]+)$`)
)

// variable says what is wrong with the element that names the script. Shells take an option with + too: sh +c.
func variable(arg string) string {
	switch {
	case strings.HasPrefix(arg, "-"), strings.HasPrefix(arg, "+"):
		return fmt.Sprintf("with the option %s may run code that its arguments hold", arg)
	case strings.Contains(arg, "{"):
		return fmt.Sprintf("runs the script that %s stands for", arg)
	case address.MatchString(arg):
		return fmt.Sprintf("runs what it finds at %s", arg)
	case input.MatchString(filepath.Clean(arg)):
		return "reads its code from standard input"
	case slices.Contains([]string{"", "eval", "repl", "inspect", "debug"}, arg):
		return "may run code that its arguments hold"
	}
	return ""
}
