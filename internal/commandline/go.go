package commandline

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// goExact is a package of a module in one exact version. A pseudo-version names a commit.
	goExact = regexp.MustCompile(`^[a-z0-9.-]+\.[a-z]+(?:/[A-Za-z0-9._~-]+)*@v` + semver + `(?:\+incompatible)?$`)
	// goVersion is a package with any version or query.
	goVersion = regexp.MustCompile(`@`)
	ofGoRun   = grammar{options: switches("-race -trimpath -v -x")}
)

func goRun(program string, args []string, _ int) Verdict {
	switch subcommand(args) {
	case "version":
		return Verdict{}
	case "run":
		return runGo(form(program, args), args[1:])
	}
	return other(program, args)
}

// runGo: a module in one exact version, or a directory or files of this machine, whose go.mod and go.sum say
// what else is fetched.
func runGo(form string, args []string) Verdict {
	l := ofGoRun.read(args)
	switch {
	case l.unknown != "":
		return unknownForm(form, "with "+l.unknown)
	case len(l.rest) == 0:
		return unknownForm(form, "without a package")
	}
	word := l.rest[0]
	files := strings.HasSuffix(word, ".go")
	directory := !files && (strings.HasPrefix(word, ".") || strings.HasPrefix(word, "/")) && !strings.Contains(word, "...")
	switch {
	case placeholder(word):
		return unknownForm(form, "runs what "+word+" is filled in with")
	case goExact.MatchString(word):
		return Verdict{}
	case goVersion.MatchString(word):
		return Verdict{Unpinned: form + " fetches " + word + ", which is not one exact version"}
	case directory, files && !slices.ContainsFunc(l.rest, placeholder): // go run takes every file.go in front
		return Verdict{Script: word}
	}
	return unknownForm(form, "runs "+word)
}
