package derive

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	cuejson "cuelang.org/go/encoding/json"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// A contract without a loss is compared with CUE when it is built, by witnesses: values that its nodes take or refuse by
// what they say, at every constraint, alternative, default, key and guard that the walk found, and a key that it did not.
// CUE is asked about each part by itself, which is much cheaper than a whole call, and about the whole for what only shows
// there. A constraint that is made of constants and types alone is compared once (Proven). A difference is a fault of
// catalogd: it is reported, and the contract becomes one that CUE decides.

// Proven remembers, by their text, constraints on which the walk and CUE agree. The zero Proven knows none. It is safe for
// concurrent use.
type Proven struct {
	texts sync.Map
	count atomic.Int64
	asked atomic.Int64
}

// mostProven caps how many texts are remembered; further ones are compared each time.
const mostProven = 50_000

func (p *Proven) has(text string) bool {
	_, ok := p.texts.Load(text)
	return ok
}

func (p *Proven) add(text string) {
	if p.count.Load() < mostProven {
		if _, was := p.texts.LoadOrStore(text, true); !was {
			p.count.Add(1)
		}
	}
}

// Witnesses is by how many values contracts were compared with CUE.
func (p *Proven) Witnesses() int64 { return p.asked.Load() }

// witness is a value and what a node says of it.
type witness struct {
	raw   jsonRaw
	taken bool
}

// verifier compares the nodes of one contract with CUE.
type verifier struct {
	*walker
	asked int // how many values CUE was asked about
}

// verify compares top with closed, the arguments as CUE closes them.
func (w *walker) verify(top *node, closed cue.Value, path string) {
	if !closed.Exists() || len(w.losses) > 0 || w.fills {
		return
	}
	v := verifier{walker: w}
	why := v.fields(top, closed, 0)
	if why == "" {
		why = v.call(top, closed)
	}
	w.pkg.proven.asked.Add(int64(v.asked))
	if why == "" {
		return
	}
	at := place{path: path, pos: w.positions[""]}
	w.warnOnce(problem.UnsupportedConstr, at.pos, at.path,
		"catalogd reads these arguments otherwise than CUE (%s), so CUE decides each call: please report this to catalogd with the file", why)
	w.lose(contract.LossExpression, at, at.pos, "the arguments as a whole, which catalogd reads otherwise than CUE")
	top.unsettle()
}

// value compares a node with the value that CUE has in its place. It answers what differs.
func (v *verifier) value(n *node, value cue.Value, depth int) string {
	if !value.Exists() || depth > 3 || n.ref != nil || n.never || n.encoding != "" {
		return "" // a definition that refers to itself was compared where it is met first
	}
	switch {
	case slices.Equal(n.types, []string{"object"}) && len(n.anyOf) == 0 && len(n.also) == 0:
		if why := v.fields(n, value, depth+1); why != "" {
			return why
		}
	case slices.Equal(n.types, []string{"array"}) && n.items != nil && len(n.anyOf) == 0 && n.fallback == nil:
		if why := v.value(n.items, value.LookupPath(cue.MakePath(cue.AnyIndex)), depth+1); why != "" {
			return why
		}
	}
	for _, x := range n.witnesses() {
		if why := v.ask(value, x); why != "" {
			return why
		}
	}
	return ""
}

// fields compares the fields of a struct.
func (v *verifier) fields(n *node, value cue.Value, depth int) string {
	if n.patterned() { // a pattern may say more of a field
		return ""
	}
	for _, p := range n.properties {
		if p.text != "" && v.pkg.proven.has(p.text) || p.node.empty() {
			continue
		}
		field := value.LookupPath(cue.MakePath(cue.Str(p.name)))
		if !field.Exists() {
			field = value.LookupPath(cue.MakePath(cue.Str(p.name).Optional()))
		}
		if why := v.value(p.node, field, depth); why != "" {
			return why
		}
		if p.text != "" {
			v.pkg.proven.add(p.text)
		}
	}
	return ""
}

