package decision

import (
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/catalogd/catalogd/decision/lint"
)

// TestNullable calls every built-in that a policy may call with values of every type: those that neither
// answer nor fail are the ones that the lint of negations knows.
func TestNullable(t *testing.T) {
	t.Parallel()
	var values []*ast.Term
	for _, text := range []string{`null`, `true`, `0`, `-1`, `3`, `1.5`, `""`, `"a"`, `"{\"a\": 1}"`, `"2026-01-05T12:00:00Z"`, `"1.2.3"`, `"10Mi"`, `"aGk="`, `"10.0.0.0/8"`,
		`[]`, `["a"]`, `[1, 2]`, `[["a"]]`, `{}`, `{"a": 1}`, `{"a": ["b"]}`, `set()`, `{"a"}`, `{1}`, `[{"op": "remove", "path": "/x"}]`} {
		values = append(values, ast.MustParseTerm(text))
	}
	var found []string
	for _, name := range allowedBuiltins {
		b := ast.BuiltinMap[name]
		if b == nil {
			t.Errorf("%s is no built-in of OPA", name)
			continue
		}
		if b.Relation || b.Infix != "" && types.Compare(b.Decl.Result(), types.B) == 0 || b.Decl.Result() == nil || topdown.GetBuiltin(name) == nil {
			continue
		}
		if slices.ContainsFunc(combinations(values, len(b.Decl.FuncArgs().Args)), func(args []*ast.Term) bool {
			called, err := callBuiltin(t, name, args)
			return !called && err == nil
		}) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, lint.MayBeUndefined) {
		t.Errorf("%v may have no value, and the lint knows %v", found, lint.MayBeUndefined)
	}
}

func callBuiltin(t *testing.T, name string, args []*ast.Term) (answered bool, err error) {
	t.Helper()
	err = topdown.GetBuiltin(name)(topdown.BuiltinContext{Context: t.Context(), Cancel: topdown.NewCancel()}, args, func(*ast.Term) error {
		answered = true
		return nil
	})
	return answered, err
}

// combinations are lists of n values, each value at each place beside two others.
func combinations(values []*ast.Term, n int) (all [][]*ast.Term) {
	switch n {
	case 0:
		return [][]*ast.Term{nil}
	case 1, 2:
		for _, rest := range combinations(values, n-1) {
			for _, v := range values {
				all = append(all, append(slices.Clone(rest), v))
			}
		}
		return all
	}
	for _, rest := range combinations(values, 2) {
		for _, v := range values {
			list := append(slices.Clone(rest), v)
			for len(list) < n {
				list = append(list, v)
			}
			all = append(all, list)
		}
	}
	return all
}
