package derive

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// A guard is an `if` in a struct. CUE's API shows neither the guard nor, while its condition is open, what stands in it.
// So the fields in it are read from the syntax, and their values from views: the same struct with the arguments that the
// conditions test filled in, once for each way in which the conditions can come out (condition.go); a default may decide one before. What then
// stands is said with if, then and else. Where a condition is more than a comparison of arguments with constants, the fields are
// declared without their constraints, and the guard is a loss.

// body is one guard: a condition and the fields that stand under it.
type body struct {
	syntax *ast.Comprehension
	// conditions all hold; nil where one is none that a schema can say.
	conditions []*condition
	fields     []*ast.Field
	// unnamed: it has more than fields whose names are written out.
	unnamed ast.Node
}

// where a value's conjuncts stand.
type span int

const (
	outside span = iota // of every guard
	within              // guards alone
	across              // in a guard and outside
)

// inGuard tells whether what was written for v stands in a guard of the struct.
func (p *parts) inGuard(v cue.Value) span {
	if len(p.guards) == 0 {
		return outside
	}
	in, out := 0, 0
	for _, s := range sources(v) {
		if s == nil || !s.Pos().IsValid() {
			continue
		}
		if _, isField := s.(*ast.Field); !isField && v.Source() == s && len(sources(v)) > 1 {
			continue // the conjunction itself, which stands where its first part does
		}
		if slices.ContainsFunc(p.guards, func(g *ast.Comprehension) bool { return contains(g, s) }) {
			in++
		} else {
			out++
		}
	}
	switch {
	case in == 0:
		return outside
	case out == 0:
		return within
	}
	return across
}

func contains(outer, inner ast.Node) bool {
	a, b, c := outer.Pos(), outer.End(), inner.Pos()
	return a.Filename() == c.Filename() && a.Offset() <= c.Offset() && c.Offset() < b.Offset()
}

// declares is the field of the struct that an identifier means.
func (p *parts) declares(x *ast.Ident) *ast.Field {
	if x.Node == nil {
		return nil
	}
	for _, lit := range p.literals {
		for _, e := range lit.Elts {
			if f, ok := e.(*ast.Field); ok && (ast.Node(f) == x.Node || ast.Node(f.Value) == x.Node) {
				return f
			}
		}
	}
	return nil
}

// contaminated is a field that stands outside of the guards and in one that holds by default: what it is without the guard
// can't be told from what it is with it, so the guards alone say it.
func contaminated(selector cue.Selector, at place) property {
	return property{name: selector.Unquoted(), pos: at.pos, node: &node{pos: at.pos}}
}

// guarded adds what the guards of a struct say.
func (w *walker) guarded(n *node, v cue.Value, p *parts, at place) {
	var bodies []*body
	for _, g := range p.guards {
		bodies = w.bodies(bodies, g, nil, p, at)
	}
	for _, b := range bodies {
		for _, f := range b.fields {
			name, _, _ := ast.LabelName(f.Label)
			w.arguments[f.Value] = argument{name: name}
		}
	}
	for len(bodies) > 0 {
		group := together(&bodies)
		if !w.exactly(n, v, p, group, at) {
			for _, b := range group {
				w.loosely(n, b, at)
			}
		}
	}
}

// bodies reads a guard, and those in it.
func (w *walker) bodies(out []*body, g *ast.Comprehension, above []*condition, p *parts, at place) []*body {
	b := &body{syntax: g, conditions: slices.Clone(above)}
	sayable := true
	for _, c := range g.Clauses {
		switch c := c.(type) {
		case *ast.IfClause:
			parsed := p.condition(c.Condition)
			sayable = sayable && parsed != nil
			b.conditions = append(b.conditions, parsed)
		case *ast.ForClause:
			if !w.bounded(g, at, true) {
				return out
			}
			sayable, b.unnamed = false, g
		default:
			sayable = false
		}
	}
	if !sayable {
		b.conditions = nil
	}
	lit, ok := g.Value.(*ast.StructLit)
	if !ok {
		b.unnamed = g.Value
		return append(out, b)
	}
	for _, e := range lit.Elts {
		switch x := e.(type) {
		case *ast.Field:
			name, _, err := ast.LabelName(x.Label)
			if err != nil || strings.HasPrefix(name, "_") || strings.HasPrefix(name, "#") {
				b.unnamed = x
				continue
			}
			b.fields = append(b.fields, x)
		case *ast.Comprehension:
			if b.conditions == nil {
				b.unnamed = x
				continue
			}
			out = w.bodies(out, x, b.conditions, p, at)
		case *ast.LetClause, *ast.CommentGroup, *ast.Attribute:
		default:
			b.unnamed = x
		}
	}
	return append(out, b)
}

