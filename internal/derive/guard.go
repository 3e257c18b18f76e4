package derive

import (
	"slices"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/contract"
)

// A guard is an `if` in a struct. The fields under it are arguments only while its condition holds, which a
// schema expresses with if, then and else. These are exact: conditions that compare fields of the same struct
// with constants, test a bool or whether an optional field is present, and combine such tests; under them,
// fields that are declared nowhere else or tighten a declared one, and fill in nothing. For every other guard
// the schema has only the names.

// body holds the declarations under one guard, or under several nested ones.
type body struct {
	guard      guarded
	conditions []*node
	tested     []string // the names of the fields that the conditions test
	fields     []*ast.Field
	// exact: the conditions and the fields match productions; named: all names in it are known.
	exact, named bool
	// refuses: it has _|_ or error(...), so no call may satisfy its conditions.
	refuses bool
}

// bottom reports whether no value satisfies an expression: _|_ or error("...").
func (w *walker) bottom(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return w.bottom(x.X)
	case *ast.BottomLit:
		return true
	case *ast.CallExpr:
		return w.callee(x) == "error"
	}
	return false
}

// comprehension adds a comprehension of a literal to m.
func (w *walker) comprehension(m *members, c *ast.Comprehension, in *ast.StructLit, at place) {
	m.guards = append(m.guards, guarded{c, in})
}

// guards adds the constraints of a struct's guards.
func (w *walker) guards(m *members, at place) {
	var bodies []*body
	for _, g := range m.guards {
		bodies = w.bodies(bodies, m, g, &body{exact: true, named: true}, at)
	}
	decided := map[string]bool{} // the names that the guards declare
	for _, b := range bodies {
		for _, f := range b.fields {
			name, _ := labelKey(f)
			decided[name] = true
		}
	}
	for _, b := range bodies {
		b.exact = b.exact && b.named && !m.unknown && !m.patterned() &&
			!slices.ContainsFunc(b.tested, func(name string) bool { return decided[name] })
	}
	fields := map[string][]*branch{}
	var order []*branch
	for _, b := range bodies {
		br := &branch{body: b}
		for _, f := range b.fields {
			br.add(w.guardedField(m, f, at))
		}
		order = append(order, br)
		for _, p := range br.properties {
			fields[p.name] = append(fields[p.name], br)
		}
	}
	// Guards that declare the same name are exact only together.
	for again := true; again; {
		again = false
		for _, b := range order {
			if !b.exact {
				continue
			}
			for _, p := range b.properties {
				if !w.sayable(m, p) || slices.ContainsFunc(fields[p.name], func(o *branch) bool { return !o.exact }) {
					b.exact, again = false, true
				}
			}
		}
	}
	for _, b := range order {
		if !b.exact {
			w.loosely(m, b, at)
		}
	}
	w.exactly(m, order, fields)
}

// branch is a body with its fields walked.
type branch struct {
	*body
	properties []property
}

// add adds a field; CUE combines one that is declared twice.
func (b *branch) add(p property) {
	if i := slices.IndexFunc(b.properties, func(q property) bool { return q.name == p.name }); i >= 0 {
		b.properties[i].unmarked = b.properties[i].unmarked || p.unmarked
		b.exact = false
		return
	}
	b.properties = append(b.properties, p)
}

// condition returns the conjunction of all conditions of the branch.
func (b *branch) condition() *node {
	c := b.conditions[0]
	for _, d := range b.conditions[1:] {
		c = joined(c, d)
	}
	return c
}

// joined returns both conditions, in one schema if they are about different names.
func joined(a, b *node) *node {
	plain := func(n *node) bool {
		rest := *n
		rest.properties, rest.required = nil, nil
		return rest.empty()
	}
	if plain(a) && plain(b) && !slices.ContainsFunc(b.properties, func(p property) bool { return a.index(p.name) >= 0 }) {
		return &node{properties: append(slices.Clone(a.properties), b.properties...), required: append(slices.Clone(a.required), b.required...)}
	}
	return &node{also: []*node{a, b}}
}

