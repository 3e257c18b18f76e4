package derive

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// parts is a value taken apart at its &, references followed.
type parts struct {
	values     []cue.Value   // literals and whatever else is a value by itself
	validators []cue.Value   // calls, such as struct.MinFields(1)
	choices    [][]cue.Value // the alternatives of disjunctions
	before     int           // how many errors there were before it was taken apart
	others     bool          // bounds, of which structs and lists have none
	literals   []*ast.StructLit
	guards     []*ast.Comprehension
	dynamic    []ast.Node // names that are expressions
	open       bool       // some literal has ...
	shut       bool       // some definition, or close(), admits no further fields
}

func (w *walker) parts(v cue.Value, at place) *parts {
	before, _ := w.problems.Count()
	p := &parts{before: before}
	w.take(p, v, at, 0)
	return p
}

func (w *walker) take(p *parts, v cue.Value, at place, depth int) {
	if depth > maxDepth {
		w.refuse(problem.UnsupportedConstr, at.pos, at.path, "a definition that refers to itself through more than %d steps", maxDepth)
		return
	}
	op, operands := v.Expr()
	if lit := structLit(v.Source()); lit != nil && op == cue.AndOp {
		w.embedding(p, lit, operands, at, depth)
		return
	}
	switch op {
	case cue.AndOp:
		for _, o := range operands {
			w.take(p, o, at, depth+1)
		}
	case cue.OrOp:
		rest := withoutDefault(v, operands)
		if len(rest) == 1 {
			w.take(p, rest[0], at, depth+1)
			return
		}
		p.choices = append(p.choices, rest)
	case cue.SelectorOp:
		target := cue.Dereference(v)
		if target == v {
			w.leaf(p, v, at)
			return
		}
		inner := parts{}
		w.take(&inner, target, at, depth+1)
		_, path := v.ReferencePath()
		p.join(&inner, defines(path) && !inner.open)
	case cue.CallOp:
		w.call(p, v, operands, at, depth)
	case cue.NoOp:
		if len(operands) == 1 && operands[0] != v {
			w.take(p, operands[0], at, depth+1)
			return
		}
		w.leaf(p, v, at)
	case cue.EqualOp, cue.NotEqualOp, cue.LessThanOp, cue.LessThanEqualOp, cue.GreaterThanOp, cue.GreaterThanEqualOp,
		cue.RegexMatchOp, cue.NotRegexMatchOp:
		p.others = true
	default:
		w.refuse(problem.UnsupportedConstr, w.blame(at, v.Pos()), at.path, "a computed struct or list (%v): write it out", op)
	}
}

// embedding takes a literal with embedded values apart: its own ... opens what it embeds.
func (w *walker) embedding(p *parts, lit *ast.StructLit, operands []cue.Value, at place, depth int) {
	inner := parts{}
	w.literal(&inner, lit, at)
	for _, o := range operands {
		if o.Source() == lit {
			inner.values = append(inner.values, o)
			continue
		}
		w.take(&inner, o, at, depth+1)
	}
	if inner.open {
		inner.shut = false
	}
	p.join(&inner, false)
}

// withoutDefault leaves out a default list that another alternative takes anyway: *[] | [...string].
func withoutDefault(v cue.Value, alternatives []cue.Value) []cue.Value {
	d, has := v.Default()
	if !has || d.IncompleteKind() != cue.ListKind {
		return alternatives
	}
	var rest []cue.Value
	covered := false
	for _, a := range alternatives {
		if a.IncompleteKind() == cue.ListKind && a.Equals(d) && a.Validate(cue.Concrete(true)) == nil && !isOpenList(a) {
			continue
		}
		covered = covered || a.Unify(d).Validate(cue.Concrete(true)) == nil
		rest = append(rest, a)
	}
	if !covered {
		return alternatives
	}
	return rest
}

func isOpenList(v cue.Value) bool { return v.LookupPath(cue.MakePath(cue.AnyIndex)).Exists() }

func (p *parts) join(inner *parts, shut bool) {
	p.values = append(p.values, inner.values...)
	p.validators = append(p.validators, inner.validators...)
	p.literals = append(p.literals, inner.literals...)
	p.guards = append(p.guards, inner.guards...)
	p.dynamic = append(p.dynamic, inner.dynamic...)
	p.choices = append(p.choices, inner.choices...)
	p.others = p.others || inner.others
	p.open = p.open || inner.open
	p.shut = p.shut || inner.shut || shut
}

// defines reports whether a path leads through a definition.
func defines(path cue.Path) bool {
	for _, s := range path.Selectors() {
		if s.IsDefinition() {
			return true
		}
	}
	return false
}

