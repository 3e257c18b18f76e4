package dialect

import (
	"fmt"
	"regexp"
	"strings"
)

// writer is the state of one rewrite of one schema.
type writer struct {
	dialect Dialect
	defs    *object
	losses  []Loss
	refused []Refusal
	// inlining are the definitions that are being inlined, outermost first.
	inlining []string
	// counts of what strict mode limits
	properties, enumValues, characters int
	// written counts the schemas that were written.
	written int
}

func (w *writer) refuse(code Code, path, what string) {
	w.refused = append(w.refused, Refusal{code, path, what})
}

// wider records that the provider's schema accepts more than the contract.
func (w *writer) wider(path, keyword, format string, args ...any) {
	w.losses = append(w.losses, Loss{Path: path, Keyword: keyword, What: fmt.Sprintf(format, args...)})
}

// narrower records that the provider's schema accepts less.
func (w *writer) narrower(path, keyword, format string, args ...any) {
	w.losses = append(w.losses, Loss{Path: path, Keyword: keyword, Narrows: true, What: fmt.Sprintf(format, args...)})
}

func (w *writer) toolName(name string, valid *regexp.Regexp) {
	if !valid.MatchString(name) {
		w.refuse(BadToolName, "", fmt.Sprintf("the tool's name %q is not of the form %s", clip(name), valid))
	}
}

// parameterNames refuses argument names that the provider would refuse.
func (w *writer) parameterNames(schema *object, valid *regexp.Regexp) {
	for _, m := range child(schema, "properties").Members {
		if !valid.MatchString(m.Key) {
			w.refuse(BadParameterName, clip(m.Key), fmt.Sprintf("the name is not of the form %s", valid))
		}
	}
}

// saying adds to a description what a schema has lost, so that the model still reads it.
func saying(schema *object, notes []string) {
	if len(notes) == 0 {
		return
	}
	text := strings.Join(notes, " ")
	if d := schema.Text("description"); d != "" {
		text = d + "\n" + text
	}
	schema.Set("description", text)
}

// clip returns at most 100 bytes of s, cut between characters.
func clip(s string) string { return clipTo(s, 100) }

// short returns a value in the form that a description or a loss shows.
func short(v any) string { return clip(string(encode(v))) }

func clipTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := 0
	for i := range s {
		if i > most {
			break
		}
		end = i
	}
	return s[:end] + "…"
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// types returns the JSON types that a schema itself names.
func types(schema *object) (out []string) {
	v, _ := schema.Find("type")
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, t := range v {
			if s, ok := t.(string); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

// definition returns the definition that a $ref names.
func definition(defs *object, ref string) (name string, schema any, ok bool) {
	name, ok = strings.CutPrefix(ref, "#/$defs/")
	if !ok {
		return "", nil, false
	}
	name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
	schema, ok = defs.Find(name)
	return name, schema, ok
}

// subschemas are the keywords that hold one schema, a list of them, or schemas by name (JSON Schema 2020-12,
// core, section 10, and the older spellings that servers still send).
var (
	oneSchema    = map[string]bool{"items": true, "additionalProperties": true, "not": true, "if": true, "then": true, "else": true, "contains": true, "propertyNames": true, "unevaluatedProperties": true, "unevaluatedItems": true, "contentSchema": true}
	manySchemas  = map[string]bool{"anyOf": true, "allOf": true, "oneOf": true, "prefixItems": true}
	namedSchemas = map[string]bool{"properties": true, "patternProperties": true, "$defs": true, "definitions": true, "dependentSchemas": true}
)

// within applies f to each direct subschema and returns a copy of schema with the results.
func within(schema *object, f func(any) any) *object {
	out := schema.Clone()
	for i, m := range out.Members {
		switch v := m.Value.(type) {
		case []any:
			if !manySchemas[m.Key] {
				continue
			}
			list := make([]any, len(v))
			for j, item := range v {
				list[j] = f(item)
			}
			out.Members[i].Value = list
		case *object:
			switch {
			case namedSchemas[m.Key]:
				named := &object{}
				for _, n := range v.Members {
					named.Members = append(named.Members, member{Key: n.Key, Value: f(n.Value)})
				}
				out.Members[i].Value = named
			case oneSchema[m.Key]:
				out.Members[i].Value = f(v)
			}
		case bool:
			if oneSchema[m.Key] {
				out.Members[i].Value = f(v)
			}
		}
	}
	return out
}

// visit visits a schema and every schema below it.
func visit(v any, f func(*object)) {
	schema, ok := v.(*object)
	if !ok {
		return
	}
	f(schema)
	within(schema, func(v any) any { visit(v, f); return v })
}
