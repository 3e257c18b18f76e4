package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// Change is one difference between two policies: a rule or a value of the data that was added, removed or
// changed. Comments, formatting, the names of local variables and imports, and files are no differences.
type Change struct {
	// Package (catalogd.call) and Name (deny) are of a rule, Path the keys below data of a value. One of the
	// two is set.
	Package string
	Name    string
	Path    []string
	// Old and New are the rule as it is written, or the value as JSON; empty on the side that has none.
	Old, New     string
	OldAt, NewAt problem.Position
	// Points reach the rule or read the data; log and check are among them.
	Points []string
	// Effect is what follows from the form of the change, for any input.
	Effect Effect

	before, after *ast.Rule
	value         any
	present       bool
	from, to      *Policy
}

// Effect is how a change moves decisions.
type Effect int

const (
	// Undecided: the form of the change says nothing.
	Undecided Effect = iota
	// Neutral: no decision changes.
	Neutral
	// Narrowing: what was denied stays denied, and no obligation is weaker.
	Narrowing
	// Widening: what was allowed stays allowed, and more may be allowed or granted.
	Widening
)

// inverse is the effect of removing what has this effect when it is added.
func (e Effect) inverse() Effect {
	switch e {
	case Narrowing:
		return Widening
	case Widening:
		return Narrowing
	}
	return e
}

// IsRule reports whether the change is of a rule.
func (c Change) IsRule() bool { return c.Package != "" }

// Changes are the differences from one policy to the next, by file and line.
func Changes(old, next *Policy) []Change {
	before, after := newPolicyIndex(old), newPolicyIndex(next)
	changes := append(before.changedRules(after), before.changedData(after)...)
	slices.SortStableFunc(changes, func(a, b Change) int { return source.ComparePositions(a.place(), b.place()) })
	return changes
}

func (c Change) place() problem.Position {
	if c.NewAt.IsValid() {
		return c.NewAt
	}
	return c.OldAt
}

// policyIndex is one side of a comparison: the rules, the effects of changes to them, and the points that
// reach each file.
type policyIndex struct {
	*dataflow
	policy  *Policy
	effects *effects
	points  map[string][]string // by file
}

func newPolicyIndex(p *Policy) *policyIndex {
	i := &policyIndex{dataflow: newDataflow(p.Modules, p.Data).withParameters(), policy: p, points: map[string][]string{}}
	i.effects = p.effects()
	for _, spec := range p.Points {
		for file := range source.Closure(p.Modules, spec.path()) {
			i.points[file] = append(i.points[file], spec.Name)
		}
	}
	return i
}

// changedRules pairs the rules of each name: equal ones, then the most similar ones. What is left was added
// or removed.
func (i *policyIndex) changedRules(next *policyIndex) (changes []Change) {
	packages := map[string]bool{}
	for pkg := range i.rules {
		packages[pkg] = true
	}
	for pkg := range next.rules {
		packages[pkg] = true
	}
	for _, pkg := range source.SortedKeys(packages) {
		names := map[string]bool{}
		for name := range i.rules[pkg] {
			names[name] = true
		}
		for name := range next.rules[pkg] {
			names[name] = true
		}
		for _, name := range source.SortedKeys(names) {
			old, now := unmatched(i.rules[pkg][name], next.rules[pkg][name], i, next)
			for _, pair := range pairUp(old, now, i, next) {
				changes = append(changes, i.ruleChange(next, pkg, name, pair[0], pair[1]))
			}
		}
	}
	return changes
}

// unmatched are the rules of each side without an equal one on the other.
func unmatched(old, now []*ast.Rule, i, next *policyIndex) (oldOnly, newOnly []*ast.Rule) {
	have := map[string][]*ast.Rule{}
	for _, r := range old {
		key := i.canonical(r)
		have[key] = append(have[key], r)
	}
	for _, r := range now {
		key := next.canonical(r)
		if same := have[key]; len(same) > 0 {
			have[key] = same[1:]
		} else {
			newOnly = append(newOnly, r)
		}
	}
	for _, r := range old {
		if slices.Contains(have[i.canonical(r)], r) {
			oldOnly = append(oldOnly, r)
		}
	}
	return oldOnly, newOnly
}

// pairUp pairs each old rule with the most similar new one, if they have anything in common.
func pairUp(old, now []*ast.Rule, i, next *policyIndex) (pairs [][2]*ast.Rule) {
	left := slices.Clone(now)
	for _, o := range old {
		best, most := -1, 0
		for n, r := range left {
			if shared := i.similarity(next, o, r); shared > most {
				best, most = n, shared
			}
		}
		if best < 0 {
			pairs = append(pairs, [2]*ast.Rule{o, nil})
			continue
		}
		pairs = append(pairs, [2]*ast.Rule{o, left[best]})
		left = slices.Delete(left, best, best+1)
	}
	for _, r := range left {
		pairs = append(pairs, [2]*ast.Rule{nil, r})
	}
	return pairs
}

// similarity counts the head and the expressions that two rules have in common.
func (i *policyIndex) similarity(next *policyIndex, old, now *ast.Rule) int {
	oldHead, oldBody := i.parts(old)
	newHead, newBody := next.parts(now)
	n := 0
	if oldHead == newHead || old.Default == now.Default && len(i.rules[old.Module.Package.Path.String()][source.RuleName(old)]) == 1 {
		n++
	}
	for _, x := range newBody {
		if slices.Contains(oldBody, x) {
			n++
		}
	}
	return n
}

