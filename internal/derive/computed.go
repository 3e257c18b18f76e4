package derive

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// A field without ! or ? whose value follows from other arguments is computed: CUE fills it in at the call.
// It is neither advertised nor required.

// results maps the builtins that return a value to the number of their operands; with one less, many are
// validators.
var results = map[string]int{
	"len": 1, "and": 1, "div": 2, "mod": 2, "quo": 2, "rem": 2,
	"strings.ToUpper": 1, "strings.ToLower": 1, "strings.ToTitle": 1, "strings.TrimSpace": 1, "strings.Trim": 2, "strings.TrimPrefix": 2,
	"strings.TrimSuffix": 2, "strings.TrimLeft": 2, "strings.TrimRight": 2, "strings.Join": 2, "strings.Split": 2, "strings.SplitN": 3,
	"strings.Fields": 1, "strings.Replace": 4, "strings.Runes": 1, "strings.SliceRunes": 3, "strings.ByteAt": 2, "strings.Count": 2,
	"strings.Index": 2, "strings.HasPrefix": 2, "strings.HasSuffix": 2, "strings.Contains": 2, "strings.ContainsAny": 2, "strings.Repeat": 2,
	"math.Abs": 1, "math.Floor": 1, "math.Ceil": 1, "math.Round": 1, "math.Trunc": 1, "math.Sqrt": 1, "math.Pow": 2,
	"list.Sum": 1, "list.Min": 1, "list.Max": 1, "list.Avg": 1, "list.Concat": 1, "list.SortStrings": 1, "list.Contains": 2, "list.Slice": 3,
	"list.Range": 3, "list.Repeat": 2, "list.FlattenN": 2, "list.Sort": 2,
	"strconv.Itoa": 1, "strconv.Atoi": 1, "strconv.Quote": 1, "strconv.FormatInt": 2, "strconv.ParseInt": 3, "strconv.ParseFloat": 2, "strconv.ParseBool": 1,
	"json.Marshal": 1, "base64.Encode": 2, "hex.Encode": 1, "sha256.Sum256": 1, "md5.Sum": 1,
	"path.Base": 1, "path.Dir": 1, "path.Ext": 1, "path.Join": 1, "path.Clean": 1,
}

// computes reports whether the value of a field follows from arguments.
func (w *walker) computes(x ast.Expr) bool { return w.dependsOn(x) && w.follows(x, 0) }

// follows reports whether an expression has a single value as soon as the arguments that it depends on have
// values.
func (w *walker) follows(x ast.Expr, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch x := x.(type) {
	case *ast.ParenExpr:
		return w.follows(x.X, depth+1)
	case *ast.BasicLit, *ast.Interpolation, *ast.IndexExpr, *ast.SliceExpr:
		return true
	case *ast.UnaryExpr:
		return (x.Op == token.ADD || x.Op == token.SUB || x.Op == token.NOT) && w.follows(x.X, depth+1)
	case *ast.BinaryExpr:
		switch x.Op {
		case token.AND:
			return w.dependsOn(x.X) && w.follows(x.X, depth+1) || w.dependsOn(x.Y) && w.follows(x.Y, depth+1)
		case token.OR:
			return false
		}
		return true
	case *ast.CallExpr:
		n, ok := results[w.callee(x)]
		return ok && n == len(x.Args)
	case *ast.ListLit:
		return !slices.ContainsFunc(x.Elts, func(e ast.Expr) bool {
			_, each := e.(*ast.Comprehension)
			return !each && !w.follows(e, depth+1)
		})
	case *ast.SelectorExpr:
		return w.dependsOn(x)
	case *ast.Ident:
		t := w.refer(x)
		if t.fillable {
			return true
		}
		if let, ok := x.Node.(*ast.LetClause); ok {
			return w.follows(let.Expr, depth+1)
		}
		return t.field != nil && w.follows(t.field.Value, depth+1)
	}
	return false
}

