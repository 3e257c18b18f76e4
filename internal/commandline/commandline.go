// Package commandline recognises what a command line runs: one fixed program, a fixed script or module of an
// interpreter, or a package or image that is pinned to an exact version or digest.
//
// It knows the few safe forms of launchers, interpreters and package runners. Each has a grammar with the
// options that may precede what runs. Anything else about a known program makes the verdict unsafe: an option
// that is not in the grammar, a placeholder where the package or script is named, an unknown subcommand.
// About an unknown program it says nothing: its trust entry covers exactly one command line.
package commandline

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// Verdict says what a command line runs.
type Verdict struct {
	// RunsCode says why the command may run code from its arguments or standard input. Empty: it does not, as
	// far as this package knows the program.
	RunsCode string
	// Unpinned says why the command may fetch and run something else at each start. Empty: it fetches
	// nothing, or one exact version or digest. The dependencies of a package are not considered.
	Unpinned string
	// Script is the file that an interpreter runs, as written in the command line, or a Python module if
	// Module is set. Empty: there is none, or it is unknown.
	Script string
	Module bool
	// Dir is the directory that the command line itself changes to, before Script is looked up.
	Dir string
}

// Recognise returns the verdict on a command line: the program's name as declared, the path that it resolved
// to, and the arguments, with placeholders as {name}. The line is read under both names, and is unsafe if it
// is under either.
func Recognise(declared, path string, args []string) Verdict {
	return recognise([]string{declared, path}, args, 0)
}

// maxNesting bounds programs that start programs that start programs.
const maxNesting = 8

func recognise(names, args []string, depth int) Verdict {
	var v Verdict
	if depth > maxNesting {
		return unknownForm(name(names[0]), "starts one program by another too often")
	}
	for _, n := range names {
		v = v.or(known(name(n), args, depth))
	}
	return v
}

// or merges two verdicts on one command line: unsafe if either is.
func (v Verdict) or(w Verdict) Verdict {
	if v.RunsCode == "" {
		v.RunsCode = w.RunsCode
	}
	if v.Unpinned == "" {
		v.Unpinned = w.Unpinned
	}
	if v.Script == "" {
		v.Script, v.Module, v.Dir = w.Script, w.Module, w.Dir
	}
	return v
}

// known returns the verdict on a program by its name; the zero Verdict for an unknown program.
func known(program string, args []string, depth int) Verdict {
	family := program
	if m := versioned.FindStringSubmatch(program); m != nil {
		family = m[1]
	}
	switch {
	case launchers[program], launchers[family], linker.MatchString(program):
		return Verdict{RunsCode: program + " runs whatever its arguments say"}
	case interpreters[family] != nil:
		return script(program, family, args, depth)
	}
	if read, ok := runners[program]; ok {
		return read(program, args, depth)
	}
	if read, ok := runners[family]; ok {
		return read(program, args, depth)
	}
	return Verdict{}
}

// versioned matches a name with a version, and perhaps a variant: python3.12, python3-dbg,
// perl5.36-x86_64-linux-gnu.
var versioned = regexp.MustCompile(`^([a-z-]*[a-z])[0-9.]+(?:[a-z]|[-_].*)?$`)

// linker matches the name of a dynamic linker, which runs the program that it is given.
var linker = regexp.MustCompile(`^ld(-|\.so)`)

// aliases maps file names of package runners to the names of the runners.
var aliases = map[string]string{
	"npx-cli.js": "npx", "npx.js": "npx", "npm.js": "npm", "pnpm.js": "pnpm", "pnpx.js": "pnpx",
	"yarnpkg.js": "yarn", "corepack.js": "corepack",
	"npm-cli.js": "npm", "pnpm.cjs": "pnpm", "pnpm.mjs": "pnpm", "pnpx.cjs": "pnpx", "pnpx.mjs": "pnpx",
	"yarn.js": "yarn", "yarn.cjs": "yarn", "yarnpkg": "yarn", "pn": "pnpm", "pnx": "pnpx",
	"podman-remote": "podman",
}

// name returns the canonical name of a program. File systems that ignore case find NODE as node.
func name(path string) string {
	base := strings.ToLower(filepath.Base(path))
	base = strings.TrimSuffix(base, ".exe")
	if alias, ok := aliases[base]; ok {
		return alias
	}
	return base
}

// placeholder reports whether a call fills in a part of an element.
func placeholder(arg string) bool { return strings.Contains(arg, "{") }

// unknownForm returns the verdict on a program that fetches and runs, in a form that no grammar covers.
func unknownForm(program, what string) Verdict {
	why := fmt.Sprintf("%s %s, a form that is not known to be safe", program, what)
	return Verdict{RunsCode: why, Unpinned: why}
}
