package dialect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// geminiKept are the keywords of Gemini's Schema that mean there what they mean in JSON Schema, beside those that are
// rewritten one by one.
var geminiKept = []string{"title", "default", "pattern", "minimum", "maximum"}

// geminiCounts are kept too: Google writes 64-bit integers as strings in JSON.
var geminiCounts = []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}

// gemini is the schema in Gemini's subset of OpenAPI 3.0.3: references inlined, one type each, string enums. The format
// lists the parameters that exist, so that a closed struct loses nothing by the lack of additionalProperties.
func (w *writer) gemini(schema *object) *object {
	w.parameterNames(schema, geminiParameter)
	top := schema.clone()
	top.remove("$defs")
	if len(top.object("properties").members) == 0 { // parameters are left unset
		if free(top) {
			w.narrower("", "additionalProperties", "keys that are not declared can't be given")
		}
		return top
	}
	out, ok := w.geminiSchema(top, "")
	if !ok && w.refused == nil {
		w.refuse(Unrepresentable, "", "Gemini has no schema for these arguments")
	}
	return out
}

// geminiSchema rewrites one schema. It is false where nothing of it can be said.
func (w *writer) geminiSchema(v any, path string) (*object, bool) {
	schema, ok := v.(*object)
	if v == true {
		schema, ok = &object{}, true
	}
	if !ok {
		return nil, false
	}
	schema = w.merged(schema)
	if ref := schema.text("$ref"); ref != "" {
		return w.geminiRef(schema, ref, path)
	}
	if values, ok := literals(schema); ok {
		return w.geminiLiterals(schema, values, path)
	}
	schema, choices := w.choices(schema, path)
	if len(choices) > 0 {
		return w.geminiChoice(schema, choices, path)
	}
	switch ts := types(schema); len(ts) {
	case 0:
		w.narrower(path, "type", "Gemini needs a type: lists and objects can't be given here")
		return w.geminiTypes(schema, []string{"string", "number", "boolean", "null"}, path)
	case 1:
		return w.geminiTyped(schema, ts[0], path)
	default:
		return w.geminiTypes(schema, ts, path)
	}
}

// geminiRef writes a definition out where it is used.
func (w *writer) geminiRef(schema *object, ref, path string) (*object, bool) {
	name, target, ok := w.definition(ref)
	if !ok {
		w.refuse(BadSchema, path, "the schema refers to nothing of its own: "+short(ref))
		return nil, false
	}
	if slices.Contains(w.inlining, name) {
		w.refuse(Recursion, path, fmt.Sprintf("%s refers to itself (%s), and Gemini's schemas have no references", name, strings.Join(append(w.inlining, name), " > ")))
		return nil, false
	}
	w.inlining = append(w.inlining, name)
	defer func() { w.inlining = w.inlining[:len(w.inlining)-1] }()
	if o, ok := target.(*object); ok {
		target = w.beside(schema, o, path)
	}
	return w.geminiSchema(target, path)
}

// beside joins what stands beside a $ref with what it refers to.
func (w *writer) beside(schema, target *object, path string) *object {
	out := target.clone()
	w.besideRef(schema, path)
	for _, m := range schema.members {
		switch {
		case slices.Contains(structural, m.key):
		case m.key == "description" || m.key == "default" || m.key == "title" || !out.has(m.key):
			out.set(m.key, m.value)
		case !same(out, m):
			w.wider(path, m.key, "%s: %s, beside a reference that says it too", m.key, short(m.value))
		}
	}
	return out
}

// geminiTypes says several types: null by nullable, others as alternatives.
func (w *writer) geminiTypes(schema *object, ts []string, path string) (*object, bool) {
	var choices []any
	for _, t := range ts {
		one := schema.clone()
		one.remove("type", "description", "title", "default")
		one.set("type", t)
		for _, m := range schema.members { // what holds for other types alone says nothing here
			if of, ok := typed[m.key]; ok && !slices.Contains(of, t) {
				one.remove(m.key)
			}
		}
		choices = append(choices, one)
	}
	rest := &object{}
	for _, key := range []string{"description", "title", "default"} {
		if v, ok := schema.get(key); ok {
			rest.set(key, v)
		}
	}
	return w.geminiChoice(rest, choices, path)
}

// typed are the keywords that hold for values of some types alone.
var typed = map[string][]string{
	"pattern": {"string"}, "format": {"string"}, "minLength": {"string"}, "maxLength": {"string"},
	"minimum": {"integer", "number"}, "maximum": {"integer", "number"}, "exclusiveMinimum": {"integer", "number"}, "exclusiveMaximum": {"integer", "number"}, "multipleOf": {"integer", "number"},
	"items": {"array"}, "prefixItems": {"array"}, "minItems": {"array"}, "maxItems": {"array"}, "uniqueItems": {"array"},
	"properties": {"object"}, "required": {"object"}, "additionalProperties": {"object"}, "patternProperties": {"object"}, "minProperties": {"object"}, "maxProperties": {"object"},
}