// bodies reads a guard, and those nested in it.
func (w *walker) bodies(out []*body, m *members, g guarded, above *body, at place) []*body {
	b := &body{guard: g, conditions: slices.Clone(above.conditions), tested: slices.Clone(above.tested), exact: above.exact, named: above.named}
	if g.Fallback != nil {
		b.exact, b.named = false, false
	}
	for _, c := range g.Clauses {
		clause, ok := c.(*ast.IfClause)
		if !ok {
			b.exact, b.named = false, false
			continue
		}
		condition, tested := w.condition(m, clause.Condition, g.in, at)
		if condition == nil {
			b.exact = false
			continue
		}
		b.conditions = append(b.conditions, condition)
		b.tested = append(b.tested, tested...)
	}
	lit, ok := g.Value.(*ast.StructLit)
	if !ok {
		b.exact, b.named = false, false
		return append(out, b)
	}
	return w.body(out, m, b, lit, at, 0)
}

// body reads the declarations under a guard: fields, further guards, and the names of embedded structs.
func (w *walker) body(out []*body, m *members, b *body, lit *ast.StructLit, at place, depth int) []*body {
	var nested []guarded
	for _, e := range lit.Elts {
		switch e := e.(type) {
		case *ast.Field:
			key, ok := labelKey(e)
			switch {
			case !ok:
				b.exact, b.named = false, false
			case hiddenKey(key):
				b.exact = b.exact && !w.dependsOn(e.Value)
			default:
				b.fields = append(b.fields, e)
			}
		case *ast.Comprehension:
			nested = append(nested, guarded{e, b.guard.in})
		case *ast.EmbedDecl:
			if w.bottom(e.Expr) { // it declares nothing, and refuses the call
				b.exact, b.refuses = false, true
				continue
			}
			target := e.Expr
			inner := structLit(target)
			for i := 0; inner == nil && i < maxDepth; i++ {
				t := w.refer(target)
				if t.field == nil || t.fillable || w.isOpen(t.field) {
					break
				}
				target = t.field.Value
				inner = structLit(target)
			}
			if inner == nil || depth > maxDepth || !plainStruct(inner) {
				b.exact, b.named = false, false
				continue
			}
			w.walked[inner] = true
			out = w.body(out, m, b, inner, at, depth+1)
			out = slices.DeleteFunc(out, func(o *body) bool { return o == b })
		case *ast.CommentGroup, *ast.Attribute, *ast.LetClause:
		default:
			b.exact, b.named = false, false
		}
	}
	for _, g := range nested {
		out = w.bodies(out, m, g, b, at)
	}
	return append(out, b)
}

// guardedField walks a field under a guard.
func (w *walker) guardedField(m *members, f *ast.Field, at place) property {
	name, _ := labelKey(f)
	inner := at.field(name)
	inner.pos = Position(f.Pos())
	w.name(name, inner)
	if _, ok := w.positions[inner.below]; !ok {
		w.positions[inner.below] = inner.pos
	}
	p := w.property(f, name, inner)
	p.unmarked = f.Constraint == token.ILLEGAL
	return p
}

// sayable reports whether a branch can express a guarded field: it fills in nothing, and if it tightens a
// field that is also declared outside, both are constraints of scalars without a default.
func (w *walker) sayable(m *members, p property) bool {
	if p.computed || p.lossy || p.fallback != nil || p.node.fills(map[*definition]bool{}) || slices.ContainsFunc(m.derived, func(d property) bool { return d.name == p.name }) {
		return false
	}
	i := m.index(p.name)
	if i < 0 {
		return true
	}
	outer := m.properties[i]
	return !p.unmarked && !outer.unmarked && !outer.lossy && outer.fallback == nil && !outer.composite() && (p.never || !p.composite())
}

