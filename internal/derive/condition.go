package derive

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
)

// condition is what a schema can say of a guard's condition: comparisons of fields with constants, joined.
type condition struct {
	op   token.Token // LAND, LOR or NOT; ILLEGAL for a test
	of   []*condition
	test *test
}

// test compares one field with a constant, or asks whether it is there (op is NEQ) or not (EQL).
type test struct {
	name     string
	optional bool
	presence bool
	op       token.Token
	raw      string // the constant as JSON
}

// condition reads an expression; nil where it is none.
func (p *parts) condition(e ast.Expr) *condition {
	switch x := e.(type) {
	case *ast.ParenExpr:
		return p.condition(x.X)
	case *ast.Ident:
		return p.compare(x, token.EQL, ast.NewBool(true))
	case *ast.UnaryExpr:
		if x.Op == token.NOT {
			if c := p.condition(x.X); c != nil {
				return &condition{op: token.NOT, of: []*condition{c}}
			}
		}
	case *ast.BinaryExpr:
		switch x.Op {
		case token.LAND, token.LOR:
			a, b := p.condition(x.X), p.condition(x.Y)
			if a != nil && b != nil {
				return &condition{op: x.Op, of: []*condition{a, b}}
			}
		case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
			if c := p.compare(x.X, x.Op, x.Y); c != nil {
				return c
			}
			return p.compare(x.Y, turned(x.Op), x.X)
		}
	}
	return nil
}

// turned is op with its sides exchanged.
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

func (p *parts) compare(field ast.Expr, op token.Token, constant ast.Expr) *condition {
	x, ok := field.(*ast.Ident)
	if !ok {
		return nil
	}
	f := p.declares(x)
	if f == nil {
		return nil
	}
	name, _, err := ast.LabelName(f.Label)
	if err != nil {
		return nil
	}
	t := &test{name: name, op: op, optional: f.Constraint == token.OPTION}
	if _, bottom := constant.(*ast.BottomLit); bottom {
		t.presence = true
		if op != token.EQL && op != token.NEQ {
			return nil
		}
		return &condition{test: t}
	}
	raw, kind := literalJSON(constant)
	if kind == cue.BottomKind || op != token.EQL && op != token.NEQ && kind != cue.NumberKind {
		return nil
	}
	t.raw = raw
	return &condition{test: t}
}

// literalJSON is a literal of a scalar as JSON, with its kind; bottom for whatever else.
func literalJSON(e ast.Expr) (string, cue.Kind) {
	sign := ""
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.SUB {
		e, sign = u.X, "-"
	}
	l, ok := e.(*ast.BasicLit)
	if !ok {
		return "", cue.BottomKind
	}
	switch l.Kind {
	case token.TRUE, token.FALSE:
		return l.Value, cue.BoolKind
	case token.NULL:
		return "null", cue.NullKind
	case token.STRING:
		if text, err := literal.Unquote(l.Value); err == nil && !strings.HasPrefix(l.Value, "'") {
			return string(quote(text)), cue.StringKind
		}
	case token.INT, token.FLOAT:
		if json.Valid([]byte(sign + l.Value)) {
			return sign + l.Value, cue.NumberKind
		}
	}
	return "", cue.BottomKind
}

// tests are the comparisons in c.
func (c *condition) tests() (out []*test) {
	if c.test != nil {
		return []*test{c.test}
	}
	for _, of := range c.of {
		out = append(out, of.tests()...)
	}
	return out
}

// value is one of the values that an argument is tried with; nil where it is left out.
type value struct {
	cue   cue.Value
	raw   string // as JSON
	given bool
}

// holds evaluates c.
func (c *condition) holds(with map[string]value) bool {
	switch c.op {
	case token.LAND:
		return c.of[0].holds(with) && c.of[1].holds(with)
	case token.LOR:
		return c.of[0].holds(with) || c.of[1].holds(with)
	case token.NOT:
		return !c.of[0].holds(with)
	}
	return c.test.holds(with[c.test.name])
}

