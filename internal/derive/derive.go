// Package derive turns the CUE value of a tool's `args` (or `result`) into the contract that is advertised, checked and
// filled in from.
//
// It walks the value and says in JSON Schema exactly what CUE would accept: not more, not less. What JSON Schema can't
// say, and what the walk does not know, is a problem at its own position and never a looser schema. Two views of the same
// value are needed for that:
//
//   - what CUE has evaluated a scalar to (Value.Eval): the bounds, patterns and alternatives that hold, whatever
//     references and defaults they came through;
//   - what the author wrote (Value.Expr and the syntax): it alone shows guards and comprehensions, which arguments a
//     constraint depends on, the validators of structs and lists, and where a struct is left open with `...`.
//
// Args are read as a definition: a struct is closed at every depth unless its author writes `...`. The walk computes that
// from the syntax, because a value that CUE shares between `args` and `#Args` does not know that it is closed.
//
// The walk is linear in the size of the value. It never calls Value.Doc, which is quadratic, and evaluates a conjunct by
// itself only for structs and lists that have several.
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

// What a contract may be at most. A model reads it on every list, so these are far above what is useful.
const (
	maxDepth       = 32
	maxNodes       = 20_000
	maxEnum        = 1_000
	maxDescription = 16 << 10
	maxSchema      = 256 << 10
	maxSubschemas  = 2_000
	maxName        = 64
)

// Args derives the contract of a tool's `args` (or `result`) value, read as a definition. path is its CUE path, for
// problems (tools.x.args). The positions are those of the fields, by their path below v ("city", "opts.deep"). The Spec
// is of no use when the list has errors; its Remainder, where there is one, has only its Path, for the loader to complete.
// It panics on no value; v must not be in use by another goroutine.
func Args(v cue.Value, strictness contract.Strictness, path string) (spec contract.Spec, positions map[string]problem.Position, problems problem.List) {
	w := &walker{
		positions: map[string]problem.Position{},
		arguments: map[ast.Node]argument{},
		reported:  map[string]bool{},
		base:      path,
		path:      path,
		pos:       Position(v.Pos()),
	}
	// CUE's evaluator has index errors of its own on odd values (found by fuzzing: Unify of a unified value). One tool's
	// must not take the build down.
	defer func() {
		if r := recover(); r != nil {
			w.refuse(problem.UnsupportedConstr, w.pos, w.path, "CUE's evaluator fails here (%v): write it in a simpler way", r)
			spec, positions, problems = contract.Spec{}, w.positions, w.problems
		}
	}()
	top := w.top(v, strictness, path)
	if !w.problems.HasErrors() {
		spec = w.spec(top, strictness, path)
	}
	delete(w.positions, "")
	return spec, w.positions, w.problems
}

// walker is one walk over one value.
type walker struct {
	problems  problem.List
	reported  map[string]bool // position and code, so that one constraint is told once
	losses    []contract.Loss
	examples  []example
	fills     bool     // some field is computed
	disclosed []string // where something is filled in from a secret
	shared    bool     // some of that stands in a definition
	touched   int      // how often something depended on an argument
	chain     int      // how many arguments refer to one another where the walk is
	closed    bool     // no key but the declared ones passes at the top
	positions map[string]problem.Position
	// arguments are the value expressions of the fields that a call fills: what depends on one is no constant.
	arguments map[ast.Node]argument
	// open are the definitions that are being walked, outermost first; defs those that refer to themselves.
	open  []*definition
	defs  []*definition
	nodes int
	// base is the CUE path of the whole.
	base string
	// path and pos are where the walk is, for a panic's report.
	path string
	pos  problem.Position
}

