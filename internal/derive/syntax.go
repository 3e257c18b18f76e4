package derive

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/problem"
)

// sources is what the author wrote for v: the field or expression of every conjunct.
func sources(v cue.Value) []ast.Node {
	src := v.Source()
	if f, ok := src.(*ast.Field); ok {
		return []ast.Node{f}
	}
	var out []ast.Node
	if src != nil {
		out = append(out, src)
	}
	if op, operands := v.Expr(); op == cue.AndOp {
		for _, o := range operands {
			if s := o.Source(); s != nil {
				out = append(out, s)
			}
		}
	}
	return out
}

// expression is the value side of a field, or the node itself.
func expression(n ast.Node) ast.Node {
	if f, ok := n.(*ast.Field); ok {
		return f.Value
	}
	return n
}

// blame is the position to report: pos where it is more than the field's own name, else that of what was written.
func (w *walker) blame(at place, pos token.Pos) problem.Position {
	for _, n := range at.syntax {
		if f, ok := n.(*ast.Field); ok && (!pos.IsValid() || pos == f.Pos()) {
			return Position(f.Value.Pos())
		}
	}
	if pos.IsValid() {
		return Position(pos)
	}
	for _, n := range at.syntax {
		if e := expression(n); e != nil && e.Pos().IsValid() {
			return Position(e.Pos())
		}
	}
	return at.pos
}

// blameValue is the position of the expression that v was evaluated from. Where CUE has lost it, it is that of the first
// bound with the same operator.
func (w *walker) blameValue(at place, v cue.Value) problem.Position {
	if e, ok := v.Eval().Source().(ast.Expr); ok && e.Pos().IsValid() {
		return Position(e.Pos())
	}
	op, _ := v.Expr()
	var found token.Pos
	for _, n := range at.syntax {
		ast.Walk(expression(n), func(n ast.Node) bool {
			if u, ok := n.(*ast.UnaryExpr); ok && u.Op.String() == op.String() && !found.IsValid() {
				found = u.Pos()
			}
			return !found.IsValid()
		}, nil)
	}
	if found.IsValid() {
		return Position(found)
	}
	return w.blame(at, v.Pos())
}

// blameName is the position of the first mention of a builtin such as strings.MinRunes, which evaluated values have
// lost.
func (w *walker) blameName(at place, name string) problem.Position {
	short := strings.TrimSuffix(name[strings.LastIndexByte(name, '.')+1:], "()")
	var found token.Pos
	for _, n := range at.syntax {
		ast.Walk(expression(n), func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.SelectorExpr:
				if s, ok := x.Sel.(*ast.Ident); ok && s.Name == short && !found.IsValid() {
					found = x.Pos()
				}
			case *ast.Ident:
				if x.Name == short && !found.IsValid() {
					found = x.Pos()
				}
			}
			return !found.IsValid()
		}, nil)
	}
	return w.blame(at, found)
}

// independent reports whether what was written for a value stands on its own. It refuses, at their positions, references
// to other arguments, comprehensions in lists and error(): evaluated values no longer show them. Structs inside are
// looked at when the walk comes to their fields.
func (w *walker) independent(at place) bool {
	ok := true
	for _, n := range at.syntax {
		c := check{walker: w, at: at, seen: map[ast.Node]bool{}}
		c.node(expression(n))
		ok = ok && !c.failed
	}
	return ok
}

// check looks through one expression.
type check struct {
	*walker
	at     place
	seen   map[ast.Node]bool
	via    token.Pos // where the value's own expression refers to what is being looked at
	failed bool
}

func (c *check) fail(pos token.Pos, format string, args ...any) {
	c.failed = true
	if c.via.IsValid() {
		pos = c.via
	}
	c.refuse(problem.UnsupportedConstr, Position(pos), c.at.path, format, args...)
}

func (c *check) node(n ast.Node) {
	if n == nil {
		return
	}
	ast.Walk(n, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.Ident:
			c.ident(x)
		case *ast.SelectorExpr:
			c.node(x.X) // the selector's name refers to nothing by itself
			return false
		case *ast.StructLit:
			return false
		case *ast.UnaryExpr:
			if s, ok := x.X.(*ast.StructLit); ok && x.Op == token.MUL {
				for _, e := range s.Elts {
					c.node(e)
				}
			}
		case *ast.Comprehension:
			c.fail(x.Pos(), "a comprehension can't be said in JSON Schema: write the elements out")
			return false
		case *ast.CallExpr:
			if f, ok := x.Fun.(*ast.Ident); ok && f.Name == "error" && f.Node == nil {
				c.fail(x.Pos(), "error() can't be said in JSON Schema: write what is allowed instead")
				return false
			}
		case *ast.Field:
			c.node(x.Value)
			return false
		}
		return true
	}, nil)
}