// ask compares what a node and CUE say of one value.
func (v *verifier) ask(value cue.Value, x witness) string {
	v.asked++
	expr, err := cuejson.Extract("", x.raw)
	if err != nil {
		return err.Error()
	}
	//lint:ignore SA1019 the values are of one context, which knows the definitions they refer to
	err = value.Unify(value.Context().BuildExpr(expr)).Validate(cue.Concrete(true), cue.Final())
	if (err == nil) != x.taken {
		return fmt.Sprintf("%s: %s", value.Path(), clip(string(x.raw)))
	}
	return ""
}

// call compares what a whole call becomes: one with what must be there and nothing else, and for each guard one for which
// it holds, with and without what stands under it.
func (v *verifier) call(top *node, closed cue.Value) string {
	signature := top.signature(0)
	if minimal, ok := top.sample(0); ok && !v.pkg.proven.has(signature) {
		if why := v.whole(top, closed, minimal); why != "" {
			return why
		}
		for _, x := range top.keyWitnesses() {
			if why := v.ask(closed, x); why != "" {
				return why
			}
		}
		v.pkg.proven.add(signature)
	}
	for _, g := range top.guards {
		for _, x := range top.guardWitnesses(g) {
			if why := v.ask(closed, x); why != "" {
				return why
			}
		}
	}
	return ""
}

// signature says of what kinds of fields a struct is made, which is what decides about a call beside the fields by
// themselves: whether they must be there, are filled in and are closed.
func (n *node) signature(depth int) string {
	const deepest = 3
	kinds := slices.Clone(n.types)
	for _, p := range n.properties {
		kind := "optional"
		if p.required {
			kind = "required"
		}
		if p.fallback != nil {
			kind += " default"
		}
		if depth < deepest {
			kind += " " + p.node.signature(depth+1)
		}
		kinds = append(kinds, kind)
	}
	for _, a := range n.anyOf {
		kinds = append(kinds, "or "+a.signature(depth+1))
	}
	slices.Sort(kinds)
	return fmt.Sprintf("{%s %v %v %v %v}", strings.Join(slices.Compact(kinds), ", "), n.closed, n.definition, n.ref != nil, n.patterned())
}

// whole compares a call that the contract takes, and what it is filled in to.
func (v *verifier) whole(top *node, closed cue.Value, call jsonRaw) string {
	v.asked++
	expr, err := cuejson.Extract("", call)
	if err != nil {
		return err.Error()
	}
	//lint:ignore SA1019 the values are of one context, which knows the definitions they refer to
	u := closed.Unify(closed.Context().BuildExpr(expr))
	if err := u.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return "the call " + clip(string(call))
	}
	out, err := u.MarshalJSON()
	if err != nil {
		return "the call " + clip(string(call))
	}
	var ours, theirs map[string]any
	if json.Unmarshal(call, &ours) != nil || json.Unmarshal(out, &theirs) != nil {
		return "the call " + clip(string(call))
	}
	for _, p := range top.properties {
		if _, has := ours[p.name]; !has && p.fallback != nil {
			var d any
			if json.Unmarshal(p.fallback, &d) != nil {
				return "the default of " + p.name
			}
			ours[p.name] = d
		}
	}
	if len(ours) != len(theirs) {
		return "what is filled in"
	}
	for name, x := range theirs {
		if y, ok := ours[name]; !ok || !slices.Contains(top.requiredNames(), name) && fmt.Sprint(x) != fmt.Sprint(y) {
			return "what is filled in for " + name
		}
	}
	return ""
}

