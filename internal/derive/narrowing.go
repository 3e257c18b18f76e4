package derive

import (
	"bytes"
	"encoding/json"
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// Narrowing derives what a branch narrows of a tool's arguments from the CUE value v of the package pkg. A
// constant without a mark is fixed; one marked ? or ! is the only value. Other fields restrict whatever the
// tool declares, and whether a call must have them stays as it is, except that ! requires them. A struct
// without a mark always exists, so it is made where a call leaves it out. path and the positions are as in
// Args. What a fragment of JSON Schema can't say exactly is an error, because a branch has no CUE at calls.
func Narrowing(pkg *Package, v cue.Value, path string) (n *contract.Narrowing, positions map[string]problem.Position, problems problem.List) {
	w := &walker{
		pkg: pkg, positions: map[string]problem.Position{}, walked: map[*ast.StructLit]bool{}, taken: map[*ast.Field]bool{},
		reported: map[string]bool{}, base: path, path: path, pos: Position(v.Pos()),
	}
	defer func() { // as in args
		if r := recover(); r != nil {
			w.refuse(problem.UnsupportedConstr, w.pos, w.path, "CUE's evaluator fails here (%v): write it in a simpler way", r)
			n, positions, problems = nil, w.positions, w.problems
		}
	}()
	top := w.top(v, contract.Open, path)
	for _, l := range w.sortedLosses() {
		w.refuse(problem.BadNarrowing, problem.Position{File: l.File, Line: l.Line, Col: l.Col}, path+dotted(l.Path),
			"CUE alone can check this at a call (%s: %s), and a branch only narrows by what JSON Schema expresses: write constants, bounds, patterns and lists of values", l.Kind, l.What)
	}
	var text json.RawMessage
	if !w.problems.HasErrors() {
		text = w.fragment(top, property{node: top}, path, 0)
	}
	delete(w.positions, "")
	if w.problems.HasErrors() {
		return nil, w.positions, w.problems
	}
	return &contract.Narrowing{Schema: text}, w.positions, w.problems
}

func dotted(path string) string {
	if path == "" {
		return ""
	}
	return "." + path
}

// fragment writes what a node says, as Narrowing describes.
func (w *walker) fragment(n *node, p property, path string, depth int) json.RawMessage {
	for ; n.ref != nil; n = n.ref.node {
		if n.ref.recursive || n.ref.node == nil || depth > maxDepth {
			w.refuse(problem.BadNarrowing, p.pos, path, "a narrowing can't refer to itself: write out the levels that the branch changes")
			return nil
		}
	}
	if what := n.beyondNarrowing(); what != "" {
		pos := n.pos
		if p.pos.IsValid() {
			pos = p.pos
		}
		w.refuse(problem.BadNarrowing, pos, path, "a narrowing can't have %s: write constants, bounds, patterns, lists of values, and structs and lists of these", what)
		return nil
	}
	var b bytes.Buffer
	o := object{b: &b}
	o.open()
	switch len(n.types) {
	case 0:
	case 1:
		o.text("type", n.types[0])
	default:
		o.texts("type", n.types)
	}
	if n.title != "" {
		o.text("title", n.title)
	}
	if n.description != "" && depth > 0 {
		o.text("description", n.description)
	}
	if n.isConst() && p.unmarked {
		o.raw("const", n.enum[0])
	} else if len(n.enum) > 0 {
		o.raws("enum", n.enum)
	}
	scalar := *n
	scalar.enum = nil
	scalar.writeScalar(&o)
	if n.items != nil {
		o.raw("items", w.fragment(n.items, property{node: n.items}, path, depth+1))
	}
	o.count("minItems", n.minItems)
	o.count("maxItems", n.maxItems)
	if n.unique {
		o.raw("uniqueItems", json.RawMessage("true"))
	}
	var required []string
	if len(n.properties) > 0 {
		o.key("properties")
		inner := object{b: &b}
		inner.open()
		for _, member := range n.properties {
			inner.raw(member.name, w.fragment(member.node, member, path+"."+member.name, depth+1))
			if member.required && !member.unmarked {
				required = append(required, member.name)
			}
		}
		inner.close()
	}
	if len(required) > 0 {
		o.texts("required", required)
	}
	switch {
	case p.starred:
		o.raw("default", p.fallback)
	case p.unmarked && slices.Equal(n.types, []string{"object"}):
		o.raw("default", json.RawMessage("{}"))
	}
	o.close()
	return b.Bytes()
}

// beyondNarrowing returns what in a node no narrowing can have; empty if there is nothing.
func (n *node) beyondNarrowing() string {
	switch {
	case n.never:
		return "a value that nothing satisfies"
	case len(n.anyOf) > 0:
		return "alternatives of several kinds"
	case len(n.not) > 0:
		return "an exclusion (!=, !~)"
	case n.format != "" || n.encoding != "":
		return "a format"
	case len(n.patterns) > 1:
		return "two patterns"
	case len(n.prefix) > 0 || n.noItems || len(n.contains) > 0:
		return "items by position"
	case n.patterned() || n.minProperties != nil || n.maxProperties != nil:
		return "rules about the names of fields"
	case len(n.guards) > 0 || len(n.also) > 0:
		return "conditions"
	case len(n.derived) > 0:
		return "a field that follows from others"
	case n.writeOnly || n.deprecated || len(n.examples) > 0:
		return "@secret, @deprecated or @examples"
	}
	return ""
}
