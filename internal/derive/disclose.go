package derive

import (
	"bytes"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
)

// What CUE fills in from a secret tells that secret: in whole, as in "Basic \(password)", or in part, as in len(pin).
// So an argument in which something is filled in from one is a secret, too, as far as it is shown; it is no writeOnly of the
// schema, for nobody is asked for it.

// disclose notes that a field is filled in from a secret, if it is. What surely comes from the call is not filled in.
func (w *walker) disclose(at place) {
	if slices.ContainsFunc(at.syntax, func(n ast.Node) bool { return w.asks(expression(n)) }) {
		return
	}
	if slices.ContainsFunc(at.syntax, func(n ast.Node) bool { return w.reads(expression(n), map[ast.Node]bool{}) }) {
		w.disclosed = append(w.disclosed, at.below)
		w.shared = w.shared || len(w.open) > 0
	}
}

// discloses reports whether something in an argument at the top is filled in from a secret. A definition that refers to
// itself is walked once and may stand in several arguments: then it is in each that may hold it.
func (w *walker) discloses(top *node, p property) bool {
	if len(w.disclosed) == 0 || !bytes.Contains(top.json(), []byte(`"writeOnly":true`)) {
		return false
	}
	if w.shared && slices.ContainsFunc(w.types(p.node), func(t string) bool { return t == "object" || t == "array" }) {
		return true
	}
	return slices.ContainsFunc(w.disclosed, func(below string) bool {
		rest, ok := strings.CutPrefix(below, p.name)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// reads reports whether an expression, or what it refers to, mentions a secret. What can't be told counts as one.
func (w *walker) reads(n ast.Node, seen map[ast.Node]bool) (yes bool) {
	if n == nil || seen[n] {
		return false
	}
	seen[n] = true
	argument := func(a argument) {
		yes = yes || !a.value.Exists() || secretIn(a.value, 0)
		for _, s := range sources(a.value) {
			yes = yes || w.reads(expression(s), seen)
		}
	}
	ast.Walk(n, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.Field:
			yes = yes || marksSecret(x) || w.reads(x.Value, seen)
			return false
		case *ast.SelectorExpr:
			a, ok := w.referred(x)
			if !ok {
				yes = yes || w.reads(x.X, seen)
				return false
			}
			for above, ok := w.referred(x.X); ok; above, ok = w.referred(x.X) {
				yes = yes || marked(above.value)
				if x, ok = x.X.(*ast.SelectorExpr); !ok {
					break
				}
			}
			argument(a)
			return false
		case *ast.Ident:
			if a, ok := w.referred(x); ok {
				argument(a)
				return false
			}
			if _, outside := x.Scope.(*ast.File); outside || x.Scope == nil || x.Node == nil {
				return false // what stands outside args can't see a call
			}
			switch target := x.Node.(type) {
			case *ast.LetClause:
				yes = yes || w.reads(target.Expr, seen)
			case *ast.Field:
				yes = yes || marksSecret(target) || w.reads(target.Value, seen)
			case ast.Expr:
				yes = yes || w.reads(target, seen)
			default:
				yes = true
			}
		}
		return !yes
	}, nil)
	return yes
}

// marked reports whether a value, or the one that it refers to by name, is marked as a secret.
func marked(v cue.Value) bool { return isSecret(v) || isSecret(cue.Dereference(v)) }

// secretIn reports whether a value is a secret or may hold one.
func secretIn(v cue.Value, depth int) bool {
	const deepest = 8
	if marked(v) || depth > deepest {
		return true
	}
	if op, operands := v.Expr(); op == cue.OrOp || op == cue.AndOp {
		if slices.ContainsFunc(operands, func(o cue.Value) bool { return secretIn(o, depth+1) }) {
			return true
		}
	}
	for _, any := range []cue.Selector{cue.AnyString, cue.AnyIndex} {
		if below := v.LookupPath(cue.MakePath(any)); below.Exists() && secretIn(below, depth+1) {
			return true
		}
	}
	fields, err := v.Fields(cue.Optional(true))
	if err != nil {
		return false
	}
	for fields.Next() {
		if secretIn(fields.Value(), depth+1) {
			return true
		}
	}
	return false
}
