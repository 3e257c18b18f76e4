package derive

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/contract"
)

// A field without ! or ? whose value follows from other arguments is computed: CUE fills it in at the call, and it is
// neither advertised nor asked for. Where the computation may fail, whether it does is one more thing that the schema
// can't say.

// results are the builtins that answer a value when they have that many operands; with one less, many are validators.
var results = map[string]int{
	"len": 1, "div": 2, "mod": 2, "quo": 2, "rem": 2,
	"strings.ToUpper": 1, "strings.ToLower": 1, "strings.ToTitle": 1, "strings.TrimSpace": 1, "strings.Trim": 2, "strings.TrimPrefix": 2,
	"strings.TrimSuffix": 2, "strings.TrimLeft": 2, "strings.TrimRight": 2, "strings.Join": 2, "strings.Split": 2, "strings.SplitN": 3, "strings.Fields": 1,
	"strings.Replace": 4, "strings.Runes": 1, "strings.SliceRunes": 3, "strings.ByteAt": 2, "strings.Count": 2, "strings.Index": 2,
	"strings.HasPrefix": 2, "strings.HasSuffix": 2, "strings.Contains": 2, "strings.ContainsAny": 2,
	"math.Abs": 1, "math.Floor": 1, "math.Ceil": 1, "math.Round": 1, "math.Trunc": 1, "math.Sqrt": 1,
	"list.Sum": 1, "list.Min": 1, "list.Max": 1, "list.Avg": 1, "list.Concat": 1, "list.SortStrings": 1, "list.Contains": 2, "list.Slice": 3,
	"strconv.Itoa": 1, "strconv.Atoi": 1, "strconv.Quote": 1, "strconv.FormatInt": 2, "strconv.ParseInt": 3, "strconv.ParseFloat": 2, "strconv.ParseBool": 1,
	"json.Marshal": 1, "base64.Encode": 2, "hex.Encode": 1, "sha256.Sum256": 1, "md5.Sum": 1, "path.Base": 1, "path.Dir": 1, "path.Ext": 1, "path.Join": 1, "path.Clean": 1,
}

// computed reports whether the value of a field follows from other arguments.
func (w *walker) computed(at place) bool {
	return slices.ContainsFunc(at.syntax, func(n ast.Node) bool { return w.depends(expression(n)) && w.follows(expression(n), 0) })
}

// follows reports whether an expression has a single value as soon as the arguments that it depends on have theirs.
func (w *walker) follows(n ast.Node, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch x := n.(type) {
	case *ast.ParenExpr:
		return w.follows(x.X, depth+1)
	case *ast.Interpolation, *ast.IndexExpr, *ast.SliceExpr:
		return w.depends(x)
	case *ast.SelectorExpr:
		return w.depends(x)
	case *ast.UnaryExpr:
		return (x.Op == token.ADD || x.Op == token.SUB || x.Op == token.NOT) && w.depends(x)
	case *ast.BinaryExpr:
		switch x.Op {
		case token.AND:
			return w.follows(x.X, depth+1) || w.follows(x.Y, depth+1)
		case token.OR:
			return false
		}
		return w.depends(x)
	case *ast.CallExpr:
		return w.depends(x) && results[calls(x)] == len(x.Args)
	case *ast.ListLit:
		return w.depends(x) && !slices.ContainsFunc(x.Elts, func(e ast.Expr) bool { return !literalValue(e) && !w.follows(e, depth+1) })
	case *ast.Ident:
		return w.identFollows(x, depth)
	}
	return false
}

func (w *walker) identFollows(x *ast.Ident, depth int) bool {
	if _, ok := w.referred(x); ok {
		return true
	}
	switch target := x.Node.(type) {
	case *ast.LetClause:
		return w.follows(target.Expr, depth+1)
	case *ast.Field:
		return w.follows(target.Value, depth+1)
	case ast.Expr:
		return w.follows(target, depth+1)
	}
	return false
}

// literalValue reports whether an expression is a literal.
func literalValue(n ast.Node) bool {
	_, ok := n.(*ast.BasicLit)
	return ok
}

// compute makes the property of a field that CUE fills in.
func (w *walker) compute(name string, at place) property {
	w.fills = true
	w.touched++
	n := &node{pos: at.pos}
	for _, s := range at.syntax {
		e := expression(s)
		if e == nil {
			continue
		}
		if !w.bounded(e, at, true) {
			return property{name: name, computed: true, pos: at.pos, node: n}
		}
		if k := w.exprKinds(e); k != cue.TopKind && n.types == nil {
			n.types = jsonTypes(k)
		}
		switch {
		case len(at.syntax) > 1 || !w.total(e):
			w.lose(contract.LossExpression, at, Position(e.Pos()), "%s = %s may have no value", name, written(e))
		case at.depth > 1: // a contract tells the computed fields at the top alone
			w.lose(contract.LossExpression, at, Position(e.Pos()), "%s = %s is filled in", name, written(e))
		}
	}
	return property{name: name, computed: true, pos: at.pos, node: n}
}

// takes are the kinds for which a builtin of one operand always has an answer.
var takes = map[string]cue.Kind{
	"len": cue.StringKind | cue.ListKind | cue.StructKind, "strings.ToUpper": cue.StringKind, "strings.ToLower": cue.StringKind, "strings.TrimSpace": cue.StringKind,
}

