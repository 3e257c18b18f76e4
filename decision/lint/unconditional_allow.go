package lint

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/shape"
	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// UnconditionalAllows warns of rules that allow something of a point whatever the input is: `allow := true`, a
// condition on constants or the data alone, and a condition that every input meets, such as
// `input.principal.name`. The modules must compile.
func (p *Policy) UnconditionalAllows() (problems problem.List) {
	d := p.newDefinedness()
	for _, of := range allowances {
		pkg := Point{Name: of.point}.path().String()
		exception := ""
		if d.rules[pkg]["deny"] != nil {
			exception = ", unless a deny rule holds"
		}
		for _, rule := range d.rules[pkg][of.output] {
			if rule.Default {
				continue
			}
			free := d.free(rule, 0)
			if free == nil {
				continue
			}
			how := of.output + " has no condition on the input"
			if name := source.RuleName(free); name != of.output {
				how = fmt.Sprintf("%s has no condition on the input, and %s of %s needs nothing else",
					name, of.output, source.Position(rule.Location))
			}
			problems.Warnf(problem.UnconditionalAllow, source.Position(free.Location), pkg,
				"%s: %s%s; write a condition, such as `%s`", how, of.consequence, exception, of.remedy)
		}
	}
	return problems
}

// allowances are the outputs that must depend on the input, with what it means where one does not and a rule
// that does. result and adopt are none of them: what leaves was allowed by call, and what is adopted was
// written by who may write the policy.
var allowances = []struct{ point, output, consequence, remedy string }{
	{"connect", "allow", "every command and address that the catalog declares is started or reached",
		`allow if input.target.url.host == "api.example.com"`},
	{"discover", "allow", "every tool that a server offers is accepted, and every change of one",
		`allow if input.change == "identical"`},
	{"list", "allow", "every branch shows every tool to every principal",
		`allow if "dev" in input.principal.groups`},
	{"list", "allow_resource", "every branch shows every resource of its servers to every principal",
		`allow_resource if "dev" in input.principal.groups`},
	{"list", "allow_prompt", "every branch shows every prompt of its servers to every principal",
		`allow_prompt if "dev" in input.principal.groups`},
	{"call", "allow", "every call of every principal is allowed",
		`allow if "dev" in input.principal.groups`},
	{"call", "allow_resource", "every principal may read every resource",
		`allow_resource if "dev" in input.principal.groups`},
	{"call", "allow_prompt", "every principal may get every prompt",
		`allow_prompt if "dev" in input.principal.groups`},
	{"release", "allow", "every call with a side effect is executed, and tried again without end",
		`allow if input.intent.attempt <= 2`},
}

// free is a rule that is true for every input: the one given, or the one that its only condition names; nil
// where it may depend on the input.
func (d *definedness) free(rule *ast.Rule, depth int) *ast.Rule {
	if depth > maxDepth {
		return nil
	}
	for r := rule; r != nil; r = r.Else {
		sc := d.scope(r)
		cause := d.freeTerm(sc, r.Head.Value, r, depth)
		if cause == nil {
			return nil // this branch may be false, or hold before a later one
		}
		for _, x := range r.Body {
			if cause = d.freeExpr(sc, x, cause, depth); cause == nil {
				break
			}
		}
		if cause != nil {
			return cause
		}
	}
	return nil
}

// freeExpr returns the rule because of which an expression is true for every input: cause where that is the
// expression itself, nil where it may depend on the input.
func (d *definedness) freeExpr(sc *scope, x *ast.Expr, cause *ast.Rule, depth int) *ast.Rule {
	if t, bare := x.Terms.(*ast.Term); bare && !x.IsNegated() && len(x.With) == 0 {
		return d.freeTerm(sc, t, cause, depth)
	}
	if d.reads(sc, x, anyField, map[*ast.Rule]bool{}) {
		return nil
	}
	return cause
}

func anyField(string) bool { return true }

// freeTerm is freeExpr of a term whose truth is the condition.
func (d *definedness) freeTerm(sc *scope, t *ast.Term, cause *ast.Rule, depth int) *ast.Rule {
	d.budget = maxSteps
	found, defined := d.values(sc, t, nil, 0)
	switch {
	case t.Value.Compare(ast.Boolean(false)) == 0, everyValue(found, abstractValue.isFalse):
		return nil
	case !d.reads(sc, t, anyField, map[*ast.Rule]bool{}):
		return cause
	case defined && everyValue(found, abstractValue.isNeverFalse):
		return cause
	}
	ref, ok := t.Value.(ast.Ref)
	if !ok {
		ref = ast.Ref{t}
	}
	rules, rest := d.referred(sc, ref)
	for _, rule := range rules {
		if rest || rule.Default || isPartial(rule) || len(rule.Head.Args) > 0 {
			continue
		}
		if helper := d.free(rule, depth+1); helper != nil {
			return helper
		}
	}
	return nil
}

// neverFalse are the kinds of values that are true as a condition.
var neverFalse = []shape.Kind{shape.String, shape.Int, shape.Time, shape.List, shape.Map, shape.Object}

func (v abstractValue) isFalse() bool { return v.data == false }

func (v abstractValue) isNeverFalse() bool {
	return v.shape != nil && slices.Contains(neverFalse, v.shape.Kind)
}

// everyValue reports whether there are values and each is as wanted.
func everyValue(values []abstractValue, wanted func(abstractValue) bool) bool {
	return len(values) > 0 && !slices.ContainsFunc(values, func(v abstractValue) bool { return !wanted(v) })
}
