package dialect

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Arguments reads the arguments of a call that a model made by a tool in this dialect: it takes out what only the dialect
// says. That is null in openai-strict, where every argument must be given: null for an argument that is optional in the
// contract and does not take null itself is the argument left out, at every depth. All other bytes stay as they are,
// digits, escapes and duplicate keys included, so that the check sees what came. input is the contract's own schema.
//
// In alternatives the ones that the value is meant by decide: those whose constants fit, and whose required keys are
// there. Where they differ on whether null is a value, it is one.
func (d Dialect) Arguments(input, arguments json.RawMessage) json.RawMessage {
	if d != OpenAIStrict || !bytes.Contains(arguments, []byte("null")) {
		return arguments
	}
	v, err := parse(input)
	schema, ok := v.(*object)
	if err != nil || !ok {
		return arguments // no contract has such a schema
	}
	value, err := parseRaw(arguments)
	if err != nil {
		return arguments // the check says what is wrong with it
	}
	r := reader{defs: schema.object("$defs")}
	if !r.read(value, []*object{schema}) {
		return arguments
	}
	var b bytes.Buffer
	value.write(&b)
	return b.Bytes()
}

type reader struct{ defs *object }

// read takes out the nulls that say nothing from v and what is below it, and reports whether there were any. schemas are
// those that v may be meant by.
func (r reader) read(v *raw, schemas []*object) (changed bool) {
	meant := r.meant(v, schemas)
	switch v.kind {
	case '[':
		for i, item := range v.values {
			changed = r.read(item, r.items(meant, i)) || changed
		}
	case '{':
		kept, keys := v.values[:0:0], v.keys[:0:0]
		names := v.names[:0:0]
		for i, value := range v.values {
			if value.null() && r.absent(v.names[i], meant) {
				changed = true
				continue
			}
			changed = r.read(value, r.members(meant, v.names[i])) || changed
			kept, keys, names = append(kept, value), append(keys, v.keys[i]), append(names, v.names[i])
		}
		v.values, v.keys, v.names = kept, keys, names
	}
	return changed
}

// absent reports whether null for the property says that it is left out: all that declare it have it as optional, and
// none takes null.
func (r reader) absent(name string, meant []*object) bool {
	declared := false
	for _, s := range meant {
		property, ok := s.object("properties").get(name)
		if !ok {
			continue
		}
		declared = true
		if slices.Contains(s.list("required"), any(name)) || accepts(r.defs, property, 0) {
			return false
		}
	}
	return declared
}

func (r reader) members(meant []*object, name string) (out []*object) {
	for _, s := range meant {
		if property, ok := s.object("properties").get(name); ok {
			if o, ok := property.(*object); ok {
				out = append(out, o)
			}
		} else if o := s.object("additionalProperties"); len(o.members) > 0 {
			out = append(out, o)
		}
	}
	return out
}

func (r reader) items(meant []*object, i int) (out []*object) {
	for _, s := range meant {
		item, _ := s.get("items")
		if prefix := s.list("prefixItems"); i < len(prefix) {
			item = prefix[i]
		}
		if o, ok := item.(*object); ok {
			out = append(out, o)
		}
	}
	return out
}

// meant are the schemas without references and alternatives that v may be meant by: the ones that it fits, or all of them
// where it fits none.
func (r reader) meant(v *raw, schemas []*object) []*object {
	var all, fitting []*object
	for _, s := range schemas {
		all = append(all, r.expand(s, 0)...)
	}
	for _, s := range all {
		if v.fits(s) {
			fitting = append(fitting, s)
		}
	}
	if fitting == nil {
		return all
	}
	return fitting
}

// expand is a schema with its references followed and its alternatives side by side.
func (r reader) expand(s *object, depth int) (out []*object) {
	if depth > maxReferences {
		return nil
	}
	if _, target, ok := (&writer{defs: r.defs}).definition(s.text("$ref")); ok {
		if o, ok := target.(*object); ok {
			return r.expand(o, depth+1)
		}
		return nil
	}
	choices := append(slices.Clone(s.list("anyOf")), s.list("oneOf")...)
	for _, c := range choices {
		if o, ok := c.(*object); ok {
			out = append(out, r.expand(o, depth+1)...)
		}
	}
	if s.has("properties") || s.has("items") || s.has("prefixItems") || len(choices) == 0 {
		out = append(out, s)
	}
	return out
}

// maxReferences bounds how many references and alternatives lead from a schema to what it means.
const maxReferences = 64

// accepts reports whether a schema takes null.
func accepts(defs *object, schema any, depth int) bool {
	s, ok := schema.(*object)
	if !ok {
		return schema == true
	}
	if depth > maxReferences {
		return true // a reference to itself alone says nothing
	}
	if ref := s.text("$ref"); ref != "" {
		_, target, ok := (&writer{defs: defs}).definition(ref)
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
