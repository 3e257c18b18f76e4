package derive

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
)

// A constraint between arguments that the schema loses is added to the description of the argument that it
// constrains, as its author wrote it, so that a model can satisfy it: "Also: >start". It may contain only
// arguments, constants and CUE's own names: hidden fields and definitions are never advertised.

// note adds the constraint x to the description of a place.
func (w *walker) note(at place, x ast.Node, text string) {
	if !w.advertisable(x) || slices.Contains(w.notes[at.path], text) {
		return
	}
	if w.notes == nil {
		w.notes = map[string][]string{}
	}
	w.notes[at.path] = append(w.notes[at.path], text)
}

// noteGuard adds the condition under which a guard's fields are arguments.
func (w *walker) noteGuard(b *branch, at place) {
	var names []string
	for _, p := range b.properties {
		if p.required {
			names = append(names, p.name+" (required)")
		} else {
			names = append(names, p.name)
		}
	}
	clause, ok := b.guard.Clauses[0].(*ast.IfClause)
	if ok && len(b.guard.Clauses) == 1 && b.refuses && len(names) == 0 {
		w.note(at, clause.Condition, "never "+written(clause.Condition))
	}
	if ok && len(b.guard.Clauses) == 1 && len(names) > 0 {
		w.note(at, clause.Condition, "if "+written(clause.Condition)+" then "+strings.Join(names, ", "))
	}
}

// withNotes returns a description with the notes of a place.
func (w *walker) withNotes(description string, at place) string {
	notes := w.notes[at.path]
	if len(notes) == 0 {
		return description
	}
	text := "Also: " + strings.Join(notes, "; ")
	if description == "" {
		return text
	}
	return description + "\n" + text
}

// advertisable reports whether an expression names only arguments and CUE's own types and functions.
func (w *walker) advertisable(x ast.Node) bool {
	yes, names := true, false
	selection := map[ast.Node]bool{}
	ast.Walk(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if importOf(n.X) != nil {
				return false
			}
			selection[n.Sel] = true
		case *ast.Field:
			return false // a note contains a condition, and not the declarations under it
		case *ast.Ident:
			if selection[n] {
				return true
			}
			t := w.identifier(n)
			yes = yes && (t.fillable || t.basic != "")
			names = names || t.fillable
		case *ast.StructLit, *ast.Comprehension:
			yes = false
		}
		return yes
	}, nil)
	return yes && names
}