func (t *test) holds(v value) bool {
	if t.presence {
		return v.given == (t.op == token.NEQ)
	}
	order, comparable := compareJSON(v.raw, t.raw)
	switch t.op {
	case token.EQL:
		return comparable && order == 0
	case token.NEQ:
		return !comparable || order != 0
	case token.LSS:
		return comparable && order < 0
	case token.LEQ:
		return comparable && order <= 0
	case token.GTR:
		return comparable && order > 0
	}
	return comparable && order >= 0
}

// compareJSON compares two scalars; false where they are of different kinds or neither numbers nor equal.
func compareJSON(a, b string) (int, bool) {
	x, okx := new(big.Rat).SetString(a)
	y, oky := new(big.Rat).SetString(b)
	if okx && oky {
		return x.Cmp(y), true
	}
	return 0, a == b
}

// schema is the condition of a guard as a schema of the struct.
func (b *body) schema(n *node) *node {
	out := &node{}
	for _, c := range b.conditions {
		s := c.schema(n)
		if len(b.conditions) == 1 {
			return s
		}
		out.also = append(out.also, s)
	}
	return out
}

func (c *condition) schema(n *node) *node {
	switch c.op {
	case token.LAND:
		return &node{also: []*node{c.of[0].schema(n), c.of[1].schema(n)}}
	case token.LOR:
		return &node{anyOf: []*node{c.of[0].schema(n), c.of[1].schema(n)}}
	case token.NOT:
		return &node{not: []*node{c.of[0].schema(n)}}
	}
	return c.test.schema(n)
}

func (t *test) schema(n *node) *node {
	if t.presence {
		present := &node{required: []string{t.name}}
		if t.op == token.NEQ {
			return present
		}
		return &node{not: []*node{present}}
	}
	raw := json.RawMessage(t.raw)
	value := &node{}
	switch t.op {
	case token.EQL:
		value.enum = []json.RawMessage{raw}
	case token.NEQ:
		value.not = []*node{{enum: []json.RawMessage{raw}}}
	case token.LSS:
		value.exclusiveMaximum = raw
	case token.LEQ:
		value.maximum = raw
	case token.GTR:
		value.exclusiveMinimum = raw
	case token.GEQ:
		value.minimum = raw
	}
	out := &node{properties: []property{{name: t.name, node: value}}}
	for _, p := range n.properties {
		if p.name == t.name && p.fallback != nil && t.holds(valueOf(p.fallback)) {
			return out // an argument that is left out has the default, which passes
		}
	}
	out.required = []string{t.name}
	return out
}

func valueOf(raw json.RawMessage) value { return value{raw: string(raw), given: true} }

// view is the struct as it stands for one way in which the conditions come out.
type view struct {
	truth      []bool
	value      cue.Value
	properties []property
	says       *node
}

type viewed struct {
	selector cue.Selector
	value    cue.Value
}

func (v *view) field(name string) (viewed, bool) {
	fields, err := v.value.Fields(cue.Optional(true))
	if err != nil {
		return viewed{}, false
	}
	for fields.Next() {
		if fields.Selector().Unquoted() == name {
			return viewed{fields.Selector(), fields.Value()}, true
		}
	}
	return viewed{}, false
}

// honest reports whether a guarded field stands in a view exactly where a condition that holds there, or the struct itself,
// declares it.
func (v *view) honest(n *node, group []*body, names []string) bool {
	for _, name := range names {
		want := slices.ContainsFunc(n.properties, func(p property) bool { return p.name == name })
		for i, b := range group {
			want = want || v.truth[i] && slices.Contains(b.names(), name)
		}
		if _, has := v.field(name); has != want {
			return false
		}
	}
	return true
}

// covers reports whether every condition that holds in other holds in v too.
func (v *view) covers(other *view) bool {
	for i := range v.truth {
		if other.truth[i] && !v.truth[i] {
			return false
		}
	}
	return true
}

