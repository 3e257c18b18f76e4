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

// expr walks an expression. Each case is a production whose node takes exactly what CUE takes; the last is all others,
// which are lost. docs/arguments.md lists the productions.
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
		return w.constant(x, at)
	case *ast.Ident, *ast.SelectorExpr:
		return w.reference(x, at)
	case *ast.UnaryExpr:
		return w.unary(x, at)
	case *ast.BinaryExpr:
		switch x.Op {
		case token.AND:
			return w.conjunction(x, at)
		case token.OR:
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

// off declares the loss of an expression that is on no list. Of its value nothing is said but its type, where every value
// of such an expression has it.
func (w *walker) off(kind contract.LossKind, x ast.Node, at place) *node {
	w.lose(kind, at, Position(x.Pos()), "%s", written(x))
	w.note(at, x, written(x))
	return &node{pos: at.pos, lossy: true, types: w.surely(x)}
}

// surely is the type that every value of an expression has, as far as its form says so: a text or a number.
func (w *walker) surely(x ast.Node) []string {
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

// unknownOperand is the kind of loss for an operator whose operand is no constant.
func (w *walker) unknownOperand(x ast.Expr) contract.LossKind {
	if w.dependsOn(x) {
		return contract.LossCrossField
	}
	return contract.LossBound
}

// written is an expression as its author wrote it, in at most a few words.
func written(n ast.Node) string { return clip(sourceText(n)) }

// sourceText is an expression on one line.
func sourceText(n ast.Node) (text string) {
	defer func() {
		if recover() != nil { // format.Node knows comprehensions in structs alone
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

// reference walks a name: a type, or a declaration that the name is exchanged for.
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

// evaluated is the constant that CUE makes of an expression which no call can have a part in; nil for any other.
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

// constantExpr reports whether an expression is made of constants alone: arithmetic and interpolation.
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
			_, text := e.(*ast.BasicLit) // the parts of it are no literals by themselves
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

// flattened are the operands of a chain of one operator.
func flattened(x ast.Expr, op token.Token) []ast.Expr {
	switch x := x.(type) {
	case *ast.ParenExpr:
		if _, ok := x.X.(*ast.BinaryExpr); ok {
			if b := x.X.(*ast.BinaryExpr); b.Op == op && !hasStar(b) { // a default of a part is not one of the whole
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

// conjunction walks a & b. Exact are constraints of scalars, and one struct or list with the validators that count it.
// Defaults, and structs and lists that are put together, are for CUE.
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
		if t := w.refer(o); counts(t.builtin) { // list.UniqueItems without its brackets
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
		n = w.counted(n, validators, at) // what else holds is lost already
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

// scalars joins constraints that structs and lists have no part in.
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
		// Which default is left, and whether a single alternative is, is for CUE to say.
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

// composite reports whether a struct or a list may be meant by n.
func (n *node) composite() bool {
	return n.ref != nil || len(n.types) == 0 && len(n.anyOf) == 0 && !n.scalar() || slices.Contains(n.types, "object") ||
		slices.Contains(n.types, "array") || slices.ContainsFunc(n.anyOf, (*node).composite)
}

// scalar reports whether n, which names no types, constrains scalars alone.
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

// inherit marks n as lossy where something in it is.
func (n *node) inherit() {
	n.children(func(c *node) { n.lossy = n.lossy || c.lossy })
}