func (i *policyIndex) ruleChange(next *policyIndex, pkg, name string, old, now *ast.Rule) Change {
	c := Change{Package: strings.TrimPrefix(pkg, "data."), Name: name, before: old, after: now, from: i.policy, to: next.policy}
	if old != nil {
		c.Old, c.OldAt, c.Points = source.RuleText(old), source.Position(old.Location), i.points[old.Location.File]
	}
	if now != nil {
		c.New, c.NewAt = source.RuleText(now), source.Position(now.Location)
		for _, p := range next.points[now.Location.File] {
			if !slices.Contains(c.Points, p) {
				c.Points = append(slices.Clip(c.Points), p)
			}
		}
	}
	switch {
	case len(c.Points) == 0:
		c.Effect = Neutral // no point reaches it
	case old == nil:
		c.Effect = next.effects.growth(pkg, name, now)
	case now == nil:
		c.Effect = i.effects.growth(pkg, name, old).inverse()
	default:
		c.Effect = i.rewritten(next, pkg, name, old, now)
	}
	return c
}

// rewritten is the effect of a changed rule: where it has only more conditions or only fewer, or is a
// collection with only more members or only fewer.
func (i *policyIndex) rewritten(next *policyIndex, pkg, name string, old, now *ast.Rule) Effect {
	before, some, ok1 := i.effects.membership(pkg, name, old)
	after, others, ok2 := next.effects.membership(pkg, name, now)
	if ok1 && ok2 && before == after {
		switch {
		case subset(some, others):
			return after
		case subset(others, some):
			return after.inverse()
		}
		return Undecided
	}
	return i.conditions(next, pkg, name, old, now)
}

func (i *policyIndex) conditions(next *policyIndex, pkg, name string, old, now *ast.Rule) Effect {
	oldHead, before := i.parts(old)
	newHead, after := next.parts(now)
	if oldHead != newHead || old.Default || now.Default || old.Else != nil || now.Else != nil {
		return Undecided
	}
	fewer := subset(after, before)
	more := subset(before, after)
	grows := next.effects.growth(pkg, name, now)
	switch {
	case i.effects.growth(pkg, name, old) != grows:
		return Undecided
	case fewer && more:
		return Neutral // in another order
	case fewer:
		return grows
	case more:
		return grows.inverse()
	}
	return Undecided
}

// subset reports whether the multiset a is a subset of b.
func subset(a, b []string) bool {
	b = slices.Clone(b)
	for _, x := range a {
		at := slices.Index(b, x)
		if at < 0 {
			return false
		}
		b = slices.Delete(b, at, at+1)
	}
	return true
}

// resolved is a copy of a rule with imports replaced by full paths.
func (i *policyIndex) resolved(rule *ast.Rule) *ast.Rule {
	sc, out := i.scope(rule), rule.Copy()
	imported := func(t *ast.Term) (ast.Ref, bool) {
		name, ok := t.Value.(ast.Var)
		if _, local := sc.vars[name]; !ok || local {
			return nil, false
		}
		ref, ok := sc.imports[name]
		return ref, ok
	}
	ast.WalkTerms(out, func(t *ast.Term) bool {
		if ref, ok := t.Value.(ast.Ref); ok {
			if full, ok := imported(ref[0]); ok {
				t.Value = full.Copy().Concat(ref[1:])
			}
		} else if full, ok := imported(t); ok {
			t.Value = full.Copy()
		}
		return false
	})
	return out
}

// canonical is the text of a rule without comments, with imports resolved and local variables numbered.
func (i *policyIndex) canonical(rule *ast.Rule) string {
	out, sc, numbers := i.resolved(rule), i.scope(rule), map[ast.Var]ast.Var{}
	ast.WalkTerms(out, func(t *ast.Term) bool {
		v, ok := t.Value.(ast.Var)
		if _, local := sc.vars[v]; !ok || !local {
			return false
		}
		if numbers[v] == "" {
			numbers[v] = ast.Var(fmt.Sprintf("__local%d", len(numbers)))
		}
		t.Value = numbers[v]
		return false
	})
	return out.String() + negated(out)
}

// parts are the head of a rule and its expressions.
func (i *policyIndex) parts(rule *ast.Rule) (head string, body []string) {
	out := i.resolved(rule)
	for _, x := range out.Body {
		body = append(body, x.String()+negated(x))
	}
	return out.Head.String(), body
}

// negated says of each negation in x whether its terms are below it, as they are under an import of
// future.keywords.not. Both kinds print alike, and differ where a term may be undefined.
func negated(x any) string {
	var kinds strings.Builder
	ast.WalkExprs(x, func(x *ast.Expr) bool {
		what, kind := x, " parts"
		if not, ok := x.Terms.(*ast.Not); ok && len(not.Body) == 1 {
			what, kind = not.Body[0], " whole"
		} else if !x.Negated {
			return false
		}
		if t, ok := what.Terms.(*ast.Term); ok && len(x.With) == 0 && len(what.With) == 0 && !hasParts(t) {
			return false
		}
		kinds.WriteString(kind)
		return false
	})
	return kinds.String()
}

// hasParts reports whether a term has subterms that are evaluated before it: it is neither a variable nor a
// reference by names.
func hasParts(t *ast.Term) bool {
	switch v := t.Value.(type) {
	case ast.Var:
		return false
	case ast.Ref:
		return slices.ContainsFunc(v, func(t *ast.Term) bool { return !ast.IsScalar(t.Value) && hasParts(t) })
	}
	return true
}
