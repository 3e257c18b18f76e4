package derive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/strictjson"
)

// Remainder is the CUE value of a contract, for what its schema can't express: it checks arguments that the
// schema accepts and fills in computed ones. An argument can make CUE run without end, so the caller of Check
// must be able to kill the process. A Remainder is not safe for concurrent use.
type Remainder struct {
	value cue.Value
	depth int // of value's path
	// secrets: a file of the package declares some, so a misplaced key may carry one.
	secrets bool
	files   map[string]*ast.File
	texts   map[token.Pos]constraint
	floats  map[string]bool // by pointer
	// integers: each whole number is passed as an integer. floated: one was not.
	integers, floated bool
}

// maxFloats caps the cached positions in floats: in a map, every call can have new ones.
const maxFloats = 1000

// NewRemainder looks up the definition in the value of a package: the arguments as CUE closes them, or with
// `...` if a call may have further keys.
func NewRemainder(pkg cue.Value, definition string) (*Remainder, error) {
	path := cue.MakePath(cue.Def(definition))
	v := pkg.LookupPath(path)
	if !v.Exists() { // an error in it may be one that only a call resolves
		return nil, fmt.Errorf("the contract's CUE is not there: %w", v.Err())
	}
	r := &Remainder{value: v, depth: len(path.Selectors()), files: map[string]*ast.File{}, texts: map[token.Pos]constraint{}, floats: map[string]bool{}}
	if inst := pkg.BuildInstance(); inst != nil {
		// A file with only the definition has no text of the author's.
		r.take(slices.DeleteFunc(slices.Clone(inst.Files), func(f *ast.File) bool { return names(f, definition) }))
		for _, dep := range inst.Dependencies() {
			r.take(dep.Files)
		}
	}
	return r, nil
}

// names reports whether a file contains the definition and nothing else.
func names(f *ast.File, definition string) bool {
	var fields []*ast.Field
	for _, d := range f.Decls {
		if field, ok := d.(*ast.Field); ok {
			fields = append(fields, field)
		}
	}
	if len(fields) != 1 {
		return false
	}
	label, ok := fields[0].Label.(*ast.Ident)
	return ok && label.Name == definition
}

func (r *Remainder) take(files []*ast.File) {
	for _, f := range files {
		r.files[f.Filename] = f
		ast.Walk(f, func(n ast.Node) bool {
			if a, ok := n.(*ast.Attribute); ok && strings.HasPrefix(a.Text, "@secret") {
				r.secrets = true
			}
			return true
		}, nil)
	}
}

