package dialect

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// Arguments converts the arguments that a model wrote for a tool in this dialect to those of the contract: it
// removes what only the dialect requires. That is null in openai-strict, where every argument must be given:
// null for an argument that is optional in the contract and does not accept null means that the argument is
// omitted, at every depth. All other bytes stay unchanged, digits, escapes and duplicate keys included, so
// that the check sees what was received. input is the contract's own schema.
//
// Within alternatives, those decide that the value can be meant for: their constants match and their required
// keys are present. If they differ on whether null is a value, it is one.
func (d Dialect) Arguments(input, arguments json.RawMessage) json.RawMessage {
	if d != OpenAIStrict || !bytes.Contains(arguments, []byte("null")) {
		return arguments
	}
	schema, err := read(input)
	if err != nil {
		return arguments // no contract has such a schema
	}
	value, err := strictjson.Decode(arguments, strictjson.Options{MaxDepth: maxArguments, AllowDuplicates: true, AllowUnpaired: true})
	if err != nil {
		return arguments // the check reports what is wrong with it
	}
	w := &writer{dialect: d, defs: child(schema, "$defs")}
	if w.strict(schema); w.refused != nil { // the tool was offered without strict
		return arguments
	}
	r := reader{defs: w.defs}
	r.read(value, []any{schema})
	if r.cuts == nil {
		return arguments
	}
	var out []byte
	at := 0
	for _, c := range r.cuts {
		out, at = append(out, arguments[at:c.begin]...), c.end
	}
	return append(out, arguments[at:]...)
}

// maxArguments caps the nesting of arguments: the check refuses deeper ones.
const maxArguments = 64

type reader struct {
	defs *object
	// cuts are what is removed from the arguments, in order and apart.
	cuts []span
}

// span is the part of the arguments from one offset to another.
type span struct{ begin, end int }

// read cuts the nulls that mean an omitted argument from v and below it. schemas are those that v may be
// meant for.
func (r *reader) read(v any, schemas []any) {
	if scalar(v) {
		return
	}
	var all, meant []*object
	for _, s := range schemas {
		e := expander{defs: r.defs}
		for _, a := range e.resolved(e.expand(s, 0), 0) {
			all = append(all, declaring(a.object))
		}
	}
	for _, s := range all {
		if r.fits(v, s) {
			meant = append(meant, s)
		}
	}
	if meant == nil {
		meant = all
	}
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			r.read(item, items(meant, i))
		}
	case *object:
		kept := 0
		for i, m := range v.Members {
			switch {
			case m.Value != nil || !r.absent(m.Key, meant, all):
				r.read(m.Value, members(meant, m.Key))
				kept++
			case kept > 0: // with the comma before it
				r.cuts = append(r.cuts, span{v.Members[i-1].End, m.End})
			case i+1 < len(v.Members): // with the comma after it
				r.cuts = append(r.cuts, span{m.KeyAt, v.Members[i+1].KeyAt})
			default:
				r.cuts = append(r.cuts, span{m.KeyAt, m.End})
			}
		}
	}
}

// absent reports whether null for the property means that it is omitted: one of all declares it, and of meant
// none that declares it accepts null, and not all of them require it.
func (r *reader) absent(name string, meant, all []*object) bool {
	declares := func(s *object) bool {
		return child(s, "properties").Has(name) || slices.Contains(s.List("required"), any(name))
	}
	if !slices.ContainsFunc(all, declares) {
		return false
	}
	needed := true
	for _, s := range meant {
		if declares(s) && accepts(r.defs, at(s, name), 0) {
			return false
		}
		needed = needed && slices.Contains(s.List("required"), any(name))
	}
	return !needed
}

func members(meant []*object, name string) (out []any) {
	for _, s := range meant {
		if p := at(s, name); isObject(p) {
			out = append(out, p)
		}
	}
	return out
}

func isObject(v any) bool { _, ok := v.(*object); return ok }

func items(meant []*object, i int) (out []any) {
	for _, s := range meant {
		item, _ := s.Find("items")
		if prefix := s.List("prefixItems"); i < len(prefix) {
			item = prefix[i]
		}
		if isObject(item) {
			out = append(out, item)
		}
	}
	return out
}

// fits reports whether v can be meant for a schema, by its type, the constants among its properties, its
// required keys and its unknown keys. Null counts as missing where it is not a value.
func (r *reader) fits(v any, schema *object) bool {
	ts := types(schema)
	o, ok := v.(*object)
	if !ok {
		return len(ts) == 0 || slices.Contains(ts, "array")
	}
	if len(ts) > 0 && !slices.Contains(ts, "object") {
		return false
	}
	given := map[string]bool{}
	for _, m := range o.Members {
		p := at(schema, m.Key)
		if m.Value == nil && !accepts(r.defs, p, 0) {
			continue
		}
		if p == false {
			return false
		}
		given[m.Key] = true
		property, ok := p.(*object)
		if !ok || !scalar(m.Value) {
			continue
		}
		if values, ok := literals(property); ok && !slices.ContainsFunc(values, func(w any) bool { return equal(m.Value, w) }) {
			return false
		}
	}
	return !slices.ContainsFunc(schema.List("required"), func(name any) bool { n, ok := name.(string); return ok && !given[n] })
}

// accepts reports whether a schema accepts null.
func accepts(defs *object, schema any, depth int) bool {
	s, ok := schema.(*object)
	if !ok {
		return schema == true
	}
	if depth > maxReferences {
		return true // a reference to itself alone restricts nothing
	}
	if ref := s.Text("$ref"); ref != "" {
		_, target, ok := definition(defs, ref)
		return ok && accepts(defs, target, depth+1)
	}
	if values, ok := literals(s); ok && !slices.Contains(values, any(nil)) {
		return false
	}
	if ts := types(s); len(ts) > 0 && !slices.Contains(ts, "null") {
		return false
	}
	for _, part := range s.List("allOf") {
		if !accepts(defs, part, depth+1) {
			return false
		}
	}
	if choices := append(slices.Clone(s.List("anyOf")), s.List("oneOf")...); len(choices) > 0 {
		return slices.ContainsFunc(choices, func(c any) bool { return accepts(defs, c, depth+1) })
	}
	if not, ok := s.Find("not"); ok {
		return !accepts(defs, not, depth+1)
	}
	return true
}