// definition is a named value that is being walked.
type definition struct {
	key       string // where it stands, unique
	name      string // in $defs
	touched   bool   // something in it depends on an argument
	recursive bool
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

func (w *walker) top(v cue.Value, strictness contract.Strictness, path string) *node {
	at := place{path: path, pos: Position(v.Pos())}
	w.positions[""] = at.pos
	p := w.parts(v, at)
	p.shut = false // whether extra keys pass is for strictness to say
	w.closed = strictness != contract.Open
	n := w.structureOf(v, p, at)
	n.required = n.requiredNames()
	switch strictness {
	case contract.Open:
		if n.additional == nil {
			n.closed = false
		}
	default:
		n.closed = true
		if n.additional != nil { // [string]: T declares every name
			n.patternProperties, n.additional = []property{{name: "", node: n.additional}}, nil
		}
	}
	if strictness != contract.Exact {
		return n
	}
	for _, p := range n.properties {
		if !p.required {
			w.refuse(problem.StrictOptional, p.pos, path+"."+p.name,
				"strictness exact has no optional arguments: write %s! or choose another strictness", label(p.name))
		}
	}
	if n.patterned() {
		w.refuse(problem.StrictOptional, n.pos, path, "strictness exact has no optional arguments, and a pattern declares them: choose another strictness")
	}
	return n
}

func (w *walker) spec(top *node, strictness contract.Strictness, path string) contract.Spec {
	w.share(top)
	for _, d := range w.defs {
		top.defs = append(top.defs, property{name: d.name, node: d.node})
	}
	w.tryExamples(top)
	spec := contract.Spec{Schema: top.json(), Strictness: strictness, Losses: w.sortedLosses()}
	if len(spec.Losses) > 0 || w.fills {
		spec.Remainder = &contract.Remainder{Path: path}
	}
	if n := top.subschemas(); n > maxSubschemas {
		w.refuse(problem.UnsupportedConstr, w.pos, path, "the schema has %d parts, more than %d: split the tool", n, maxSubschemas)
	}
	if len(spec.Schema) > maxSchema {
		w.refuse(problem.UnsupportedConstr, w.pos, path, "the schema has %d bytes, more than %d: split the tool", len(spec.Schema), maxSchema)
	}
	for _, p := range top.properties {
		spec.Fields = append(spec.Fields, contract.Field{Name: p.name, Types: w.types(p.node), Required: p.required, Default: p.node.fallback, Secret: p.node.writeOnly || w.discloses(top, p)})
	}
	for _, p := range top.derived {
		spec.Fields = append(spec.Fields, contract.Field{Name: p.name, Types: w.types(p.node), Computed: true, Secret: w.discloses(top, p)})
	}
	return spec
}

// types is the sorted set of JSON types that a node takes.
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

// place is where a value stands: its CUE path, the path below the top, the position to blame and the depth.
type place struct {
	path  string
	below string
	pos   problem.Position
	depth int
	// syntax is what the author wrote for the value, as far as it is known.
	syntax []ast.Node
}

func (p place) field(name string) place {
	p.path += "." + label(name)
	if p.below != "" {
		p.below += "."
	}
	p.below += name
	p.depth++
	p.syntax = nil
	return p
}

func (p place) item(step string) place {
	p.path += step
	p.depth++
	p.syntax = nil
	return p
}

// value walks any value.
func (w *walker) value(v cue.Value, at place) *node {
	w.path, w.pos = at.path, at.pos
	if at.depth > maxDepth {
		w.refuse(problem.UnsupportedConstr, at.pos, at.path, "nested deeper than %d levels (or a definition that refers to itself inside &): write it flatter", maxDepth)
		return &node{}
	}
	if w.nodes++; w.nodes > maxNodes {
		w.refuse(problem.UnsupportedConstr, w.positions[""], at.path, "more than %d parts: write it smaller", maxNodes)
		return &node{}
	}
	at.syntax = append(at.syntax, sources(v)...)
	for _, n := range at.syntax {
		if !w.bounded(expression(n), at, false) {
			return &node{}
		}
		w.messages(expression(n), at)
	}
	if slices.ContainsFunc(at.syntax, func(n ast.Node) bool { return w.depends(expression(n)) }) {
		return w.loosen(v, at, 0)
	}
	if n := w.reference(v, at); n != nil {
		return n
	}
	const composite = cue.StructKind | cue.ListKind
	if refers(at) || v.IncompleteKind()&composite == 0 && builds(at) {
		if alternatives := w.dropped(v, 0); alternatives != nil {
			return w.alternatives(v, alternatives, at)
		}
	}
	return w.plain(v, at)
}

// dropped are the alternatives of a disjunction of which CUE has dropped one: because nothing satisfies it, or because it
// leads back to what is being evaluated. Inside #Node, `null | #Node` has become null, and yet it takes a node once a call
// gives one. They are empty, not nil, where the disjunction is joined with something else.
func (w *walker) dropped(v cue.Value, depth int) []cue.Value {
	op, operands := v.Expr()
	switch {
	case depth > maxDepth:
	case op == cue.OrOp:
		for _, o := range operands {
			if kind := o.IncompleteKind(); kind == cue.BottomKind || kind&^v.IncompleteKind() != 0 || w.isOpen(o) {
				return operands
			}
		}
	case op == cue.SelectorOp:
		if target := cue.Dereference(v); target != v {
			return w.dropped(target, depth+1)
		}
	case op == cue.AndOp:
		for _, o := range operands {
			if w.dropped(o, depth+1) != nil {
				return []cue.Value{}
			}
		}
	}
	return nil
}

// isOpen reports whether v refers to a definition that is being walked.
func (w *walker) isOpen(v cue.Value) bool {
	key, _ := definitionKey(v)
	return key != "" && slices.ContainsFunc(w.open, func(d *definition) bool { return d.key == key })
}

// definitionKey names what v refers to; empty where v is more than a reference.
func definitionKey(v cue.Value) (string, cue.Path) {
	root, path := v.ReferencePath()
	if !root.Exists() || len(path.Selectors()) == 0 {
		return "", path
	}
	instance := ""
	if b := root.BuildInstance(); b != nil {
		instance = b.ImportPath
	}
	return instance + ":" + path.String(), path
}

// plain walks a value by its kind.
func (w *walker) plain(v cue.Value, at place) *node {
	const composite = cue.StructKind | cue.ListKind
	switch kind := v.IncompleteKind(); {
	case kind == cue.TopKind && isTop(v):
		return &node{}
	case kind == cue.StructKind:
		return w.structureOf(v, w.parts(v, at), at)
	case kind == cue.ListKind:
		return w.listOf(v, w.parts(v, at), at)
	case kind == cue.BottomKind:
		return w.bottom(v, at)
	case kind&composite != 0:
		if n := w.anyKind(v, at); n != nil {
			return n
		}
		return w.mixed(v, at)
	}
	return w.scalar(v, at)
}

// isTop tells `_` from what merely allows every kind, such as a validator.
func isTop(v cue.Value) bool {
	op, operands := v.Eval().Expr()
	return op == cue.NoOp && len(operands) == 1 && fmt.Sprint(operands[0]) == "_"
}

// bottom walks a value that CUE holds to be an error: a struct or list with a validator that its empty form does not
// satisfy is one until a call fills it.
func (w *walker) bottom(v cue.Value, at place) *node {
	p := w.parts(v, at)
	if len(p.guards) > 0 {
		return w.structureOf(v, p, at) // a condition over a field that only a call has is an error to CUE
	}
	if len(p.values) == 1 && len(p.validators) > 0 {
		switch p.values[0].IncompleteKind() {
		case cue.StructKind:
			return w.structureOf(v, p, at)
		case cue.ListKind:
			return w.listOf(v, p, at)
		}
	}
	w.noValue(v, at)
	return &node{}
}

// noValue reports what CUE says of a value that it takes for an error.
func (w *walker) noValue(v cue.Value, at place) {
	code, pos, text := problem.UnsupportedConstr, w.blame(at, v.Pos()), "can't be evaluated"
	if err := v.Err(); err != nil {
		text = strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", "; "), at.path+": ")
	}
	switch {
	case strings.Contains(text, "field not allowed"):
		pos, text = at.pos, "a closed definition beside it does not allow this field: embed the definition instead of using &"
	case strings.Contains(text, "conflicting values"), strings.Contains(text, "out of bound"), strings.Contains(text, "incompatible number bounds"), strings.Contains(text, "mismatched types"):
		code = problem.CUEConflict
	case strings.HasPrefix(text, "cannot call non-function "):
		name, _, _ := strings.Cut(strings.TrimPrefix(text, "cannot call non-function "), " (type")
		w.refuse(problem.CUEReference, pos, at.path, "there is no function %s; mend the name", name)
		return
	}
	w.refuse(code, pos, at.path, "no value can be given here: %s", text)
}

// reference walks a value that is nothing but a reference to a definition, so that one which refers to itself becomes an
// entry of $defs. It is nil for every other value.
func (w *walker) reference(v cue.Value, at place) *node {
	key, path := definitionKey(v)
	if key == "" {
		return nil
	}
	for _, d := range w.open {
		if d.key == key {
			d.recursive = true
			return &node{ref: d}
		}
	}
	for _, d := range w.defs {
		if d.key == key {
			if d.touched {
				w.touched++
			}
			return &node{ref: d}
		}
	}
	const composite = cue.StructKind | cue.ListKind
	if v.IncompleteKind()&composite == 0 {
		// CUE holds a way back to what it is evaluating to be an error. It is none once a call ends it, so the walk goes on
		// at the definition itself.
		if err := v.Err(); err == nil || !strings.Contains(err.Error(), "structural cycle") {
			return nil
		}
		root, _ := v.ReferencePath()
		if v = root.LookupPath(path); v.IncompleteKind()&composite == 0 {
			return nil
		}
	}
	d := &definition{key: key, name: w.defName(path)}
	w.open = append(w.open, d)
	touched := w.touched
	d.node = w.plain(v, at)
	d.touched = w.touched > touched
	w.open = w.open[:len(w.open)-1]
	if !d.recursive {
		d.node.name = defBase(path)
		return d.node
	}
	w.defs = append(w.defs, d)
	return &node{ref: d}
}

// defName is the last name of path without its mark, made unique.
func (w *walker) defName(path cue.Path) string {
	return w.unused(defBase(path))
}

// defBase is the last name of path without its mark, in characters that a $ref needs no escape for.
func defBase(path cue.Path) string {
	selectors := path.Selectors()
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, selectors[len(selectors)-1].String())
	return cmp.Or(strings.Trim(name, "_"), "Def")
}

// Position is a CUE position as a place in the catalog: its file relative to the root.
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
