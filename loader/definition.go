package loader

import (
	"maps"
	"slices"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
)

// A declaration may name its definition, as in `tools: greet: #Tool & {...}`: editors complete and describe the
// fields of a struct only where one is named. The schema applies the same definition to every declaration, so the
// compiler takes the name out before evaluation, which keeps the positions of errors at the values.

// bare removes the schema's definitions from the declarations of f.
func bare(f *ast.File) {
	for _, d := range f.Decls {
		field, name, ok := regular(d)
		if !ok || definitions[name] == "" {
			continue
		}
		for _, lit := range structs(field.Value) {
			for _, e := range lit.Elts {
				if f, _, ok := regular(e); ok {
					f.Value = without(f.Value)
				}
			}
		}
	}
}

// without returns x without its operands of & that are definitions of the schema.
func without(x ast.Expr) ast.Expr {
	switch n := x.(type) {
	case *ast.Ident:
		if isDefinition(n.Name) {
			return &ast.StructLit{Lbrace: n.Pos(), Rbrace: n.End()}
		}
	case *ast.ParenExpr:
		n.X = without(n.X)
	case *ast.BinaryExpr:
		if n.Op != token.AND {
			return x
		}
		if id, ok := n.X.(*ast.Ident); ok && isDefinition(id.Name) {
			return without(n.Y)
		}
		if id, ok := n.Y.(*ast.Ident); ok && isDefinition(id.Name) {
			return without(n.X)
		}
		n.X, n.Y = without(n.X), without(n.Y)
	}
	return x
}

func isDefinition(name string) bool {
	return slices.Contains(slices.Collect(maps.Values(definitions)), name)
}

// misnamed reports a definition of another kind than the field's in a declaration.
func misnamed(field, path string, x ast.Expr, l *problem.List) {
	switch n := x.(type) {
	case *ast.Ident:
		if isDefinition(n.Name) && n.Name != definitions[field] {
			l.Errorf(problem.CUEConflict, derive.Position(n.Pos()), path, "what is declared in %s is a %s, not a %s", field, definitions[field], n.Name)
		}
	case *ast.ParenExpr:
		misnamed(field, path, n.X, l)
	case *ast.BinaryExpr:
		if n.Op == token.AND {
			misnamed(field, path, n.X, l)
			misnamed(field, path, n.Y, l)
		}
	}
}
