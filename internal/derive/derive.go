// Package derive converts the CUE value of a tool's `args` (or `result`) to the contract that is advertised,
// checked and used to fill in defaults.
//
// CUE defines the check of a call and the value that is executed. A JSON Schema is as good as CUE, and much
// faster, for everyday constraints; for others it can only express less. So the walk matches what the author
// wrote against a list of productions (expr.go, literal.go, guard.go, builtin.go), each of which has one
// exact meaning in JSON Schema. Anything else is a loss: the schema expresses what is certainly true there,
// or nothing, and the contract gets a Remainder, so that CUE checks every call. The schema is never narrower
// than CUE, and wider only with a loss at the author's line.
//
// That a production is exact is verified. Each contract without a loss is compared with CUE when it is built,
// by values that it must accept or refuse (witness.go), and after a difference CUE checks its calls.
//
// Args are read as a definition: a struct is closed at every depth unless its author writes `...`.
package derive

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// The limits of a contract. A model reads it in every list, so these are far above what is useful.
const (
	maxDepth       = 32  // of CUE; beyond it CUE checks
	maxNesting     = 128 // of the schema, as contract.New reads it
	maxNodes       = 20_000
	maxEnum        = 1_000
	maxDescription = 16 << 10
	maxSchema      = 256 << 10
	maxSubschemas  = 2_000
	maxName        = 64
)

// Args derives the contract of a tool's `args` (or `result`) value v of the package pkg. closed is the same
// value read as a definition (#Args), with which the contract is compared; if it does not exist, nothing is
// compared. path is the CUE path of v, for problems (tools.x.args). The positions are those of the fields, by
// their path below v ("city", "opts.deep"). The Spec must not be used if the list has errors; its Remainder,
// if there is one, has only its Path, for the loader to complete. Args panics on no value; v must not be in
// use by another goroutine.
func Args(pkg *Package, v, closed cue.Value, strictness contract.Strictness, path string) (spec contract.Spec, positions map[string]problem.Position, problems problem.List) {
	spec, positions, problems = args(pkg, v, closed, strictness, path)
	if strictness == contract.Open && !problems.HasErrors() {
		spec.WhenClosed = &contract.ClosedForm{}
		if c, _, wrong := args(pkg, v, closed, contract.Closed, path); !wrong.HasErrors() {
			*spec.WhenClosed = contract.ClosedForm{Schema: c.Schema, Fields: c.Fields, Losses: c.Losses, Remainder: c.Remainder}
		}
	}
	return spec, positions, problems
}

func args(pkg *Package, v, closed cue.Value, strictness contract.Strictness, path string) (spec contract.Spec, positions map[string]problem.Position, problems problem.List) {
	w := &walker{
		pkg:       pkg,
		positions: map[string]problem.Position{},
		walked:    map[*ast.StructLit]bool{},
		taken:     map[*ast.Field]bool{},
		reported:  map[string]bool{},
		base:      path,
		path:      path,
		pos:       Position(v.Pos()),
	}
	// CUE's evaluator has out-of-range panics on unusual values. A panic for one tool must not stop the
	// build.
	defer func() {
		if r := recover(); r != nil {
			w.refuse(problem.UnsupportedConstr, w.pos, w.path, "CUE's evaluator fails here (%v): write it in a simpler way", r)
			spec, positions, problems = contract.Spec{}, w.positions, w.problems
		}
	}()
	top := w.top(v, strictness, path)
	if !w.problems.HasErrors() {
		w.verify(top, closed, path)
	}
	if !w.problems.HasErrors() {
		spec = w.spec(top, v, strictness, path)
	}
	delete(w.positions, "")
	return spec, w.positions, w.problems
}

// walker is one walk over the syntax of one value.
type walker struct {
	pkg       *Package
	problems  problem.List
	reported  map[string]bool // position and code, so that one constraint is reported once
	losses    []contract.Loss
	lossCount int // number of losses, including the same constraint reached several times
	examples  []example
	headers   []header
	fills     bool     // some field is computed
	secrets   bool     // some field is marked as a secret
	disclosed []string // fields that CUE may fill in from secrets
	positions map[string]problem.Position
	notes     map[string][]string // by the path that they are about
	openKeys  bool                // further keys are accepted at the top
	// conditional: only CUE knows whether some argument is accepted in a call.
	conditional bool
	// taken are the fields for which the schema, or what is computed, determines whether they hold a secret.
	taken map[*ast.Field]bool
	// walked are the literals whose fields are arguments.
	walked map[*ast.StructLit]bool
	// open are the definitions that are being walked, outermost first; defs are those that refer to
	// themselves.
	open  []*definition
	defs  []*definition
	nodes int
	// choices counts the conjunctions, disjunctions and JSON Schemas around what is being walked.
	choices int
	// base is the CUE path of the whole.
	base string
	// path and pos are the current position of the walk, for the report of a panic.
	path string
	pos  problem.Position
}