func (c *check) ident(x *ast.Ident) {
	if x.Node == nil || c.seen[x.Node] {
		return
	}
	c.seen[x.Node] = true
	if name, ok := c.arguments[x.Node]; ok {
		c.fail(x.Pos(), "depends on the argument %s, which JSON Schema can't say: check it in the tool, or make it part of one argument", name)
		return
	}
	if _, package_ := x.Scope.(*ast.File); package_ || x.Scope == nil {
		return // what stands outside args can't see a call
	}
	outer := c.via
	if !c.via.IsValid() {
		c.via = x.Pos()
	}
	switch target := x.Node.(type) {
	case *ast.LetClause:
		c.node(target.Expr)
	case *ast.Field:
		if name, ok := c.arguments[target.Value]; ok {
			c.fail(x.Pos(), "depends on the argument %s, which JSON Schema can't say: check it in the tool, or make it part of one argument", name)
		} else {
			c.node(target.Value)
		}
	case *ast.Alias:
		c.fail(x.Pos(), "refers to %s by an alias, which JSON Schema can't say: write the constraint without it", x.Name)
	case ast.Expr:
		c.node(target)
	}
	c.via = outer
}

// literal looks through what a struct literal holds beside its fields, and reports whether it is open.
func (w *walker) literal(s *ast.StructLit, at place) (open bool) {
	for _, e := range s.Elts {
		switch x := e.(type) {
		case *ast.Ellipsis:
			open = true
			if x.Type != nil {
				w.refuse(problem.UnsupportedConstr, Position(x.Pos()), at.path, "a typed ... can't be said in JSON Schema: write [string]: T")
			}
		case *ast.Comprehension:
			what := "a guard (if)"
			if len(x.Clauses) > 0 {
				if _, ok := x.Clauses[0].(*ast.ForClause); ok {
					what = "a for comprehension"
				}
			}
			w.refuse(problem.UnsupportedConstr, Position(x.Pos()), at.path, "%s can't be said in JSON Schema yet: declare the fields without it", what)
		case *ast.Field:
			switch l := x.Label.(type) {
			case *ast.ParenExpr, *ast.Interpolation:
				w.refuse(problem.UnsupportedConstr, Position(l.Pos()), at.path, "a computed name can't be an argument: write the name out")
			case *ast.ListLit:
				if len(l.Elts) == 1 {
					if a, ok := l.Elts[0].(*ast.Alias); ok {
						w.refuse(problem.UnsupportedConstr, Position(a.Pos()), at.path, "a key's name bound to %s can't be said in JSON Schema: write the pattern without it", a.Ident.Name)
					}
				}
			}
		}
	}
	return open
}

// predeclared are CUE's own names in constraints; what else has no declaration in its file is declared in another.
var predeclared = map[string]bool{
	"_": true, "null": true, "bool": true, "true": true, "false": true, "string": true, "bytes": true, "number": true, "int": true, "uint": true, "float": true,
	"int8": true, "int16": true, "int32": true, "int64": true, "int128": true, "uint8": true, "uint16": true, "uint32": true, "uint64": true, "uint128": true,
	"rune": true, "float32": true, "float64": true,
}

// refers reports whether what was written mentions anything by name, beside CUE's own types and the builtins it calls.
func refers(at place) bool {
	return slices.ContainsFunc(at.syntax, func(n ast.Node) bool { return mentions(expression(n)) })
}

// builds reports whether what was written has a struct or list literal outside of calls.
func builds(at place) (yes bool) {
	for _, n := range at.syntax {
		ast.Walk(expression(n), func(n ast.Node) bool {
			switch n.(type) {
			case *ast.StructLit, *ast.ListLit:
				yes = true
			case *ast.CallExpr:
				return false
			}
			return !yes
		}, nil)
	}
	return yes
}

func mentions(n ast.Node) (yes bool) {
	ast.Walk(n, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CallExpr:
			for _, a := range x.Args {
				yes = yes || mentions(a)
			}
			return false
		case *ast.Ident:
			yes = yes || x.Node != nil || !predeclared[x.Name]
		}
		return !yes
	}, nil)
	return yes
}

// star is the position of the mark of a default in what was written.
func star(at place) (pos token.Pos) {
	for _, n := range at.syntax {
		ast.Walk(expression(n), func(n ast.Node) bool {
			if u, ok := n.(*ast.UnaryExpr); ok && u.Op == token.MUL && !pos.IsValid() {
				pos = u.Pos()
			}
			_, isStruct := n.(*ast.StructLit)
			_, isList := n.(*ast.ListLit)
			return !isStruct && !isList
		}, nil)
	}
	return pos
}

// description is the documentation above a field.
func (w *walker) description(at place) string {
	for _, n := range at.syntax {
		f, ok := n.(*ast.Field)
		if !ok {
			continue
		}
		var text []string
		for _, g := range ast.Comments(f) {
			if g.Doc {
				text = append(text, strings.TrimSpace(g.Text()))
			}
		}
		if d := strings.Join(text, "\n"); d != "" {
			if len(d) > maxDescription {
				w.refuse(problem.UnsupportedConstr, Position(f.Pos()), at.path, "a description of %d bytes, more than %d: say it shorter", len(d), maxDescription)
			}
			return d
		}
	}
	return ""
}
