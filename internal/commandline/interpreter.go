package commandline

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// launchers are programs that run whatever their arguments name.
var launchers = set(`
	asdf awk aws-vault busybox bwrap capsh cgexec chamber chroot chrt cmd concurrently conda corepack cross-env
	dbus-launch dbus-run-session direnv doas doppler dotenv dotenvx envchain
	dumb-init entr env eval exec expect fakeroot find firejail flock gawk gdb ghci gmake gosu hatch iex ionice linux32
	infisical linux64 lldb ltrace make mamba mawk mcp-proxy mcpo micromamba mise mosh nawk newgrp nice nodemon nohup nsenter numactl osascript
	parallel pdm perf pipenv pixi pkexec poetry prlimit proxychains proxychains4 rlwrap run-parts runcon runuser rye
	schroot screen script setarch setpriv setsid sg socat ssh ssh-agent sshpass start-stop-daemon stdbuf strace su
	su-exec sudo supergateway systemd-nspawn systemd-run taskset time timeout tini tmux torsocks toybox unbuffer
	unshare valgrind volta watch xargs xvfb-run`)

// interpreters maps each family's name, version digits taken off, to the options that may precede the script:
// they take no value and bring no code. Any other option counts as one that may.
var interpreters = map[string]map[string]bool{
	"python": set("-u -I -E -s -S -B -O -OO -b -q -P"), "pypy": set("-u -I -E -s -S -B"), "ipython": set(""),
	"cpython": set(""), "graalpy": set(""),
	"node": set("--no-warnings --enable-source-maps --no-deprecation"), "nodejs": set("--no-warnings"),
	"perl": set("-w -T"), "ruby": set("-w"), "php": set("-f"),
}

func init() {
	for name := range set("sh ash bash rbash dash zsh ksh rksh mksh fish csh tcsh") {
		interpreters[name] = set("-e -u -eu --noprofile --norc")
	}
	for name := range set(`clisp deno elixir erl escript gjs gnuplot groovy guile irb jshell julia lua luajit octave
		powershell pry pwsh qjs r racket raku rscript runghc runhaskell sbcl scala tclsh ts-node tsx wish`) {
		interpreters[name] = set("")
	}
}

// modulesThatRunCode are those of Python itself, and some well-known ones, that run code or a program that
// their arguments name.
var modulesThatRunCode = set("asyncio code coverage cprofile debugpy idlelib pdb profile runpy timeit trace")

// set returns the words of a text as a set.
func set(names string) map[string]bool {
	s := make(map[string]bool)
	for _, n := range strings.Fields(names) {
		s[n] = true
	}
	return s
}

// script returns the verdict on an interpreter: safe with a fixed script or module behind harmless options.
func script(program, family string, args []string, depth int) Verdict {
	for len(args) > 0 && interpreters[family][args[0]] {
		args = args[1:]
	}
	python := strings.HasSuffix(family, "python") || family == "pypy" || family == "graalpy"
	switch {
	case len(args) == 0:
		return Verdict{RunsCode: program + " reads its code from standard input"}
	case python && args[0] == "-m" && len(args) > 1:
		return module(program, args[1], args[2:], depth)
	case family == "deno" && args[0] == "run" && len(args) > 1:
		args = args[1:]
	case family == "deno":
		return Verdict{RunsCode: fmt.Sprintf("%s %s may run code that its arguments hold", program, args[0])}
	}
	return file(program, args, depth)
}

// file is the verdict on a program that is given the file args[0] to run, and the rest as the file's own
// arguments.
func file(program string, args []string, depth int) Verdict {
	if why := variable(args[0]); why != "" {
		return Verdict{RunsCode: program + " " + why}
	}
	v := Verdict{Script: args[0]}
	if runner, ok := aliases[strings.ToLower(filepath.Base(args[0]))]; ok { // node .../npx-cli.js is npx
		v = v.or(recognise([]string{runner}, args[1:], depth+1))
	}
	return v
}

// module returns the verdict on python -m.
func module(program, name string, args []string, depth int) Verdict {
	if why := variable(name); why != "" {
		return Verdict{RunsCode: program + " -m " + why}
	}
	top, _, _ := strings.Cut(strings.ToLower(name), ".")
	if modulesThatRunCode[top] {
		return Verdict{RunsCode: fmt.Sprintf("%s -m %s runs what its arguments say", program, name)}
	}
	v := Verdict{Script: name, Module: true}
	return v.or(recognise([]string{top}, args, depth+1)) // python -m uv is uv
}

var (
	// address is a URL in place of a file; it may bring the code along (data:).
	address = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
	// input is standard input by its name as a file.
	input = regexp.MustCompile(`(^|/)(dev/(.*/)?stdin|fd/[0-9]+)$`)
)

// variable returns why the element that names the script is not one fixed file; empty if it is. Shells also
// take options with +: sh +c.
func variable(arg string) string {
	switch {
	case strings.HasPrefix(arg, "-"), strings.HasPrefix(arg, "+"):
		return fmt.Sprintf("with the option %s may run code that its arguments hold", arg)
	case placeholder(arg):
		return fmt.Sprintf("runs the script that %s is filled in with", arg)
	case address.MatchString(arg):
		return fmt.Sprintf("runs what it finds at %s", arg)
	case input.MatchString(filepath.Clean(arg)):
		return "reads its code from standard input"
	case slices.Contains([]string{"", "eval", "repl", "inspect", "debug"}, arg):
		return fmt.Sprintf("%s may run code that its arguments hold", arg)
	}
	return ""
}
