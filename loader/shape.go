package loader

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
)

// shape is the set of fields that a value of the schema may have, as far as the schema closes it. CUE refuses
// unknown fields too, but does not report them if there is another error in the same struct; shape finds them
// in the syntax, so that a misspelt field is always reported, at its own position.
type shape struct {
	fields map[string]*shape // nil: any field is allowed
	elem   *shape            // of a list, or of a struct with arbitrary names
	items  []*shape          // of a list: the first elements, where they differ from the others
	// alternatives are the values of other kinds that the schema accepts in place of a struct.
	alternatives []*shape
	// defaults are the schema's values, in JSON, of fields that may be left out; only with alternatives.
	defaults map[string]json.RawMessage
	wanted   string // what a value must be, in words; empty if the schema does not restrict it
	// above is the shape that has this one as its field label; nil for a definition's own and for elements.
	above *shape
	label string
}

// The three fields of a catalog.
const (
	toolsField    = "tools"
	serversField  = "servers"
	branchesField = "branches"
)

var definitions = map[string]string{toolsField: "#Tool", serversField: "#Server", branchesField: "#Branch"}

// shapes reads the definitions of the schema.
func shapes(schema []byte) (map[string]*shape, error) {
	v := cuecontext.New().CompileBytes(schema, cue.Filename(schemaPath))
	if err := v.Err(); err != nil {
		return nil, fmt.Errorf("loader: the schema does not compile: %w", err)
	}
	out := map[string]*shape{}
	for field, def := range definitions {
		d := v.LookupPath(cue.ParsePath(def))
		if !d.Exists() {
			return nil, fmt.Errorf("loader: the schema has no %s", def)
		}
		out[field] = shapeOf(d)
	}
	return out, nil
}

func shapeOf(v cue.Value) *shape {
	s := &shape{wanted: wording(v)}
	switch v.IncompleteKind() {
	case cue.StructKind:
		if v.Allows(cue.AnyString) {
			s.elem = shapeOf(v.LookupPath(cue.MakePath(cue.AnyString)))
			return s
		}
		fields, err := v.Fields(cue.Optional(true))
		if err != nil {
			return s
		}
		s.fields = map[string]*shape{}
		for fields.Next() {
			s.have(fields.Selector().Unquoted(), shapeOf(fields.Value()))
		}
	case cue.ListKind:
		s.elem = shapeOf(v.LookupPath(cue.MakePath(cue.AnyIndex)))
		for i := 0; v.LookupPath(cue.MakePath(cue.Index(i))).Exists(); i++ {
			s.items = append(s.items, shapeOf(v.LookupPath(cue.MakePath(cue.Index(i)))))
		}
	case cue.StringKind | cue.StructKind, cue.ListKind | cue.StructKind:
		s.alternate(v)
	}
	return s
}

// have adds a field.
func (s *shape) have(name string, f *shape) {
	f.above, f.label = s, name
	s.fields[name] = f
}

// alternate reads a disjunction of a struct and values of other kinds.
func (s *shape) alternate(v cue.Value) {
	op, alternatives := v.Expr()
	if op != cue.OrOp {
		return
	}
	for _, a := range alternatives {
		below := shapeOf(a)
		if a.IncompleteKind() != cue.StructKind {
			s.elem, s.items = below.elem, below.items
			s.alternatives = append(s.alternatives, below)
			continue
		}
		s.fields, s.defaults = below.fields, map[string]json.RawMessage{}
		for name, f := range s.fields {
			s.have(name, f)
		}
		fields, err := a.Fields()
		for err == nil && fields.Next() {
			if d, ok := fields.Value().Default(); ok {
				if data, err := d.MarshalJSON(); err == nil {
					s.defaults[fields.Selector().Unquoted()] = data
				}
			}
		}
	}
}

// mixed reports whether a value of another kind may stand in place of the struct.
func (s *shape) mixed() bool { return len(s.alternatives) > 0 }

// forms describes the patterns of the schema in words.
var forms = []struct{ pattern, words string }{
	{`(ns|us|ms|s|m|h)`, `a length of time such as "30s" or "1m30s"`},
	{`(env:`, `a reference to a secret: "env:NAME" or "file:PATH"`},
	{`A-Za-z_`, `a name: a letter or _, then letters, digits, _ or -`},
	{`{.+\\}`, `"none", "json", or "{name}" for one argument`},
	{`{1,500}`, `a reason in words, of 1 to 500 characters`},
	{`\S`, `a string that is not empty`},
}

