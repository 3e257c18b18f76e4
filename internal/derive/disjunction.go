package derive

import (
	"encoding/json"
	"slices"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/contract"
)

// disjunction walks a | b. These are exact: scalars of every kind; with them at most one struct and one list,
// which JSON's types distinguish; structs that a required constant distinguishes; and one default, which is a
// constant or a list of constants. In JSON Schema a choice is made when one alternative accepts; in CUE when
// all others contradict the call, so an alternative stays possible even if the call omits its fields. CUE
// checks every other choice.
func (w *walker) disjunction(x *ast.BinaryExpr, at place) *node {
	var nodes []*node
	var fallback json.RawMessage
	lossy, stars := false, 0
	var starred *node // a default that another alternative may accept too
	var lost []contract.Loss
	position := 0 // of starred among nodes
	inner := at
	inner.partial = true
	inner.depth++
	for _, o := range flattened(x, token.OR) {
		marked := false
		if u, ok := o.(*ast.UnaryExpr); ok && u.Op == token.MUL {
			marked, o = true, u.X
			stars++
		} else if hasStar(o) {
			lossy = true // a default of a part is not always a default of the whole
		}
		before := len(w.losses)
		n := w.expr(o, inner)
		if marked {
			raw, float, ok := w.defaultOf(o, n, inner)
			if !ok {
				lossy = true
			} else if fallback = raw; starred == nil && (float || slices.Equal(n.types, []string{"array"})) {
				starred, position = n, len(nodes)
				lost = w.withdraw(before)
				continue
			}
		}
		if n.never {
			continue
		}
		nodes = append(nodes, n)
	}
	if starred != nil && (lossy || stars > 1 || !slices.ContainsFunc(nodes, func(n *node) bool { return n.takes(fallback) })) {
		nodes = slices.Insert(nodes, position, starred)
		w.lossAgain(lost)
	}
	if stars > 1 {
		lossy = true
	}
	if lossy {
		fallback = nil
		w.lose(contract.LossChoice, at, Position(x.Pos()), "the default of %s", written(x))
	}
	n := w.choice(nodes, x, at)
	out := *n
	out.lossy = out.lossy || lossy
	out.fallback = fallback
	return &out
}

// hasStar reports whether an alternative in parentheses has its own default. Defaults of a struct's fields
// are counted there.
func hasStar(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return hasStar(x.X)
	case *ast.BinaryExpr:
		return hasStar(x.X) || hasStar(x.Y)
	case *ast.UnaryExpr:
		return x.Op == token.MUL
	}
	return false
}

// defaultOf returns what the default alternative of a choice fills in: a constant, or a list of constants.
// float says that there is a 1.0 or its like among them: JSON does not tell it from 1, so no call sends it,
// and what it adds to the other alternatives is the value that CUE fills in.
func (w *walker) defaultOf(x ast.Expr, n *node, at place) (raw json.RawMessage, float, ok bool) {
	constants := []ast.Expr{x}
	list, isList := x.(*ast.ListLit)
	if isList {
		constants = list.Elts
	}
	items := []json.RawMessage{}
	for _, e := range constants {
		v, ok := w.literalOf(e, at)
		if !ok {
			return nil, false, false
		}
		float = float || v.kind == token.FLOAT && whole(v.raw)
		items = append(items, v.raw)
	}
	if n.lossy && !float {
		return nil, false, false
	}
	if !isList {
		return items[0], float, true
	}
	raw, err := json.Marshal(items)
	return raw, float, err == nil
}