// dependsOn reports whether a call may affect the value of an expression, directly or through references.
func (w *walker) dependsOn(x ast.Node) bool {
	found := false
	w.reaches(x, map[ast.Node]bool{}, func(*ast.Field) bool { found = true; return false })
	return found
}

// reaches calls visit with each argument that an expression refers to, directly or through other
// declarations, until visit returns false. nil means an unknown one. The expression's own fields are not
// included.
func (w *walker) reaches(x ast.Node, seen map[ast.Node]bool, visit func(*ast.Field) bool) bool {
	if x == nil || seen[x] {
		return true
	}
	seen[x] = true
	goOn := true
	selection := map[*ast.Ident]bool{} // the names in selectors are not references
	ast.Walk(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructLit:
			seen[n] = true
		case *ast.SelectorExpr:
			if id, ok := n.Sel.(*ast.Ident); ok {
				selection[id] = true
			}
		case *ast.Field:
			if id, ok := n.Label.(*ast.Ident); ok {
				selection[id] = true
			}
		case *ast.Ident:
			if goOn && !selection[n] {
				goOn = w.reachesIdent(n, seen, visit)
			}
		}
		return goOn
	}, nil)
	return goOn
}

func (w *walker) reachesIdent(x *ast.Ident, seen map[ast.Node]bool, visit func(*ast.Field) bool) bool {
	if _, outside := x.Scope.(*ast.File); outside || x.Node == nil || x.Scope == nil {
		return true // declarations outside the arguments can't refer to a call
	}
	if lit, ok := x.Scope.(*ast.StructLit); ok && seen[lit] {
		return true
	}
	switch target := x.Node.(type) {
	case *ast.LetClause:
		return w.reaches(target.Expr, seen, visit)
	case *ast.ForClause:
		return w.reaches(target.Source, seen, visit)
	case *ast.Alias, *ast.Field:
		return visit(nil)
	}
	t := w.identifier(x)
	switch {
	case t.fillable:
		return visit(t.field)
	case t.field != nil:
		return w.reaches(t.field.Value, seen, visit)
	}
	if lit, ok := x.Scope.(*ast.StructLit); ok && w.walked[lit] {
		return visit(nil) // one of several declarations
	}
	return true
}