// witnesses are values at the edges of what n says of scalars, and one of another type.
func (n *node) witnesses() (out []witness) {
	if len(n.anyOf) > 0 {
		for _, a := range n.anyOf {
			if raw, ok := a.sample(0); ok {
				out = append(out, witness{raw, true})
			}
		}
		return append(out, n.foreign()...)
	}
	if len(n.also) > 0 || len(n.not) > 0 || len(n.contains) > 0 || n.unique || n.multipleOf != nil {
		return n.foreign()
	}
	switch {
	case len(n.enum) > 0:
		out = append(out, witness{n.enum[0], true}, witness{n.enum[len(n.enum)-1], true})
		if slices.Equal(n.types, []string{"string"}) {
			out = append(out, witness{jsonRaw(`"no such value"`), slices.ContainsFunc(n.enum, func(e jsonRaw) bool { return string(e) == `"no such value"` })})
		}
		return append(out, n.foreign()...)
	case len(n.types) != 1:
		for _, t := range n.types {
			out = append(out, witness{plainOf[t], true})
		}
		return append(out, n.foreign()...)
	}
	switch n.types[0] {
	case "integer", "number":
		out = n.numbers()
	case "string":
		out = n.texts()
	case "array":
		out = n.lists()
	default:
		if raw, ok := n.sample(0); ok {
			out = append(out, witness{raw, true})
		}
	}
	return append(out, n.foreign()...)
}

// plainOf has a value of each type.
var plainOf = map[string]jsonRaw{
	"null": jsonRaw("null"), "boolean": jsonRaw("true"), "integer": jsonRaw("3"), "number": jsonRaw("2.5"), "string": jsonRaw(`"text"`),
	"array": jsonRaw("[]"), "object": jsonRaw("{}"),
}

// foreign is a value of a type that n does not take.
func (n *node) foreign() []witness {
	kinds := n.kindsBelow()
	if len(kinds) == 0 {
		return nil
	}
	for _, t := range []string{"string", "boolean", "object"} {
		if !slices.Contains(kinds, t) {
			return []witness{{plainOf[t], false}}
		}
	}
	return nil
}

func (n *node) kindsBelow() (kinds []string) {
	if len(n.anyOf) == 0 {
		return n.types
	}
	for _, a := range n.anyOf {
		below := a.kindsBelow()
		if a.ref != nil || len(below) == 0 {
			return nil
		}
		kinds = append(kinds, below...)
	}
	return kinds
}

// numbers are the bounds of n and what lies just outside of them.
func (n *node) numbers() (out []witness) {
	one := big.NewRat(1, 1)
	for _, limit := range []struct {
		raw   jsonRaw
		step  int64
		taken bool
	}{{n.minimum, -1, true}, {n.exclusiveMinimum, 1, false}, {n.maximum, 1, true}, {n.exclusiveMaximum, -1, false}} {
		r, ok := new(big.Rat).SetString(string(limit.raw))
		if limit.raw == nil || !ok || !r.IsInt() {
			continue
		}
		beyond := new(big.Rat).Add(r, new(big.Rat).Mul(one, big.NewRat(limit.step, 1)))
		at, next := jsonRaw(r.Num().String()), jsonRaw(beyond.Num().String())
		out = append(out, witness{at, limit.taken && n.within(at)})
		if limit.taken {
			out = append(out, witness{next, false})
		} else if n.within(next) {
			out = append(out, witness{next, true})
		}
	}
	if len(out) == 0 {
		if raw, ok := n.sample(0); ok {
			out = append(out, witness{raw, true})
		}
	}
	if n.types[0] == "integer" {
		out = append(out, witness{jsonRaw("0.5"), false})
	}
	return out
}

// texts are strings at the lengths of n, or one that its patterns take.
func (n *node) texts() (out []witness) {
	if len(n.patterns) > 0 || n.format != "" {
		if raw, ok := n.sample(0); ok {
			out = append(out, witness{raw, true})
		}
		if len(n.patterns) == 1 {
			if re, err := regexp.Compile(n.patterns[0]); err == nil && !re.MatchString("\x01") {
				out = append(out, witness{quote("\x01"), false})
			}
		}
		return out
	}
	const longest = 256
	if n.minLength != nil && *n.minLength > 0 && *n.minLength < longest {
		out = append(out, witness{quote(strings.Repeat("é", int(*n.minLength)-1)), false})
	}
	if n.maxLength != nil && *n.maxLength < longest {
		out = append(out, witness{quote(strings.Repeat("é", int(*n.maxLength)+1)), false})
	}
	if raw, ok := n.sample(0); ok {
		out = append(out, witness{raw, true})
	}
	return out
}

