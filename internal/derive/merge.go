package derive

import (
	"cmp"
	"slices"
)

// What certainly holds for structs that are combined, or of which one applies, without what only CUE can
// determine about them.

// bothFields returns a field that is declared twice, with what certainly holds for both.
func bothFields(a, b property) property {
	var n *node
	if a.composite() || b.composite() {
		n = mergeStructs(a.node, b.node)
	} else {
		n = meet(a.node, b.node)
	}
	out := *n
	out.lossy, out.fallback = true, nil
	if out.description == "" {
		out.description = a.description
	}
	out.writeOnly = a.writeOnly || b.writeOnly
	a.node, a.required = &out, false
	return a
}

// mergeStructs returns what certainly holds for a value that is both: for two structs the fields of each, for
// two lists that it is one. CUE closes them together, so neither is closed by itself.
func mergeStructs(a, b *node) *node {
	object := func(n *node) bool {
		return n.ref == nil && len(n.anyOf) == 0 && slices.Equal(n.types, []string{"object"})
	}
	switch {
	case object(a) && object(b):
	case slices.Equal(a.types, b.types):
		return &node{types: a.types, pos: a.pos, lossy: true, writeOnly: a.holdsSecret() || b.holdsSecret()}
	default:
		return &node{pos: a.pos, lossy: true, writeOnly: a.holdsSecret() || b.holdsSecret()}
	}
	out := node{types: a.types, pos: a.pos, lossy: true, closed: a.closed && b.closed && !a.patterned() && !b.patterned(), unnamed: a.unnamed || b.unnamed}
	out.ellipsis = cmp.Or(a.ellipsis, b.ellipsis)
	out.properties = slices.Clone(a.properties)
	out.derived = slices.Clone(a.derived)
	for _, p := range b.derived {
		if !slices.ContainsFunc(out.derived, func(d property) bool { return d.name == p.name }) {
			out.derived = append(out.derived, p)
		}
	}
	for _, p := range b.properties {
		if i := out.index(p.name); i >= 0 {
			out.properties[i] = bothFields(out.properties[i], p)
		} else {
			out.properties = append(out.properties, p)
		}
	}
	out.properties = slices.DeleteFunc(out.properties, func(p property) bool {
		return slices.ContainsFunc(out.derived, func(d property) bool { return d.name == p.name })
	})
	for _, d := range out.derived { // what one computes the other may accept from a call
		out.unnamed = out.unnamed || a.index(d.name) >= 0 || b.index(d.name) >= 0
	}
	if !out.closed {
		out.unnamed = out.unnamed || a.patterned() || b.patterned()
	}
	if out.settled = a.settles() && b.settles(); !out.settled {
		out.unsettle()
	}
	out.required = out.requiredNames()
	return &out
}

// settles reports whether what n states about omitted fields also holds together with another struct that
// doesn't declare them.
func (n *node) settles() bool { return (!n.lossy || n.settled) && !n.unnamed && !n.patterned() }

// eitherStruct returns what certainly holds for a value that is one of two objects.
func (w *walker) eitherStruct(a, b *node) *node {
	out := node{types: a.types, pos: a.pos, lossy: true, closed: a.closed && b.closed, unnamed: a.unnamed || b.unnamed || a.patterned() || b.patterned()}
	for _, p := range a.properties {
		q := p
		i := b.index(p.name)
		switch {
		case i < 0:
			q.required = false
			if b.takesMore() || w.openKeys {
				q.node = &node{pos: p.pos, description: p.description, writeOnly: p.holdsSecret(), lossy: true}
			}
		default:
			q.required = p.required && b.properties[i].required
			if !p.node.same(b.properties[i].node) {
				q.node = &node{anyOf: []*node{p.node, b.properties[i].node}, lossy: true, pos: p.pos, description: p.description, writeOnly: p.writeOnly || b.properties[i].writeOnly}
				if p.isConst() && b.properties[i].isConst() {
					q.node = &node{types: constantTypes(append(slices.Clone(p.enum), b.properties[i].enum...)), enum: append(slices.Clone(p.enum), b.properties[i].enum...), pos: p.pos, description: p.description, writeOnly: p.writeOnly || b.properties[i].writeOnly}
				}
			}
		}
		bare := *q.node
		bare.fallback = nil
		q.node = &bare
		out.properties = append(out.properties, q)
	}
	for _, p := range b.properties {
		if a.index(p.name) < 0 {
			p.required = false
			bare := *p.node
			bare.fallback = nil
			if a.takesMore() || w.openKeys {
				bare = node{pos: p.pos, description: p.description, writeOnly: p.holdsSecret(), lossy: true}
			}
			p.node = &bare
			out.properties = append(out.properties, p)
		}
	}
	out.unnamed = out.unnamed || len(a.derived)+len(b.derived) > 0
	if out.unnamed {
		out.closed = false
	}
	out.required = out.requiredNames()
	return &out
}

// unsettle withdraws what n states about omitted fields: something unknown to the walk may fill them in.
func (n *node) unsettle() {
	n.properties = slices.Clone(n.properties)
	for i, p := range n.properties {
		n.properties[i].required = false
		if p.fallback != nil {
			bare := *p.node
			bare.fallback = nil
			n.properties[i].node = &bare
		}
	}
	n.required = nil
}
