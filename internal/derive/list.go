package derive

import (
	"slices"

	"cuelang.org/go/cue"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// listOf walks a list that has been taken apart.
func (w *walker) listOf(v cue.Value, p *parts, at place) *node {
	n := &node{types: []string{"array"}, pos: at.pos}
	if p.others {
		w.lose(contract.LossBound, at, w.blame(at, v.Pos()), "%s", short(v))
	}
	if len(p.choices) > 0 {
		w.lists(n, p, at)
		return n
	}
	if len(p.values) == 1 {
		v = p.values[0] // the list itself, where v would answer with its default
	}
	items, err := v.List()
	if err != nil && len(p.values) == 0 {
		w.listValidators(n, p, at) // nothing says what the items are
		return n
	}
	if err != nil {
		w.refuse(problem.UnsupportedConstr, w.blame(at, v.Pos()), at.path, "can't be read as a list: %v", err)
		return n
	}
	for items.Next() {
		item := at.item("[" + items.Selector().String() + "]")
		item.pos = w.fieldPosition(items.Value(), at)
		n.prefix = append(n.prefix, w.value(items.Value(), item))
	}
	least := int64(len(n.prefix))
	if least > 0 {
		n.minItems = &least
	}
	if rest := v.LookupPath(cue.MakePath(cue.AnyIndex)); rest.Exists() {
		item := at.item("[...]")
		item.pos = w.fieldPosition(rest, at)
		n.items = w.value(rest, item)
	} else {
		n.noItems = true
		n.maxItems = &least
	}
	w.listValidators(n, p, at)
	return n
}

// lists walks a choice between lists. CUE decides it by the items alone where none of them is a struct; structs of a call
// may fit two alternatives, and then CUE takes neither.
func (w *walker) lists(n *node, p *parts, at place) {
	for _, alternatives := range p.choices {
		choice := &node{}
		for _, a := range alternatives {
			choice.anyOf = append(choice.anyOf, w.value(a, at.item("")))
		}
		n.also = append(n.also, choice)
		if len(p.choices) > 1 || len(p.values) > 0 || !choice.flat() {
			w.lose(contract.LossChoice, at, w.blame(at, alternatives[0].Pos()), "the choice between lists")
		}
	}
	w.listValidators(n, p, at)
	if len(n.also) == 1 && len(p.choices) == 1 {
		n.anyOf, n.also = n.also[0].anyOf, nil
	}
}

// flat reports whether no struct can be in n.
func (n *node) flat() bool {
	if n == nil {
		return true
	}
	known := len(n.types) > 0 || len(n.anyOf) > 0 || len(n.enum) > 0
	within := func(m *node) bool { return !m.flat() }
	return known && n.ref == nil && !slices.Contains(n.types, "object") && n.items.flat() &&
		!slices.ContainsFunc(n.prefix, within) && !slices.ContainsFunc(n.anyOf, within)
}
