package derive

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// members are the declarations of a struct literal, with those of what it embeds.
type members struct {
	*node
	literals []*ast.StructLit // including embedded ones
	guards   []guarded
	values   map[string]cue.Value // of the fields, before any call
	open     bool                 // it, or something that it embeds, contains ...
	embeds   bool                 // it embeds a definition
	// unknown: something in it may declare any name, or affect any field. scalar: it embeds something that
	// may not be a struct.
	unknown, scalar bool
}

// bareGuards reports whether it consists only of guards that test for optional fields, if no call is given.
func (m *members) bareGuards(w *walker) bool {
	if len(m.guards) == 0 {
		return false
	}
	for _, lit := range m.literals {
		for key, fields := range fieldsOf(lit) {
			if !hiddenKey(key) && slices.ContainsFunc(fields, func(f *ast.Field) bool { return f.Constraint != token.OPTION }) {
				return false
			}
		}
	}
	return true
}

// guarded is an `if` in a literal.
type guarded struct {
	*ast.Comprehension
	in *ast.StructLit
}

// structure walks a struct literal. These are exact: fields, patterns of names, `...`, embedded struct
// literals and names of such, and `if` (guard.go).
func (w *walker) structure(x *ast.StructLit, at place) *node {
	if e := onlyEmbedding(x); e != nil { // {X} means X
		n := *w.expr(e, at)
		n.definition = false // except in a list with a validator
		if n.empty() && !n.lossy {
			return w.off(contract.LossExpression, x, at) // and but for {_}
		}
		return &n
	}
	if w.suspectSchema(x, at) {
		w.choices++
		defer func() { w.choices-- }()
	}
	m := &members{node: &node{types: []string{"object"}, pos: at.pos}, values: valuesOf(at.value)}
	m.open = at.top && w.openKeys
	w.collect(m, x, at, false)
	n := m.node
	n.closed = !m.open
	if m.unknown {
		n.closed, n.unnamed, n.lossy = false, true, true
	}
	if !at.top && (m.scalar || m.bareGuards(w)) { // without fields, CUE accepts any value of a call for it
		n.types, n.lossy = nil, true
		w.lose(contract.LossExpression, at, Position(x.Pos()), "%s is not always a struct", written(x))
	}
	w.guards(m, at)
	if len(n.patternProperties) > 0 || n.additional != nil {
		w.patterned(m, x, at)
	}
	if m.unknown {
		n.unsettle()
	}
	n.inherit()
	n.required = n.requiredNames()
	return n
}

// onlyEmbedding returns what a literal embeds if it declares nothing else.
func onlyEmbedding(lit *ast.StructLit) (x ast.Expr) {
	for _, e := range lit.Elts {
		switch e := e.(type) {
		case *ast.EmbedDecl:
			if x != nil {
				return nil
			}
			x = e.Expr
		case *ast.CommentGroup:
		default:
			return nil
		}
	}
	return x
}

// valuesOf returns the values of the fields of v by name. CUE considers a struct an error if it has a guard
// over a field that only a call has, but still returns its fields.
func valuesOf(v cue.Value) map[string]cue.Value {
	if !v.Exists() || v.IncompleteKind() != cue.StructKind {
		return nil
	}
	fields, err := v.Fields(cue.Optional(true))
	if err != nil {
		return nil
	}
	values := map[string]cue.Value{}
	for fields.Next() {
		values[fields.Selector().Unquoted()] = fields.Value()
	}
	return values
}