// geminiChoice says alternatives. Beside anyOf nothing else may be set, so that the description goes into each of them.
func (w *writer) geminiChoice(schema *object, choices []any, path string) (*object, bool) {
	var said []any
	nullable := false
	for i, choice := range choices {
		if isNull(choice) {
			nullable = true
			continue
		}
		if c, ok := w.geminiSchema(choice, path); ok {
			said = append(said, c)
		} else if w.refused == nil {
			w.narrower(path, "anyOf", "alternative %d of %d can't be said to Gemini", i+1, len(choices))
		}
	}
	if said == nil {
		return nil, false
	}
	if schema.has("oneOf") {
		w.wider(path, "oneOf", "that exactly one alternative fits")
	}
	around := &object{}
	if d := schema.text("description"); d != "" {
		around.set("description", d)
	}
	if d, ok := schema.get("default"); ok && len(said) == 1 {
		around.set("default", d)
	}
	rest := schema.clone()
	rest.remove("oneOf")
	w.lost(rest, around, path)
	for _, c := range said {
		c := c.(*object)
		if nullable {
			c.set("nullable", true)
		}
		if d := around.text("description"); d != "" {
			if own := c.text("description"); own != "" {
				d += "\n" + own
			}
			c.set("description", d)
		}
	}
	if len(said) > 1 {
		return obj("anyOf", said), true
	}
	one := said[0].(*object)
	if d, ok := around.get("default"); ok {
		one.set("default", d)
	}
	return one, true
}

func isNull(v any) bool {
	o, ok := v.(*object)
	if !ok {
		return false
	}
	if ts := types(o); len(ts) == 1 && ts[0] == "null" {
		return true
	}
	values, ok := literals(o)
	return ok && len(values) == 1 && values[0] == nil
}

// geminiLiterals says enum and const, which only strings have: whole numbers become bounds.
func (w *writer) geminiLiterals(schema *object, values []any, path string) (*object, bool) {
	kept := slices.DeleteFunc(slices.Clone(values), func(v any) bool { return v == nil })
	if len(kept) == 0 {
		return nil, false
	}
	out := &object{}
	switch kind, all := kindOf(kept); {
	case kind == "":
		return nil, false
	case !all:
		return w.geminiMixed(schema, values, path)
	case kind == "string":
		for _, v := range kept {
			if v == "" { // "enum[0]: cannot be empty"
				w.narrower(path, "enum", `the value ""`)
			}
		}
		kept = slices.DeleteFunc(kept, func(v any) bool { return v == "" })
		if len(kept) == 0 {
			return nil, false
		}
		out = obj("type", "STRING", "format", "enum", "enum", kept)
	case kind == "boolean":
		out.set("type", "BOOLEAN")
		if len(kept) == 1 {
			w.wider(path, "const", "const: %s", short(kept[0]))
		}
	default:
		w.geminiNumbers(out, kept, path)
	}
	if d := schema.text("description"); d != "" {
		out.set("description", d)
	}
	if out.text("type") != "STRING" && (len(kept) > 1 || out.text("type") == "BOOLEAN") {
		saying(out, []string{"One of: " + short(kept) + "."})
	}
	if len(kept) < len(values) && slices.Contains(values, any(nil)) {
		out.set("nullable", true)
	}
	if d, ok := schema.get("default"); ok {
		out.set("default", d)
	}
	rest := schema.clone()
	rest.remove("enum", "const", "minimum", "maximum", "minLength", "maxLength", "pattern", "anyOf")
	w.lost(rest, out, path)
	return out, true
}

// geminiMixed says values of several kinds as one alternative a kind.
func (w *writer) geminiMixed(schema *object, values []any, path string) (*object, bool) {
	var choices []any
	kinds := map[string]*object{}
	for _, v := range values {
		kind, _ := kindOf([]any{v})
		if kind == "integer" {
			kind = "number"
		}
		if kinds[kind] == nil {
			kinds[kind] = &object{}
			choices = append(choices, kinds[kind])
		}
		kinds[kind].set("enum", append(kinds[kind].list("enum"), v))
	}
	rest := schema.clone()
	rest.remove("enum", "type")
	return w.geminiChoice(rest, choices, path)
}

// kindOf is the kind of all the values, number for integers among numbers; false where they differ. It is empty for what
// is no scalar.
func kindOf(values []any) (kind string, all bool) {
	all = true
	for i, v := range values {
		k := ""
		switch v := v.(type) {
		case nil:
			k = "null"
		case string:
			k = "string"
		case bool:
			k = "boolean"
		case json.Number:
			k = "number"
			if whole.MatchString(string(v)) {
				k = "integer"
			}
		}
		switch {
		case k == "":
			return "", false
		case i == 0 || k == "number" && kind == "integer":
			kind = k
		case k != kind && (k != "integer" || kind != "number"):
			all = false
		}
	}
	return kind, all
}

