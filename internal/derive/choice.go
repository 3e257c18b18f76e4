package derive

import (
	"encoding/json"
	"slices"

	"cuelang.org/go/cue"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// choice walks a disjunction of scalars: an enum where all are constants, else what each of them says.
func (w *walker) choice(v cue.Value, alternatives []cue.Value, at place) *node {
	var nodes []*node
	for _, a := range alternatives {
		n := w.kind(a, at)
		w.constrain(n, a, at, 0)
		nodes = append(nodes, n)
	}
	w.oddDefault(v, alternatives, at)
	return w.merge(nodes, at)
}

// merge makes one node of alternatives, as plain a one as it can be: models read `type` and `enum` at the top of an
// argument better than anyOf.
func (w *walker) merge(nodes []*node, at place) *node {
	var types []string
	var enum []json.RawMessage
	var rest []*node
	for _, n := range nodes {
		switch {
		case n.isConst():
			enum = append(enum, n.enum[0])
		case n.bare():
			types = append(types, n.types...)
		default:
			rest = append(rest, n)
		}
	}
	if len(enum) > maxEnum {
		w.refuse(problem.UnsupportedConstr, at.pos, at.path, "%d alternatives, more than %d: take a string and say its form", len(enum), maxEnum)
	}
	constants := &node{enum: enum, types: constantTypes(enum), pos: at.pos}
	slices.Sort(types)
	bare := &node{types: slices.Compact(types), pos: at.pos}
	switch {
	case len(types) == 0 && len(rest) == 0:
		return constants
	case len(enum) == 0 && len(rest) == 0:
		return bare
	case len(enum) > 0 && len(rest) == 0 && slices.Equal(bare.types, []string{"null"}):
		constants.enum = append(constants.enum, json.RawMessage("null"))
		constants.types = append(constants.types, "null")
		return constants
	}
	n := &node{pos: at.pos}
	if len(enum) > 0 {
		n.anyOf = append(n.anyOf, constants)
	}
	if len(types) > 0 {
		n.anyOf = append(n.anyOf, bare)
	}
	n.anyOf = append(n.anyOf, rest...)
	if len(n.anyOf) == 1 {
		return n.anyOf[0]
	}
	return n
}

// bare reports whether n says nothing but its types.
func (n *node) bare() bool {
	if len(n.types) == 0 {
		return false
	}
	other := *n
	other.types = nil
	return string(other.json()) == "{}"
}

func constantTypes(enum []json.RawMessage) (types []string) {
	for _, raw := range enum {
		t := "integer"
		switch c := raw[0]; {
		case c == '"':
			t = "string"
		case c == 't' || c == 'f':
			t = "boolean"
		case slices.ContainsFunc(raw, func(b byte) bool { return b == '.' || b == 'e' || b == 'E' }):
			t = "number"
		}
		types = append(types, t)
	}
	slices.Sort(types)
	types = slices.Compact(types)
	if slices.Contains(types, "number") {
		types = slices.DeleteFunc(types, func(t string) bool { return t == "integer" })
	}
	return types
}

// oddDefault refuses `*500 | int & <=100`: to CUE 500 is one more value that is allowed, but whoever wrote it meant it to
// obey the bound.
func (w *walker) oddDefault(v cue.Value, alternatives []cue.Value, at place) {
	d, has := v.Default()
	if !has || !d.IsConcrete() || !star(at).IsValid() {
		return
	}
	stands := slices.ContainsFunc(alternatives, func(a cue.Value) bool { return a.IsConcrete() && a.Equals(d) })
	if !stands {
		return
	}
	for _, a := range alternatives {
		if !a.IsConcrete() && family(a.IncompleteKind())&family(d.Kind()) != 0 {
			w.refuse(problem.BadDefault, Position(star(at)), at.path, "the default does not satisfy %s beside it: change one of them", short(a))
			return
		}
	}
}

// family takes int and float as one.
func family(k cue.Kind) cue.Kind {
	if k&cue.NumberKind != 0 {
		k |= cue.NumberKind
	}
	return k
}

// mixed walks a value that may be a struct or a list and something else. JSON's own types tell the alternatives apart as
// long as there is at most one struct and one list.
func (w *walker) mixed(v cue.Value, at place) *node {
	p := w.parts(v, at)
	if len(p.choices) != 1 || len(p.values) > 0 || len(p.validators) > 0 || p.others {
		w.touched++
		w.lose(contract.LossChoice, at, w.blame(at, v.Pos()), "a choice between kinds joined with something else")
		return &node{types: jsonTypes(v.IncompleteKind()), pos: at.pos}
	}
	return w.alternatives(v, p.choices[0], at)
}

// alternatives walks what mixed has found.
func (w *walker) alternatives(v cue.Value, alternatives []cue.Value, at place) *node {
	if len(alternatives) == 0 {
		w.touched++
		w.lose(contract.LossChoice, at, w.blame(at, v.Pos()), "a choice that CUE decides at the call, joined with something else")
		return &node{pos: at.pos}
	}
	var nodes []*node
	structs, lists := 0, 0
	for _, a := range alternatives {
		kind := a.IncompleteKind()
		if kind&cue.StructKind != 0 {
			structs++
		}
		if kind&cue.ListKind != 0 {
			lists++
		}
		inner := at.item("")
		inner.syntax = nil
		n := w.value(a, inner)
		if n.ref != nil && kind == cue.BottomKind {
			structs++ // CUE can't tell the kind of what it holds for a cycle
		}
		nodes = append(nodes, n)
	}
	if structs > 1 || lists > 1 {
		return w.union(v, nodes, at)
	}
	return w.merge(flatten(nodes), at)
}

// flatten takes the alternatives of alternatives as one choice.
func flatten(nodes []*node) (flat []*node) {
	for _, n := range nodes {
		if n.ref == nil && len(n.anyOf) > 0 && (&node{anyOf: n.anyOf}).same(n) {
			flat = append(flat, n.anyOf...)
		} else {
			flat = append(flat, n)
		}
	}
	return flat
}

// same reports whether both are written alike.
func (n *node) same(m *node) bool { return string(n.json()) == string(m.json()) }