func (w *walker) call(p *parts, v cue.Value, operands []cue.Value, at place, depth int) {
	if len(operands) == 2 && fmt.Sprint(operands[0]) == "close" {
		inner := parts{}
		w.take(&inner, operands[1], at, depth+1)
		p.join(&inner, !inner.open)
		return
	}
	p.validators = append(p.validators, v)
}

func (w *walker) leaf(p *parts, v cue.Value, at place) {
	if v.IncompleteKind() == cue.TopKind && isTop(v) {
		return // _ adds nothing to what it is joined with
	}
	if lit := structLit(v.Source()); lit != nil {
		w.literal(p, lit, at)
	}
	if v.IncompleteKind() == cue.ListKind && !isListLit(v.Source()) {
		p.validators = append(p.validators, v) // list.UniqueItems without its brackets, or a computed list
		return
	}
	p.values = append(p.values, v)
}

func isListLit(n ast.Node) bool {
	switch x := n.(type) {
	case *ast.ListLit:
		return true
	case *ast.Field:
		return isListLit(x.Value)
	case *ast.ParenExpr:
		return isListLit(x.X)
	case *ast.Alias:
		return isListLit(x.Expr)
	}
	return false
}

func structLit(n ast.Node) *ast.StructLit {
	switch x := n.(type) {
	case *ast.StructLit:
		return x
	case *ast.Field:
		return structLit(x.Value)
	case *ast.ParenExpr:
		return structLit(x.X)
	case *ast.Alias:
		return structLit(x.Expr)
	case *ast.EmbedDecl:
		return structLit(x.Expr)
	}
	return nil
}

// structureOf walks a struct that has been taken apart.
func (w *walker) structureOf(v cue.Value, p *parts, at place) *node {
	n := &node{types: []string{"object"}, pos: at.pos}
	if len(p.choices) == 1 && at.depth > 0 && len(p.values) == 0 && len(p.validators) == 0 && !p.others {
		return w.alternatives(v, p.choices[0], at)
	}
	if len(p.choices) > 0 && at.depth > 0 {
		w.touched++
		w.lose(contract.LossChoice, at, w.blame(at, v.Pos()), "a choice between structs joined with something else")
		return n
	}
	if len(p.choices) > 0 {
		w.refuse(problem.UnsupportedConstr, w.blame(at, p.choices[0][0].Pos()), at.path, "arguments that are a choice between structs have no one list of names: make them one struct with optional fields, or several tools")
		return n
	}
	if d, has := v.Default(); has && hasFields(d) && star(at).IsValid() {
		w.refuse(problem.UnsupportedConstr, Position(star(at)), at.path, "a default struct fills in its fields one by one, which JSON Schema can't say: give every field its own default")
	}
	if p.others {
		w.refuse(problem.UnsupportedConstr, w.blame(at, v.Pos()), at.path, "a struct with a bound can't be said in JSON Schema")
	}
	if p.open && p.shut {
		w.refuse(problem.UnsupportedConstr, w.blame(at, v.Pos()), at.path, "... together with a closed definition: write ... in the definition, or leave it out")
	}
	n.closed = !p.open && len(p.values) > 0 // a validator alone closes nothing
	if at.depth == 0 {
		n.closed = w.closed // the top is as its strictness says
	}
	w.members(n, v, p, at)
	w.unseen(p, at)
	w.guarded(n, v, p, at)
	n.required = n.requiredNames()
	for _, c := range p.validators {
		w.structValidator(n, c, at)
	}
	return n
}

// members walks the fields of v. Where CUE takes v for an error, or would answer with its default, they are those of the
// struct that v was made from.
func (w *walker) members(n *node, v cue.Value, p *parts, at place) {
	if _, has := v.Default(); !has && (v.IncompleteKind() == cue.StructKind || len(p.guards) > 0) {
		w.fields(n, v, p, at)
		return
	}
	values := slices.DeleteFunc(slices.Clone(p.values), isEmpty)
	for _, part := range values {
		w.fields(n, part, p, at)
	}
	if after, _ := w.problems.Count(); after == p.before && (len(values) > 1 || len(p.validators) == 0) {
		w.noValue(v, at)
	}
}

// isEmpty reports whether a struct declares nothing, as {...} does.
func isEmpty(v cue.Value) bool {
	fields, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	return err == nil && !fields.Next()
}

func hasFields(v cue.Value) bool {
	fields, err := v.Fields()
	return err == nil && fields.Next()
}

