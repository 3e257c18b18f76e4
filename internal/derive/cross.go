package derive

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// What depends on an argument has no keyword. The walk leaves it out of the schema, declares the loss, and keeps what
// stands beside it: of `int & >start & <=100` the schema says `integer` and `maximum: 100`. Which parts depend is read from
// the syntax alone. An evaluated value hides it: where start has a default, CUE folds `>start` into a bound that looks
// constant and holds for that default only.

// argument is a field that a call fills, or CUE from a call.
type argument struct {
	name  string
	value cue.Value
	// always: the checked arguments of every call have it, as far as the schema rules.
	always bool
}

// dependence looks for what depends on arguments in one expression. Structs in it are looked at when the walk comes to
// their fields, unless deep is set.
type dependence struct {
	*walker
	deep  bool
	plain bool // no generators are looked for
	seen  map[ast.Node]bool
	// found are the names of the arguments, and generator the first builtin or comprehension whose size one decides.
	found     []string
	generator ast.Node
}

// depends reports whether what was written mentions an argument, if only through what it refers to.
func (w *walker) depends(n ast.Node) bool {
	d := w.dependence(n, false)
	return len(d.found) > 0
}

func (w *walker) dependence(n ast.Node, deep bool) *dependence {
	d := &dependence{walker: w, deep: deep, seen: map[ast.Node]bool{}}
	d.node(n)
	return d
}

func (d *dependence) node(n ast.Node) {
	if n == nil {
		return
	}
	ast.Walk(n, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.Ident:
			d.ident(x)
		case *ast.SelectorExpr:
			d.node(x.X) // the selector's name refers to nothing by itself
			return false
		case *ast.UnaryExpr:
			if s, ok := x.X.(*ast.StructLit); ok && x.Op == token.MUL && !d.deep {
				for _, e := range s.Elts { // a default struct has no fields of its own to walk
					d.node(e)
				}
			}
		case *ast.StructLit:
			return d.deep
		case *ast.Field:
			d.node(x.Value)
			return false
		case *ast.Comprehension:
			d.comprehension(x)
		case *ast.CallExpr:
			d.call(x)
		case *ast.BinaryExpr:
			d.product(x)
		}
		return true
	}, nil)
}

func (d *dependence) ident(x *ast.Ident) {
	if x.Node == nil || d.seen[x.Node] {
		return
	}
	d.seen[x.Node] = true
	if a, ok := d.arguments[x.Node]; ok {
		d.found = append(d.found, a.name)
		return
	}
	if _, package_ := x.Scope.(*ast.File); package_ || x.Scope == nil {
		return // what stands outside args can't see a call
	}
	switch target := x.Node.(type) {
	case *ast.LetClause:
		d.node(target.Expr)
	case *ast.Field:
		if a, ok := d.arguments[target.Value]; ok {
			d.found = append(d.found, a.name)
		} else {
			d.node(target.Value)
		}
	case *ast.Alias:
		d.found = append(d.found, x.Name)
	case *ast.ForClause:
		d.node(target.Source)
	case ast.Expr:
		d.node(target)
	}
}

// sizes are the builtins that make as much as one of their operands says.
var sizes = []string{"list.Range", "list.Repeat", "strings.Repeat", "bits.Lsh", "math.Pow", "math.Pow10"}

func (d *dependence) call(x *ast.CallExpr) {
	if slices.Contains(sizes, calls(x)) && slices.ContainsFunc(x.Args, func(e ast.Expr) bool { return d.inner(e) }) {
		d.generates(x)
	}
}

// product finds the multiplication of a string or list, which repeats it.
func (d *dependence) product(x *ast.BinaryExpr) {
	if x.Op == token.MUL && (d.inner(x.X) || d.inner(x.Y)) && (d.exprKinds(x.X)|d.exprKinds(x.Y))&^cue.NumberKind != 0 {
		d.generates(x)
	}
}

func (d *dependence) comprehension(x *ast.Comprehension) {
	for _, c := range x.Clauses {
		if f, ok := c.(*ast.ForClause); ok && d.inner(f.Source) {
			d.generates(x)
		}
	}
}

// inner reports whether an operand depends on an argument, at any depth.
func (d *dependence) inner(n ast.Node) bool {
	if d.plain {
		return false // it is an operand that is looked through already, and for names alone
	}
	below := &dependence{walker: d.walker, deep: true, plain: true, seen: map[ast.Node]bool{}}
	below.node(n)
	return len(below.found) > 0
}

func (d *dependence) generates(n ast.Node) {
	if d.generator == nil {
		d.generator = n
	}
}

