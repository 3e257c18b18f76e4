package decision

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/catalogd/catalogd/problem"
)

// maxAsked is how many questions are asked to find rules that are never true. A catalog of more is not judged: a rule may
// be true in the one that was left out.
const maxAsked = 50_000

// evaluated are the points that are asked about all that is declared.
var evaluated = []Point{Connect, List, Call}

// idleRules warns of rules that were true for no declared tool, branch and principal: what they are to let happen never
// does. Judged are the rules that allow, and those that these need: `deny` rules and what stands behind `not` are there
// for what should not happen, and are best never true. Not judged are rules that stand as they were shipped, those that
// read what only a call brings or, without fixtures, the principal, helpers of points that are not asked here, and what
// nothing came to ask. A function is judged as a whole.
func (e *Engine) idleRules(ctx context.Context, c Catalog) (problems problem.List) {
	w := &awaiting{open: map[problem.Position]*candidate{}, of: map[problem.Position]problem.Position{}}
	for _, candidate := range e.candidates(ctx, c) {
		w.add(candidate)
	}
	if !e.askAll(ctx, c, w) {
		return nil
	}
	for _, candidate := range w.open {
		rule := candidate.rules[0]
		if !candidate.called { // what would ask it is never true itself
			continue
		}
		problems.Warnf(problem.NeverTrue, position(rule.Location), rule.Module.Package.Path.String(),
			"this rule of %s was true for nothing that is declared, in no branch: mend it, or take it out", ruleName(rule))
	}
	return problems
}

// candidate is a rule, or all definitions of a function.
type candidate struct {
	rules  []*ast.Rule
	points []Point // that ask it
	called bool
}

// candidates are the rules that are to be true for something.
func (e *Engine) candidates(ctx context.Context, c Catalog) (found []*candidate) {
	f := newFollower(e.modules, e.data)
	asked := c.asked()
	shipped := map[string]bool{}
	if c.Shipped != nil {
		s, _ := readSource(ctx, c.Shipped)
		for _, module := range s.modules {
			for _, rule := range module.Rules {
				shipped[signature(rule)] = true
			}
		}
	}
	open := c.unknown()
	judged := func(rule *ast.Rule, points []Point) bool {
		return !rule.Default && !shipped[signature(rule)] && !f.reads(rule, open, map[*ast.Rule]bool{}) &&
			!slices.ContainsFunc(points, func(p Point) bool { return !slices.Contains(asked, p) })
	}
	functions := map[string]*candidate{}
	needed := e.needed(f)
	f.each(func(sc *scope) {
		points, ok := needed[sc.rule]
		name := sc.pkg + "." + ruleName(sc.rule)
		switch {
		case !ok:
		case len(sc.rule.Head.Args) > 0 && functions[name] == nil:
			all := &candidate{rules: f.rules[sc.pkg][ruleName(sc.rule)], points: points}
			functions[name] = all
			if !slices.ContainsFunc(all.rules, func(r *ast.Rule) bool { return !r.Default && !judged(r, points) }) {
				found = append(found, all)
			}
		case len(sc.rule.Head.Args) == 0 && !always(sc.rule) && judged(sc.rule, points):
			found = append(found, &candidate{rules: []*ast.Rule{sc.rule}, points: points})
		}
	})
	return found
}

// signature is a rule as it is written, in its package.
func signature(rule *ast.Rule) string {
	return rule.Module.Package.Path.String() + "\n" + string(rule.Location.Text)
}

// always reports whether a rule has no condition.
func always(rule *ast.Rule) bool {
	return len(rule.Body) == 1 && rule.Body[0].Equal(ast.NewExpr(ast.BooleanTerm(true)))
}

// unknown are the fields of the inputs of List and Call that nothing declared gives a value.
func (c Catalog) unknown() (fields []string) {
	for _, point := range []Point{List, Call} {
		spec, _ := specOf(point)
		for _, f := range spec.input.fields {
			switch {
			case f.name == "branch", f.name == "tool", f.name == "principal" && len(c.Principals) > 0:
			default:
				fields = append(fields, f.name)
			}
		}
	}
	return fields
}

// asked are the points at which something is asked.
func (c Catalog) asked() (asked []Point) {
	for _, point := range evaluated {
		if point == Connect && len(c.Reached) > 0 || point != Connect && len(c.Tools) > 0 && len(c.Branches) > 0 {
			asked = append(asked, point)
		}
	}
	return asked
}

// askAll asks everything until no rule is awaited any more. It reports false where that can't be done: there is too much to
// ask, or an evaluation failed.
func (e *Engine) askAll(ctx context.Context, c Catalog, w *awaiting) bool {
	principals := c.Principals
	if len(principals) == 0 {
		principals = []Principal{Local()}
	}
	left := maxAsked
	ask := func(point Point, in any) bool {
		switch {
		case len(w.open) == 0:
			return false
		case !w.awaits(point):
			return true
		case left == 0:
			return false
		}
		left--
		return e.watch(ctx, point, in, w) == nil
	}
	for _, in := range c.Reached {
		if !ask(Connect, in) {
			return len(w.open) == 0
		}
	}
	for _, branch := range c.Branches {
		for _, tool := range c.Tools {
			for _, who := range principals {
				if !ask(List, ListInput{Branch: branch, Tool: tool, Principal: who}) ||
					!ask(Call, CallInput{Branch: branch, Tool: tool, Principal: who, Time: time.Unix(0, 0)}) {
					return len(w.open) == 0
				}
			}
		}
	}
	return true
}

// watch evaluates a point with every definition of every rule: not only the first one that says yes, nor only those that an
// index finds.
func (e *Engine) watch(ctx context.Context, point Point, in any, tracer topdown.QueryTracer) error {
	p := e.points[point]
	input, err := p.spec.input.value(reflect.ValueOf(in))
	if err != nil {
		return err
	}
	return e.within(ctx, func(ctx context.Context, ask asking) error {
		query := ask(p, p.query, input).WithQueryTracer(tracer).WithEarlyExit(false).WithIndexing(false)
		return query.Iter(ctx, func(topdown.QueryResult) error { return nil })
	})
}

// awaiting watches evaluations for rules that have not been true yet.
type awaiting struct {
	open map[problem.Position]*candidate       // by the place of the first rule
	of   map[problem.Position]problem.Position // the first rule of each
}

func (w *awaiting) add(c *candidate) {
	first := position(c.rules[0].Location)
	w.open[first] = c
	for _, rule := range c.rules {
		for r := rule; r != nil; r = r.Else {
			w.of[position(r.Location)] = first
		}
	}
}

// awaits reports whether the point asks a rule that has not been true yet.
func (w *awaiting) awaits(point Point) bool {
	for _, c := range w.open {
		if slices.Contains(c.points, point) {
			return true
		}
	}
	return false
}

func (w *awaiting) Enabled() bool               { return true }
func (w *awaiting) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

func (w *awaiting) TraceEvent(event topdown.Event) {
	rule, ok := event.Node.(*ast.Rule)
	if !ok || rule.Default || event.Op != topdown.ExitOp && event.Op != topdown.EnterOp {
		return
	}
	first, ok := w.of[position(rule.Location)]
	if !ok {
		return
	}
	if event.Op == topdown.ExitOp {
		delete(w.open, first)
	} else if c := w.open[first]; c != nil {
		c.called = true
	}
}