// lists are lists of the lengths that n takes, and does not.
func (n *node) lists() (out []witness) {
	raw, ok := n.sample(0)
	if !ok {
		return nil
	}
	out = append(out, witness{raw, true})
	if n.minItems != nil && *n.minItems > 0 {
		out = append(out, witness{jsonRaw("[]"), false})
	}
	return out
}

// sample is a value that n takes; false where none is found easily.
func (n *node) sample(depth int) (jsonRaw, bool) {
	const deepest, longest = 4, 16
	if depth > deepest {
		return nil, false
	}
	switch {
	case n.ref != nil:
		if n.ref.node == nil {
			return nil, false
		}
		return n.ref.node.sample(depth + 1)
	case n.never || len(n.also) > 0 || len(n.contains) > 0 || n.multipleOf != nil || n.encoding != "":
		return nil, false
	case len(n.enum) > 0:
		return n.enum[0], true
	case len(n.anyOf) > 0:
		for _, a := range n.anyOf {
			if raw, ok := a.sample(depth + 1); ok {
				return raw, true
			}
		}
		return nil, false
	case len(n.types) == 0:
		return jsonRaw(`"text"`), len(n.not) == 0
	}
	var candidates []string
	switch n.types[0] {
	case "null", "boolean":
		return plainOf[n.types[0]], true
	case "string":
		candidates = []string{`"text"`, `"a"`, `""`, `"x"`, `"AB"`, `"A"`, `"b1"`, `"1"`, `"12"`, `"/a"`, `"x-a"`, `"a@b.c"`, `"https://a.b"`, `"2026-07-28T12:00:00Z"`}
		if n.minLength != nil && *n.minLength < 256 {
			candidates = append(candidates, string(quote(strings.Repeat("a", int(*n.minLength)))))
		}
	case "integer", "number":
		for _, limit := range []jsonRaw{n.minimum, n.maximum, n.exclusiveMinimum, n.exclusiveMaximum} {
			if r, ok := new(big.Rat).SetString(string(limit)); ok && limit != nil && r.IsInt() {
				one := big.NewInt(1)
				candidates = append(candidates, r.Num().String(), new(big.Int).Add(r.Num(), one).String(), new(big.Int).Sub(r.Num(), one).String())
			}
		}
		candidates = append(candidates, "3", "0")
		if n.types[0] == "number" {
			candidates = append(candidates, "2.5")
			if len(n.not) > 0 {
				candidates = []string{"2.5"}
			}
		}
	case "array":
		var items []string
		for _, p := range n.prefix {
			raw, ok := p.sample(depth + 1)
			if !ok {
				return nil, false
			}
			items = append(items, string(raw))
		}
		for n.minItems != nil && int64(len(items)) < *n.minItems {
			if n.noItems || n.unique || len(items) > longest {
				return nil, false
			}
			item := jsonRaw(`"text"`)
			if n.items != nil {
				var ok bool
				if item, ok = n.items.sample(depth + 1); !ok {
					return nil, false
				}
			}
			items = append(items, string(item))
		}
		return jsonRaw("[" + strings.Join(items, ",") + "]"), true
	case "object":
		return n.sampleObject(depth)
	}
	for _, c := range candidates {
		if n.scalarTakes(jsonRaw(c)) {
			return jsonRaw(c), true
		}
	}
	return nil, false
}

// scalarTakes reports whether n, with exclusions of constants, takes a constant.
func (n *node) scalarTakes(raw jsonRaw) bool {
	if n.format != "" && n.format != "date-time" {
		return false
	}
	for _, not := range n.not {
		if len(not.enum) == 0 && !slices.Equal(not.types, []string{"integer"}) || slices.ContainsFunc(not.enum, func(e jsonRaw) bool { return string(e) == string(raw) }) {
			return false
		}
	}
	bare := *n
	bare.not, bare.format = nil, ""
	return bare.admits(raw)
}

// sampleObject has what must be there.
func (n *node) sampleObject(depth int) (jsonRaw, bool) {
	if len(n.guards) > 0 || n.minProperties != nil {
		return nil, false
	}
	fields, ok := n.sampleFields(depth)
	return jsonObject(fields), ok
}