// bounded refuses what would let a call decide how long its own check takes, and reports whether there was nothing of it.
func (w *walker) bounded(n ast.Node, at place, deep bool) bool {
	d := w.dependence(n, deep)
	if d.generator == nil {
		return true
	}
	what := "a for comprehension"
	switch x := d.generator.(type) {
	case *ast.CallExpr:
		what = calls(x)
	case *ast.BinaryExpr:
		what = "a repetition by *"
	}
	w.refuse(problem.UnsupportedConstr, Position(d.generator.Pos()), at.path,
		"%s over the argument %s lets a call decide how long its check takes: take the list itself as an argument, or make it in the tool", what, strings.Join(slices.Compact(d.found), ", "))
	return false
}

// calls is the name of what x calls: strings.Repeat.
func calls(x *ast.CallExpr) string { return written(x.Fun) }

// written is an expression as its author wrote it, in at most a few words.
func written(n ast.Node) string {
	b, err := format.Node(n)
	if err != nil {
		return "an expression"
	}
	s := strings.Join(strings.Fields(string(b)), " ")
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

// loosen walks a value that depends on an argument: what does not depend is kept, what does is lost.
func (w *walker) loosen(v cue.Value, at place, depth int) *node {
	w.touched++
	source := expression(v.Source())
	op, operands := v.Expr()
	switch {
	case depth > maxDepth:
	case op == cue.AndOp:
		n := &node{pos: at.pos}
		for _, o := range operands {
			n = meet(n, w.part(o, at, depth))
		}
		return n
	case op == cue.OrOp:
		var nodes []*node
		for _, o := range operands {
			part := w.part(o, at, depth)
			if part.empty() {
				return &node{pos: at.pos}
			}
			nodes = append(nodes, part)
		}
		return w.merge(flatten(nodes), at)
	case op == cue.NoOp && len(operands) == 1 && operands[0] != v:
		return w.part(operands[0], at, depth)
	case op == cue.SelectorOp:
		if target := cue.Dereference(v); target != v && !w.isArgument(source) && target.Source() != nil && w.depends(expression(target.Source())) {
			return w.loosen(target, at, depth+1)
		}
	}
	pos, what, kind := at.pos, "what the arguments decide", contract.LossExpression
	if source != nil {
		what, pos = written(source), Position(source.Pos())
		kind = contract.LossCrossField
		switch x := source.(type) {
		case *ast.UnaryExpr:
			what = last(at.below) + " " + x.Op.String() + " " + written(x.X)
		case *ast.BinaryExpr, *ast.Interpolation:
			kind = contract.LossExpression
		}
	}
	w.lose(kind, at, pos, "%s", what)
	n := &node{pos: at.pos}
	if source != nil {
		n.types = jsonTypes(w.exprKinds(source))
	}
	return n
}

// part walks one operand of a value that depends on an argument.
func (w *walker) part(v cue.Value, at place, depth int) *node {
	source := expression(v.Source())
	if source == nil {
		return w.loosen(v, at, depth+1)
	}
	at.syntax = []ast.Node{source}
	if w.depends(source) {
		return w.loosen(v, at, depth+1)
	}
	at.depth++
	return w.value(v, at)
}

// isArgument reports whether an expression is the name of a field that a call fills.
func (w *walker) isArgument(n ast.Node) bool {
	x, ok := n.(*ast.Ident)
	if !ok {
		return false
	}
	_, ok = w.referred(x)
	return ok
}

func last(below string) string { return below[strings.LastIndexByte(below, '.')+1:] }

// kinds are those that the value of an expression may have, whatever the arguments are.
func (w *walker) exprKinds(n ast.Node) cue.Kind {
	switch x := n.(type) {
	case *ast.ParenExpr:
		return w.exprKinds(x.X)
	case *ast.Interpolation:
		if first, ok := x.Elts[0].(*ast.BasicLit); ok && strings.HasPrefix(strings.TrimLeft(first.Value, "#"), `"`) {
			return cue.StringKind
		}
		return cue.BytesKind
	case *ast.BasicLit:
		switch x.Kind {
		case token.INT:
			return cue.IntKind
		case token.FLOAT:
			return cue.FloatKind
		case token.STRING:
			return cue.StringKind | cue.BytesKind
		}
	case *ast.ListLit:
		return cue.ListKind
	case *ast.StructLit:
		return cue.StructKind
	case *ast.UnaryExpr:
		switch x.Op {
		case token.ADD, token.SUB:
			return cue.NumberKind
		case token.NOT:
			return cue.BoolKind
		case token.MAT, token.NMAT:
			return cue.StringKind | cue.BytesKind
		case token.GTR, token.GEQ, token.LSS, token.LEQ:
			return numberOr(w.exprKinds(x.X))
		}
	case *ast.BinaryExpr:
		return w.binaryKinds(x)
	case *ast.CallExpr:
		return callKinds(calls(x))
	case *ast.Ident:
		return w.identKinds(x)
	case *ast.SelectorExpr:
		if a, ok := w.referred(x); ok {
			return kindOf(a.value)
		}
	}
	return cue.TopKind
}

func (w *walker) binaryKinds(x *ast.BinaryExpr) cue.Kind {
	switch x.Op {
	case token.ADD, token.SUB, token.MUL:
		return numberOr(w.exprKinds(x.X) | w.exprKinds(x.Y))
	case token.QUO:
		return cue.NumberKind
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ, token.MAT, token.NMAT, token.LAND, token.LOR:
		return cue.BoolKind
	case token.AND:
		return w.exprKinds(x.X) & w.exprKinds(x.Y)
	case token.OR:
		return w.exprKinds(x.X) | w.exprKinds(x.Y)
	}
	return cue.TopKind
}

func (w *walker) identKinds(x *ast.Ident) cue.Kind {
	if x.Node == nil {
		switch x.Name {
		case "int":
			return cue.IntKind
		case "number":
			return cue.NumberKind
		case "string":
			return cue.StringKind
		case "bool":
			return cue.BoolKind
		}
		return cue.TopKind
	}
	if a, ok := w.referred(x); ok {
		if e, isExpr := x.Node.(ast.Expr); isExpr && a.value.IncompleteKind() == cue.BottomKind && w.chain < maxDepth {
			w.chain++ // an argument that is computed itself
			defer func() { w.chain-- }()
			return w.exprKinds(e)
		}
		return kindOf(a.value)
	}
	if let, ok := x.Node.(*ast.LetClause); ok {
		return w.exprKinds(let.Expr)
	}
	return cue.TopKind
}

// referred is the argument that an expression is the name of: a, or opts.a.
func (w *walker) referred(n ast.Expr) (argument, bool) {
	switch x := n.(type) {
	case *ast.Ident:
		if x.Node == nil {
			return argument{}, false
		}
		if a, ok := w.arguments[x.Node]; ok {
			return a, true
		}
		a, ok := w.arguments[expression(x.Node)]
		return a, ok
	case *ast.SelectorExpr:
		a, ok := w.referred(x.X)
		if !ok {
			return argument{}, false
		}
		name, _, err := ast.LabelName(x.Sel)
		if err != nil {
			return argument{}, false
		}
		inner := a.value.LookupPath(cue.MakePath(cue.Str(name).Optional()))
		return argument{name: a.name + "." + name, value: inner}, inner.Exists()
	}
	return argument{}, false
}

// kindOf is what v may be. CUE takes what depends on a call for an error, which may be anything.
func kindOf(v cue.Value) cue.Kind {
	if k := v.IncompleteKind(); k != cue.BottomKind {
		return k
	}
	return cue.TopKind
}

func numberOr(k cue.Kind) cue.Kind {
	if k&^cue.NumberKind == 0 {
		return cue.NumberKind
	}
	return k
}

func callKinds(name string) cue.Kind {
	switch {
	case name == "len":
		return cue.IntKind
	case name == "strings.MinRunes" || name == "strings.MaxRunes":
		return cue.StringKind
	case name == "list.MinItems" || name == "list.MaxItems":
		return cue.ListKind
	case name == "struct.MinFields" || name == "struct.MaxFields":
		return cue.StructKind
	}
	return cue.TopKind
}

// jsonTypes are the JSON types of kinds; none where every one is possible. Bytes are strings in JSON.
func jsonTypes(k cue.Kind) (types []string) {
	if k == cue.TopKind || k == cue.BottomKind {
		return nil
	}
	for _, t := range []struct {
		kind cue.Kind
		name string
	}{{cue.NullKind, "null"}, {cue.BoolKind, "boolean"}, {cue.StringKind | cue.BytesKind, "string"}, {cue.ListKind, "array"}, {cue.StructKind, "object"}} {
		if k&t.kind != 0 {
			types = append(types, t.name)
		}
	}
	switch {
	case k&cue.FloatKind != 0:
		types = append(types, "number")
	case k&cue.IntKind != 0:
		types = append(types, "integer")
	}
	return types
}