// wording describes in words what the schema requires of a value.
func wording(v cue.Value) string {
	var literals []string
	op, alternatives := v.Expr()
	if kind := v.IncompleteKind(); op == cue.OrOp && kind != cue.StructKind && kind&cue.StructKind != 0 {
		return alternativesWording(alternatives)
	}
	for _, a := range alternatives {
		if op != cue.OrOp || !a.IsConcrete() {
			literals = nil
			break
		}
		literals = append(literals, fmt.Sprint(a))
	}
	if n := len(literals); n > 1 {
		return orList(literals)
	}
	text := fmt.Sprint(v)
	for _, f := range forms {
		if v.IncompleteKind() == cue.StringKind && strings.Contains(text, f.pattern) {
			return f.words
		}
	}
	switch v.IncompleteKind() {
	case cue.StringKind:
		return "a string"
	case cue.IntKind:
		for _, a := range alternatives {
			if !a.IsConcrete() {
				return fmt.Sprintf("a whole number (%v)", a)
			}
		}
		return "a whole number"
	case cue.BoolKind:
		return "true or false"
	case cue.ListKind:
		return "a list"
	case cue.StructKind:
		return cmp.Or(requiredWording(v), "a struct")
	}
	return ""
}

// requiredWording is a struct by the first field that it can't do without, such as {kind: ...}; empty without one.
func requiredWording(v cue.Value) string {
	fields, err := v.Fields(cue.Optional(true))
	for err == nil && fields.Next() {
		if fields.Selector().ConstraintType() == cue.RequiredConstraint {
			return "{" + fields.Selector().Unquoted() + ": ...}"
		}
	}
	return ""
}

func alternativesWording(alternatives []cue.Value) string {
	var words []string
	for _, a := range alternatives {
		switch kind := a.IncompleteKind(); {
		case kind == cue.StructKind && a.Allows(cue.Str("secret")):
			return `a string, or {secret: "env:NAME"} or {secret: "file:PATH"}`
		case kind == cue.StructKind:
			if w := requiredWording(a); w != "" {
				words = append(words, w)
			}
		case kind == cue.ListKind:
			words = append(words, "a list of at least one string")
		default:
			words = append(words, wording(a))
		}
	}
	return strings.Join(words, " or ")
}

// names returns the fields of s, sorted.
func (s *shape) names() []string { return slices.Sorted(maps.Keys(s.fields)) }

// at returns the shape of the value at a path of field names and list indexes, or nil.
func (s *shape) at(path []string) *shape {
	for _, p := range path {
		if s == nil {
			return nil
		}
		i, err := strconv.Atoi(p)
		switch {
		case err == nil && i < len(s.items):
			s = s.items[i]
		case s.fields != nil && (err != nil || s.elem == nil):
			s = s.fields[p]
		default:
			s = s.elem
		}
	}
	return s
}

// unknown reports the fields in the syntax x that s doesn't have.
func (s *shape) unknown(x ast.Expr, path string, problems *problem.List) {
	if s == nil {
		return
	}
	switch x := x.(type) {
	case *ast.ParenExpr:
		s.unknown(x.X, path, problems)
	case *ast.BinaryExpr:
		if x.Op == token.AND {
			s.unknown(x.X, path, problems)
			s.unknown(x.Y, path, problems)
		}
	case *ast.ListLit:
		for i, e := range x.Elts {
			s.elem.unknown(e, fmt.Sprintf("%s.%d", path, i), problems)
		}
	case *ast.StructLit:
		for _, e := range x.Elts {
			f, name, ok := regular(e)
			if !ok {
				continue
			}
			below := join(path, name)
			switch {
			case s.fields == nil:
				s.elem.unknown(f.Value, below, problems)
			case s.fields[name] != nil:
				s.fields[name].unknown(f.Value, below, problems)
			default:
				problems.Errorf(problem.UnknownField, derive.Position(f.Label.Pos()), below, "%s", s.unknownField(name))
			}
		}
	}
}

// regular returns the field of a declaration and its name; ok is false unless it is a regular field with a
// literal name.
func regular(d ast.Decl) (f *ast.Field, name string, ok bool) {
	f, ok = d.(*ast.Field)
	if !ok {
		return nil, "", false
	}
	name, ident, err := ast.LabelName(f.Label)
	if err != nil || ident && (strings.HasPrefix(name, "_") || strings.HasPrefix(name, "#")) {
		return nil, "", false
	}
	return f, name, true
}

// nearest returns the known name that a misspelling most likely meant, or "".
func nearest(name string, known []string) string {
	best, distance := "", 1+max(1, min(3, len(name)/3))
	for _, k := range known {
		d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(k))
		if d < distance {
			best, distance = k, d
		}
	}
	return best
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// labelOf returns the label of a top-level declaration, in CUE syntax.
func labelOf(d ast.Decl) (string, bool) {
	f, ok := d.(*ast.Field)
	if !ok {
		return "", false
	}
	name, _, err := ast.LabelName(f.Label)
	return name, err == nil
}