// sampleFields are the fields that must be there.
func (n *node) sampleFields(depth int) (map[string]jsonRaw, bool) {
	fields := map[string]jsonRaw{}
	for _, p := range n.properties {
		if !p.required {
			continue
		}
		raw, ok := p.node.sample(depth + 1)
		if !ok {
			return nil, false
		}
		fields[p.name] = raw
	}
	return fields, true
}

// keyWitnesses are calls with a key that nothing declares, in the first structs below the top. (A value by itself does not
// know that it is closed by what stands above it.)
func (n *node) keyWitnesses() (out []witness) {
	const most = 2
	if len(n.guards) > 0 {
		return nil
	}
	for _, p := range n.properties {
		inner := p.node
		for inner.ref != nil {
			inner = inner.ref.node
		}
		if len(out) == most || !slices.Equal(inner.types, []string{"object"}) || len(inner.anyOf)+len(inner.also)+len(inner.guards) > 0 || inner.patterned() ||
			inner.minProperties != nil || inner.maxProperties != nil {
			continue
		}
		fields, ok := n.sampleFields(0)
		below, known := inner.sampleFields(1)
		if !ok || !known {
			continue
		}
		below["a key that nothing declares"] = jsonRaw("1")
		fields[p.name] = jsonObject(below)
		out = append(out, witness{jsonObject(fields), !inner.closed})
	}
	return out
}

// guardWitnesses are calls for which the condition of a guard holds: with all that it requires, and without.
func (n *node) guardWitnesses(g guard) (out []witness) {
	c := g.condition
	if g.then == nil || len(c.anyOf) > 0 || len(c.also) > 0 || len(c.not) > 0 || len(n.guards) > 1 {
		return nil
	}
	fields := map[string]jsonRaw{}
	for _, p := range n.properties {
		if !p.required && !slices.Contains(c.required, p.name) {
			continue
		}
		raw, ok := p.node.sample(1)
		if !ok {
			return nil
		}
		fields[p.name] = raw
	}
	for _, p := range c.properties {
		raw, ok := p.node.sample(1)
		if !ok || len(p.enum) == 0 {
			return nil
		}
		fields[p.name] = raw
	}
	without := jsonObject(fields)
	for _, p := range n.properties {
		if slices.Contains(g.then.required, p.name) {
			said := p.node
			if i := g.then.index(p.name); i >= 0 {
				said = g.then.properties[i].node
			}
			raw, ok := said.sample(1)
			if !ok {
				return nil
			}
			fields[p.name] = raw
		}
	}
	out = append(out, witness{jsonObject(fields), true})
	if len(g.then.required) > 0 {
		out = append(out, witness{without, false})
	}
	return out
}

func jsonObject(fields map[string]jsonRaw) jsonRaw {
	raw, err := json.Marshal(fields)
	if err != nil {
		panic("derive: JSON encodes: " + err.Error())
	}
	return raw
}

// leafText names an expression of constants and types alone by its syntax; empty for one that refers to anything else.
func (w *walker) leafText(x ast.Expr) string {
	var b strings.Builder
	pure := true
	ast.Walk(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			b.WriteString(n.Value)
		case *ast.BinaryExpr:
			b.WriteString("(" + n.Op.String())
		case *ast.UnaryExpr:
			b.WriteString(n.Op.String())
		case *ast.SelectorExpr:
			t := w.refer(n)
			pure = pure && t.builtin != ""
			b.WriteString(t.builtin)
			return false
		case *ast.Ident:
			t := w.refer(n)
			pure = pure && t.basic != ""
			b.WriteString(n.Name)
		case *ast.CallExpr:
			b.WriteString("call")
		case *ast.ListLit:
			b.WriteString("[")
		case *ast.Ellipsis:
			b.WriteString("...")
		case *ast.ParenExpr, *ast.CommentGroup, *ast.Comment:
		default:
			pure = false
		}
		b.WriteByte(' ')
		return pure
	}, func(ast.Node) { b.WriteByte(')') })
	if !pure {
		return ""
	}
	return b.String()
}
