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

var words = map[string]string{"examples": "Examples", "deprecated": "Deprecated"}

func scalar(v any) bool {
	switch v.(type) {
	case *object, []any:
		return false
	}
	return true
}

var whole = regexp.MustCompile(`^-?[0-9]+$`)

// merged takes the parts of an allOf into the schema around it, where each part says what nothing else there does. A
// dialect without allOf then loses only what is left.
func (w *writer) merged(schema *object) *object {
	parts := schema.list("allOf")
	if len(parts) == 0 {
		return schema
	}
	out := schema.clone()
	var rest []any
	for _, part := range parts {
		p, ok := part.(*object)
		if !ok || slices.ContainsFunc(p.members, func(m member) bool { return out.has(m.key) && !same(out, m) }) {
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
