package derive

import (
	"bytes"
	"encoding/json"
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/problem"
)

type jsonRaw = json.RawMessage

// state is what happens to a field without ! or ? that a call omits.
type state int

const (
	missing state = iota // CUE has no value for it: the call must send one
	filled               // CUE fills it in
	unclear              // it depends on something that the walk does not follow
)

// fill returns the value that CUE has for n if a call sends none.
func (n *node) fill(seen map[*definition]bool) (jsonRaw, state) {
	switch {
	case n.lossy:
		return nil, unclear
	case n.counter:
		return nil, missing
	case n.ref != nil:
		if n.ref.node == nil || seen[n.ref] {
			return nil, unclear
		}
		seen[n.ref] = true
		return n.ref.node.fill(seen)
	case n.fallback != nil:
		return n.fallback, filled
	case n.isConst():
		return n.enum[0], filled
	case slices.Equal(n.types, []string{"null"}):
		return jsonRaw("null"), filled
	case slices.Equal(n.types, []string{"object"}) && len(n.anyOf) == 0:
		return n.fillStruct(seen)
	case slices.Equal(n.types, []string{"array"}) && len(n.anyOf) == 0:
		return n.fillList(seen)
	case len(n.also) > 0 && n.composite():
		return nil, unclear
	}
	if slices.ContainsFunc(n.anyOf, (*node).composite) {
		for _, a := range n.anyOf { // several values without a default; a single one would be the value
			if _, s := a.fill(seen); s != missing {
				return nil, unclear
			}
		}
	}
	return nil, missing
}

func (n *node) fillStruct(seen map[*definition]bool) (jsonRaw, state) {
	if slices.ContainsFunc(n.properties, func(p property) bool { return p.required }) {
		return nil, missing
	}
	if len(n.guards) > 0 || len(n.also) > 0 || len(n.derived) > 0 {
		return nil, unclear
	}
	var b bytes.Buffer
	o := object{b: &b}
	o.open()
	count := int64(0)
	for _, p := range n.properties {
		if p.fallback != nil {
			o.raw(p.name, p.fallback)
			count++
		}
	}
	o.close()
	if n.minProperties != nil && count < *n.minProperties {
		return nil, missing
	}
	return b.Bytes(), filled
}

func (n *node) fillList(seen map[*definition]bool) (jsonRaw, state) {
	if n.minItems != nil && *n.minItems > int64(len(n.prefix)) || len(n.contains) > 0 {
		return nil, missing
	}
	items := []jsonRaw{}
	for _, item := range n.prefix {
		raw, s := item.fill(seen)
		if s != filled {
			return nil, s
		}
		items = append(items, raw)
	}
	raw, err := json.Marshal(items)
	if err != nil {
		return nil, unclear
	}
	return raw, filled
}

// fills reports whether a default is filled in anywhere in n.
func (n *node) fills(seen map[*definition]bool) bool {
	if n == nil {
		return false
	}
	if n.ref != nil {
		if seen[n.ref] || n.ref.node == nil {
			return false // the defaults of a definition that is being walked are considered where it is first reached
		}
		seen[n.ref] = true
		return n.ref.node.fills(seen)
	}
	within := func(m *node) bool { return m.fills(seen) }
	member := func(p property) bool { return p.fallback != nil || p.node.fills(seen) }
	return n.items.fills(seen) || n.additional.fills(seen) || slices.ContainsFunc(n.prefix, within) || slices.ContainsFunc(n.anyOf, within) ||
		slices.ContainsFunc(n.also, within) || slices.ContainsFunc(n.properties, member) || slices.ContainsFunc(n.patternProperties, member)
}

// impossible reports whether n and what it is joined with have no type in common.
func (n *node) impossible() bool {
	types := n.types
	for _, m := range n.also {
		var ok bool
		if types, ok = meetTypes(types, m.types); !ok {
			return true
		}
	}
	return false
}

// lostDefault reports a default that the other constraints refuse: CUE drops it silently, and the argument
// becomes required.
func (w *walker) lostDefault(x ast.Expr, n *node, at place) {
	mark := star(x)
	if !mark.IsValid() || n.ref != nil || n.fallback != nil || !at.value.Exists() || at.value.Err() != nil || w.dependsOn(x) {
		return
	}
	if _, has := at.value.Default(); has || at.value.IsConcrete() || at.value.IncompleteKind()&(cue.StructKind|cue.ListKind) != 0 {
		return
	}
	w.refuse(problem.BadDefault, Position(mark), at.path, "the default does not satisfy the constraints beside it, so CUE drops it: change one of them")
}

// star returns the position of the mark of a default value, outside structs and lists.
func star(x ast.Expr) (pos token.Pos) {
	ast.Walk(x, func(n ast.Node) bool {
		if u, ok := n.(*ast.UnaryExpr); ok && u.Op == token.MUL && !pos.IsValid() && !saysError(u.X) {
			pos = u.Pos()
		}
		_, isStruct := n.(*ast.StructLit)
		_, isList := n.(*ast.ListLit)
		return !isStruct && !isList
	}, nil)
	return pos
}

// saysError reports whether an expression is intentionally no value, as in *error("...") | int.
func saysError(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.BottomLit:
		return true
	case *ast.CallExpr:
		id, ok := x.Fun.(*ast.Ident)
		return ok && id.Name == "error"
	}
	return false
}
