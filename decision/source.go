package decision

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

// root is the policy's folder in a catalog.
const root = "policy"

// source is a policy folder, read and parsed.
type source struct {
	// modules are served; tests are the _test.rego files. Both by path relative to the catalog's root.
	modules, tests map[string]*ast.Module
	data           *document
	digest         string
}

// has reports whether a module belongs to the point's package.
func (s *source) has(point Point) bool {
	spec := pointSpec{point: point}
	for _, m := range s.modules {
		if m.Package.Path.Equal(spec.path()) {
			return true
		}
	}
	return false
}

// readSource reads everything below policy/ as `opa test policy/` would: every .rego file is a module, a data file in
// policy/trust is data.trust. Names that begin with a dot are left alone, as editors write them. It goes on behind a
// problem, so that one pass reports them all.
func readSource(ctx context.Context, fsys fs.FS) (*source, problem.List) {
	s := &source{modules: map[string]*ast.Module{}, tests: map[string]*ast.Module{}, data: newDocument()}
	var problems problem.List
	served := sha256.New()
	options := ast.ParserOptions{
		RegoVersion:       ast.RegoV1,
		ProcessAnnotation: true, // only so that a broken one is an error here too, as it is to `opa check`
		Capabilities:      capabilities(),
	}
	err := fs.WalkDir(fsys, root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && file == root && errors.Is(err, fs.ErrNotExist):
			return fs.SkipAll
		case err != nil:
			problems.Errorf(problem.Unreadable, problem.Position{File: file}, "", "%v", err)
			return nil
		case strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir(), !isPolicyFile(file):
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
		switch {
		case isTest:
			problems = append(problems, parse(file, content, options, s.tests)...)
		case path.Ext(file) == ".rego":
			problems = append(problems, parse(file, content, options, s.modules)...)
		default:
			problems = append(problems, s.data.add(file, content)...)
		}
		return nil
	})
	if err != nil {
		problems.Errorf(problem.Unreadable, problem.Position{File: root}, "", "reading the policy: %v", err)
	}
	if len(s.modules) == 0 && !problems.HasErrors() {
		problems.Errorf(problem.NoPolicy, problem.Position{File: root}, "",
			"there is no policy, and without one nothing is allowed: `catalogd init` writes a policy/ that denies by default")
	}
	s.digest = "sha256:" + hex.EncodeToString(served.Sum(nil))
	return s, problems
}

func isPolicyFile(file string) bool {
	return slices.Contains([]string{".rego", ".yaml", ".yml", ".json"}, path.Ext(file))
}

// parse adds the module in content to modules.
func parse(file string, content []byte, options ast.ParserOptions, modules map[string]*ast.Module) problem.List {
	module, err := ast.ParseModuleWithOpts(file, string(content), options)
	switch {
	case err != nil:
		return regoProblems(err, file, "")
	case module == nil:
		var problems problem.List
		problems.Errorf(problem.RegoSyntax, problem.Position{File: file}, "", "the file is empty: begin with a package, or remove it")
		return problems
	}
	modules[file] = module
	return nil
}

// regoProblems turns OPA's errors into problems. A file stands in where an error has no position.
func regoProblems(err error, file, pkg string) problem.List {
	var problems problem.List
	var errs ast.Errors
	if !errors.As(err, &errs) {
		var one *ast.Error
		if !errors.As(err, &one) {
			problems.Errorf(problem.RegoCompile, problem.Position{File: file}, pkg, "%v", err)
			return problems
		}
		errs = ast.Errors{one}
	}
	for _, e := range errs {
		code, pos := problem.RegoCompile, position(e.Location)
		if e.Code == ast.ParseErr {
			code = problem.RegoSyntax
		}
		if !pos.IsValid() {
			pos.File = file
		}
		problems.Errorf(code, pos, pkg, "%s", explainRego(e))
	}
	return problems
}

// explainRego is an error's message with its details in one line, and the remedy for what people bring from Rego v0.
func explainRego(e *ast.Error) string {
	message := e.Message
	switch {
	case strings.Contains(message, "`if` keyword is required"):
		return message + ": this is Rego v0; add `if` in front of the body"
	case strings.Contains(message, "`contains` keyword is required"):
		return message + ": this is Rego v0; write `deny contains reason if { ... }`"
	case e.Code == ast.UnsafeVarErr:
		return message + ": nothing gives it a value; mend the name, import it, or declare it with `some ... in`"
	case strings.Contains(message, "unexpected eof token"):
		return message + ": the file ends inside a rule; close what is open, mostly with a }"
	case e.Code == ast.ParseErr || e.Details == nil:
		return message
	}
	var details []string
	for _, line := range e.Details.Lines() {
		if line = strings.TrimSpace(line); line != "" && strings.Trim(line, "^") != "" && !strings.HasSuffix(message, line) {
			details = append(details, line)
		}
	}
	if len(details) == 0 {
		return message
	}
	return message + " (" + strings.Join(details, "; ") + ")" + meant(e.Details)
}

// meant is the name that an undefined reference was probably to have, as a question; empty where none is near.
func meant(details ast.ErrorDetails) string {
	ref, ok := details.(*ast.RefErrInvalidDetail)
	if !ok || ref.Pos >= len(ref.Ref) {
		return ""
	}
	written, ok := ref.Ref[ref.Pos].Value.(ast.String)
	if !ok {
		return ""
	}
	known := map[string]bool{}
	for _, v := range ref.OneOf {
		if name, ok := v.(ast.String); ok {
			known[string(name)] = true
		}
	}
	return didYouMean(string(written), known)
}

// didYouMean asks for the known name that is near what is written; empty where none is.
func didYouMean(written string, known map[string]bool) string {
	if near := nearest(written, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

func position(l *ast.Location) problem.Position {
	if l == nil {
		return problem.Position{}
	}
	return problem.Position{File: l.File, Line: l.Row, Col: l.Col}
}