// collect adds the declarations of a literal, and of what it embeds.
func (w *walker) collect(m *members, lit *ast.StructLit, at place, embedded bool) {
	if slices.Contains(m.literals, lit) || len(m.literals) > maxDepth {
		w.unknown(m, lit, contract.LossExpression, at)
		return
	}
	m.literals = append(m.literals, lit)
	w.walked[lit] = true
	for _, e := range lit.Elts { // references find the fields of everything that was embedded before
		if e, ok := e.(*ast.EmbedDecl); ok {
			w.embed(m, e.Expr, at)
		}
	}
	for _, e := range lit.Elts {
		switch e := e.(type) {
		case *ast.Field:
			w.member(m, e, at)
		case *ast.Ellipsis:
			m.ellipsis = Position(e.Pos())
			if m.embeds && !embedded {
				w.lose(contract.LossName, at, m.ellipsis, "... beside an embedding")
			}
			if e.Type != nil {
				w.lose(contract.LossName, at, m.ellipsis, "%s", written(e.Type))
				m.lossy = true
			}
			m.open = true
		case *ast.Comprehension:
			w.comprehension(m, e, lit, at)
		case *ast.Attribute:
			if name, _ := e.Split(); known(name) {
				w.refuse(problem.BadAttribute, Position(e.Pos()), at.path, "@%s is inside the braces, where it has no effect: write it after the closing brace", name)
			}
		case *ast.EmbedDecl, *ast.CommentGroup, *ast.LetClause:
			// A let is a loss only if something refers to it.
		default:
			w.unknown(m, e, contract.LossExpression, at)
		}
	}
}

// unknown records something that may declare any name.
func (w *walker) unknown(m *members, x ast.Node, kind contract.LossKind, at place) {
	w.lose(kind, at, Position(x.Pos()), "%s", written(x))
	m.unknown = true
}

// embed adds an embedded struct, given by its literal or its name.
func (w *walker) embed(m *members, x ast.Expr, at place) {
	target := x
	for range maxDepth {
		if lit := structLit(target); lit != nil {
			m.embeds = true
			w.collect(m, lit, at, true)
			return
		}
		t := w.refer(target)
		if t.basic == "_" {
			m.scalar = true
			return
		}
		if t.field == nil || t.fillable || w.isOpen(t.field) {
			break
		}
		target = t.field.Value
	}
	if call, ok := x.(*ast.CallExpr); ok && strings.HasPrefix(w.callee(call), "struct.") {
		w.lose(contract.LossValidator, at, Position(x.Pos()), "%s", written(x))
		m.lossy = true // it counts fields, and declares none
		return
	}
	w.unknown(m, x, contract.LossChoice, at)
	kinds := w.syntaxKinds(x, 0)
	m.scalar = m.scalar || len(kinds) == 0 || slices.ContainsFunc(kinds, func(k string) bool { return k != "object" })
	// Its names are still advertised.
	inner := at
	inner.partial = true
	if !w.embedding(x) {
		return
	}
	if n := w.flatTop(w.expr(x, inner)); n != nil {
		for _, p := range n.properties {
			if m.index(p.name) < 0 {
				p.node = &node{pos: p.pos, description: p.description, writeOnly: p.holdsSecret(), lossy: true}
				m.properties = append(m.properties, p)
			}
		}
	}
}

// takesMore reports whether n may accept names that it does not list.
func (n *node) takesMore() bool { return !n.closed || n.unnamed || n.patterned() }

// embedding reports whether the walk of an embedded expression ends: it leads to no definition that is being
// walked.
func (w *walker) embedding(x ast.Expr) bool {
	ends := true
	ast.Walk(x, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			if t := w.refer(e); t.field != nil && w.isOpen(t.field) {
				ends = false
			}
		}
		return ends
	}, nil)
	return ends
}

func (w *walker) isOpen(f *ast.Field) bool {
	return slices.ContainsFunc(w.open, func(d *definition) bool { return d.field == f })
}

func (n *node) index(name string) int {
	return slices.IndexFunc(n.properties, func(p property) bool { return p.name == name })
}

// member adds one field.
func (w *walker) member(m *members, f *ast.Field, at place) {
	if l, ok := f.Label.(*ast.ListLit); ok {
		w.pattern(m, l, f, at)
		return
	}
	key, ok := labelKey(f)
	switch {
	case !ok:
		w.unknown(m, f.Label, contract.LossName, at)
	case hiddenKey(key):
		if f.Constraint == token.NOT {
			w.unknown(m, f.Label, contract.LossExpression, at) // no call can send it
			return
		}
		w.hidden(f, key[1:], at)
	default:
		w.field(m, f, key, at)
	}
}

// hidden walks a hidden field or a definition, which no call sends: one that reads arguments constrains them.
func (w *walker) hidden(f *ast.Field, name string, at place) {
	if !w.dependsOn(f.Value) {
		return
	}
	inner := at
	inner.path += "." + name
	w.lose(contract.LossCrossField, inner, Position(f.Value.Pos()), "%s: %s", name, written(f.Value))
	if x, ok := check(f.Value); ok {
		w.note(at, x, written(x))
	}
}