// total reports whether an expression surely has a value, whatever arguments the schema accepts.
func (w *walker) total(n ast.Node) bool {
	switch x := n.(type) {
	case *ast.ParenExpr:
		return w.total(x.X)
	case *ast.BasicLit:
		return true
	case *ast.Ident, *ast.SelectorExpr:
		a, ok := w.referred(n.(ast.Expr))
		return ok && a.always
	case *ast.CallExpr:
		kinds, ok := takes[calls(x)]
		return ok && len(x.Args) == 1 && w.total(x.Args[0]) && w.exprKinds(x.Args[0])&^kinds == 0
	case *ast.Interpolation:
		for _, e := range x.Elts {
			const printable = cue.StringKind | cue.NumberKind | cue.BoolKind
			if _, text := e.(*ast.BasicLit); !text && (!w.total(e) || w.exprKinds(e)&^printable != 0) {
				return false
			}
		}
		return true
	case *ast.BinaryExpr:
		if !w.total(x.X) || !w.total(x.Y) {
			return false
		}
		both := w.exprKinds(x.X) | w.exprKinds(x.Y)
		switch x.Op {
		case token.ADD:
			return both&^cue.NumberKind == 0 || both == cue.StringKind
		case token.SUB, token.MUL:
			return both&^cue.NumberKind == 0
		case token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ:
			return both&^cue.NumberKind == 0 || both == cue.StringKind
		case token.LAND, token.LOR:
			return both == cue.BoolKind
		}
	}
	return false
}

// decided says when a field must be given whose value, or a part of it, depends on other arguments. CUE may be able to fill
// it in, so only what it surely can't is required.
func (w *walker) decided(selector cue.Selector, out property, at place) property {
	if selector.ConstraintType() != 0 {
		return out
	}
	asked := false
	for _, s := range at.syntax {
		asked = asked || w.asks(expression(s))
	}
	target := out.node
	if target.ref != nil && target.ref.node != nil {
		target = target.ref.node
	}
	switch {
	case asked || len(target.required) > 0:
		out.required = true
	case !slices.Equal(target.types, []string{"object"}) && !w.lost(at):
		w.lose(contract.LossExpression, at, at.pos, "what %s is where a call leaves it out", last(at.below))
	}
	return out
}

// asks reports whether an expression has no single value whatever the arguments are: a type, a bound on one side.
func (w *walker) asks(n ast.Node) bool {
	switch x := n.(type) {
	case *ast.ParenExpr:
		return w.asks(x.X)
	case *ast.UnaryExpr:
		switch x.Op {
		case token.GTR, token.GEQ, token.LSS, token.LEQ, token.NEQ, token.MAT, token.NMAT:
			return true
		}
	case *ast.Ident:
		return x.Node == nil && predeclared[x.Name] && x.Name != "null" && x.Name != "true" && x.Name != "false"
	case *ast.CallExpr:
		return callKinds(calls(x)) != cue.TopKind && calls(x) != "len"
	case *ast.BinaryExpr:
		return x.Op == token.AND && w.asks(x.X) && w.asks(x.Y) && !(bounds(x, token.GTR, token.GEQ) && bounds(x, token.LSS, token.LEQ))
	}
	return false
}

// bounds reports whether an expression has a bound with one of the operators.
func bounds(n ast.Node, ops ...token.Token) (yes bool) {
	ast.Walk(n, func(n ast.Node) bool {
		if u, ok := n.(*ast.UnaryExpr); ok {
			yes = yes || slices.Contains(ops, u.Op)
		}
		return !yes
	}, nil)
	return yes
}

// unseen looks through the hidden fields and definitions of a struct, which no call gives: a condition in one is as much a
// condition on the arguments as any other.
func (w *walker) unseen(p *parts, at place) {
	for _, lit := range p.literals {
		for _, e := range lit.Elts {
			f, ok := e.(*ast.Field)
			if !ok {
				continue
			}
			label, ok := f.Label.(*ast.Ident)
			if !ok || !strings.HasPrefix(label.Name, "_") && !strings.HasPrefix(label.Name, "#") {
				continue
			}
			inner := at
			inner.path += "." + label.Name
			if len(w.dependence(f.Value, true).found) == 0 || !w.bounded(f.Value, inner, true) || w.harmless(f.Value) {
				continue
			}
			w.touched++
			w.lose(contract.LossCrossField, inner, Position(f.Value.Pos()), "%s: %s", label.Name, written(f.Value))
		}
	}
}

// harmless reports whether an expression can't fail by itself: what it is used for can.
func (w *walker) harmless(n ast.Node) bool {
	switch x := n.(type) {
	case *ast.ParenExpr:
		return w.harmless(x.X)
	case *ast.UnaryExpr:
		return w.asks(x) && w.total(x.X)
	}
	return w.total(n)
}

// messages finds error("..."), whose text only CUE tells.
func (w *walker) messages(n ast.Node, at place) {
	ast.Walk(n, func(n ast.Node) bool {
		if x, ok := n.(*ast.CallExpr); ok {
			if f, ok := x.Fun.(*ast.Ident); ok && f.Name == "error" && f.Node == nil {
				w.lose(contract.LossMessage, at, Position(x.Pos()), "%s", written(x))
			}
		}
		_, isStruct := n.(*ast.StructLit)
		return !isStruct
	}, nil)
}
