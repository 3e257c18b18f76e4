package derive

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// maxConstraint caps the length of a quoted constraint, in bytes.
const maxConstraint = 200

// constraint is a constraint as its author wrote it.
type constraint struct {
	text  string
	field string // the name of the constrained field
	// refers are the references in it, outermost first, as paths; single reports that it is an operator
	// before one of them.
	refers [][]string
	single bool
}

// constraint returns the constraint that begins at pos, or that of the field whose name does; it is empty if
// pos is in no file of the package, as for values of a call.
func (r *Remainder) constraint(pos token.Pos) constraint {
	if c, ok := r.texts[pos]; ok {
		return c
	}
	f := r.files[pos.Filename()]
	if f == nil || pos.Filename() == "schema.cue" {
		return constraint{}
	}
	x, field := around(f, pos.Offset())
	c := constraint{}
	if x != nil {
		c = read(x)
	}
	c.field = field
	r.texts[pos] = c
	return c
}

// around returns the value of the innermost field, or the innermost list element, that contains the offset.
func around(f *ast.File, offset int) (x ast.Expr, field string) {
	take := func(e ast.Expr) bool {
		if e == nil || !e.Pos().IsValid() || e.Pos().Offset() > offset || offset >= e.End().Offset() {
			return false
		}
		x = e
		return true
	}
	name := func(f *ast.Field) {
		if key, ok := labelKey(f); ok {
			field = strings.TrimPrefix(key, "\x00")
		}
	}
	ast.Walk(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Label.Pos().Offset() == offset {
				x = n.Value
				name(n)
			}
			if take(n.Value) {
				name(n)
			}
		case *ast.Ellipsis:
			take(n.Type)
		case *ast.ListLit:
			for _, e := range n.Elts {
				take(e)
			}
		}
		return true
	}, nil)
	if e, ok := x.(*ast.Ellipsis); ok {
		return e.Type, field
	}
	return x, field
}

// read reads an expression. A struct is described only as a struct: its fields have paths of their own.
func read(x ast.Expr) (c constraint) {
	if structLit(x) != nil {
		return constraint{text: "an object"}
	}
	c.text = sourceText(meant(x))
	if len(c.text) > maxConstraint {
		c.text = strings.ToValidUTF8(c.text[:maxConstraint], "") + "..."
	}
	unary, ok := x.(*ast.UnaryExpr)
	ast.Walk(x, func(n ast.Node) bool {
		path := reference(n)
		if path != nil && !slices.ContainsFunc(c.refers, func(p []string) bool { return slices.Equal(p, path) }) {
			c.refers = append(c.refers, path)
		}
		return path == nil
	}, nil)
	if ok && reference(unary.X) != nil {
		c.single = true
		operand := strings.Join(reference(unary.X), ".")
		c.text = unary.Op.String() + " " + operand
	}
	return c
}

// meant returns the value of a name that is meaningless to a caller: a definition's or a let's.
func meant(x ast.Expr) ast.Expr {
	id, ok := x.(*ast.Ident)
	if !ok {
		return x
	}
	switch target := id.Node.(type) {
	case *ast.LetClause:
		return target.Expr
	case ast.Expr:
		if strings.HasPrefix(id.Name, "#") || strings.HasPrefix(id.Name, "_") {
			return target
		}
	}
	return x
}

// reference returns the path of a name or a selector.
func reference(n ast.Node) []string {
	switch n := n.(type) {
	case *ast.Ident:
		return []string{n.Name}
	case *ast.SelectorExpr:
		name, ident, err := ast.LabelName(n.Sel)
		if above := reference(n.X); above != nil && err == nil && ident {
			return append(above, name)
		}
	}
	return nil
}

// resolve finds the argument that a reference in a constraint at path means, from there outwards.
func (r *Remainder) resolve(v cue.Value, path, refers []string) (full []string, ok bool) {
	for n := len(path) - 1; n >= 0; n-- {
		if first, _ := walkTo(v, append(slices.Clone(path[:n]), refers[0])); first.Exists() {
			return append(slices.Clone(path[:n]), refers...), true
		}
	}
	return nil, false
}

// absent returns the optional arguments that the constraint at path needs and the call omits.
func (r *Remainder) absent(v cue.Value, path []string, c constraint) (out [][]string) {
	for _, ref := range c.refers {
		full, ok := r.resolve(v, path, ref)
		if !ok {
			continue
		}
		if _, present := walkTo(v, full); !present {
			out = append(out, full)
		}
	}
	return out
}

// worded returns a constraint in its author's words, with the values that other arguments in it have in this
// call.
func (x *explanation) worded(path []string, c constraint) string {
	text := c.text
	for i, ref := range c.refers {
		full, ok := x.resolve(x.value, path, ref)
		if !ok {
			continue
		}
		value, present := walkTo(x.value, full)
		if !present || !value.IsConcrete() || value.IncompleteKind()&(cue.StructKind|cue.ListKind) != 0 {
			continue
		}
		shown := x.replacement(full)
		if shown == "" {
			data, err := value.MarshalJSON()
			if err != nil {
				continue
			}
			shown = string(data)
			if len(shown) > 60 {
				shown = strings.ToValidUTF8(shown[:60], "") + "..."
			}
		}
		switch {
		case c.single && i == 0:
			text += ", which is " + shown
		default:
			text += fmt.Sprintf(", where %s is %s", strings.Join(ref, "."), shown)
		}
	}
	return text
}