// maxViews is how many combinations of values are tried for one group of guards.
const maxViews = 64

// views tries the tested arguments with a value for every outcome of each test. It is false where it can't be sure that
// no outcome is left out.
func (w *walker) views(v cue.Value, p *parts, n *node, group []*body) ([]*view, bool) {
	tests := map[string][]*test{}
	var names []string
	for _, b := range group {
		for _, c := range b.conditions {
			for _, t := range c.tests() {
				if tests[t.name] == nil {
					names = append(names, t.name)
				}
				tests[t.name] = append(tests[t.name], t)
			}
		}
	}
	combinations := []map[string]value{{}}
	for _, name := range names {
		values, ok := w.outcomes(v, name, tests[name], n)
		if !ok || len(values)*len(combinations) > maxViews {
			return nil, false
		}
		var more []map[string]value
		for _, c := range combinations {
			for _, value := range values {
				with := maps.Clone(c)
				with[name] = value
				more = append(more, with)
			}
		}
		combinations = more
	}
	var views []*view
	for _, with := range combinations {
		truth := make([]bool, len(group))
		for i, b := range group {
			truth[i] = !slices.ContainsFunc(b.conditions, func(c *condition) bool { return !c.holds(with) })
		}
		if slices.ContainsFunc(views, func(o *view) bool { return slices.Equal(o.truth, truth) }) {
			continue
		}
		filled := v
		for _, name := range names {
			if with[name].given {
				filled = filled.FillPath(cue.MakePath(cue.Str(name)), with[name].cue)
			}
		}
		if _, err := filled.Fields(cue.Optional(true)); err != nil {
			return nil, false
		}
		views = append(views, &view{truth: truth, value: filled})
	}
	return views, len(views) > 0
}

// outcomes are values of a field, at least one for every outcome of its tests that it can bring about.
func (w *walker) outcomes(v cue.Value, name string, tests []*test, n *node) ([]value, bool) {
	i := slices.IndexFunc(n.properties, func(p property) bool { return p.name == name })
	if i < 0 {
		return nil, false
	}
	path := cue.MakePath(cue.Str(name))
	field := v.LookupPath(cue.MakePath(cue.Str(name).Optional()))
	if !field.Exists() {
		if field = v.LookupPath(path); !field.Exists() {
			return nil, false
		}
	}
	for _, s := range sources(field) {
		if w.depends(expression(s)) {
			return nil, false
		}
	}
	if tests[0].presence {
		any, ok := anyOf(field)
		if !ok {
			return nil, false
		}
		if slices.ContainsFunc(tests, func(t *test) bool { return !t.presence }) {
			return nil, false
		}
		if tests[0].optional {
			return []value{any, {}}, true
		}
		return []value{any}, true
	}
	if slices.ContainsFunc(tests, func(t *test) bool { return t.presence }) {
		return nil, false
	}
	candidates, complete := outcomesOf(field, tests)
	if !complete {
		return nil, false
	}
	var out []value
	for _, c := range candidates {
		//lint:ignore SA1019 the values are of one context, which knows the definitions they refer to
		x := v.Context().CompileString(c.raw)
		if u := field.Unify(x); u.Validate(cue.Concrete(true)) == nil {
			out = append(out, value{cue: x, raw: c.raw, given: true})
		} else if c.must {
			return nil, false
		}
	}
	return out, len(out) > 0
}

// anyOf is some value that a field takes.
func anyOf(field cue.Value) (value, bool) {
	candidates := []string{"0", "1", `"x"`, "true", "{}", "[]", "null"}
	if op, operands := field.Eval().Expr(); op == cue.OrOp {
		for _, o := range operands {
			if raw, err := o.MarshalJSON(); err == nil {
				candidates = append(candidates, string(raw))
			}
		}
	}
	for _, raw := range candidates {
		//lint:ignore SA1019 the values are of one context, which knows the definitions they refer to
		x := field.Context().CompileString(raw)
		if field.Unify(x).Validate(cue.Concrete(true)) == nil {
			return value{cue: x, raw: raw, given: true}, true
		}
	}
	return value{}, false
}