// Check checks args, one JSON object, and returns them with the values that CUE fills in, or all violations.
// Numbers keep their original digits; filled is nil if nothing is filled in. An error means that CUE itself
// failed.
func (r *Remainder) Check(args json.RawMessage) (filled json.RawMessage, found []contract.Violation, err error) {
	defer func() {
		if p := recover(); p != nil {
			filled, found, err = nil, nil, errors.New("CUE's evaluator failed on these arguments")
		}
	}()
	in, err := decode(args)
	if err != nil {
		return nil, nil, err
	}
	object, ok := in.(map[string]any)
	if !ok {
		return nil, nil, errors.New("the arguments are not an object")
	}
	r.integers, r.floated = false, false
	v := r.unify(object)
	refused := v.Validate(cue.Concrete(true), cue.Final())
	if refused != nil && r.floated {
		r.integers = true // a default, such as *{r: 1.0}, hides that {r: int} beside it takes the integer
		if again := r.unify(object); again.Validate(cue.Concrete(true), cue.Final()) == nil {
			v, refused = again, nil
		}
	}
	if refused != nil {
		return nil, r.explain(v, object, refused), nil
	}
	out, err := v.MarshalJSON()
	if err != nil {
		return nil, nil, fmt.Errorf("the arguments that CUE fills in are no JSON: %w", err)
	}
	whole, err := decode(out)
	if err != nil {
		return nil, nil, err
	}
	merged, more := merge(in, whole)
	if !more {
		return nil, nil, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(merged); err != nil {
		return nil, nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil, nil
}

func decode(data []byte) (any, error) { return strictjson.DecodeMaps(data, strictjson.Options{}, nil) }

func (r *Remainder) unify(object map[string]any) cue.Value {
	//lint:ignore SA1019 the values are of one context, which knows the definitions they refer to
	return r.value.Unify(r.value.Context().BuildExpr(r.expr(object, nil)))
}

// expr converts JSON to CUE syntax. A whole number becomes an integer, however it is written, unless CUE
// accepts only a float.
func (r *Remainder) expr(v any, path []string) ast.Expr {
	switch v := v.(type) {
	case nil:
		return ast.NewNull()
	case bool:
		return ast.NewBool(v)
	case string:
		return textExpr(declared(r.value, path), v)
	case json.Number:
		return r.number(string(v), path)
	case []any:
		l := &ast.ListLit{}
		for i, item := range v {
			l.Elts = append(l.Elts, r.expr(item, append(path, strconv.Itoa(i))))
		}
		return l
	case map[string]any:
		s := &ast.StructLit{}
		for name, member := range v {
			s.Elts = append(s.Elts, &ast.Field{Label: ast.NewString(name), Value: r.expr(member, append(path, name))})
		}
		return s
	}
	panic("derive: decoded JSON is one of six kinds")
}

func (r *Remainder) number(text string, path []string) ast.Expr {
	digits, negative := strings.CutPrefix(string(contract.Integer(json.Number(text))), "-")
	kind := token.FLOAT
	if !strings.ContainsAny(digits, ".eE") {
		kind = token.INT
		if !r.integers && r.float(path) {
			digits, kind, r.floated = digits+".0", token.FLOAT, true
		}
	}
	var x ast.Expr = ast.NewLit(kind, digits)
	if negative {
		x = &ast.UnaryExpr{Op: token.SUB, X: x}
	}
	return x
}

// float reports whether CUE accepts a float at a path, and no integer.
func (r *Remainder) float(path []string) bool {
	key := pointer(path)
	is, known := r.floats[key]
	if !known {
		at, _ := walkTo(r.value, path)
		is = at.IncompleteKind()&cue.NumberKind == cue.FloatKind
		if len(r.floats) < maxFloats {
			r.floats[key] = is
		}
	}
	return is
}

// merge adds CUE's values to those received, converts whole numbers that CUE treated as integers, and leaves
// all else as received. more reports whether anything has changed.
func merge(came, whole any) (merged any, more bool) {
	switch whole := whole.(type) {
	case map[string]any:
		object, ok := came.(map[string]any)
		if !ok {
			return came, false
		}
		for name, v := range whole {
			before, has := object[name]
			if !has {
				object[name], more = v, true
				continue
			}
			below, added := merge(before, v)
			object[name], more = below, more || added
		}
		return object, more
	case []any:
		list, ok := came.([]any)
		if !ok || len(list) != len(whole) {
			return came, false
		}
		for i := range list {
			below, added := merge(list[i], whole[i])
			list[i], more = below, more || added
		}
		return list, more
	case json.Number:
		// CUE writes a float with a fraction.
		if n, ok := came.(json.Number); ok && n != whole && contract.Integer(n) == whole {
			return whole, true
		}
	}
	return came, false
}

func isSecret(v cue.Value) bool {
	if !v.Exists() {
		return false
	}
	a := v.Attribute("secret")
	return a.Err() == nil
}

// step returns the field or item of that name below v. present is false if v has only a constraint for it.
func step(v cue.Value, name string) (below cue.Value, present bool) {
	if !v.Exists() {
		return v, false
	}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && v.IncompleteKind() == cue.ListKind {
		below = v.LookupPath(cue.MakePath(cue.Index(i)))
		return below, below.Exists()
	}
	if below = v.LookupPath(cue.MakePath(cue.Str(name))); below.Exists() {
		return below, true
	}
	fields, err := v.Fields(cue.Optional(true))
	if err != nil {
		return cue.Value{}, false
	}
	for fields.Next() { // no lookup, which succeeds for every name that a pattern or ... accepts
		if s := fields.Selector(); s.LabelType() == cue.StringLabel && s.Unquoted() == name {
			return fields.Value(), false
		}
	}
	return cue.Value{}, false
}

// walkTo returns the value at a path below v.
func walkTo(v cue.Value, path []string) (at cue.Value, present bool) {
	at, present = v, true
	for _, name := range path {
		var here bool
		at, here = step(at, name)
		present = present && here
	}
	return at, present
}

// hidden reports whether the value at a path is a secret, or inside one.
func hidden(v cue.Value, path []string) bool {
	for _, name := range path {
		v, _ = step(v, name)
		if isSecret(v) {
			return true
		}
	}
	return false
}

func pointer(path []string) string {
	var b strings.Builder
	for _, name := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return b.String()
}
