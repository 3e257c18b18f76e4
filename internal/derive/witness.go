package derive

import (
	"encoding/json"
	"fmt"
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

// A contract without a loss is compared with CUE when it is built, by witnesses: values that its nodes accept
// or refuse, for every constraint, alternative, default, key and guard that the walk found, and for an
// undeclared key. CUE evaluates each part separately, which is much cheaper than a whole call, and the whole
// for what shows only there. A constraint that consists of constants and types only is compared once
// (Proven). A difference is a bug in catalogd: it is reported, and CUE then checks the calls of the contract.

// Proven caches, by their text, constraints on which the walk and CUE agree. The zero Proven is empty. It is
// safe for concurrent use.
type Proven struct {
	texts sync.Map
	count atomic.Int64
	asked atomic.Int64
}

// mostProven caps the cached texts; further ones are compared each time.
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

// Witnesses returns the number of values by which contracts were compared with CUE.
func (p *Proven) Witnesses() int64 { return p.asked.Load() }

// witness is a value and whether a node accepts it.
type witness struct {
	raw   jsonRaw
	taken bool
}

// verifier compares the nodes of one contract with CUE.
type verifier struct {
	*walker
	asked int // the number of values that CUE evaluated
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
		"catalogd interprets these arguments differently from CUE (%s), so CUE decides each call: please report this to catalogd with the file", why)
	w.lose(contract.LossExpression, at, at.pos, "the arguments as a whole, which catalogd interprets differently from CUE")
	top.unsettle()
}

// value compares a node with CUE's value in the same place. It returns a description of the difference.
func (v *verifier) value(n *node, value cue.Value, depth int) string {
	if !value.Exists() || depth > 3 || n.ref != nil || n.never || n.encoding != "" {
		return "" // a recursive definition was compared where it was first reached
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
	if n.patterned() { // a pattern may constrain a field further
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

// ask compares the verdicts of a node and of CUE on one value.
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

// call compares whole calls: one with only the required fields, and for each guard one for which it holds,
// with and without the fields under it.
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

// signature describes the kinds of fields of a struct, which determine the result of a call apart from the
// fields' own constraints: whether they are required, filled in and closed.
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

// whole compares a call that the contract accepts, and the values that are filled in.
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

// keyWitnesses returns calls with an undeclared key, in the first structs below the top. (A separate value
// does not know that an enclosing value closes it.)
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

// guardWitnesses returns calls for which the condition of a guard holds: with all that it requires, and
// without.
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
			from := p.node
			if i := g.then.index(p.name); i >= 0 {
				from = g.then.properties[i].node
			}
			raw, ok := from.sample(1)
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

// leafText returns the source text of an expression of constants and types only; "" for one that refers to
// anything else.
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
