package reach

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision/trust"
)

// An interpreter turns arguments into code, so that trust in the program says nothing about what will run. A policy can
// mean exactly that (Trust.Interpreter); else a program below must be given a fixed script or module.
//
// launchers run what their arguments name, whatever that is.
var launchers = []string{
	"env", "xargs", "nohup", "nice", "ionice", "setsid", "stdbuf", "timeout", "time", "watch", "sudo", "doas", "su", "runuser",
	"chroot", "unshare", "nsenter", "flock", "script", "strace", "busybox", "toybox", "parallel", "find", "awk", "gawk", "mawk",
	"nawk", "osascript", "expect", "make", "eval", "exec", "cmd",
}

// interpreters maps each family's name, version digits taken off, to the options that may stand before the script: they
// take no value and bring no code. Any other option counts as one that may.
var interpreters = map[string][]string{
	"sh": nil, "bash": {"--noprofile", "--norc", "-e", "-u", "-eu"}, "dash": {"-e", "-u", "-eu"}, "ash": nil, "zsh": nil, "ksh": nil, "mksh": nil,
	"csh": nil, "tcsh": nil, "fish": nil, "pwsh": nil, "powershell": nil,
	"python": {"-u", "-I", "-E", "-s", "-S", "-B", "-O", "-OO", "-b", "-q", "-P"}, "pypy": {"-u", "-I", "-E", "-s", "-S", "-B"},
	"node": {"--no-warnings", "--enable-source-maps", "--no-deprecation"}, "nodejs": {"--no-warnings"},
	"perl": {"-w", "-T"}, "ruby": {"-w"}, "php": {"-f"}, "lua": nil, "luajit": nil, "tclsh": nil, "wish": nil, "Rscript": nil,
	"julia": nil, "guile": nil, "deno": nil, "bun": nil, "ghci": nil, "groovy": nil, "scala": nil, "elixir": nil, "iex": nil, "gdb": nil,
}

// shellFlags are the options by which a package runner hands its argument to a shell.
var shellFlags = map[string][]string{
	"npx": {"-c", "--call"}, "npm": {"-c", "--call"}, "pnpm": {"-c", "--shell-mode"}, "bunx": {"--eval", "-e"},
}

// InlineCode says why a command may run code that its arguments hold, or is empty. Both names of the program count: the
// declared one, and that of the file that it resolved to. Start refuses such a command unless the decision means it
// (Trust.Interpreter).
func InlineCode(c trust.Command) string {
	for _, path := range []string{c.Declared, c.Path} {
		name := filepath.Base(path)
		name = strings.TrimSuffix(name, ".exe")
		family := strings.TrimRight(name, "0123456789.")
		if slices.Contains(launchers, name) || slices.Contains(launchers, family) {
			return fmt.Sprintf("%s runs whatever its arguments say", name)
		}
		if quiet, ok := interpreters[family]; ok {
			if why := script(family, c.Args, quiet); why != "" {
				return fmt.Sprintf("%s %s", name, why)
			}
		}
		for _, arg := range c.Args {
			for _, flag := range shellFlags[name] {
				if arg == flag || strings.HasPrefix(arg, flag+"=") {
					return fmt.Sprintf("%s %s runs its argument in a shell", name, flag)
				}
			}
		}
	}
	return ""
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

// variable says what is wrong with the element that names the script.
func variable(arg string) string {
	switch {
	case strings.HasPrefix(arg, "-"):
		return fmt.Sprintf("with the option %s may run code that its arguments hold", arg)
	case strings.Contains(arg, "{"):
		return fmt.Sprintf("runs the script that %s stands for", arg)
	}
	return ""
}
