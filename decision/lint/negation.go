package lint

import (
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// negations reports `not` over a term that may be undefined. The compiler moves the terms of a negated
// expression in front of the negation: `not startswith(input.arguments.url, "https:")` looks up
// input.arguments.url first, and where there is none the whole rule is undefined. That is an error in rules
// that restrict, a warning in rules of mixed polarity. In a module that imports future.keywords.not (or
// rego.v2) the terms stay below the negation.
func (p *Policy) negations(polarities map[*ast.Rule]polarity) (problems problem.List) {
	d := p.newDefinedness()
	d.each(func(sc *scope) {
		d.visitRule(sc.rule, polarities[sc.rule], visitor{expr: func(x *ast.Expr, s polarity, in *block) {
			if s&(restricts|mixed) == 0 {
				return
			}
			culprit, remedy := d.hoisted(sc, x, d.required(in))
			if culprit == nil {
				return
			}
			report := problems.Errorf
			if s&restricts == 0 {
				report = problems.Warnf
			}
			report(problem.SuspectNegation, source.Position(x.Location), sc.pkg,
				"where %s has no value, this `not` is not evaluated and the rule has no value either: %s", sourceOf(culprit), remedy)
		}})
	})
	return problems
}

// hoisted is a term of a negated expression that is evaluated before the negation and may be undefined, with
// the remedy; nil where there is none.
func (d *definedness) hoisted(sc *scope, x *ast.Expr, given map[string]bool) (culprit *ast.Term, remedy string) {
	if !x.IsNegated() {
		return nil, ""
	}
	lacks := func(t *ast.Term) *ast.Term { return d.firstUndefined(sc, t, given) }
	for _, with := range x.With {
		if culprit := lacks(with.Value); culprit != nil {
			return culprit, "take the value of `with` by object.get, which has a default"
		}
	}
	if !x.Negated {
		return nil, ""
	}
	// A reference on either side of == stays behind the negation; what it is made of does not.
	inside := func(t *ast.Term) *ast.Term {
		switch v := t.Value.(type) {
		case ast.Var:
			return nil // a rule, or a variable that has a value
		case ast.Ref:
			return first(partsOf(v), lacks)
		}
		return lacks(t)
	}
	terms, isOperation := x.Terms.([]*ast.Term)
	if t, ok := x.Terms.(*ast.Term); ok {
		call, isCall := t.Value.(ast.Call)
		if !isCall {
			culprit = inside(t)
		}
		terms, isOperation = call, isCall
	}
	switch {
	case !isOperation:
	case len(terms) == 3 && isEquality(terms[0]):
		culprit = first(terms[1:], inside)
	default:
		culprit = first(terms[1:], lacks)
	}
	return culprit, "write `import future.keywords.not` below the package"
}

func first(terms []*ast.Term, lacks func(*ast.Term) *ast.Term) *ast.Term {
	for _, t := range terms {
		if culprit := lacks(t); culprit != nil {
			return culprit
		}
	}
	return nil
}

// firstUndefined is the term, or the first part of it, that may be undefined; nil where it is always defined.
func (d *definedness) firstUndefined(sc *scope, t *ast.Term, given map[string]bool) *ast.Term {
	d.budget = maxSteps
	if _, always := d.values(sc, t, given, 0); always {
		return nil
	}
	var parts []*ast.Term
	switch v := t.Value.(type) {
	case ast.Ref:
		parts = partsOf(v)
	case ast.Call:
		parts = v[1:]
	default:
		parts = literalParts(t)
	}
	if culprit := first(parts, func(t *ast.Term) *ast.Term { return d.firstUndefined(sc, t, given) }); culprit != nil {
		return culprit
	}
	return t
}

// partsOf are the terms of a reference, without the variable at its head.
func partsOf(ref ast.Ref) []*ast.Term {
	if _, isVar := ref[0].Value.(ast.Var); isVar {
		return ref[1:]
	}
	return ref
}

// sourceOf is the source text of a term.
func sourceOf(t *ast.Term) string {
	if t.Location != nil && len(t.Location.Text) > 0 {
		return string(t.Location.Text)
	}
	return t.String()
}