// loosely declares the names under a guard without their constraints.
func (w *walker) loosely(m *members, b *branch, at place) {
	w.lose(contract.LossGuard, at, Position(b.guard.Pos()), "%s", clauses(b.guard.Comprehension))
	w.noteGuard(b, at)
	m.node.lossy = true
	for _, p := range b.properties {
		i := m.index(p.name)
		if i >= 0 && p.holdsSecret() && !m.properties[i].writeOnly {
			secret := *m.properties[i].node
			secret.writeOnly, m.properties[i].node = true, &secret
		}
		switch {
		case i < 0 && slices.ContainsFunc(m.derived, func(d property) bool { return d.name == p.name }):
			// CUE computes it, with or without the guard.
		case i < 0:
			w.conditional = w.conditional || at.top
			m.properties = append(m.properties, property{
				name: p.name, pos: p.pos, node: &node{pos: p.pos, description: p.description, writeOnly: p.holdsSecret(), lossy: true},
			})
		case p.never: // no call may satisfy the conditions, so the outer declaration applies
		case p.unmarked: // it may make the field required, or give another default
			bare := *m.properties[i].node
			bare.fallback = nil
			if bare.composite() { // CUE closes both together
				bare = node{pos: bare.pos, description: bare.description, writeOnly: bare.holdsSecret(), lossy: true}
			}
			m.properties[i].required, m.properties[i].node = false, &bare
		case m.properties[i].composite():
			m.properties[i].node = &node{pos: p.pos, description: m.properties[i].description, writeOnly: m.properties[i].holdsSecret(), lossy: true}
		}
	}
	if !b.named {
		m.node.closed, m.node.unnamed = false, true
		m.unsettle() // it may declare any field
	}
}

// clauses returns the source text of a comprehension's clauses.
func clauses(c *ast.Comprehension) (head string) {
	for i, clause := range c.Clauses {
		if i > 0 {
			head += " "
		}
		switch clause := clause.(type) {
		case *ast.IfClause:
			head += "if " + written(clause.Condition)
		case *ast.ForClause:
			head += "for … in " + written(clause.Source)
		default:
			head += "let …"
		}
	}
	return head
}

// exactly expresses the exact branches with if, then and else.
func (w *walker) exactly(m *members, order []*branch, fields map[string][]*branch) {
	outside := map[string]bool{}
	for _, p := range m.properties {
		outside[p.name] = true
	}
	exact := slices.DeleteFunc(slices.Clone(order), func(b *branch) bool { return !b.exact || len(b.properties) == 0 })
	for _, b := range exact {
		for _, p := range b.properties {
			if m.index(p.name) >= 0 {
				continue
			}
			secret := slices.ContainsFunc(fields[p.name], func(o *branch) bool { return o.property(p.name).writeOnly })
			declared := property{name: p.name, pos: p.pos, node: &node{pos: p.pos, description: p.description, writeOnly: secret}}
			if m.node.closed && !slices.ContainsFunc(fields[p.name], func(o *branch) bool { return !o.property(p.name).node.same(p.node) }) {
				declared.node = p.node // the same node whenever it is an argument
			}
			m.properties = append(m.properties, declared)
		}
	}
	for _, b := range exact {
		then, otherwise := &node{}, &node{}
		for _, p := range b.properties {
			base := m.properties[m.index(p.name)]
			if p.required && !base.required {
				then.required = append(then.required, p.name)
			}
			if bare := *p.node; !base.node.same(p.node) {
				bare.description = ""
				if !bare.empty() {
					then.properties = append(then.properties, property{name: p.name, node: &bare})
				}
			}
			if !outside[p.name] && m.node.closed && len(fields[p.name]) == 1 {
				otherwise.properties = append(otherwise.properties, property{name: p.name, node: &node{never: true}})
			}
		}
		if !then.empty() || !otherwise.empty() {
			m.node.guards = append(m.node.guards, guard{b.condition(), orNil(then), orNil(otherwise)})
		}
	}
	done := map[string]bool{}
	for _, b := range exact { // a name of several guards is an argument while one of them holds
		for _, p := range b.properties {
			if outside[p.name] || !m.node.closed || len(fields[p.name]) == 1 || done[p.name] {
				continue
			}
			done[p.name] = true
			var any []*node
			for _, o := range fields[p.name] {
				any = append(any, o.condition())
			}
			m.node.guards = append(m.node.guards, guard{
				condition: &node{anyOf: any}, otherwise: &node{properties: []property{{name: p.name, node: &node{never: true}}}},
			})
		}
	}
}

func (b *branch) property(name string) property {
	return b.properties[slices.IndexFunc(b.properties, func(p property) bool { return p.name == name })]
}

func orNil(n *node) *node {
	if n.empty() {
		return nil
	}
	return n
}

