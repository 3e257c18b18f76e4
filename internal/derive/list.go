package derive

import (
	"cuelang.org/go/cue"

	"github.com/catalogd/catalogd/problem"
)

// listOf walks a list that has been taken apart.
func (w *walker) listOf(v cue.Value, p *parts, at place) *node {
	n := &node{types: []string{"array"}, pos: at.pos}
	if len(p.choices) > 0 {
		w.refuse(problem.UnsupportedConstr, w.blame(at, p.choices[0][0].Pos()), at.path, "a choice between lists can't be checked exactly: make it one list")
		return n
	}
	if p.others {
		w.refuse(problem.UnsupportedConstr, w.blame(at, v.Pos()), at.path, "a list with a bound can't be said in JSON Schema")
	}
	if len(p.values) == 1 {
		v = p.values[0] // the list itself, where v would answer with its default
	}
	items, err := v.List()
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
	for _, c := range p.validators {
		w.listValidator(n, c, at)
	}
	return n
}

func (w *walker) listValidator(n *node, call cue.Value, at place) {
	name, arguments := callee(call)
	switch name {
	case "list.MinItems":
		n.minItems = w.larger(n.minItems, w.size(arguments, name, at))
	case "list.MaxItems":
		n.maxItems = w.smaller(n.maxItems, w.size(arguments, name, at))
	case "list.UniqueItems":
		n.unique = true
	default:
		w.unknown(name, at)
	}
}
