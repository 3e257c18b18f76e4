// Package source reads a policy folder: Rego modules, their tests, and the data that they are driven by, each
// with positions. It compiles nothing. It also holds what packages decision and lint share about parsed Rego:
// positions, the names of rules, the modules that a package reaches, and OPA's errors as problems.
package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/problem"
)

// Root is the policy's folder in a catalog.
const Root = "policy"

// Source is a policy folder, read and parsed.
type Source struct {
	// Modules are served; Tests are the _test.rego files. Both by path relative to the catalog's root.
	Modules, Tests map[string]*ast.Module
	Data           *Data
	// Digest names the content of modules and data.
	Digest string
}

// Read reads everything below policy/ as `opa test policy/` does: every .rego file is a module, a data file
// in policy/trust is data.trust. It skips names that begin with a dot. It goes on after a problem, so that
// one pass reports them all; an empty policy and literal secrets are errors. capabilities are those of the
// parser.
func Read(ctx context.Context, fsys fs.FS, capabilities *ast.Capabilities) (*Source, problem.List) {
	s := &Source{Modules: map[string]*ast.Module{}, Tests: map[string]*ast.Module{}, Data: newDocument()}
	var problems problem.List
	served := sha256.New()
	options := ast.ParserOptions{
		RegoVersion:       ast.RegoV1,
		ProcessAnnotation: true, // only so that a broken one is an error here too, as it is to `opa check`
		Capabilities:      capabilities,
	}
	err := fs.WalkDir(fsys, Root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && file == Root && errors.Is(err, fs.ErrNotExist):
			return fs.SkipAll
		case err != nil:
			problems.Errorf(problem.Unreadable, problem.Position{File: file}, "", "%v", err)
			return nil
		case strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		case !isPolicyFile(file):
			if ext := strings.ToLower(path.Ext(file)); isPolicyFile(ext) {
				code := problem.PolicyData
				if ext == ".rego" {
					code = problem.PolicyPoint
				}
				problems.Errorf(code, problem.Position{File: file}, "", "nothing reads a file whose name ends in %s: write it as %s", path.Ext(file), ext)
			}
			return nil
		}
		content, err := fs.ReadFile(fsys, file)
		if err != nil {
			problems.Errorf(problem.Unreadable, problem.Position{File: file}, "", "%v", err)
			return nil
		}
		isTest := strings.HasSuffix(file, "_test.rego")
		if !isTest {
			fmt.Fprintf(served, "%d %s %d\n", len(file), file, len(content))
			served.Write(content)
		}
		problems = append(problems, literalSecrets(file, content)...)
		switch {
		case isTest:
			problems = append(problems, parse(file, content, options, s.Tests)...)
		case path.Ext(file) == ".rego":
			problems = append(problems, parse(file, content, options, s.Modules)...)
		default:
			problems = append(problems, s.Data.add(file, content)...)
		}
		return nil
	})
	if err != nil {
		problems.Errorf(problem.Unreadable, problem.Position{File: Root}, "", "reading the policy: %v", err)
	}
	if len(s.Modules) == 0 && !problems.HasErrors() {
		problems.Errorf(problem.NoPolicy, problem.Position{File: Root}, "",
			"there is no policy, and without one nothing is allowed: `catalogd init` writes a policy/ that denies by default")
	}
	s.Digest = "sha256:" + hex.EncodeToString(served.Sum(nil))
	return s, problems.Discreet()
}

func isPolicyFile(file string) bool {
	return slices.Contains([]string{".rego", ".yaml", ".yml", ".json"}, path.Ext(file))
}

// parse adds the module in content to modules.
func parse(file string, content []byte, options ast.ParserOptions, modules map[string]*ast.Module) problem.List {
	module, err := ast.ParseModuleWithOpts(file, string(content), options)
	switch {
	case err != nil:
		return Problems(err, file, "")
	case module == nil:
		var problems problem.List
		problems.Errorf(problem.RegoSyntax, problem.Position{File: file}, "", "the file is empty: begin with a package, or remove it")
		return problems
	}
	modules[file] = module
	return nil
}
