package commandline

import (
	"regexp"
)

const (
	pyName = `([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:\[[A-Za-z0-9._, -]*\])?`
	// pyVersion is one exact version of PEP 440, with at least two parts. 1.2.* is none.
	pyVersion = `[0-9]+(?:\.[0-9]+)+(?:(?:a|b|rc)[0-9]+)?(?:\.post[0-9]+)?(?:\.dev[0-9]+)?(?:\+[0-9a-z.]+)?`
)

var (
	pyExact = regexp.MustCompile(`^` + pyName + `(?:==|@)` + pyVersion + `$`)
	pyAny   = regexp.MustCompile(`^` + pyName + `(?:(?:==|@)[0-9A-Za-z.*+-]+)?$`)
	// pyProgram is a program of a package. pipx takes the name of a file or a URL, too, and runs what is
	// there.
	pyProgram = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	pyFile    = regexp.MustCompile(`(?i)\.pyw?$`)
	// python is a version of Python, as opposed to the path of a program.
	python = regexp.MustCompile(`^(?:python|cpython)?@?3(?:\.[0-9]+){0,2}$`)
	// uvPython are the names that uvx takes for a request for an interpreter: python3.12, cp312, pypy.
	uvPython = regexp.MustCompile(`(?i)^(?:c?pythonw?|cp|pypy|pp|graalpy|gp|pyodide)[0-9.]*[a-z]?$`)
	// pythonName is the interpreter, found by its name.
	pythonName = regexp.MustCompile(`^python[0-9.]*$`)
	color      = regexp.MustCompile(`^(?:auto|always|never)$`)
)

// uvQuiet are options of every command of uv.
var uvQuiet = switches(`-q --quiet -v --verbose --offline --no-progress --no-config --no-python-downloads -n
	--no-cache`).and(color, "--color")

var (
	ofUvx = pyFetcher(uvPython, "--from", switches("--isolated --no-env-file").with(uvQuiet).and(python, "-p --python"))
	ofUv  = grammar{options: uvQuiet.and(fixed, "--directory")}
	// -m and -s are switches: the module or script is the word behind all options.
	ofUvRun = grammar{options: switches(`--frozen --locked --no-sync --exact --no-dev --no-project --isolated
		--no-env-file -m --module -s --script`).with(uvQuiet).and(python, "-p --python").and(fixed, "--directory")}
	ofPipx = pyFetcher(nil, "--spec", switches("--no-cache --verbose").and(python, "--python"))
)

// pyFetcher takes the names of the interpreter, and that of the option that names a package.
func pyFetcher(interpreter *regexp.Regexp, named string, o options) fetcher {
	return fetcher{grammar{options: o.and(fixed, named)}, []string{named}, pyExact, pyAny, pyProgram, "", interpreter}
}

func uvx(program string, args []string, depth int) Verdict {
	if says(args) {
		return Verdict{}
	}
	return ofUvx.read(program, args, depth)
}

func uv(program string, args []string, depth int) Verdict {
	if says(args) {
		return Verdict{}
	}
	l := ofUv.read(args)
	switch {
	case l.unknown != "":
		return unknownForm(program, "with "+l.unknown)
	case len(l.rest) > 1 && l.rest[0] == "tool" && l.rest[1] == "run":
		return ofUvx.read(program+" tool run", l.rest[2:], depth)
	case len(l.rest) > 0 && l.rest[0] == "run":
		return uvRun(program+" run", l, depth)
	}
	return other(program, l.rest)
}

// uvRun: what the project or the script asks for is installed before anything runs, so it is never pinned.
// What runs is a file of Python, a module, or what else uv finds by a name, which is not known.
func uvRun(form string, before line, depth int) Verdict {
	l := ofUvRun.read(before.rest[1:])
	switch {
	case l.unknown != "":
		return unknownForm(form, "with "+l.unknown)
	case len(l.rest) == 0:
		return unknownForm(form, "without a script")
	}
	v := Verdict{Unpinned: form + " installs what the project or the script asks for"}
	switch word, own := l.rest[0], l.rest[1:]; {
	case l.has("-m") || l.has("--module"):
		v = v.or(module(form, word, own, depth))
	case pyFile.MatchString(word):
		v = v.or(file(form, l.rest, depth))
	case pythonName.MatchString(word):
		v = v.or(recognise([]string{word}, own, depth+1))
	default:
		v.RunsCode = form + " runs whatever its arguments say"
	}
	switch dirs := append(before.all("--directory"), l.all("--directory")...); len(dirs) {
	case 0:
	case 1:
		v.Dir = dirs[0]
	default:
		return unknownForm(form, "with two directories")
	}
	return v
}

func pipx(program string, args []string, depth int) Verdict {
	switch {
	case subcommand(args) == "run":
		l := ofPipx.grammar.read(args[1:])
		if l.unknown == "" && len(l.rest) > 0 && pyFile.MatchString(l.rest[0]) {
			return unknownForm(form(program, args), "runs "+l.rest[0])
		}
		return ofPipx.read(form(program, args), args[1:], depth)
	case subcommand(args) == "list" && len(args) == 1, says(args):
		return Verdict{}
	}
	return other(program, args)
}

func pip(program string, args []string, _ int) Verdict {
	switch subcommand(args) {
	case "list", "show", "freeze", "check":
		return Verdict{}
	}
	if says(args) {
		return Verdict{}
	}
	return other(program, args)
}