// definition is a declaration that is being walked.
type definition struct {
	field     *ast.Field
	name      string // in $defs
	recursive bool
	discloses bool // something in it may be filled in from a secret
	node      *node
}

func (w *walker) refuse(code problem.Code, pos problem.Position, path, format string, args ...any) {
	key := string(code) + pos.String()
	if w.reported[key] {
		return
	}
	w.reported[key] = true
	w.problems.Errorf(code, pos, path, format, args...)
}

// warnOnce warns of what is valid but rarely intended, once for each position and code.
func (w *walker) warnOnce(code problem.Code, pos problem.Position, path, format string, args ...any) {
	key := string(code) + pos.String()
	if w.reported[key] {
		return
	}
	w.reported[key] = true
	w.problems.Warnf(code, pos, path, format, args...)
}

// top walks the whole. CUE combines what is written for it in several places.
func (w *walker) top(v cue.Value, strictness contract.Strictness, path string) *node {
	at := place{path: path, pos: Position(v.Pos()), value: v, top: true}
	w.openKeys = strictness == contract.Open
	w.positions[""] = at.pos
	var n *node
	switch written := conjuncts(v); len(written) {
	case 0:
		n = &node{types: []string{"object"}, closed: true, pos: at.pos}
	case 1:
		at.pos = Position(written[0].Pos())
		w.positions[""], w.pos = at.pos, at.pos // v's own position may be in schema.cue
		n = w.topStruct(written[0], at)
	default:
		at.pos = Position(written[0].Pos())
		w.positions[""], w.pos = at.pos, at.pos
		n = w.topStruct(written[0], at)
		for _, x := range written[1:] {
			w.lose(contract.LossExpression, at, Position(x.Pos()), "the arguments are declared in several places")
			n = mergeStructs(n, w.topStruct(x, at))
		}
	}
	n.description = w.withNotes("", at)
	if strictness == contract.Open {
		w.openTop(n)
	} else {
		w.closeTop(n, at)
	}
	if strictness == contract.Exact {
		w.exact(n, path)
	}
	return n
}

