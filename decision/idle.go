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

// needed are the rules that an output other than deny needs to have a value, with the points that ask them.
func (e *Engine) needed(f *follower) map[*ast.Rule][]Point {
	needed := map[*ast.Rule][]Point{}
	for _, spec := range points {
		if e.points[spec.point] == nil {
			continue
		}
		var queue []*ast.Rule
		for name, rules := range f.rules[spec.path().String()] {
			if name != "deny" {
				queue = append(queue, rules...)
			}
		}
		for len(queue) > 0 {
			rule := queue[0]
			queue = queue[1:]
			if slices.Contains(needed[rule], spec.point) {
				continue
			}
			needed[rule] = append(needed[rule], spec.point)
			for r := rule; r != nil; r = r.Else {
				queue = append(queue, f.needs(f.scope(rule), r)...)
			}
		}
	}
	return needed
}

// needs are the rules that must have a value for the rule to have one. What stands behind `not`, in `every` and in
// comprehensions need not, nor the members of a set that is handed to a function, which may count them.
func (f *follower) needs(sc *scope, rule *ast.Rule) (needed []*ast.Rule) {
	add := func(ref ast.Ref, handed bool) {
		rules, rest := f.referred(sc, ref)
		if len(rules) > 0 && (!handed || rest || !isPartial(rules[0])) {
			needed = append(needed, rules...)
		}
	}
	var terms func(t *ast.Term, handed bool)
	call := func(parts []*ast.Term) {
		if ref, ok := parts[0].Value.(ast.Ref); ok {
			add(ref, false)
		}
		iterated := isOperator(parts[0], ast.Member) || isOperator(parts[0], ast.MemberWithKey)
		for _, t := range parts[1:] {
			terms(t, !iterated)
		}
	}
	terms = func(t *ast.Term, handed bool) {
		switch v := t.Value.(type) {
		case ast.Var:
			add(ast.Ref{t}, handed)
		case ast.Ref:
			add(v, handed)
			for _, elem := range v[1:] {
				terms(elem, handed)
			}
		case ast.Call:
			call(v)
		case *ast.Array:
			v.Foreach(func(elem *ast.Term) { terms(elem, true) })
		case ast.Object:
			v.Foreach(func(_, value *ast.Term) { terms(value, true) })
		}
	}
	for _, expr := range rule.Body {
		if expr.Negated {
			continue
		}
		switch x := expr.Terms.(type) {
		case *ast.Term:
			terms(x, false)
		case []*ast.Term:
			call(x)
		case *ast.SomeDecl:
			for _, symbol := range x.Symbols {
				terms(symbol, false)
			}
		}
	}
	for _, t := range []*ast.Term{rule.Head.Key, rule.Head.Value} {
		if t != nil {
			terms(t, true)
		}
	}
	return needed
}

func isPartial(rule *ast.Rule) bool { return rule.Head.Key != nil || len(rule.Head.Ref()) > 1 }

// referred are the rules of the policy that a reference begins with; rest says that it goes on behind them.
func (f *follower) referred(sc *scope, ref ast.Ref) (rules []*ast.Rule, rest bool) {
	head, ok := ref[0].Value.(ast.Var)
	if !ok {
		return nil, false
	}
	if _, local := sc.vars[head]; local {
		return nil, false
	}
	if imported, ok := sc.imports[head]; ok {
		ref = imported.Concat(ref[1:])
	} else if rules := f.rules[sc.pkg][string(head)]; rules != nil {
		return rules, len(ref) > 1
	}
	for i := 1; i < len(ref); i++ {
		name, ok := ref[i].Value.(ast.String)
		if !ok {
			break
		}
		if rules := f.rules[ref[:i].String()][string(name)]; rules != nil {
			return rules, i+1 < len(ref)
		}
	}
	return nil, false
}

// reads reports whether a rule, or one that it refers to, reads one of the fields of the input, or the input as a whole.
func (f *follower) reads(rule *ast.Rule, fields []string, seen map[*ast.Rule]bool) (found bool) {
	if seen[rule] {
		return false
	}
	seen[rule] = true
	sc := f.scope(rule)
	visit := func(ref ast.Ref) {
		if head, ok := ref[0].Value.(ast.Var); ok {
			if imported, ok := sc.imports[head]; ok {
				ref = imported.Concat(ref[1:])
			}
		}
		if ref[0].Equal(ast.InputRootDocument) {
			if len(ref) == 1 {
				found = true
			} else if name, ok := ref[1].Value.(ast.String); !ok || slices.Contains(fields, string(name)) {
				found = true
			}
			return
		}
		rules, _ := f.referred(sc, ref)
		for _, r := range rules {
			found = found || f.reads(r, fields, seen)
		}
	}
	inRef := map[*ast.Term]bool{}
	ast.WalkTerms(rule, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Ref:
			inRef[v[0]] = true
			visit(v)
		case ast.Var:
			if !inRef[t] {
				visit(ast.Ref{t})
			}
		}
		return found
	})
	return found
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
