package commandline

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// runners maps each program that fetches what it runs to the reader of its command line.
var runners map[string]func(program string, args []string, depth int) Verdict

func init() { // not a literal: runners may run each other
	runners = map[string]func(string, []string, int) Verdict{
		"npx": npx, "npm": npm, "pnpm": pnpm, "pnpx": pnpx, "yarn": yarn, "bun": bun, "bunx": bunx,
		"uvx": uvx, "uv": uv, "pipx": pipx, "pip": pip,
		"go": goRun, "docker": docker, "podman": podman, "nerdctl": nerdctl,
	}
}

// fetcher is the part of a runner that fetches a package and runs a program of it.
type fetcher struct {
	grammar
	// named are the options that name packages; without one, the first word does.
	named []string
	// exact is a package in one exact version, name a package in any, its name and nothing else as the first
	// group.
	exact, name *regexp.Regexp
	// program is one of a package, by its name.
	program *regexp.Regexp
	// installed is the switch that runs only what is installed.
	installed string
	// python matches names that run the interpreter and not a package of that name.
	python *regexp.Regexp
}

// read returns the verdict on the part behind the words that mean "fetch and run".
func (f fetcher) read(form string, args []string, depth int) Verdict {
	l := f.grammar.read(args)
	switch {
	case l.unknown != "":
		return unknownForm(form, "with "+l.unknown)
	case len(l.rest) == 0:
		return unknownForm(form, "without a package")
	}
	return f.run(form, l, depth)
}

func (f fetcher) run(form string, l line, depth int) Verdict {
	word, own := l.rest[0], l.rest[1:]
	if placeholder(word) {
		return unknownForm(form, "runs what "+word+" is filled in with")
	}
	packages, program := l.all(f.named...), word
	if len(packages) == 0 {
		packages, program = []string{word}, ""
		if m := f.name.FindStringSubmatch(word); m != nil {
			program = m[1]
		}
	} else if !f.program.MatchString(word) {
		return unknownForm(form, "runs "+word)
	}
	var v Verdict
	for _, p := range packages {
		local := f.installed != "" && l.has(f.installed) && f.name.MatchString(p)
		if !local && !f.exact.MatchString(p) {
			v.Unpinned = fmt.Sprintf("%s fetches %s, which is not one exact version", form, p)
			break
		}
	}
	if program == "" {
		return v
	}
	if f.python != nil && f.python.MatchString(program) {
		program = "python"
	}
	return v.or(recognise([]string{program}, own, depth+1)) // npx node@22.0.0 is node
}

// says reports whether args only ask for the version or help.
func says(args []string) bool {
	return len(args) == 1 && slices.Contains([]string{"--version", "--help", "-h", "-V"}, args[0])
}

// subcommand returns the first word; empty if it is an option or a placeholder.
func subcommand(args []string) string {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || placeholder(args[0]) {
		return ""
	}
	return args[0]
}

// form returns a program and its subcommand, for messages.
func form(program string, args []string) string {
	if len(args) == 0 {
		return program
	}
	return program + " " + args[0]
}

// other returns the verdict on a subcommand that has no grammar.
func other(program string, args []string) Verdict {
	if len(args) == 0 {
		return unknownForm(program, "without arguments")
	}
	return unknownForm(program, "with "+args[0])
}
