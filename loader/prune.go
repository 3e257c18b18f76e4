package loader

import (
	"slices"

	"cuelang.org/go/cue/ast"
)

// A package inherits the tools of the directories above it, which are evaluated there already. As long as no
// file of the package uses tools, servers or branches as a value, those in the inherited files can't affect
// it and are left out. Otherwise a big package at the root would be evaluated again in every package below
// it.

// standAlone reports whether the declarations of the inherited files can be left out.
func standAlone(own, inherited []*source) bool {
	return !slices.ContainsFunc(own, func(s *source) bool { return s.refers }) &&
		!slices.ContainsFunc(inherited, func(s *source) bool { return s.refers })
}

// declaredBy returns a function that reports whether one of the files declares the tool, server or branch:
// such a duplicate must be kept, or the declaration could look incomplete.
func declaredBy(own []*source) func(field, name string) bool {
	return func(field, name string) bool {
		return slices.ContainsFunc(own, func(s *source) bool { return s.declares(field, name) })
	}
}

// prune removes the declarations of f that are not wanted, and the imports and let clauses that become
// unused, which CUE would report as errors.
func prune(f *ast.File, wanted func(field, name string) bool) {
	for _, d := range f.Decls {
		field, name, ok := regular(d)
		if !ok || definitions[name] == "" {
			continue
		}
		for _, lit := range structs(field.Value) {
			lit.Elts = slices.DeleteFunc(lit.Elts, func(e ast.Decl) bool {
				_, declared, ok := regular(e)
				return ok && !wanted(name, declared)
			})
		}
	}
	for {
		used := idents(f)
		before := len(f.Decls)
		f.Decls = slices.DeleteFunc(f.Decls, func(d ast.Decl) bool {
			let, ok := d.(*ast.LetClause)
			return ok && !used[let.Ident.Name]
		})
		if len(f.Decls) == before {
			withoutImports(f, func(local string) bool { return !used[local] })
			return
		}
	}
}

// idents returns the identifiers that f uses as values: not the labels of its fields, nor the names that it
// declares.
func idents(f *ast.File) map[string]bool {
	used := map[string]bool{}
	declares := map[*ast.Ident]bool{}
	ast.Walk(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportDecl, *ast.Package:
			return false
		case *ast.Field:
			if label, ok := n.Label.(*ast.Ident); ok {
				declares[label] = true
			}
		case *ast.LetClause:
			declares[n.Ident] = true
		case *ast.Ident:
			if !declares[n] {
				used[n.Name] = true
			}
		}
		return true
	}, nil)
	return used
}
