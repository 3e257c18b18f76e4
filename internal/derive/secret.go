package derive

import (
	"slices"

	"cuelang.org/go/cue/ast"
)

// A value that CUE fills in from a secret discloses it: entirely, as in "Basic \(password)", or in part, as
// in len(pin). So an argument that CUE may fill in from a secret is redacted as a secret, too; it is not
// writeOnly in the schema, because no caller sends it. If it is unknown whether a value is filled in from a
// secret, it counts as such.

// discloseIf records that the value which CUE fills in at a place may come from a secret.
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

// secretField reports whether an argument is a secret, refers to one by name, or contains one.
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

// discloses reports whether something in a top-level argument may be filled in from a secret. For one that
// may contain it through a definition, the path decides too.
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

// marked reports whether a field in n is marked as a secret.
func marked(n ast.Node) (yes bool) {
	ast.Walk(n, func(n ast.Node) bool {
		f, ok := n.(*ast.Field)
		yes = yes || ok && marksSecret(f)
		return !yes
	}, nil)
	return yes
}

// keepSecret marks an argument that is written as x as a secret if the walk to its schema n did not reach the
// mark of one, and an expression that it does not follow, or can't express, leads to one.
func (w *walker) keepSecret(n *node, x ast.Node) *node {
	if !w.pkg.secrets || n.writeOnly || !w.leadsToSecret(x, false) && (n.holdsSecret() || !w.leadsToSecret(x, true)) {
		return n
	}
	secret := *n
	secret.writeOnly, w.secrets = true, true
	return &secret
}

// keepSecrets marks all arguments as secrets if something that is written for the whole leads to one in a way
// that the walk does not follow.
func (w *walker) keepSecrets(n *node, x ast.Node) {
	if !w.pkg.secrets || !w.leadsToSecret(x, false) {
		return
	}
	w.secrets = true
	n.properties = slices.Clone(n.properties)
	for i, p := range n.properties {
		secret := *p.node
		secret.writeOnly, n.properties[i].node = true, &secret
	}
	for _, d := range n.derived {
		w.disclosed = append(w.disclosed, d.name)
	}
}

// leadsToSecret reports whether an expression contains, or leads by names to, a field that is marked as a
// secret. Every declaration that a name may mean counts. Without all, fields in taken are skipped.
func (w *walker) leadsToSecret(x ast.Node, all bool) (yes bool) {
	seen := map[ast.Node]bool{}
	var look func(n ast.Node)
	named := func(s *scope, key string) {
		if s == nil {
			return
		}
		for _, f := range s.fields[key] {
			look(f)
		}
		for _, d := range s.others {
			look(d)
		}
	}
	look = func(n ast.Node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		ast.Walk(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				if all || !w.taken[n] {
					yes = yes || marksSecret(n)
					look(n.Value)
				}
				return false
			case *ast.LetClause: // it counts if something refers to it
				return false
			case *ast.SelectorExpr:
				if spec := importOf(n.X); spec != nil {
					if name, _, err := ast.LabelName(n.Sel); err == nil {
						named(w.importedScope(n, spec), identKey(name))
					}
					return false
				}
				look(n.X)
				return false
			case *ast.Ident:
				switch target := n.Node.(type) {
				case *ast.LetClause:
					look(target.Expr)
				case *ast.ForClause:
					look(target.Source)
				}
				if lit, ok := n.Scope.(*ast.StructLit); ok {
					if !w.walked[lit] {
						for _, f := range fieldsOf(lit)[identKey(n.Name)] {
							look(f)
						}
					}
				} else if !predeclared[n.Name] {
					named(w.pkg.files[n.Pos().Filename()], identKey(n.Name))
				}
			}
			return !yes
		}, nil)
	}
	look(x)
	return yes
}

// holdsSecret reports whether n or something in it is marked as a secret.
func (n *node) holdsSecret() bool {
	seen := map[*node]bool{}
	var look func(n *node) bool
	look = func(n *node) (yes bool) {
		if n == nil || seen[n] {
			return false
		}
		seen[n] = true
		if n.writeOnly || n.ref != nil && look(n.ref.node) {
			return true
		}
		n.children(func(m *node) { yes = yes || look(m) })
		return yes
	}
	return look(n)
}
