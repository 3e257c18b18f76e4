package derive

import (
	"slices"

	"cuelang.org/go/cue"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// union makes one node of a choice between several structs or lists. To JSON Schema it is made when one alternative
// accepts a call. To CUE it is made when all others contradict the call: what they lack can still come, so one that only
// lacks a field stays, and the choice is ambiguous. The two agree where a required field of each alternative is no field of the other,
// or has another constant there. Elsewhere the difference is a loss. Where both are open and nothing tells them apart,
// nearly every call is ambiguous to CUE, and the choice is refused. Lists are told apart by their items, where these are
// no structs.
func (w *walker) union(v cue.Value, nodes []*node, at place) *node {
	pos := w.blame(at, v.Pos())
	exact := !star(at).IsValid()
	for i, a := range nodes {
		for _, b := range nodes[:i] {
			x, y := a.resolved(), b.resolved()
			if x == nil || y == nil || x.nests() && y.composite() || y.nests() && x.composite() {
				exact = false
				continue
			}
			if slices.Contains(x.types, "array") && slices.Contains(y.types, "array") {
				exact = exact && x.flat() && y.flat()
			}
			if !slices.Contains(x.types, "object") || !slices.Contains(y.types, "object") {
				continue
			}
			apart := x.excludes(y) && y.excludes(x)
			if !apart && !x.closed && !y.closed {
				w.refuse(problem.UnsupportedConstr, pos, at.path, "CUE can't decide between these structs, which are open and have no field that tells them apart: give each a required field with a constant of its own, such as kind!: \"a\"")
				return &node{}
			}
			exact = exact && apart
		}
	}
	for i, n := range nodes {
		if n.fills(map[*definition]bool{}) {
			exact = false
			if n.ref == nil {
				nodes[i] = n.withoutDefaults()
			}
		}
	}
	if !exact {
		w.touched++ // what a call leaves out is for CUE to say
		w.lose(contract.LossChoice, at, pos, "which of several structs or lists is meant, where more than one may be")
	}
	return w.merge(flatten(nodes), at)
}

// resolved is the node that n refers to; nil for a definition that is being walked.
func (n *node) resolved() *node {
	if n.ref != nil {
		return n.ref.node
	}
	return n
}

// composite reports whether a struct or a list may be meant by n.
func (n *node) composite() bool {
	return n.ref != nil || len(n.types) == 0 && len(n.anyOf) == 0 || slices.Contains(n.types, "object") ||
		slices.Contains(n.types, "array") || slices.ContainsFunc(n.anyOf, (*node).composite)
}

// nests reports whether n is a choice of its own with a struct or a list in it.
func (n *node) nests() bool { return slices.ContainsFunc(n.anyOf, (*node).composite) }

// excludes reports whether what n accepts contradicts other, by a field that n requires.
func (n *node) excludes(other *node) bool {
	for _, p := range n.properties {
		if !p.required {
			continue
		}
		i := slices.IndexFunc(other.properties, func(q property) bool { return q.name == p.name })
		switch {
		case i < 0 && other.closed && !other.patterned():
			return true
		case i >= 0 && disjoint(p.node, other.properties[i].node):
			return true
		}
	}
	return false
}

// disjoint reports whether two nodes have constants, and none in common.
func disjoint(a, b *node) bool {
	if len(a.enum) == 0 || len(b.enum) == 0 || !simpleConstants(a) || !simpleConstants(b) {
		return false
	}
	for _, x := range a.enum {
		for _, y := range b.enum {
			if string(x) == string(y) {
				return false
			}
		}
	}
	return true
}

// simpleConstants reports whether equal constants are written alike, which those of numbers need not be.
func simpleConstants(n *node) bool {
	return !slices.ContainsFunc(n.types, func(t string) bool { return t == "number" })
}
