package derive

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// maxConstraint caps how much of a constraint is told, in bytes.
const maxConstraint = 200

// constraint is a constraint as its author wrote it.
type constraint struct {
	text  string
	field string // the name of the field that it is of
	// refers are the references in it, outermost first, as paths; single tells that it is an operator before one of them.
	refers [][]string
	single bool
}

// constraint is the one that begins at pos, or that of the field whose name does; empty where pos is in no file of the
// package, as what a call brings is.
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

// around is the value of the innermost field, or the innermost element of a list, that the offset is in.
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

// read takes in an expression. A struct is told as one: what stands in it has places of its own.
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

// meant is what a name stands for that says nothing to a caller: a definition's or a let's value.
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

// reference is the path of a name or a selection of names.
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

// resolve finds what a reference in a constraint at path means, from there outwards, among the arguments.
func (r *Remainder) resolve(v cue.Value, path, refers []string) (full []string, ok bool) {
	for n := len(path) - 1; n >= 0; n-- {
		if first, _ := walkTo(v, append(slices.Clone(path[:n]), refers[0])); first.Exists() {
			return append(slices.Clone(path[:n]), refers...), true
		}
	}
	return nil, false
}

// absent are the optional arguments that the constraint at path needs and the call leaves out.
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

// worded is a constraint in the words of its author, with what the other arguments that it names are in this call.
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
		said := x.untold(full)
		if said == "" {
			data, err := value.MarshalJSON()
			if err != nil {
				continue
			}
			said = string(data)
			if len(said) > 60 {
				said = strings.ToValidUTF8(said[:60], "") + "..."
			}
		}
		switch {
		case c.single && i == 0:
			text += ", which is " + said
		default:
			text += fmt.Sprintf(", where %s is %s", strings.Join(ref, "."), said)
		}
	}
	return text
}
