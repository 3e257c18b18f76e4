package derive

import (
	"encoding/json"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// expr walks an expression. Each case is a production whose node accepts exactly what CUE accepts; the last
// case is everything else, which is a loss. docs/arguments.md lists the productions.
func (w *walker) expr(x ast.Expr, at place) *node {
	w.path, w.pos = at.path, at.pos
	if at.depth > maxDepth {
		return w.off(contract.LossExpression, x, at)
	}
	if w.nodes++; w.nodes > maxNodes {
		w.refuse(problem.UnsupportedConstr, w.positions[""], at.path, "more than %d parts: write it smaller", maxNodes)
		return &node{}
	}
	switch x := x.(type) {
	case *ast.ParenExpr:
		return w.expr(x.X, at)
	case *ast.BottomLit:
		return &node{never: true, pos: at.pos}
	case *ast.BasicLit:
		w.suspectText(x, at)
		return w.constant(x, at)
	case *ast.Ident, *ast.SelectorExpr:
		return w.reference(x, at)
	case *ast.UnaryExpr:
		return w.unary(x, at)
	case *ast.BinaryExpr:
		switch x.Op {
		case token.AND, token.OR:
			w.choices++ // a constant beside another value is meant
			defer func() { w.choices-- }()
			if x.Op == token.AND {
				return w.conjunction(x, at)
			}
			return w.disjunction(x, at)
		}
	case *ast.StructLit:
		return w.structure(x, at)
	case *ast.ListLit:
		return w.list(x, at)
	case *ast.CallExpr:
		if n := w.validator(x, at); n != nil {
			return n
		}
		return w.off(contract.LossValidator, x, at)
	}
	if n := w.evaluated(x, at); n != nil {
		return n
	}
	return w.off(contract.LossExpression, x, at)
}

// off records the loss of an expression that matches no production. The schema then expresses only its type,
// if every value of such an expression has it.
func (w *walker) off(kind contract.LossKind, x ast.Node, at place) *node {
	w.lose(kind, at, Position(x.Pos()), "%s", written(x))
	w.note(at, x, written(x))
	return &node{pos: at.pos, lossy: true, types: w.knownTypes(x)}
}

// certainType returns the type that every value of an expression has, as far as its syntax shows: string or
// number.
func (w *walker) knownTypes(x ast.Node) []string {
	switch x := x.(type) {
	case *ast.Interpolation:
		return w.resultTypes(x, 0)
	case *ast.UnaryExpr:
		if x.Op == token.MAT || x.Op == token.NMAT {
			return []string{"string"}
		}
		if v, ok := x.X.(*ast.BasicLit); ok && v.Kind == token.STRING && x.Op != token.NEQ {
			return []string{"string"}
		}
	case *ast.CallExpr:
		name := w.callee(x)
		n, computes := results[name]
		switch {
		case name == "math.MultipleOf":
			return []string{"number"}
		case name == "time.Format", strings.HasPrefix(name, "strings.") && len(x.Args) == 1 && (!computes || n == 2):
			return []string{"string"}
		}
	}
	return nil
}

// unknownOperand returns the kind of loss for an operator whose operand is not a constant.
func (w *walker) unknownOperand(x ast.Expr) contract.LossKind {
	if w.dependsOn(x) {
		return contract.LossCrossField
	}
	return contract.LossBound
}

// written returns the source text of an expression, truncated.
func written(n ast.Node) string { return clip(sourceText(n)) }

// sourceText returns the source text of an expression on one line.
func sourceText(n ast.Node) (text string) {
	defer func() {
		if recover() != nil { // format.Node supports comprehensions only in structs
			text = "a comprehension"
		}
	}()
	if c, ok := n.(*ast.Comprehension); ok {
		return clauses(c) + " {…}"
	}
	b, err := format.Node(n)
	if err != nil {
		return "an expression"
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

// reference walks a name: a type, or a declaration that replaces the name.
func (w *walker) reference(x ast.Expr, at place) *node {
	switch t := w.refer(x); {
	case t.basic != "":
		return w.basic(t.basic, x, at)
	case t.builtin != "":
		if n := w.builtin(t.builtin, nil, x, at); n != nil {
			return n
		}
		return w.off(contract.LossValidator, x, at)
	case t.field != nil && !t.fillable && !w.dependsOn(t.field.Value):
		return w.follow(t.field, at)
	}
	if n := w.evaluated(x, at); n != nil {
		return n
	}
	return w.off(contract.LossCrossField, x, at)
}

// evaluated returns the constant to which CUE evaluates an expression that no call can affect; nil for any
// other.
func (w *walker) evaluated(x ast.Expr, at place) *node {
	if !at.value.Exists() || at.partial || !w.constantExpr(x) || !at.value.IsConcrete() {
		return nil
	}
	if _, has := at.value.Default(); has || at.value.Kind()&(cue.StringKind|cue.IntKind|cue.BoolKind) == 0 {
		return nil
	}
	raw, err := at.value.MarshalJSON()
	if err != nil || at.value.Kind() == cue.IntKind && !sendable(raw) {
		return nil
	}
	return &node{types: constantTypes([]json.RawMessage{raw}), enum: []json.RawMessage{raw}, pos: at.pos}
}

// constantExpr reports whether an expression consists of constants: arithmetic and interpolation.
func (w *walker) constantExpr(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return w.constantExpr(x.X)
	case *ast.UnaryExpr:
		return (x.Op == token.ADD || x.Op == token.SUB || x.Op == token.NOT) && w.constantExpr(x.X)
	case *ast.BinaryExpr:
		switch x.Op {
		case token.ADD, token.SUB, token.MUL, token.QUO:
			return w.constantExpr(x.X) && w.constantExpr(x.Y)
		}
	case *ast.Interpolation:
		return !slices.ContainsFunc(x.Elts, func(e ast.Expr) bool {
			_, text := e.(*ast.BasicLit) // the parts of an interpolation are not literals by themselves
			return !text && !w.constantExpr(e)
		})
	case *ast.BasicLit, *ast.Ident, *ast.SelectorExpr:
		_, ok := w.literalOf(x, place{})
		return ok
	}
	return false
}

// unary walks a bound, a pattern, an exclusion or a negative number.
func (w *walker) unary(x *ast.UnaryExpr, at place) *node {
	switch x.Op {
	case token.SUB, token.ADD:
		return w.constant(x, at)
	case token.GEQ, token.GTR, token.LEQ, token.LSS:
		return w.bound(x, at)
	case token.NEQ:
		return w.notEqual(x, at)
	case token.MAT, token.NMAT:
		return w.matches(x, at)
	}
	return w.off(contract.LossExpression, x, at)
}

// flattened returns the operands of a chain of one operator.
func flattened(x ast.Expr, op token.Token) []ast.Expr {
	switch x := x.(type) {
	case *ast.ParenExpr:
		if _, ok := x.X.(*ast.BinaryExpr); ok {
			if b := x.X.(*ast.BinaryExpr); b.Op == op && !hasStar(b) { // a default of a part is not a default of the whole
				return flattened(b, op)
			}
		}
	case *ast.BinaryExpr:
		if x.Op == op {
			return append(flattened(x.X, op), flattened(x.Y, op)...)
		}
	}
	return []ast.Expr{x}
}

// conjunction walks a & b. These are exact: constraints of scalars, and one struct or list with the
// validators that count it. CUE checks defaults and the combination of structs and lists.
func (w *walker) conjunction(x *ast.BinaryExpr, at place) *node {
	operands := flattened(x, token.AND)
	inner := at
	inner.partial = true
	inner.depth++
	var validators []*ast.CallExpr
	var scalars, composites []*node
	for _, o := range operands {
		if call, ok := o.(*ast.CallExpr); ok && counts(w.callee(call)) {
			if name := w.callee(call); name == "list.Contains" {
				w.eager(name, call, at)
			}
			validators = append(validators, call)
			continue
		}
		if t := w.refer(o); counts(t.builtin) { // list.UniqueItems without parentheses
			validators = append(validators, &ast.CallExpr{Fun: o})
			continue
		}
		if n := w.expr(o, inner); n.composite() {
			composites = append(composites, n)
		} else {
			scalars = append(scalars, n)
		}
	}
	switch {
	case len(composites) == 0:
		return w.scalars(scalars, validators, x, at)
	case len(composites) == 1 && len(scalars) == 0:
		return w.counted(composites[0], validators, at)
	}
	n := composites[0]
	if len(composites) == 1 && !slices.ContainsFunc(scalars, func(s *node) bool { return !s.lossy }) {
		n = w.counted(n, validators, at) // the other constraints are recorded as losses already
	} else {
		w.lose(contract.LossExpression, at, Position(x.Pos()), "%s", written(x))
		for _, c := range composites[1:] {
			n = mergeStructs(n, c)
		}
		for _, s := range scalars {
			n = meet(n, s)
		}
	}
	out := *n
	out.lossy = true
	if out.settled = out.settled && len(scalars)+len(validators) == 0; !out.settled {
		out.unsettle()
	}
	if slices.Equal(out.types, []string{"array"}) && !out.itemsKept() {
		out.leaveOpen()
	}
	return &out
}

// scalars joins constraints without structs and lists.
func (w *walker) scalars(nodes []*node, validators []*ast.CallExpr, x ast.Expr, at place) *node {
	n := &node{pos: at.pos}
	defaults, lossy := 0, false
	for _, s := range nodes {
		lossy = lossy || s.lossy
		if s.fallback != nil || len(s.anyOf) > 0 || len(s.enum) > 1 {
			defaults++
		}
		n = meet(n, s)
	}
	for _, call := range validators {
		c := w.countOf(call, at)
		lossy = lossy || c.lossy
		n = meet(n, c)
	}
	if lossy {
		own := *n
		own.lossy, n = true, &own
	}
	if defaults > 0 && len(nodes)+len(validators) > 1 {
		// Only CUE knows which default remains, and whether a single alternative does.
		out := *n
		out.fallback = nil
		out.lossy = true
		w.lose(contract.LossChoice, at, Position(x.Pos()), "%s", written(x))
		return &out
	}
	bottom := !at.partial && at.value.Exists() && at.value.IncompleteKind() == cue.BottomKind
	if (n.impossible() || bottom) && !n.lossy {
		w.conflict(x, at)
	}
	return n
}

// conflict reports a value that no call can give.
func (w *walker) conflict(x ast.Expr, at place) {
	text := "nothing satisfies " + written(x)
	if err := at.value.Err(); err != nil {
		text = strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", "; "), at.path+": ")
	}
	w.refuse(problem.CUEConflict, Position(x.Pos()), at.path, "no value can be given here: %s", text)
}

// composite reports whether n may describe a struct or a list.
func (n *node) composite() bool {
	return n.ref != nil || len(n.types) == 0 && len(n.anyOf) == 0 && !n.scalar() || slices.Contains(n.types, "object") ||
		slices.Contains(n.types, "array") || slices.ContainsFunc(n.anyOf, (*node).composite)
}

// scalar reports whether n, which names no types, constrains only scalars.
func (n *node) scalar() bool { return n.never || len(n.enum) > 0 || n.simple() }

// list walks a list: [T1, T2], [...T], or both.
func (w *walker) list(x *ast.ListLit, at place) *node {
	n := &node{types: []string{"array"}, pos: at.pos, noItems: true}
	for i, e := range x.Elts {
		item := at.item("[" + json.Number(itoa(i)).String() + "]")
		item.pos = Position(e.Pos())
		if at.value.Exists() {
			item.value = at.value.LookupPath(cue.MakePath(cue.Index(i)))
		}
		switch e := e.(type) {
		case *ast.Ellipsis:
			n.noItems = false
			if e.Type != nil {
				item = at.item("[...]")
				item.pos = Position(e.Type.Pos())
				if at.value.Exists() {
					item.value = at.value.LookupPath(cue.MakePath(cue.AnyIndex))
				}
				n.items = w.expr(e.Type, item)
			}
		case *ast.Comprehension:
			w.lose(contract.LossExpression, at, Position(e.Pos()), "%s", written(e))
			return &node{types: []string{"array"}, pos: at.pos, lossy: true}
		default:
			n.prefix = append(n.prefix, w.expr(e, item))
		}
	}
	if least := int64(len(n.prefix)); least > 0 {
		n.minItems = &least
		if n.noItems {
			n.maxItems = &least
		}
	} else if n.noItems {
		none := int64(0)
		n.maxItems = &none
	}
	n.inherit()
	return n
}

// inherit marks n as lossy if something in it is.
func (n *node) inherit() {
	n.children(func(c *node) { n.lossy = n.lossy || c.lossy })
}