// fields walks the fields and patterns of v. Every field is known as an argument before the first is looked at.
func (w *walker) fields(n *node, v cue.Value, p *parts, at place) {
	fields, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	if err != nil {
		w.refuse(problem.UnsupportedConstr, w.blame(at, v.Pos()), at.path, "can't be read as a struct: %v", err)
		return
	}
	type member struct {
		selector cue.Selector
		value    cue.Value
		at       place
	}
	var members []member
	for fields.Next() {
		m := member{selector: fields.Selector(), value: fields.Value()}
		if m.selector.ConstraintType() == cue.PatternConstraint {
			m.at = at.item("[" + fmt.Sprint(m.selector.Pattern()) + "]")
			m.at.pos = w.fieldPosition(m.value, at)
		} else {
			name := m.selector.Unquoted()
			m.at = at.field(name)
			m.at.pos = w.fieldPosition(m.value, at)
			w.positions[m.at.below] = m.at.pos
			for _, s := range sources(m.value) {
				if e := expression(s); e != nil {
					w.arguments[e] = argument{name, m.value, m.selector.ConstraintType() != cue.OptionalConstraint}
				}
			}
		}
		members = append(members, m)
	}
	p.guards = slices.DeleteFunc(p.guards, w.repeats)
	for _, m := range members {
		if m.selector.ConstraintType() == cue.PatternConstraint {
			shown := m.at
			shown.syntax = sources(m.value)
			w.disclose(shown)
			w.pattern(n, m.selector.Pattern(), m.value, m.at)
			continue
		}
		switch p.inGuard(m.value) {
		case within:
			continue
		case across:
			n.properties = append(n.properties, contaminated(m.selector, m.at))
			continue
		}
		f := w.field(m.selector, m.value, m.at)
		if f.computed {
			n.derived = append(n.derived, f)
		} else {
			n.properties = append(n.properties, f)
		}
	}
}

// fieldPosition is the position of a field's name.
func (w *walker) fieldPosition(v cue.Value, above place) problem.Position {
	for _, s := range sources(v) {
		if s.Pos().IsValid() {
			return Position(s.Pos())
		}
	}
	if pos := v.Pos(); pos.IsValid() {
		return Position(pos)
	}
	return above.pos
}

// field walks one field: its name, its type, whether it must be there and what stands in for it.
func (w *walker) field(selector cue.Selector, v cue.Value, at place) property {
	name := selector.Unquoted()
	w.name(name, at)
	before, _ := w.problems.Count()
	touched := w.touched
	at.syntax = sources(v)
	if selector.ConstraintType() == 0 {
		w.disclose(at)
	}
	if selector.ConstraintType() == 0 && w.computed(at) {
		return w.compute(name, at)
	}
	n := w.value(v, place{path: at.path, below: at.below, pos: at.pos, depth: at.depth})
	out := property{name: name, pos: at.pos, node: n}
	out.node = w.annotate(n, v, at)
	if selector.ConstraintType() == cue.RequiredConstraint {
		out.required = true
	}
	if after, _ := w.problems.Count(); after > before {
		return out // the rest asks CUE what it may not be able to answer
	}
	if slices.ContainsFunc(at.syntax, func(n ast.Node) bool { return w.depends(expression(n)) }) || w.touched > touched {
		return w.decided(selector, out, at)
	}
	w.lostDefault(v, n, at)
	if selector.ConstraintType() == cue.OptionalConstraint || out.required {
		if _, has := v.Default(); has && star(at).IsValid() {
			w.problems.Warnf(problem.BadDefault, Position(star(at)), at.path, "CUE fills in no default of a field that is marked ! or ?: write %s: without the mark", label(name))
		}
		return out
	}
	if v.Validate(cue.Concrete(true), cue.Final()) != nil {
		out.required = true
		return out
	}
	fallback, err := v.MarshalJSON()
	if err != nil {
		w.refuse(problem.BadDefault, w.blame(at, star(at)), at.path, "the default can't be said in JSON: %v", err)
		return out
	}
	filled := *out.node
	filled.fallback = fallback
	out.node = &filled
	return out
}

// lostDefault reports a default that the constraints beside it refuse: CUE drops it without a word, and the argument
// becomes required.
func (w *walker) lostDefault(v cue.Value, n *node, at place) {
	mark := star(at)
	if !mark.IsValid() || n.ref != nil {
		return
	}
	if _, has := v.Default(); has || v.IsConcrete() || len(n.enum) == 1 {
		return
	}
	w.refuse(problem.BadDefault, Position(mark), at.path, "the default does not satisfy the constraints beside it, so CUE drops it: change one of them")
}

// name refuses names that break what reads them, not those that are merely unusual.
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
