package decision

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// checkData evaluates data.catalogd.check, if the policy has it: problems is a set of {"path": [keys below
// data], "message": text}. Each is an error at the position of its path; a check that fails is an error too.
func checkData(ctx context.Context, s *source.Source) problem.List {
	var problems problem.List
	modules := source.Closure(s.Modules, checkSpec.path())
	own := problem.Position{File: source.Root}
	for _, file := range source.SortedKeys(s.Modules) {
		if s.Modules[file].Package.Path.Equal(checkSpec.path()) {
			own = source.Position(s.Modules[file].Package.Location)
		}
	}
	if own.Line == 0 {
		return nil
	}
	point, problems := compile(modules, checkSpec, nil)
	if problems.HasErrors() {
		return problems
	}
	path := checkSpec.path().String()
	e := &Engine{deadline: DefaultBuild, store: storeOf(s.Data), logger: slog.New(slog.DiscardHandler)}
	document, err := e.evaluate(ctx, point, ast.InternedEmptyObject, nil)
	if err != nil {
		d := e.failure(ctx, checkSpec.point, err)
		problems.Errorf(problem.PolicyData, own, path, "the check of the data failed: %s", strings.Join(d.Reasons, "; "))
		return problems
	}
	if document == nil || document.Get(ast.InternedTerm("problems")) == nil {
		return nil
	}
	found, ok := document.Get(ast.InternedTerm("problems")).Value.(ast.Set)
	if !ok {
		problems.Errorf(problem.PolicyPoint, own, path, "problems must be a set (`problems contains ...`)")
		return problems
	}
	found.Foreach(func(t *ast.Term) {
		keys, message, err := readFault(t)
		if err != nil {
			problems.Errorf(problem.PolicyPoint, own, path, "%v", err)
			return
		}
		problems.Errorf(problem.PolicyData, s.Data.Nearest(keys), source.Path(keys), "%s", message)
	})
	return problems
}

// readFault reads {"path": ["trust", "entries", "x"], "message": "..."}.
func readFault(t *ast.Term) (keys []string, message string, err error) {
	wrong := fmt.Errorf("problems holds %s: each must be {\"path\": [keys], \"message\": text}", ast.ValueName(t.Value))
	object, ok := t.Value.(ast.Object)
	if !ok || object.Get(ast.InternedTerm("path")) == nil || object.Get(ast.InternedTerm("message")) == nil {
		return nil, "", wrong
	}
	list, ok1 := object.Get(ast.InternedTerm("path")).Value.(*ast.Array)
	text, ok2 := object.Get(ast.InternedTerm("message")).Value.(ast.String)
	if !ok1 || !ok2 {
		return nil, "", wrong
	}
	for i := range list.Len() {
		key, ok := list.Elem(i).Value.(ast.String)
		if !ok {
			return nil, "", wrong
		}
		keys = append(keys, string(key))
	}
	return keys, string(text), nil
}
