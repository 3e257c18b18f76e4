package dialect

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// silent are keywords whose loss affects neither what is accepted nor what the model must know.
var silent = []string{"$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "title", "readOnly", "writeOnly", "x-mcp-header", "type", "required", "properties"}

// lost compares a rewritten schema with its original: each dropped keyword is recorded as a loss, and a
// one-line description of it is added to the description, so that the model still reads it.
func (w *writer) lost(original, said *object, path string) {
	var notes []string
	for _, m := range original.Members {
		if said.Has(m.Key) && (m.Key != "format" || same(said, m)) || slices.Contains(silent, m.Key) {
			continue
		}
		switch m.Key {
		case "description", "items", "prefixItems", "anyOf", "oneOf", "const", "enum", "additionalProperties", "patternProperties":
			// Expressed in another way, or recorded where it was dropped.
		case "allOf": // what no keyword can express
			for _, part := range original.List("allOf") {
				if p, ok := part.(*object); ok {
					for _, m := range p.Members {
						notes = append(notes, w.gone(p, m, path)...)
					}
				}
			}
		case "default":
			notes = append(notes, "Default: "+short(m.Value)+".")
		case "examples", "deprecated":
			notes = append(notes, fmt.Sprintf("%s: %s.", words[m.Key], short(m.Value)))
		default:
			notes = append(notes, w.gone(original, m, path)...)
		}
	}
	saying(said, notes)
}

// gone records the loss of a keyword, and returns what a description can say about it.
func (w *writer) gone(schema *object, m member, path string) []string {
	switch m.Key {
	case "then", "else": // described with the if, and without one they mean nothing
	case "if":
		w.wider(path, "if", "%s", conditional(schema))
	default:
		w.wider(path, m.Key, "%s: %s", m.Key, short(m.Value))
		if scalar(m.Value) {
			return []string{fmt.Sprintf("%s: %s.", m.Key, short(m.Value))}
		}
	}
	return nil
}

// conditional returns an if with its then and else.
func conditional(schema *object) string {
	text := ""
	for _, key := range []string{"if", "then", "else"} {
		if v, ok := schema.Find(key); ok {
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

// besideRef records the loss of the siblings of a reference that can't be inlined: only the reference is
// written.
func (w *writer) besideRef(schema *object, path string) {
	for _, m := range schema.Members {
		if m.Key != "$ref" {
			w.wider(path, m.Key, "%s beside a reference: %s", m.Key, short(m.Value))
		}
	}
}

func same(o *object, m member) bool {
	v, _ := o.Find(m.Key)
	return string(encode(v)) == string(encode(m.Value))
}

// number returns v as an int64; ok is false unless it is an integer in that range.
func number(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil
}
