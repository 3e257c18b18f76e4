package dialect

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// silent are keywords whose loss changes neither what is accepted nor what the model has to know.
var silent = []string{"$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "title", "readOnly", "writeOnly", "type", "required", "properties"}

// lost compares a rewritten schema with its original: each keyword that is gone is a loss, and what a line can say of it
// is added to the description, so that the model still reads it.
func (w *writer) lost(original, said *object, path string) {
	var notes []string
	for _, m := range original.members {
		if said.has(m.key) && (m.key != "format" || same(said, m)) || slices.Contains(silent, m.key) {
			continue
		}
		switch m.key {
		case "description", "items", "prefixItems", "anyOf", "oneOf", "const", "enum", "additionalProperties", "patternProperties":
			// Said in another way, or told where it was given up.
		case "default":
			notes = append(notes, "Default: "+short(m.value)+".")
		case "then", "else":
			if !original.has("if") { // else it is told with it
				w.wider(path, m.key, "%s: %s", m.key, short(m.value))
			}
		case "if":
			w.wider(path, "if", "%s", conditional(original))
		case "examples", "deprecated":
			notes = append(notes, fmt.Sprintf("%s: %s.", words[m.key], short(m.value)))
		default:
			w.wider(path, m.key, "%s: %s", m.key, short(m.value))
			if scalar(m.value) {
				notes = append(notes, fmt.Sprintf("%s: %s.", m.key, short(m.value)))
			}
		}
	}
	saying(said, notes)
}

// conditional is an if with its then and else.
func conditional(schema *object) string {
	text := ""
	for _, key := range []string{"if", "then", "else"} {
		if v, ok := schema.get(key); ok {
			text += " " + key + " " + short(v)
		}
	}
	return text[1:]
}

var words = map[string]string{"examples": "Examples", "deprecated": "Deprecated"}

func scalar(v any) bool {
	switch v.(type) {
	case *object, []any:
		return false
	}
	return true
}

var whole = regexp.MustCompile(`^-?[0-9]+$`)

// structural are keywords whose meaning depends on what stands beside them, so that none is moved.
var structural = []string{
	"$ref", "$defs", "properties", "required", "patternProperties", "additionalProperties", "items", "prefixItems", "contains",
	"minContains", "maxContains", "unevaluatedProperties", "unevaluatedItems",
}

// merged takes the parts of an allOf into the schema around it, where each part says what nothing else there does, and says
// it alone. A dialect without allOf then loses only what is left.
func (w *writer) merged(schema *object) *object {
	parts := schema.list("allOf")
	if len(parts) == 0 {
		return schema
	}
	out := schema.clone()
	var rest []any
	for _, part := range parts {
		p, ok := part.(*object)
		if !ok || !joins(p, out) {
			rest = append(rest, part)
			continue
		}
		for _, m := range p.members {
			out.set(m.key, m.value)
		}
	}
	out.remove("allOf")
	if rest != nil {
		out.set("allOf", rest)
	}
	return out
}

// joins reports whether a part can be taken into a schema without changing what the two mean.
func joins(part, schema *object) bool {
	conditions := func(o *object) bool { return o.has("if") || o.has("then") || o.has("else") }
	if conditions(part) && conditions(schema) {
		return false
	}
	return !slices.ContainsFunc(part.members, func(m member) bool {
		return slices.Contains(structural, m.key) || schema.has(m.key) && !same(schema, m)
	})
}

// choices are the alternatives of a schema, each with the type that is said around them. Where fields or items stand beside
// them, the two would have to be multiplied out: the alternatives are then lost, and the rest is kept without them.
func (w *writer) choices(schema *object, path string) (rest *object, choices []any) {
	rest = schema
	for _, key := range []string{"anyOf", "oneOf"} {
		list := schema.list(key)
		if len(list) == 0 {
			continue
		}
		if schema.has("properties") || schema.has("items") || schema.has("prefixItems") || choices != nil {
			w.wider(path, key, "%s: %s", key, short(list))
			if rest == schema {
				rest = schema.clone()
			}
			rest.remove(key)
			continue
		}
		choices = list
	}
	t, ok := schema.get("type")
	if !ok {
		return rest, choices
	}
	choices = slices.Clone(choices)
	for i, c := range choices {
		if o, ok := c.(*object); ok && !o.has("type") && !o.has("$ref") && !o.has("enum") && !o.has("const") && !o.has("anyOf") && !o.has("oneOf") {
			o = o.clone()
			o.set("type", t)
			choices[i] = o
		}
	}
	return rest, choices
}

// besideRef notes the fields and items that stand beside a reference: the reference alone is said.
func (w *writer) besideRef(schema *object, path string) {
	for _, m := range schema.members {
		if m.key != "$ref" && m.key != "$defs" && slices.Contains(structural, m.key) {
			w.wider(path, m.key, "%s beside a reference: %s", m.key, short(m.value))
		}
	}
}

func same(o *object, m member) bool {
	v, _ := o.get(m.key)
	return string(encode(v)) == string(encode(m.value))
}

// number is n as an int64, where it is a whole number of that size.
func number(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil
}
