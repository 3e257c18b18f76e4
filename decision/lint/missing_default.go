package lint

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// missingDefault warns where a rule that is true or undefined is used as a value: a comparison with false is
// never true, and a collection that contains the rule is undefined too.
func (l *linter) missingDefault(sc *scope) {
	warn := func(t *ast.Term, name string) {
		l.problems.Warnf(problem.MissingDefault, source.Position(t.Location), sc.pkg,
			"%s is true or has no value, never false: write `default %s := false`, or `not %s` where that is meant", t, name, t)
	}
	eachCall(sc.rule, func(terms []*ast.Term) {
		if len(terms) != 3 || !isEquality(terms[0]) && !isOperator(terms[0], ast.NotEqual) {
			return
		}
		for i, t := range terms[1:] {
			other := terms[2-i]
			truth, written := other.Value.(ast.Boolean)
			if name, ok := l.trueOrUndefined(sc, t); ok && written && bool(truth) == isOperator(terms[0], ast.NotEqual) {
				warn(t, name)
			}
		}
	})
	collected := func(elem *ast.Term) {
		if name, ok := l.trueOrUndefined(sc, elem); ok {
			warn(elem, name)
		}
	}
	ast.WalkTerms(sc.rule, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Object:
			v.Foreach(func(_, value *ast.Term) { collected(value) })
		case *ast.Array:
			v.Foreach(collected)
		}
		return false
	})
	hasDefault := slices.ContainsFunc(l.rules[sc.pkg][source.RuleName(sc.rule)], func(r *ast.Rule) bool { return r.Default })
	if value := sc.rule.Head.Value; value != nil && !hasDefault {
		collected(value)
	}
}

// trueOrUndefined reports whether a term is a rule or a function call of which every definition has the value
// true under a condition, without a default or else. It returns the name to write a default for.
func (l *linter) trueOrUndefined(sc *scope, t *ast.Term) (name string, ok bool) {
	var rules []*ast.Rule
	var head string
	switch v := t.Value.(type) {
	case ast.Var:
		if _, local := sc.vars[v]; !local {
			rules, head = l.rules[sc.pkg][string(v)], string(v)
		}
	case ast.Ref:
		if path, ok := l.function(sc, t); ok {
			rules, head = l.byPath(path)
		}
	case ast.Call:
		if path, ok := l.function(sc, v[0]); ok {
			rules, head = l.byPath(path)
			head += "(" + strings.TrimSuffix(strings.Repeat("_, ", len(v)-1), ", ") + ")"
		}
	}
	conditional := false
	for _, rule := range rules {
		value := rule.Head.Value
		if rule.Default || rule.Head.Key != nil || rule.Else != nil || value == nil || value.Value.Compare(ast.Boolean(true)) != 0 {
			return "", false
		}
		conditional = conditional || len(rule.Head.Args) > 0 || !rule.Body.Equal(ast.NewBody(ast.NewExpr(ast.BooleanTerm(true))))
	}
	return head, conditional
}
