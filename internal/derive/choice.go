package derive

import (
	"encoding/json"
	"slices"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// choice makes one node of alternatives.
func (w *walker) choice(nodes []*node, x ast.Expr, at place) *node {
	structs, lists, anything, lossy := 0, 0, 0, false
	for _, n := range nodes {
		kinds := w.kinds(n)
		lossy = lossy || n.lossy
		if len(kinds) == 0 {
			anything++
			continue
		}
		if slices.Contains(kinds, "object") {
			structs++
		}
		if slices.Contains(kinds, "array") {
			lists++
		}
	}
	switch {
	case anything > 0 && len(nodes) > 1 && structs+lists > 0, lists > 1, structs > 1 && !discriminated(nodes):
		w.lose(contract.LossChoice, at, Position(x.Pos()), "which alternative is meant, where a value may fit several: %s", written(x))
		lossy = true
	}
	n := w.merge(flatten(nodes), at)
	if lossy {
		out := *n
		out.lossy, n = true, &out
	}
	return n
}

// kinds returns the JSON types that n accepts, and none if it may accept all of them.
func (w *walker) kinds(n *node) []string {
	switch {
	case n.ref != nil && n.ref.node == nil:
		return w.syntaxKinds(n.ref.field.Value, 0)
	case n.ref != nil:
		return w.kinds(n.ref.node)
	case len(n.anyOf) > 0:
		var all []string
		for _, a := range n.anyOf {
			below := w.kinds(a)
			if len(below) == 0 {
				return nil
			}
			all = append(all, below...)
		}
		return all
	}
	return n.types
}

// syntaxKinds returns the types of a definition that is still being walked.
func (w *walker) syntaxKinds(x ast.Expr, depth int) []string {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return w.syntaxKinds(x.X, depth)
	case *ast.StructLit:
		return []string{"object"}
	case *ast.ListLit:
		return []string{"array"}
	case *ast.BasicLit:
		switch x.Kind {
		case token.NULL:
			return []string{"null"}
		case token.STRING:
			return []string{"string"}
		case token.INT, token.FLOAT:
			return []string{"number"}
		}
		return []string{"boolean"}
	case *ast.Ident, *ast.SelectorExpr:
		t := w.refer(x)
		if t.basic != "" && t.basic != "_" {
			return w.basic(t.basic, x, place{}).types
		}
		if t.field != nil && depth < maxDepth {
			return w.syntaxKinds(t.field.Value, depth+1)
		}
	case *ast.BinaryExpr:
		if x.Op == token.OR {
			a, b := w.syntaxKinds(x.X, depth), w.syntaxKinds(x.Y, depth)
			if len(a) > 0 && len(b) > 0 {
				return append(slices.Clone(a), b...)
			}
		}
	}
	return nil
}

// discriminated reports whether every alternative for an object requires a constant, under one name, that no
// other has, and fills in nothing: a call then contradicts all alternatives but one.
func discriminated(nodes []*node) bool {
	var alternatives []*node
	for _, n := range nodes {
		for n.ref != nil {
			if n = n.ref.node; n == nil {
				return false
			}
		}
		switch {
		case slices.Equal(n.types, []string{"object"}):
			alternatives = append(alternatives, n)
		case n.composite() && !slices.Equal(n.types, []string{"array"}):
			return false // a nested choice
		}
	}
	for _, n := range alternatives {
		if n.lossy || n.fills(map[*definition]bool{}) || n.patterned() {
			return false
		}
	}
	return slices.ContainsFunc(alternatives[0].properties, func(p property) bool {
		var seen []string
		for _, n := range alternatives {
			i := slices.IndexFunc(n.properties, func(q property) bool { return q.name == p.name })
			if i < 0 || !n.properties[i].required || len(n.properties[i].enum) == 0 || !slices.Equal(n.properties[i].types, []string{"string"}) {
				return false
			}
			for _, raw := range n.properties[i].enum {
				if slices.Contains(seen, string(raw)) {
					return false
				}
				seen = append(seen, string(raw))
			}
		}
		return true
	})
}

// merge combines alternatives into one node, as simple as possible: models read `type` and `enum` at the top
// of an argument better than anyOf.
func (w *walker) merge(nodes []*node, at place) *node {
	var types []string
	var enum []json.RawMessage
	var rest []*node
	for _, n := range nodes {
		switch {
		case n.empty():
			return &node{pos: at.pos}
		case n.isConst() && n.encoding == "" && len(n.also) == 0:
			enum = append(enum, n.enum[0])
		case len(n.enum) > 0 && n.plainEnum():
			enum = append(enum, n.enum...)
		case n.bare():
			types = append(types, n.types...)
		default:
			rest = append(rest, n)
		}
	}
	slices.Sort(types)
	bare := &node{types: slices.Compact(types), pos: at.pos}
	enum = slices.DeleteFunc(enum, func(raw json.RawMessage) bool {
		return len(bare.types) > 0 && bare.admits(raw) || slices.ContainsFunc(rest, func(n *node) bool { return n.admits(raw) })
	})
	seen := map[string]bool{}
	enum = slices.DeleteFunc(enum, func(raw json.RawMessage) bool {
		again := seen[string(raw)]
		seen[string(raw)] = true
		return again
	})
	if len(enum) > maxEnum {
		w.refuse(problem.UnsupportedConstr, at.pos, at.path, "%d alternatives, more than %d: take a string and say its form", len(enum), maxEnum)
	}
	constants := &node{enum: enum, types: constantTypes(enum), pos: at.pos}
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

// flatten replaces nested choices by their alternatives.
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

// bare reports whether n constrains nothing but its types.
func (n *node) bare() bool {
	if len(n.types) == 0 || n.lossy && n.composite() {
		return false
	}
	other := *n
	other.types = nil
	return other.empty()
}

// plainEnum reports whether n consists only of constants.
func (n *node) plainEnum() bool {
	other := *n
	other.types, other.enum, other.fallback = nil, nil, nil
	return other.empty()
}

// same reports whether both have the same JSON.
func (n *node) same(m *node) bool { return string(n.json()) == string(m.json()) }