// asks reports whether an expression has no single value whatever the arguments are: a type, or a bound on
// one side.
func (w *walker) asks(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return w.asks(x.X)
	case *ast.UnaryExpr:
		switch x.Op {
		case token.GTR, token.GEQ, token.LSS, token.LEQ, token.NEQ, token.MAT, token.NMAT:
			return true
		}
	case *ast.Ident, *ast.SelectorExpr:
		t := w.refer(x)
		return t.basic != "" || t.builtin != ""
	case *ast.CallExpr:
		name := w.callee(x)
		return len(x.Args) == 1 && (name == "strings.MinRunes" || name == "strings.MaxRunes" || name == "math.MultipleOf") ||
			len(x.Args) == 0 && strings.HasPrefix(name, "time.")
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

// resultTypes returns the JSON types of a computed value; none if it may be anything.
func (w *walker) resultTypes(x ast.Expr, depth int) []string {
	numeric := []string{"number"}
	if depth > maxDepth {
		return nil
	}
	switch x := x.(type) {
	case *ast.ParenExpr:
		return w.resultTypes(x.X, depth+1)
	case *ast.BasicLit:
		return w.syntaxKinds(x, 0)
	case *ast.Interpolation:
		if first, ok := x.Elts[0].(*ast.BasicLit); ok && strings.HasPrefix(strings.TrimLeft(first.Value, "#"), `"`) {
			return []string{"string"}
		}
	case *ast.ListLit:
		return []string{"array"}
	case *ast.UnaryExpr:
		if x.Op == token.NOT {
			return []string{"boolean"}
		}
		return w.resultTypes(x.X, depth+1)
	case *ast.BinaryExpr:
		switch x.Op {
		case token.QUO:
			return numeric
		case token.ADD, token.SUB, token.MUL:
			a, b := w.resultTypes(x.X, depth+1), w.resultTypes(x.Y, depth+1)
			if slices.Equal(a, b) || x.Op == token.SUB {
				return a
			}
		case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ, token.MAT, token.NMAT, token.LAND, token.LOR:
			return []string{"boolean"}
		case token.AND:
			if a := w.resultTypes(x.X, depth+1); a != nil {
				return a
			}
			return w.resultTypes(x.Y, depth+1)
		}
	case *ast.CallExpr:
		switch name := w.callee(x); {
		case name == "len" || name == "list.Sum" || strings.HasPrefix(name, "math."):
			return numeric
		case slices.Contains([]string{"strings.ToUpper", "strings.ToLower", "strings.ToTitle", "strings.TrimSpace", "strings.Trim",
			"strings.TrimPrefix", "strings.TrimSuffix", "strings.Join", "strings.Replace", "strings.SliceRunes", "strings.Repeat", "strconv.Itoa", "json.Marshal"}, name):
			return []string{"string"}
		}
	case *ast.Ident, *ast.SelectorExpr:
		t := w.refer(x)
		if t.basic != "" && t.basic != "_" {
			kinds := w.basic(t.basic, x, place{}).types
			if slices.Equal(kinds, []string{"integer"}) {
				return numeric
			}
			return kinds
		}
		if t.field != nil {
			return w.resultTypes(t.field.Value, depth+1)
		}
		if id, ok := x.(*ast.Ident); ok {
			if let, ok := id.Node.(*ast.LetClause); ok {
				return w.resultTypes(let.Expr, depth+1)
			}
		}
	}
	return nil
}

// total reports whether a computation certainly has a value, whatever arguments the schema accepts: a string
// made of scalars that every call has.
func (w *walker) total(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return w.total(x.X)
	case *ast.BasicLit:
		return true
	case *ast.Interpolation:
		return slices.Equal(w.resultTypes(x, 0), []string{"string"}) && !slices.ContainsFunc(x.Elts, func(e ast.Expr) bool {
			_, text := e.(*ast.BasicLit)
			return !text && !w.total(e)
		})
	case *ast.BinaryExpr: // an arithmetic operation, which CUE performs on any numbers
		numeric := func(x ast.Expr) bool { return slices.Equal(w.resultTypes(x, 0), []string{"number"}) }
		return (x.Op == token.ADD || x.Op == token.SUB || x.Op == token.MUL) && w.total(x.X) && w.total(x.Y) && numeric(x.X) && numeric(x.Y)
	case *ast.Ident:
		t := w.refer(x)
		if !t.fillable || t.field.Constraint == token.OPTION {
			return false
		}
		kinds := w.scalarTypes(t.field.Value)
		return len(kinds) > 0
	}
	return false
}

// scalarTypes returns the types of a field that is declared as a string, number or bool; none for any other.
func (w *walker) scalarTypes(x ast.Expr) (kinds []string) {
	switch x := x.(type) {
	case *ast.BinaryExpr:
		if x.Op == token.AND || x.Op == token.OR {
			a, b := w.scalarTypes(x.X), w.scalarTypes(x.Y)
			if x.Op == token.AND && (len(a) > 0 || len(b) > 0) {
				return append(a, b...)
			}
			if len(a) > 0 && len(b) > 0 {
				return append(a, b...)
			}
		}
	case *ast.UnaryExpr:
		if x.Op == token.MUL {
			return w.scalarTypes(x.X)
		}
	case *ast.BasicLit:
		if x.Kind != token.NULL && !strings.HasPrefix(x.Value, "'") {
			return w.syntaxKinds(x, 0)
		}
	case *ast.Ident:
		if t := w.refer(x); t.basic != "" && t.basic != "_" && t.basic != "bytes" {
			return w.basic(t.basic, x, place{}).types
		}
	}
	return nil
}
