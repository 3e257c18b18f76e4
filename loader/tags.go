package loader

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
)

// tagUse is the set of tags that a file uses: the keys and shorthands of its @tag attributes and the names in
// its @if.
type tagUse struct {
	keys, shorthands, conditions []string
}

// uses reports whether the file uses a tag given in command-line form.
func (u tagUse) uses(tag string) bool {
	if key, _, ok := strings.Cut(tag, "="); ok {
		return slices.Contains(u.keys, key)
	}
	return slices.Contains(u.shorthands, tag) || slices.Contains(u.conditions, tag)
}

// note records the body of one @tag attribute.
func (u *tagUse) note(body string, pos problem.Position, problems *problem.List) {
	t, err := parseTag(body)
	if err != nil {
		problems.Errorf(problem.CUETag, pos, "", "%v", err)
		return
	}
	if t.hostVar != "" {
		problems.Errorf(problem.CUETag, pos, "",
			"@tag(%s,var=%s) would take a value from the computer that the catalog is read on; pass it with -t %s=... instead", t.key, t.hostVar, t.key)
	}
	u.keys = append(u.keys, t.key)
	u.shorthands = append(u.shorthands, t.short...)
}

// tag is one @tag attribute: @tag(key,type=int,short=a|b).
type tag struct {
	key, typ, hostVar string
	short             []string
}

func parseTag(body string) (tag, error) {
	t := tag{typ: "string"}
	for i, part := range strings.Split(body, ",") {
		part = strings.TrimSpace(part)
		name, value, assigned := strings.Cut(part, "=")
		switch {
		case i == 0:
			t.key = part
		case !assigned:
			return t, fmt.Errorf("@tag has %q, which is not name=value", part)
		case name == "type":
			t.typ = value
		case name == "short":
			t.short = strings.Split(value, "|")
		case name == "var":
			t.hostVar = value
		}
	}
	if !ast.IsValidIdent(t.key) {
		return t, fmt.Errorf("@tag needs a name that is a CUE identifier, not %q", t.key)
	}
	if !slices.Contains([]string{"string", "int", "number", "bool"}, t.typ) {
		return t, fmt.Errorf("@tag(%s) has the type %q; there are string, int, number and bool", t.key, t.typ)
	}
	return t, nil
}

// value returns the value that the given tags set t to.
func (t tag) value(given []string) (string, bool) {
	for _, g := range given {
		if key, value, ok := strings.Cut(g, "="); ok && key == t.key {
			return value, true
		}
		if slices.Contains(t.short, g) {
			return g, true
		}
	}
	return "", false
}

// expr converts the text of a tag to an expression of its type.
func (t tag) expr(text string) (ast.Expr, error) {
	switch t.typ {
	case "bool":
		switch strings.TrimSpace(text) {
		case "true", "1":
			return ast.NewBool(true), nil
		case "false", "0":
			return ast.NewBool(false), nil
		}
		return nil, fmt.Errorf("the tag %s must be true or false, not %q", t.key, text)
	case "int", "number":
		var info literal.NumInfo
		if err := literal.ParseNum(text, &info); err != nil || t.typ == "int" && !info.IsInt() {
			return nil, fmt.Errorf("the tag %s must be of type %s, not %q", t.key, t.typ, text)
		}
		if info.IsInt() {
			return ast.NewLit(token.INT, text), nil
		}
		return ast.NewLit(token.FLOAT, text), nil
	}
	return ast.NewString(text), nil
}

// inject unifies the fields that carry a @tag with the given values, as `cue -t` does. It runs before
// references are resolved, so that references to a field see the value.
func inject(f *ast.File, given []string, problems *problem.List) {
	ast.Walk(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ListLit, *ast.Comprehension:
			return false
		case *ast.Field:
			if n.Constraint != token.ILLEGAL {
				return false
			}
			for _, a := range n.Attrs {
				key, body := a.Split()
				if key != "tag" {
					continue
				}
				t, err := parseTag(body)
				if err != nil {
					continue // reported when the file was read
				}
				text, ok := t.value(given)
				if !ok {
					continue
				}
				x, err := t.expr(text)
				if err != nil {
					problems.Errorf(problem.CUETag, derive.Position(a.Pos()), "", "%v", err)
					continue
				}
				n.Value = ast.NewBinExpr(token.AND, n.Value, x)
			}
		}
		return true
	}, nil)
}

// conditions reports whether the file's @ignore() or @if(...) excludes it, for the tags that are set.
func (s *source) conditions(f *ast.File, set map[string]bool) (excluded bool) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.Attribute:
			switch key, body := d.Split(); key {
			case "ignore":
				return true
			case "if":
				x, err := parser.ParseExpr("", body)
				if err == nil {
					var holds bool
					if holds, err = s.condition(x, set); err == nil && !holds {
						excluded = true
					}
				}
				if err != nil {
					s.problems.Errorf(problem.CUESyntax, derive.Position(d.Pos()), "",
						"@if(%s) is not a condition over tags; use names with !, &&, || and brackets", body)
				}
			}
		case *ast.CommentGroup:
		default:
			return excluded
		}
	}
	return excluded
}

func (s *source) condition(x ast.Expr, set map[string]bool) (bool, error) {
	switch x := x.(type) {
	case *ast.Ident:
		s.tags.conditions = append(s.tags.conditions, x.Name)
		return set[x.Name], nil
	case *ast.ParenExpr:
		return s.condition(x.X, set)
	case *ast.UnaryExpr:
		if x.Op == token.NOT {
			v, err := s.condition(x.X, set)
			return !v, err
		}
	case *ast.BinaryExpr:
		a, errA := s.condition(x.X, set)
		b, errB := s.condition(x.Y, set)
		switch {
		case errA != nil:
			return false, errA
		case errB != nil:
			return false, errB
		case x.Op == token.LAND:
			return a && b, nil
		case x.Op == token.LOR:
			return a || b, nil
		}
	}
	return false, fmt.Errorf("%T is not a condition", x)
}
