package commandline

import (
	"regexp"
	"strings"
)

const (
	npmName = `(?:@[A-Za-z0-9~][A-Za-z0-9._~-]*/)?([A-Za-z0-9~][A-Za-z0-9._~-]*)`
	semver  = `[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?`
)

var (
	// npmExact is name@1.2.3, an exact version of Semantic Versioning: no range, tag, URL, git repository or
	// path.
	npmExact = regexp.MustCompile(`^` + npmName + `@` + semver + `(?:\+[0-9A-Za-z.-]+)?$`)
	// npmAny is name or name@version, in whatever version. The group is the name without its scope.
	npmAny = regexp.MustCompile(`^` + npmName + `(?:@[0-9A-Za-z.^~*+-]+)?$`)
	// npmProgram is the name of one of a package's programs.
	npmProgram = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
)

func npmFetcher(installed string, named []string, g grammar) fetcher {
	return fetcher{g, named, npmExact, npmAny, npmProgram, installed, nil}
}

var (
	// npx looks for the first word itself, and skips the value of each option that it does not take for a
	// switch. So it has nothing here that it would read otherwise, such as --no or -yq.
	ofNpx = npmFetcher("--no-install", []string{"-p", "--package"}, grammar{
		ends: true, options: switches("-y --yes --no-install").and(fixed, "-p --package"),
	})
	ofNpmExec = npmFetcher("--no", []string{"--package"}, grammar{
		ends: true, options: switches("-y --yes --no").and(fixed, "--package"),
	})
	ofPnpmDlx = npmFetcher("", []string{"--package"}, grammar{options: switches("-y --yes").and(fixed, "--package")})
	ofYarnDlx = npmFetcher("", []string{"-p", "--package"}, grammar{
		options: switches("-q --quiet").and(fixed, "-p --package"),
	})
	ofBunx = npmFetcher("--no-install", []string{"-p", "--package"}, grammar{
		options: switches("--bun --no-install --ignore-scripts --verbose --silent").and(fixed, "-p --package"),
	})
)

func npx(program string, args []string, depth int) Verdict {
	if says(args) {
		return Verdict{}
	}
	return ofNpx.read(program, args, depth)
}

func pnpx(program string, args []string, depth int) Verdict {
	if says(args) {
		return Verdict{}
	}
	return ofPnpmDlx.read(program, args, depth)
}

func bunx(program string, args []string, depth int) Verdict {
	if says(args) {
		return Verdict{}
	}
	return ofBunx.read(program, args, depth)
}

func npm(program string, args []string, depth int) Verdict {
	switch subcommand(args) {
	case "exec", "x":
		return npmExec(form(program, args), args[1:], depth)
	case "run", "run-script":
		return packageScript(form(program, args), args[1:], depth)
	case "ls", "list", "ping", "root", "prefix": // not view: it fetches git repositories, which run their scripts
		return Verdict{}
	}
	if says(args) {
		return Verdict{}
	}
	return other(program, args)
}

// npmExec: npm takes its options behind the package too, up to --. So nothing there may be one, or become
// one.
func npmExec(form string, args []string, depth int) Verdict {
	l := ofNpmExec.grammar.read(args)
	if l.unknown == "" && !l.ended {
		for _, word := range l.rest {
			if word == "--" {
				break
			}
			if strings.HasPrefix(word, "-") || placeholder(word) {
				return unknownForm(form, "without -- in front of the package and with "+word+" behind it")
			}
		}
	}
	return ofNpmExec.read(form, args, depth)
}

// packageScript is the verdict on run NAME: a script of the working directory's package.json, by a fixed
// name.
func packageScript(form string, args []string, depth int) Verdict {
	if len(args) == 0 || !npmProgram.MatchString(strings.ReplaceAll(args[0], ":", "-")) {
		return other(form, args)
	}
	for _, arg := range args[1:] {
		if arg == "--" {
			break
		}
		if strings.HasPrefix(arg, "-") || placeholder(arg) {
			return unknownForm(form, "without -- in front of "+arg)
		}
	}
	return recognise([]string{args[0]}, args[1:], depth+1) // yarn run node is node
}

func pnpm(program string, args []string, depth int) Verdict {
	return withDlx(ofPnpmDlx, program, args, depth)
}

func yarn(program string, args []string, depth int) Verdict {
	return withDlx(ofYarnDlx, program, args, depth)
}

func withDlx(dlx fetcher, program string, args []string, depth int) Verdict {
	switch subcommand(args) {
	case "dlx":
		return dlx.read(form(program, args), args[1:], depth)
	case "run":
		return packageScript(form(program, args), args[1:], depth)
	}
	if says(args) {
		return Verdict{}
	}
	return other(program, args)
}

// bun runs a file, as an interpreter does, by its path: a name without a dot or slash is a subcommand, or
// anything that bun finds by it.
func bun(program string, args []string, depth int) Verdict {
	switch word := subcommand(args); {
	case word == "x":
		return ofBunx.read(form(program, args), args[1:], depth)
	case word == "run" && len(args) > 1 && strings.ContainsAny(args[1], "./"):
		return file(program, args[1:], depth)
	case strings.ContainsAny(word, "./"):
		return file(program, args, depth)
	case says(args):
		return Verdict{}
	}
	return other(program, args)
}