// check returns the condition of a hidden field that requires it to be true: true & (a < b).
func check(x ast.Expr) (condition ast.Expr, ok bool) {
	operands := flattened(x, token.AND)
	if len(operands) != 2 {
		return nil, false
	}
	for i, o := range operands {
		if lit, isLit := o.(*ast.BasicLit); isLit && lit.Kind == token.TRUE {
			condition = operands[1-i]
			if p, paren := condition.(*ast.ParenExpr); paren {
				condition = p.X
			}
			return condition, true
		}
	}
	return nil, false
}

// field adds a field that a call may send, or CUE computes.
func (w *walker) field(m *members, f *ast.Field, name string, at place) {
	inner := at.field(name)
	inner.pos = Position(f.Pos())
	inner.value = m.values[name]
	inner.lazy = at.lazy || f.Constraint == token.OPTION
	w.name(name, inner)
	if _, ok := w.positions[inner.below]; !ok {
		w.positions[inner.below] = inner.pos
	}
	p := w.property(f, name, inner)
	p.unmarked = f.Constraint == token.ILLEGAL
	i := m.index(name)
	if c := slices.IndexFunc(m.derived, func(d property) bool { return d.name == name }); c >= 0 { // then it is declared too
		i = len(m.properties)
		m.properties = append(m.properties, m.derived[c])
		m.properties[i].computed = false
		m.derived = slices.Delete(slices.Clone(m.derived), c, c+1)
	}
	if p.computed && i < 0 {
		m.derived = append(m.derived, p)
		return
	}
	p.computed = false
	if i >= 0 {
		w.lose(contract.LossExpression, inner, inner.pos, "%s is declared more than once", name)
		m.properties[i] = bothFields(m.properties[i], p)
		m.lossy = true
		return
	}
	m.properties = append(m.properties, p)
}

// property walks a field: its value, whether a call must have it, and its default.
func (w *walker) property(f *ast.Field, name string, at place) property {
	p := property{name: name, pos: at.pos}
	w.taken[f] = true
	if marksSecret(f) {
		w.secrets = true
	}
	x := f.Value
	if a, ok := x.(*ast.Alias); ok {
		x = a.Expr
	}
	if f.Constraint == token.ILLEGAL && w.computes(x) {
		w.fills = true
		w.discloseIf(at, x)
		p.computed = true
		p.node = &node{pos: at.pos, types: w.resultTypes(x, 0), description: w.description(f, at)}
		if !w.total(x) {
			p.node.lossy = true
			w.lose(contract.LossExpression, at, Position(x.Pos()), "%s = %s may have no value", name, written(x))
		}
		return p
	}
	p.text = w.leafText(x)
	before, _ := w.problems.Count()
	lost := w.lossCount
	n := w.expr(x, at)
	p.starred = n.fallback != nil
	p.node = w.keepSecret(w.annotate(n, f, at), x)
	p.required = f.Constraint == token.NOT
	if after, _ := w.problems.Count(); after > before {
		return p
	}
	w.lostDefault(x, n, at)
	bare := *p.node
	bare.fallback = nil
	if f.Constraint != token.ILLEGAL {
		if n.fallback != nil {
			w.warnOnce(problem.BadDefault, Position(x.Pos()), at.path, "CUE fills in no default of a field that is marked ! or ?: write %s: without the mark", label(name))
		}
		p.node = &bare
		return p
	}
	if !w.asks(x) {
		w.discloseIf(at, x)
	}
	if w.lossCount > lost || n.lossy {
		// CUE may be able to fill it in, so only a field that certainly has no value of its own is required.
		// A literal default is advertised.
		p.required = w.asks(x)
		if n.fallback == nil {
			p.node = &bare
		}
		return p
	}
	raw, state := n.fill(map[*definition]bool{})
	switch state {
	case filled:
		bare.fallback = raw
		p.node = &bare
	case missing:
		p.required, p.node = true, &bare
	default:
		w.lose(contract.LossExpression, at, at.pos, "what %s is where a call leaves it out", name)
		bare.lossy = true
		p.node = &bare
	}
	return p
}

