package decision

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/problem"
)

// checkDeadline bounds the check of the data, which a load makes once.
const checkDeadline = 5 * time.Second

// checkData asks data.catalogd.check, if the policy has it, what is wrong with the data: problems, a set of {"path":
// [keys below data], "message": text}. Each refuses the policy at the place that it names, and so does a check that
// fails.
func checkData(ctx context.Context, s *source) problem.List {
	var problems problem.List
	modules := closure(s.modules, checkSpec.path())
	own := problem.Position{File: root}
	for _, file := range sortedKeys(s.modules) {
		if s.modules[file].Package.Path.Equal(checkSpec.path()) {
			own = position(s.modules[file].Package.Location)
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
	e := &Engine{deadline: checkDeadline, store: s.data.store()}
	document, err := e.evaluate(ctx, point, ast.InternedEmptyObject, nil)
	if err != nil {
		d := e.failed(ctx, checkSpec.point, err)
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
		problems.Errorf(problem.PolicyData, s.data.nearest(keys), dataPath(keys), "%s", message)
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