// conjuncts returns the expressions that were written for v, without those that add nothing: _ and {...}.
func conjuncts(v cue.Value) (out []ast.Expr) {
	add := func(n ast.Node) {
		if f, ok := n.(*ast.Field); ok {
			n = f.Value
		}
		x, ok := n.(ast.Expr)
		if ok && !vacuous(x) && !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	src := v.Source()
	if _, ok := src.(*ast.Field); ok {
		add(src)
		return out
	}
	op, operands := v.Expr()
	if op != cue.AndOp {
		if src != nil {
			add(src)
		}
		return out
	}
	for _, o := range operands {
		if s := o.Source(); s != nil {
			add(s)
		}
	}
	return out
}

// vacuous reports whether an expression constrains nothing: _ or {...}.
func vacuous(x ast.Expr) bool {
	if id, ok := x.(*ast.Ident); ok {
		return id.Name == "_"
	}
	lit := structLit(x)
	if lit == nil || len(lit.Elts) != 1 {
		return false
	}
	e, ok := lit.Elts[0].(*ast.Ellipsis)
	return ok && e.Type == nil
}

// topStruct walks the arguments as a whole, which are always one object: for a choice between structs it
// lists the fields of all of them.
func (w *walker) topStruct(x ast.Expr, at place) *node {
	whole := w.expr(x, at)
	n := w.flatTop(whole)
	if n == nil {
		n = &node{types: []string{"object"}, pos: at.pos, unnamed: true, lossy: true}
	}
	if n.lossy && !whole.lossy { // as one object it expresses less
		w.lose(contract.LossChoice, at, Position(x.Pos()), "%s", written(x))
	}
	if n.unnamed && !n.ellipsis.IsValid() {
		n.ellipsis = w.ellipsisIn(x, 0)
	}
	w.keepSecrets(n, x)
	return n
}

// ellipsisIn returns the position of a ... that opens the arguments as a whole.
func (w *walker) ellipsisIn(x ast.Expr, depth int) (pos problem.Position) {
	if depth > maxDepth {
		return pos
	}
	switch x := x.(type) {
	case *ast.ParenExpr:
		return w.ellipsisIn(x.X, depth+1)
	case *ast.UnaryExpr:
		return w.ellipsisIn(x.X, depth+1)
	case *ast.BinaryExpr:
		return cmp.Or(w.ellipsisIn(x.X, depth+1), w.ellipsisIn(x.Y, depth+1))
	case *ast.Ident, *ast.SelectorExpr:
		if t := w.refer(x); t.field != nil {
			return w.ellipsisIn(t.field.Value, depth+1)
		}
		if id, ok := x.(*ast.Ident); ok {
			if let, ok := id.Node.(*ast.LetClause); ok {
				return w.ellipsisIn(let.Expr, depth+1)
			}
		}
	case *ast.CallExpr:
		for _, a := range x.Args {
			pos = cmp.Or(pos, w.ellipsisIn(a, depth+1))
		}
	case *ast.ListLit:
		for _, e := range x.Elts {
			pos = cmp.Or(pos, w.ellipsisIn(e, depth+1))
		}
	case *ast.IndexExpr:
		return w.ellipsisIn(x.X, depth+1)
	case *ast.StructLit:
		for _, e := range x.Elts {
			switch e := e.(type) {
			case *ast.Ellipsis:
				return Position(e.Pos())
			case *ast.EmbedDecl:
				pos = cmp.Or(pos, w.ellipsisIn(e.Expr, depth+1))
			case *ast.Comprehension:
				pos = cmp.Or(pos, w.ellipsisIn(e.Value, depth+1))
			}
		}
	}
	return pos
}

// flatTop returns n as one object with properties, or nil if it is not one.
func (w *walker) flatTop(n *node) *node {
	switch {
	case n.ref != nil && n.ref.node != nil:
		return w.flatTop(n.ref.node)
	case len(n.anyOf) > 0:
		var all *node
		for _, a := range n.anyOf {
			o := w.flatTop(a)
			if o == nil {
				return nil
			}
			if all == nil {
				all = o
			} else {
				all = w.eitherStruct(all, o)
			}
		}
		return all
	case slices.Equal(n.types, []string{"object"}):
		own := *n // references to the original definition may remain
		return &own
	}
	return nil
}

// openTop makes the schema accept further keys. Computed arguments are not keys of a call, which an open
// schema must state.
func (w *walker) openTop(n *node) {
	if n.additional == nil {
		n.closed = false
	}
	for _, p := range n.derived {
		p.node = &node{not: []*node{{}}, pos: p.pos}
		n.properties = append(n.properties, p)
	}
}

func (w *walker) closeTop(n *node, at place) {
	n.unnamed = n.unnamed || n.lossy && !n.closed && !n.ellipsis.IsValid() && n.additional == nil
	switch {
	case (n.unnamed || w.conditional) && n.ellipsis.IsValid():
		w.refuse(problem.UnsupportedConstr, n.ellipsis, at.path,
			`... contradicts strictness "closed", and without it the declared arguments are not known here: write strictness: "open", or leave ... out`)
	case n.ellipsis.IsValid():
		w.warnOnce(problem.UnsupportedConstr, n.ellipsis, at.path,
			`... lets no further argument pass, because strictness is "closed": write strictness: "open", or leave ... out`)
	}
	if n.unnamed {
		n.closed = false
		return
	}
	n.closed = true
	if n.additional != nil { // [string]: T declares every name
		n.patternProperties, n.additional = []property{{name: "", node: n.additional}}, nil
	}
}

func (w *walker) exact(n *node, path string) {
	for _, p := range n.properties {
		if !p.required {
			w.refuse(problem.StrictOptional, p.pos, path+"."+p.name,
				"strictness exact has no optional arguments: write %s! or choose another strictness", label(p.name))
		}
	}
	if n.patterned() || n.unnamed {
		w.refuse(problem.StrictOptional, n.pos, path,
			"strictness exact has no optional arguments, and not every name is written out here: choose another strictness")
	}
}

func (w *walker) spec(top *node, v cue.Value, strictness contract.Strictness, path string) contract.Spec {
	w.share(top)
	for _, d := range w.defs {
		top.defs = append(top.defs, property{name: d.name, node: d.node})
	}
	w.tryExamples(top, v)
	spec := contract.Spec{Schema: top.json(), Strictness: strictness, Losses: w.sortedLosses()}
	if len(spec.Losses) > 0 || w.fills {
		spec.Remainder = &contract.Remainder{Path: path}
	}
	w.tryHeaders(top, spec.Schema)
	if n := top.subschemas(); n > maxSubschemas {
		w.refuse(problem.UnsupportedConstr, w.pos, path, "the schema has %d parts, more than %d: split the tool", n, maxSubschemas)
	}
	if len(spec.Schema) > maxSchema {
		w.refuse(problem.UnsupportedConstr, w.pos, path, "the schema has %d bytes, more than %d: split the tool", len(spec.Schema), maxSchema)
	}
	if n := nesting(spec.Schema); n > maxNesting {
		w.refuse(problem.UnsupportedConstr, w.pos, path, "the schema is nested %d levels deep, more than %d: write it flatter", n, maxNesting)
	}
	for _, p := range top.properties {
		if p.computed {
			continue
		}
		spec.Fields = append(spec.Fields, contract.Field{
			Name: p.name, Types: w.types(p.node), Required: p.required, Default: p.node.fallback, Secret: p.node.writeOnly || w.discloses(p.name),
		})
	}
	for _, p := range top.derived {
		spec.Fields = append(spec.Fields, contract.Field{Name: p.name, Types: w.types(p.node), Computed: true, Secret: w.discloses(p.name)})
	}
	return spec
}

// nesting returns the nesting depth of a JSON text.
func nesting(raw []byte) (deepest int) {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '{' || c == '['):
			depth++
			deepest = max(deepest, depth)
		case !quoted && (c == '}' || c == ']'):
			depth--
		}
	}
	return deepest
}

