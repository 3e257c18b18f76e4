package derive

import (
	"slices"

	"cuelang.org/go/cue/ast"
)

// What CUE fills in from a secret tells that secret: in whole, as in "Basic \(password)", or in part, as in len(pin).
// So an argument that CUE may fill in from one is a secret, too, as far as it is shown; it is no writeOnly of the schema,
// for nobody is asked for it. What can't be told counts as filled in from a secret.

// discloseIf notes that what CUE fills in at a place may come from a secret.
func (w *walker) discloseIf(at place, x ast.Expr) {
	secret := false
	w.reaches(x, map[ast.Node]bool{}, func(f *ast.Field) bool {
		secret = f == nil || w.secretField(f)
		return !secret
	})
	if secret {
		w.disclosed = append(w.disclosed, at.below)
	}
}

// secretField reports whether an argument is a secret, is declared by the name of one, or holds one.
func (w *walker) secretField(f *ast.Field) (secret bool) {
	seen := map[ast.Node]bool{}
	var look func(n ast.Node)
	look = func(n ast.Node) {
		if seen[n] || secret {
			return
		}
		seen[n] = true
		ast.Walk(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				secret = secret || marksSecret(n)
			case *ast.Ident, *ast.SelectorExpr:
				if t := w.refer(n.(ast.Expr)); t.field != nil {
					look(t.field)
				}
			}
			return !secret
		}, nil)
	}
	look(f)
	return secret
}

// discloses reports whether something in an argument at the top may be filled in from a secret. Of one that may hold it
// through a definition, the path tells too.
func (w *walker) discloses(name string) bool {
	if !w.secrets {
		return false
	}
	return slices.ContainsFunc(w.disclosed, func(below string) bool {
		return len(below) >= len(name) && below[:len(name)] == name && (len(below) == len(name) || below[len(name)] == '.' || below[len(name)] == '[')
	})
}

// marksSecret reports whether a field is marked as a secret.
func marksSecret(f *ast.Field) bool {
	for _, a := range f.Attrs {
		if name, _ := a.Split(); name == "secret" {
			return true
		}
	}
	return false
}
