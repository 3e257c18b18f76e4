package derive

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/contract"
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

// literal looks through what a struct literal holds beside its fields.
func (w *walker) literal(p *parts, s *ast.StructLit, at place) {
	p.literals = append(p.literals, s)
	for _, e := range s.Elts {
		switch x := e.(type) {
		case *ast.Ellipsis:
			p.open = true
			if x.Type != nil {
				w.refuse(problem.UnsupportedConstr, Position(x.Pos()), at.path, "a typed ... can't be said in JSON Schema: write [string]: T")
			}
		case *ast.Comprehension:
			p.guards = append(p.guards, x)
		case *ast.Field:
			switch l := x.Label.(type) {
			case *ast.ParenExpr, *ast.Interpolation:
				p.dynamic = append(p.dynamic, l)
			case *ast.ListLit:
				if len(l.Elts) == 1 {
					if a, ok := l.Elts[0].(*ast.Alias); ok {
						w.arguments[a], w.arguments[a.Expr] = argument{name: a.Ident.Name, always: true}, argument{name: a.Ident.Name, always: true}
						w.lose(contract.LossName, at, Position(a.Pos()), "%s, the key's own name", a.Ident.Name)
					}
				}
			}
		}
	}
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
