package dialect

import (
	"bytes"
	"encoding/json"
	"slices"
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
	value, err := parseRaw(arguments)
	if err != nil {
		return arguments // the check reports what is wrong with it
	}
	w := &writer{dialect: d, defs: schema.object("$defs")}
	if w.strict(schema); w.refused != nil { // the tool was offered without strict
		return arguments
	}
	r := reader{defs: w.defs}
	if !r.read(value, []any{schema}) {
		return arguments
	}
	var b bytes.Buffer
	value.write(&b)
	return b.Bytes()
}

type reader struct{ defs *object }

// read removes the nulls that mean an omitted argument from v and below it, and reports whether there were
// any. schemas are those that v may be meant for.
func (r reader) read(v *raw, schemas []any) (changed bool) {
	if v.kind == 0 {
		return false
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
	switch v.kind {
	case '[':
		for i, item := range v.values {
			changed = r.read(item, items(meant, i)) || changed
		}
	case '{':
		kept, keys := v.values[:0:0], v.keys[:0:0]
		names := v.names[:0:0]
		for i, value := range v.values {
			if value.null() && r.absent(v.names[i], meant, all) {
				changed = true
				continue
			}
			changed = r.read(value, members(meant, v.names[i])) || changed
			kept, keys, names = append(kept, value), append(keys, v.keys[i]), append(names, v.names[i])
		}
		v.values, v.keys, v.names = kept, keys, names
	}
	return changed
}

// absent reports whether null for the property means that it is omitted: one of all declares it, and of meant
// none that declares it accepts null, and not all of them require it.
func (r reader) absent(name string, meant, all []*object) bool {
	declares := func(s *object) bool {
		return s.object("properties").has(name) || slices.Contains(s.list("required"), any(name))
	}
	if !slices.ContainsFunc(all, declares) {
		return false
	}
	needed := true
	for _, s := range meant {
		if declares(s) && accepts(r.defs, at(s, name), 0) {
			return false
		}
		needed = needed && slices.Contains(s.list("required"), any(name))
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
		item, _ := s.get("items")
		if prefix := s.list("prefixItems"); i < len(prefix) {
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
func (r reader) fits(v *raw, schema *object) bool {
	ts := types(schema)
	if v.kind == '[' {
		return len(ts) == 0 || slices.Contains(ts, "array")
	}
	if len(ts) > 0 && !slices.Contains(ts, "object") {
		return false
	}
	given := map[string]bool{}
	for i, name := range v.names {
		p := at(schema, name)
		if v.values[i].null() && !accepts(r.defs, p, 0) {
			continue
		}
		if p == false {
			return false
		}
		given[name] = true
		property, ok := p.(*object)
		if !ok || v.values[i].kind != 0 {
			continue
		}
		if values, ok := literals(property); ok && !among(v.values[i].text, values) {
			return false
		}
	}
	return !slices.ContainsFunc(schema.list("required"), func(name any) bool { n, ok := name.(string); return ok && !given[n] })
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
	if ref := s.text("$ref"); ref != "" {
		_, target, ok := definition(defs, ref)
		return ok && accepts(defs, target, depth+1)
	}
	if values, ok := literals(s); ok && !slices.Contains(values, any(nil)) {
		return false
	}
	if ts := types(s); len(ts) > 0 && !slices.Contains(ts, "null") {
		return false
	}
	for _, part := range s.list("allOf") {
		if !accepts(defs, part, depth+1) {
			return false
		}
	}
	if choices := append(slices.Clone(s.list("anyOf")), s.list("oneOf")...); len(choices) > 0 {
		return slices.ContainsFunc(choices, func(c any) bool { return accepts(defs, c, depth+1) })
	}
	if not, ok := s.get("not"); ok {
		return !accepts(defs, not, depth+1)
	}
	return true
}