// repeats reports whether a comprehension makes its fields whatever the arguments are: they are there for the walk, and as
// good as written out.
func (w *walker) repeats(g *ast.Comprehension) bool {
	_, loop := g.Clauses[0].(*ast.ForClause)
	return loop && !slices.ContainsFunc(g.Clauses, func(c ast.Clause) bool { return len(w.dependence(c, true).found) > 0 })
}

// together takes the first guard off the list, and every one that has a field in common with it.
func together(bodies *[]*body) []*body {
	group := []*body{(*bodies)[0]}
	rest := (*bodies)[1:]
	for grew := true; grew; {
		grew = false
		var left []*body
		for _, b := range rest {
			if slices.ContainsFunc(group, b.shares) {
				group, grew = append(group, b), true
			} else {
				left = append(left, b)
			}
		}
		rest = left
	}
	*bodies = rest
	return group
}

func (b *body) shares(other *body) bool {
	return slices.ContainsFunc(b.names(), func(name string) bool { return slices.Contains(other.names(), name) })
}

func (b *body) names() (names []string) {
	for _, f := range b.fields {
		name, _, _ := ast.LabelName(f.Label)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// loosely declares the fields of a guard without what it says of them.
func (w *walker) loosely(n *node, b *body, at place) {
	w.touched++
	w.bounded(b.syntax, at, true)
	w.lose(contract.LossGuard, at, Position(b.syntax.Pos()), "%s", b.clauses())
	for _, f := range b.fields {
		name, _, _ := ast.LabelName(f.Label)
		inner := at.field(name)
		inner.pos = Position(f.Pos())
		inner.syntax = []ast.Node{f}
		if f.Constraint == token.ILLEGAL {
			w.disclose(inner)
		}
		w.declare(n, property{name: name, pos: inner.pos, node: &node{pos: inner.pos, description: w.description(inner), writeOnly: marksSecret(f)}}, inner)
	}
	if b.unnamed == nil {
		return
	}
	if at.below == "" {
		w.refuse(problem.UnsupportedConstr, Position(b.unnamed.Pos()), at.path, "what stands in this guard can't be told from here, and the arguments are closed: write its fields out, or its condition as a comparison of an argument with a constant")
		return
	}
	n.closed = false
}

// declare adds an argument that only a guard declares.
func (w *walker) declare(n *node, p property, at place) {
	if slices.ContainsFunc(n.properties, func(q property) bool { return q.name == p.name }) ||
		slices.ContainsFunc(n.derived, func(q property) bool { return q.name == p.name }) {
		return
	}
	w.name(p.name, at)
	if _, ok := w.positions[at.below]; !ok {
		w.positions[at.below] = p.pos
	}
	n.properties = append(n.properties, p)
}

// clauses is the head of a guard as it was written.
func (b *body) clauses() string {
	var out []string
	for _, c := range b.syntax.Clauses {
		switch c := c.(type) {
		case *ast.IfClause:
			out = append(out, "if "+written(c.Condition))
		case *ast.ForClause:
			out = append(out, "for … in "+written(c.Source))
		default:
			out = append(out, "let …")
		}
	}
	return strings.Join(out, " ")
}

// exactly says a group of guards with if, then and else. It is false, and has changed nothing, where that can't be done.
func (w *walker) exactly(n *node, v cue.Value, p *parts, group []*body, at place) bool {
	var names []string
	for _, b := range group {
		if b.conditions == nil || b.unnamed != nil {
			return false
		}
		for _, f := range b.fields {
			if w.depends(f.Value) && w.follows(f.Value, 0) {
				return false // computed, and only now and then
			}
		}
		for _, name := range b.names() {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, b := range group {
		for _, c := range b.conditions {
			for _, test := range c.tests() {
				if slices.Contains(names, test.name) {
					return false // it decides what it tests
				}
			}
		}
	}
	views, ok := w.views(v, p, n, group)
	if !ok || n.patterned() || slices.ContainsFunc(views, func(o *view) bool { return !o.honest(n, group, names) }) {
		return false
	}
	w.require(n, group)
	for _, name := range names {
		w.offer(n, views, group, name, at)
	}
	for _, view := range views {
		view.says = w.branch(n, view, names, group, at)
	}
	if len(group) == 1 && len(views) == 2 {
		yes, no := views[0], views[1]
		if !yes.truth[0] {
			yes, no = no, yes
		}
		n.guards = append(n.guards, guard{group[0].schema(n), orNil(yes.says), orNil(no.says)})
		return true
	}
	for _, view := range views {
		if view.says.empty() {
			continue
		}
		condition := &node{}
		alone := view.alone(views)
		for i, b := range group {
			switch {
			case view.truth[i]:
				condition = meet(condition, b.schema(n))
			case !alone:
				condition = meet(condition, &node{not: []*node{b.schema(n)}})
			}
		}
		n.guards = append(n.guards, guard{condition: condition, then: view.says})
	}
	return true
}

func orNil(n *node) *node {
	if n.empty() {
		return nil
	}
	return n
}

// require marks the optional fields that a condition compares: CUE accepts no call without them.
func (w *walker) require(n *node, group []*body) {
	for _, b := range group {
		for _, c := range b.conditions {
			for _, t := range c.tests() {
				for i := range n.properties {
					if p := &n.properties[i]; p.name == t.name && !t.presence && p.node.fallback == nil {
						p.required = true
					}
				}
			}
		}
	}
}

// offer declares a guarded field among the others: with its schema, where it is the same whenever a guard declares it.
func (w *walker) offer(n *node, views []*view, group []*body, name string, at place) {
	inner := at.field(name)
	var first *node
	alike := n.closed
	for _, b := range group {
		for _, f := range b.fields {
			if l, _, _ := ast.LabelName(f.Label); l == name {
				inner.pos = Position(f.Pos())
				inner.syntax = []ast.Node{f}
				break
			}
		}
	}
	secret := false // under one guard is under all
	for _, view := range views {
		found, ok := view.field(name)
		if !ok {
			continue
		}
		p := w.field(found.selector, found.value, place{path: inner.path, below: inner.below, pos: inner.pos, depth: inner.depth})
		if p.node.fallback != nil || p.node.fills(map[*definition]bool{}) {
			w.lose(contract.LossGuard, inner, inner.pos, "the defaults of %s, which only hold under a guard", name)
			p.node = p.node.withoutDefaults()
			if p.node.fallback == nil && found.selector.ConstraintType() == 0 {
				p.required = false
			}
		}
		view.properties = append(view.properties, p)
		secret = secret || p.node.writeOnly
		switch {
		case first == nil:
			first = p.node
		case !first.same(p.node):
			alike = false
		}
	}
	if first == nil {
		return
	}
	declared := property{name: name, pos: inner.pos, node: first}
	if !alike {
		declared.node = &node{pos: inner.pos, description: first.description, writeOnly: secret}
	}
	w.declare(n, declared, inner)
}

// branch is what a view says of the guarded fields.
func (w *walker) branch(n *node, v *view, names []string, group []*body, at place) *node {
	says := &node{}
	for _, name := range names {
		i := slices.IndexFunc(v.properties, func(p property) bool { return p.name == name })
		if i < 0 {
			if n.closed {
				says.properties = append(says.properties, property{name: name, node: &node{never: true}})
			}
			continue
		}
		p := v.properties[i]
		base := slices.IndexFunc(n.properties, func(q property) bool { return q.name == name })
		bare := *p.node
		bare.description = ""
		said := base >= 0 && n.properties[base].node.same(p.node)
		if base >= 0 && !said && !bare.empty() {
			says.properties = append(says.properties, property{name: name, node: &bare})
		}
		if p.required && !(base >= 0 && n.properties[base].required) {
			says.required = append(says.required, name)
		}
	}
	return says
}

// withoutDefaults is n without the defaults in it.
func (n *node) withoutDefaults() *node {
	out := *n
	out.fallback = nil
	strip := func(nodes []*node) (list []*node) {
		for _, m := range nodes {
			list = append(list, m.withoutDefaults())
		}
		return list
	}
	stripped := func(properties []property) (list []property) {
		for _, p := range properties {
			p.node = p.node.withoutDefaults()
			list = append(list, p)
		}
		return list
	}
	out.prefix, out.anyOf, out.also = strip(n.prefix), strip(n.anyOf), strip(n.also)
	out.properties, out.patternProperties = stripped(n.properties), stripped(n.patternProperties)
	if n.items != nil {
		out.items = n.items.withoutDefaults()
	}
	if n.additional != nil {
		out.additional = n.additional.withoutDefaults()
	}
	return &out
}