// pattern adds [pattern]: T.
func (w *walker) pattern(m *members, l *ast.ListLit, f *ast.Field, at place) {
	inner := at.item(written(l))
	inner.pos = Position(f.Pos())
	inner.lazy = true
	w.taken[f] = true
	child := w.keepSecret(w.annotate(w.expr(f.Value, inner), f, inner), f.Value)
	bare := *child
	bare.fallback = nil
	child = &bare
	if len(l.Elts) == 1 {
		if re, ok := w.names(l.Elts[0], inner); ok {
			m.named(re, child)
			return
		}
	}
	w.lose(contract.LossName, at, Position(l.Pos()), "%s as a pattern of names", written(l))
	m.named("", &node{lossy: true, writeOnly: child.holdsSecret()})
}

// names returns the regular expression of a pattern of names: any name, names that match, or listed names.
func (w *walker) names(x ast.Expr, at place) (string, bool) {
	switch x := x.(type) {
	case *ast.Ident:
		if w.refer(x).basic == "string" {
			return "", true
		}
	case *ast.UnaryExpr:
		if x.Op == token.MAT {
			return w.regexp(x.X, at)
		}
	case *ast.BasicLit, *ast.BinaryExpr:
		return w.namesOnly(x, at)
	}
	return "", false
}

// patterned checks patterns of names against what they may change: whether a field has a value without a
// call.
func (w *walker) patterned(m *members, x ast.Node, at place) {
	unmarked := slices.ContainsFunc(m.literals, func(lit *ast.StructLit) bool {
		for key, fields := range fieldsOf(lit) {
			if !hiddenKey(key) && slices.ContainsFunc(fields, func(f *ast.Field) bool { return f.Constraint == token.ILLEGAL }) {
				return true
			}
		}
		return false
	})
	composite := false
	for _, p := range m.patternProperties {
		composite = composite || p.composite() || p.node.fills(map[*definition]bool{})
	}
	if m.additional != nil {
		composite = composite || m.additional.composite() || m.additional.fills(map[*definition]bool{})
	}
	if m.additional != nil && len(m.properties) > 0 { // in CUE it applies to the declared names too
		m.patternProperties, m.additional = []property{{name: "", node: m.additional}}, nil
	}
	if len(m.properties) > 0 && (unmarked || composite) || len(m.patternProperties) > 1 && composite {
		w.lose(contract.LossName, at, Position(x.Pos()), "a pattern of names that may hold for declared fields too")
		m.node.lossy = true
		m.patternProperties, m.additional = nil, nil
		m.node.closed, m.node.unnamed = false, true
		m.node.unsettle()
		for i, p := range m.properties { // CUE unifies the two
			if p.composite() {
				m.properties[i].node = &node{pos: p.pos, description: p.description, writeOnly: p.holdsSecret(), lossy: true}
			}
		}
	}
}

// name refuses names that break their readers, not those that are merely unusual.
func (w *walker) name(name string, at place) {
	why := ""
	switch {
	case name == "":
		why = "is empty"
	case utf8.RuneCountInString(name) > maxName:
		why = fmt.Sprintf("has more than %d characters", maxName)
	case name == "__proto__" || name == "constructor" || name == "prototype":
		why = "is special in JavaScript clients"
	case strings.HasPrefix(name, "$"):
		why = "begins with $, as JSON Schema's own keywords do"
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		why = "has characters that can't be seen"
	case strings.TrimSpace(name) != name:
		why = "begins or ends with a space"
	}
	if why != "" {
		w.refuse(problem.BadName, at.pos, at.path, "the argument's name %s: choose another", why)
	}
}

// description returns the documentation above a field.
func (w *walker) description(f *ast.Field, at place) string {
	var text []string
	for _, g := range ast.Comments(f) {
		if g.Doc {
			text = append(text, strings.TrimSpace(g.Text()))
		}
	}
	d := strings.Join(text, "\n")
	if len(d) > maxDescription {
		w.refuse(problem.UnsupportedConstr, Position(f.Pos()), at.path, "a description of %d bytes, more than %d: say it shorter", len(d), maxDescription)
	}
	return d
}