// geminiNumbers says numbers by their bounds, which is exact for a single one and for an unbroken run of integers.
func (w *writer) geminiNumbers(out *object, values []any, path string) {
	kind, _ := kindOf(values)
	out.set("type", strings.ToUpper(kind))
	ordered := slices.Clone(values)
	slices.SortFunc(ordered, func(a, b any) int { return compare(a.(json.Number), b.(json.Number)) })
	low, high := ordered[0], ordered[len(ordered)-1]
	out.set("minimum", low)
	out.set("maximum", high)
	from, ok := number(low)
	to, also := number(high)
	if run := kind == "integer" && ok && also && to-from == int64(len(values)-1); !run && len(values) > 1 {
		w.wider(path, "enum", "enum: %s", short(values))
	}
}

func compare(a, b json.Number) int {
	x, errX := strconv.ParseFloat(string(a), 64)
	y, errY := strconv.ParseFloat(string(b), 64)
	switch {
	case errX != nil || errY != nil:
		return strings.Compare(string(a), string(b))
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func (w *writer) geminiTyped(schema *object, t, path string) (*object, bool) {
	if t == "null" {
		return nil, false
	}
	out := obj("type", strings.ToUpper(t))
	if d := schema.text("description"); d != "" {
		out.set("description", d)
	}
	for _, m := range schema.members {
		switch {
		case slices.Contains(geminiKept, m.key):
			out.set(m.key, m.value)
		case slices.Contains(geminiCounts, m.key):
			out.set(m.key, string(encode(m.value)))
		}
	}
	if schema.text("format") == "date-time" { // of the formats of strings, the Gemini API takes this one and enum
		out.set("format", "date-time")
	}
	if t == "integer" {
		inclusive(schema, out)
	}
	switch t {
	case "array":
		if !w.geminiArray(schema, out, path) {
			return nil, false
		}
	case "object":
		if !w.geminiObject(schema, out, path) {
			return nil, false
		}
	}
	rest := schema.clone()
	for _, bound := range []string{"exclusiveMinimum", "exclusiveMaximum"} {
		if _, ok := schema.get(bound); ok && t == "integer" && out.has(inclusiveOf[bound]) {
			rest.remove(bound)
		}
	}
	w.lost(rest, out, path)
	return out, true
}

var inclusiveOf = map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}

// inclusive says an exclusive bound of integers as the next integer.
func inclusive(schema, out *object) {
	for i, bound := range []string{"exclusiveMinimum", "exclusiveMaximum"} {
		step := int64(1 - 2*i)
		v, ok := schema.get(bound)
		n, isInt := number(v)
		next := n + step
		if !ok || !isInt || (next > n) != (step > 0) {
			continue
		}
		if old, ok := number(first(out.get(inclusiveOf[bound]))); ok && (old > next) == (step > 0) {
			continue // the other bound is the tighter one
		}
		out.set(inclusiveOf[bound], json.Number(strconv.FormatInt(next, 10)))
	}
}

func first(v any, _ bool) any { return v }

func (w *writer) geminiArray(schema, out *object, path string) bool {
	items, ok := schema.get("items")
	prefix := schema.list("prefixItems")
	switch {
	case len(prefix) > 0:
		choices := slices.Clone(prefix)
		if ok && items != false {
			choices = append(choices, items)
		} else if items == false {
			out.set("maxItems", strconv.Itoa(len(prefix)))
		}
		items = obj("anyOf", distinct(choices))
		w.wider(path, "prefixItems", "which item stands at which place")
	case !ok:
		items = true
	}
	said, sayable := w.geminiSchema(items, path+"[]")
	if sayable {
		out.set("items", said)
	}
	return sayable
}

func (w *writer) geminiObject(schema, out *object, path string) bool {
	properties := schema.object("properties")
	if len(properties.members) == 0 {
		return false // "properties: should be non-empty for OBJECT type"
	}
	if free(schema) {
		w.narrower(path, "additionalProperties", "keys that are not declared can't be given")
	}
	required := schema.list("required")
	said, names := &object{}, []any{}
	for _, p := range properties.members {
		here := below(path, p.key)
		needed := slices.Contains(required, any(p.key))
		before := len(w.refused)
		property, ok := w.geminiSchema(p.value, here)
		switch {
		case !ok && len(w.refused) > before:
			continue
		case !ok && needed:
			w.refuse(Unrepresentable, here, "Gemini has no schema for this (a struct without fields, a map, or values of several kinds), and the argument is required")
			continue
		case !ok:
			w.narrower(here, "properties", "Gemini has no schema for this: the argument is left out and can't be given")
			continue
		case needed:
			names = append(names, p.key)
		}
		said.set(p.key, property)
	}
	if len(said.members) == 0 {
		return false
	}
	out.set("properties", said)
	if len(names) > 0 {
		out.set("required", names)
	}
	return true
}
