package lint

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// candidate is a rule, or all definitions of a function.
type candidate struct {
	rules  []*ast.Rule
	points []string // that ask it
	called bool     // an evaluation came to it
}

// candidates are the rules that something needs to be true: those that allow, and what these need. deny rules
// and what is below `not` are there for what should not happen, and best never true. Left out are exempt
// rules, rules that read unknown fields, and helpers of points that are not asked. A function is one
// candidate.
func (p *Policy) candidates(asked, unknown []string, exempt map[string]*ast.Module) (found []*candidate) {
	f := newDataflow(p.Modules, p.Data)
	exempted := map[string]bool{}
	for _, module := range exempt {
		for _, rule := range module.Rules {
			exempted[signature(rule)] = true
		}
	}
	judged := func(rule *ast.Rule, points []string) bool {
		return !rule.Default && !exempted[signature(rule)] && !f.readsInput(rule, unknown, map[*ast.Rule]bool{}) &&
			!slices.ContainsFunc(points, func(p string) bool { return !slices.Contains(asked, p) })
	}
	functions := map[string]*candidate{}
	needed := p.requiredRules(f)
	f.each(func(sc *scope) {
		points, ok := needed[sc.rule]
		name := sc.pkg + "." + source.RuleName(sc.rule)
		switch {
		case !ok:
		case len(sc.rule.Head.Args) > 0 && functions[name] == nil:
			all := &candidate{rules: f.rules[sc.pkg][source.RuleName(sc.rule)], points: points}
			functions[name] = all
			if !slices.ContainsFunc(all.rules, func(r *ast.Rule) bool { return !r.Default && !judged(r, points) }) {
				found = append(found, all)
			}
		case len(sc.rule.Head.Args) == 0 && !hasNoBody(sc.rule) && judged(sc.rule, points):
			found = append(found, &candidate{rules: []*ast.Rule{sc.rule}, points: points})
		}
	})
	return found
}

// signature identifies a rule by its package and source text.
func signature(rule *ast.Rule) string {
	return rule.Module.Package.Path.String() + "\n" + string(rule.Location.Text)
}

// hasNoBody reports whether a rule has no condition in its body.
func hasNoBody(rule *ast.Rule) bool {
	return len(rule.Body) == 1 && rule.Body[0].Equal(ast.NewExpr(ast.BooleanTerm(true)))
}

// Coverage watches evaluations (topdown.QueryTracer) for rules that have not been true yet.
type Coverage struct {
	open  map[problem.Position]*candidate       // by the position of the first rule
	first map[problem.Position]problem.Position // the first rule of each
}

func (w *Coverage) add(c *candidate) {
	first := source.Position(c.rules[0].Location)
	w.open[first] = c
	for _, rule := range c.rules {
		for r := rule; r != nil; r = r.Else {
			w.first[source.Position(r.Location)] = first
		}
	}
}

// NewCoverage prepares the coverage of the points named by asked. unknown are the fields of their inputs that
// have no value before a call; exempt are modules whose rules are not judged where the policy has them
// unchanged.
func (p *Policy) NewCoverage(asked, unknown []string, exempt map[string]*ast.Module) *Coverage {
	w := &Coverage{open: map[problem.Position]*candidate{}, first: map[problem.Position]problem.Position{}}
	for _, candidate := range p.candidates(asked, unknown, exempt) {
		w.add(candidate)
	}
	return w
}

// Complete reports whether every rule has been true.
func (w *Coverage) Complete() bool { return len(w.open) == 0 }

// Problems warns of rules that an evaluation came to and that were never true.
func (w *Coverage) Problems() (problems problem.List) {
	for _, candidate := range w.open {
		rule := candidate.rules[0]
		if !candidate.called { // the rule that would reach it is never true itself
			continue
		}
		problems.Warnf(problem.NeverTrue, source.Position(rule.Location), rule.Module.Package.Path.String(),
			"this rule of %s was true for nothing that is declared, in no branch: fix it, or take it out", source.RuleName(rule))
	}
	return problems
}

// Awaits reports whether the point reaches a rule that has not been true yet.
func (w *Coverage) Awaits(point string) bool {
	for _, c := range w.open {
		if slices.Contains(c.points, point) {
			return true
		}
	}
	return false
}

func (w *Coverage) Enabled() bool               { return true }
func (w *Coverage) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

func (w *Coverage) TraceEvent(event topdown.Event) {
	rule, ok := event.Node.(*ast.Rule)
	if !ok || rule.Default || event.Op != topdown.ExitOp && event.Op != topdown.EnterOp {
		return
	}
	first, ok := w.first[source.Position(rule.Location)]
	if !ok {
		return
	}
	if event.Op == topdown.ExitOp {
		delete(w.open, first)
	} else if c := w.open[first]; c != nil {
		c.called = true
	}
}