// condition reads a condition over the fields of a literal; n is nil if it matches no production. tested are
// the names that it tests.
func (w *walker) condition(m *members, x ast.Expr, in *ast.StructLit, at place) (n *node, tested []string) {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return w.condition(m, x.X, in, at)
	case *ast.Ident:
		return w.test(m, x, token.EQL, value{raw: []byte("true"), kind: token.TRUE}, in)
	case *ast.UnaryExpr:
		if x.Op == token.NOT {
			if n, tested = w.condition(m, x.X, in, at); n != nil {
				return &node{not: []*node{n}}, tested
			}
		}
	case *ast.BinaryExpr:
		switch x.Op {
		case token.LAND, token.LOR:
			a, first := w.condition(m, x.X, in, at)
			b, second := w.condition(m, x.Y, in, at)
			if a == nil || b == nil {
				return nil, nil
			}
			tested = append(first, second...)
			if x.Op == token.LOR {
				return &node{anyOf: []*node{a, b}}, tested
			}
			return joined(a, b), tested
		case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
			if _, bottom := x.Y.(*ast.BottomLit); bottom {
				return w.presence(m, x.X, x.Op, in)
			}
			if v, ok := w.literalOf(x.Y, at); ok {
				return w.test(m, x.X, x.Op, v, in)
			}
			if v, ok := w.literalOf(x.X, at); ok {
				return w.test(m, x.Y, turned(x.Op), v, in)
			}
		}
	}
	return nil, nil
}

// turned returns op with its sides exchanged.
func turned(op token.Token) token.Token {
	switch op {
	case token.LSS:
		return token.GTR
	case token.LEQ:
		return token.GEQ
	case token.GTR:
		return token.LSS
	case token.GEQ:
		return token.LEQ
	}
	return op
}

// fieldOf returns the field of the literal that an expression names, with its property.
func (w *walker) fieldOf(m *members, x ast.Expr, in *ast.StructLit) (*ast.Field, *property) {
	id, ok := x.(*ast.Ident)
	if !ok || id.Scope != ast.Node(in) {
		return nil, nil
	}
	t := w.refer(id)
	if t.field == nil || !t.fillable {
		return nil, nil
	}
	i := m.index(id.Name)
	if i < 0 {
		return nil, nil
	}
	return t.field, &m.properties[i]
}

// test reads the comparison of a field with a constant. The field must be one that every call has, or that
// has a constant default; its value is a scalar of one type.
func (w *walker) test(m *members, x ast.Expr, op token.Token, v value, in *ast.StructLit) (*node, []string) {
	f, p := w.fieldOf(m, x, in)
	if f == nil || p.lossy || p.ref != nil || f.Constraint == token.OPTION || len(p.types) != 1 || v.bytes || p.encoding != "" || p.never {
		return nil, nil
	}
	if !p.required && p.fallback == nil {
		return nil, nil
	}
	want := constantTypes([]jsonRaw{v.raw})[0]
	if want == "null" || want == "number" || p.types[0] != want {
		return nil, nil
	}
	n := &node{}
	switch op {
	case token.EQL, token.NEQ:
		n.properties = []property{{name: p.name, node: &node{enum: []jsonRaw{v.raw}}}}
		if p.fallback == nil || string(p.fallback) != string(v.raw) {
			n.required = []string{p.name} // without it, a call that omits the field would match
		}
		if op == token.NEQ {
			return &node{not: []*node{n}}, []string{p.name}
		}
	default:
		if want != "integer" || p.fallback != nil {
			return nil, nil
		}
		limit := &node{}
		switch op {
		case token.LSS:
			limit.exclusiveMaximum = v.raw
		case token.LEQ:
			limit.maximum = v.raw
		case token.GTR:
			limit.exclusiveMinimum = v.raw
		case token.GEQ:
			limit.minimum = v.raw
		}
		n.properties, n.required = []property{{name: p.name, node: limit}}, []string{p.name}
	}
	return n, []string{p.name}
}

// presence reads a test for an optional field: f != _|_.
func (w *walker) presence(m *members, x ast.Expr, op token.Token, in *ast.StructLit) (*node, []string) {
	f, p := w.fieldOf(m, x, in)
	if f == nil || p.lossy || f.Constraint != token.OPTION || p.never || op != token.EQL && op != token.NEQ {
		return nil, nil
	}
	n := &node{required: []string{p.name}}
	if op == token.EQL {
		n = &node{not: []*node{n}}
	}
	return n, []string{p.name}
}