// candidate is a value to try; must, where a field that does not take it may take another with the same outcome.
type candidate struct {
	raw  string
	must bool
}

func outcomesOf(field cue.Value, tests []*test) (out []candidate, complete bool) {
	if op, operands := field.Eval().Expr(); op == cue.OrOp && !slices.ContainsFunc(operands, func(o cue.Value) bool { return !o.IsConcrete() }) {
		for _, o := range operands {
			raw, err := o.MarshalJSON()
			if err != nil {
				return nil, false
			}
			out = append(out, candidate{raw: string(raw)})
		}
		return out, true
	}
	var literals []string
	for _, t := range tests {
		if t.op != token.EQL && t.op != token.NEQ && field.IncompleteKind()&^cue.NumberKind != 0 {
			return nil, false
		}
		if raw := t.raw; !slices.Contains(literals, raw) {
			literals = append(literals, raw)
			out = append(out, candidate{raw: raw})
		}
	}
	switch kind := field.IncompleteKind(); {
	case field.IsConcrete() && kind&(cue.StringKind|cue.NumberKind|cue.BoolKind) != 0:
		raw, err := field.MarshalJSON()
		if _, has := field.Default(); has && err == nil {
			// A default is one of several values.
			return others(kind, literals, out)
		}
		return []candidate{{raw: string(raw)}}, err == nil
	default:
		return others(kind, literals, out)
	}
}

func others(kind cue.Kind, literals []string, out []candidate) ([]candidate, bool) {
	switch kind {
	case cue.BoolKind:
		return []candidate{{raw: "true"}, {raw: "false"}}, true
	case cue.StringKind:
		other := "other"
		for slices.Contains(literals, fmt.Sprintf("%q", other)) {
			other += "s"
		}
		return append(out, candidate{fmt.Sprintf("%q", other), true}), true
	case cue.IntKind, cue.NumberKind:
		return numbers(kind, literals, out)
	}
	return nil, false
}

// numbers adds what lies between and beyond the constants.
func numbers(kind cue.Kind, literals []string, out []candidate) ([]candidate, bool) {
	var sorted []*big.Rat
	for _, l := range literals {
		r, ok := new(big.Rat).SetString(l)
		if !ok || kind == cue.IntKind && !r.IsInt() {
			return nil, false
		}
		sorted = append(sorted, r)
	}
	slices.SortFunc(sorted, (*big.Rat).Cmp)
	one := big.NewRat(1, 1)
	text := func(r *big.Rat) string {
		if r.IsInt() {
			return r.Num().String()
		}
		s, _ := r.Float64()
		b, _ := json.Marshal(s)
		return string(b)
	}
	for i, r := range sorted {
		below, above := new(big.Rat).Sub(r, one), new(big.Rat).Add(r, one)
		if i > 0 {
			below = nil
		}
		if i+1 < len(sorted) {
			next := sorted[i+1]
			if kind == cue.NumberKind {
				above = new(big.Rat).Quo(new(big.Rat).Add(r, next), big.NewRat(2, 1))
			} else if above.Cmp(next) >= 0 {
				above = nil
			}
		}
		for _, x := range []*big.Rat{below, above} {
			if x != nil {
				// A whole number that is refused beside one that is taken is the end of the range, unless it is made of several.
				out = append(out, candidate{text(x), true})
			}
		}
	}
	return out, true
}

// alone reports whether v is the only view in which all its conditions hold, so that they needn't be told from others.
func (v *view) alone(views []*view) bool {
	if !slices.Contains(v.truth, true) {
		return false
	}
	return !slices.ContainsFunc(views, func(o *view) bool { return o != v && o.covers(v) })
}