// types returns the sorted set of JSON types that a node accepts.
func (w *walker) types(n *node) (out []string) {
	switch {
	case n.ref != nil:
		return w.types(n.ref.node)
	case len(n.anyOf) > 0:
		for _, alternative := range n.anyOf {
			out = append(out, w.types(alternative)...)
		}
	case len(n.types) > 0:
		out = slices.Clone(n.types)
	default:
		return []string{"array", "boolean", "null", "number", "object", "string"}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if slices.Contains(out, "number") {
		out = slices.DeleteFunc(out, func(t string) bool { return t == "integer" })
	}
	return out
}

// place is the position of an expression: its CUE path, the path below the top, the position for problems and
// the depth.
type place struct {
	path  string
	below string
	pos   problem.Position
	depth int
	// value is CUE's value at the place before any call; it may not exist.
	value cue.Value
	// partial: the expression is only a part of the source of value.
	partial bool
	// lazy: CUE evaluates it when a call provides it.
	lazy bool
	// top: it is the arguments as a whole, which are an object, or a part of their declaration.
	top bool
}

func (p place) field(name string) place {
	p.path += "." + label(name)
	if p.below != "" {
		p.below += "."
	}
	p.below += name
	p.depth++
	p.value, p.partial, p.top = cue.Value{}, false, false
	return p
}

func (p place) item(step string) place {
	p.path += step
	p.lazy = true
	p.depth++
	p.value, p.partial, p.top = cue.Value{}, false, false
	return p
}

// follow walks the declaration to which a name refers. One that refers to itself becomes an entry of $defs.
func (w *walker) follow(f *ast.Field, at place) *node {
	for _, list := range [][]*definition{w.open, w.defs} {
		for _, d := range list {
			if d.field == f {
				d.recursive = true
				if d.discloses {
					w.disclosed = append(w.disclosed, at.below)
				}
				return &node{ref: d, pos: at.pos, lossy: d.node != nil && d.node.lossy, definition: strings.HasPrefix(labelText(f), "#")}
			}
		}
	}
	name, _, err := ast.LabelName(f.Label)
	if err != nil {
		return w.off(contract.LossExpression, f.Value, at)
	}
	d := &definition{field: f, name: w.unused(defBase(name))}
	w.open = append(w.open, d)
	before := len(w.disclosed)
	d.node = w.expr(f.Value, at)
	d.discloses = len(w.disclosed) > before
	w.open = w.open[:len(w.open)-1]
	if d.recursive && at.top && w.openKeys {
		w.lose(contract.LossName, at, at.pos, "%s is open at the top and closed below", name)
	}
	if marksSecret(f) {
		secret := *d.node
		secret.writeOnly, d.node = true, &secret
		w.secrets = true
	}
	if !d.recursive {
		n := *d.node
		n.name, n.definition = defBase(name), strings.HasPrefix(name, "#")
		return &n
	}
	w.defs = append(w.defs, d)
	return &node{ref: d, pos: at.pos, lossy: d.node.lossy, definition: strings.HasPrefix(name, "#")}
}

func labelText(f *ast.Field) string {
	name, _, _ := ast.LabelName(f.Label)
	return name
}

// defBase returns a name without its # or _, in characters that need no escape in a $ref.
func defBase(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, name)
	return cmp.Or(strings.Trim(name, "_"), "Def")
}

// Position converts a CUE position to a position in the catalog: its file is relative to the root.
func Position(pos token.Pos) problem.Position {
	if !pos.IsValid() {
		return problem.Position{}
	}
	p := pos.Position()
	return problem.Position{File: strings.TrimPrefix(strings.TrimPrefix(p.Filename, "./"), "/"), Line: p.Line, Col: p.Column}
}

func label(name string) string {
	if ast.IsValidIdent(name) {
		return name
	}
	return fmt.Sprintf("%q", name)
}
