package dialect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// geminiKept are the keywords of Gemini's Schema with the same meaning as in JSON Schema, in addition to
// those that are rewritten one by one.
var geminiKept = []string{"title", "default", "pattern", "minimum", "maximum"}

// geminiCounts are kept too: Google writes 64-bit integers as strings in JSON.
var geminiCounts = []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}

// gemini returns the schema in Gemini's subset of OpenAPI 3.0.3: references inlined, one type each, string
// enums. The format lists the existing parameters, so a closed struct loses nothing without
// additionalProperties. It returns nil if there are no parameters.
func (w *writer) gemini(schema *object) *object {
	top, mixed := w.root(schema, false, []string{"enum", "const"})
	if w.refused != nil {
		return nil
	}
	top = declaring(without(top, "$defs"))
	w.parameterNames(top, geminiParameter)
	if leastKeys(top) > len(child(top, "properties").Members) {
		w.refuse(Unrepresentable, "", fmt.Sprintf("the arguments must have %d keys, and fewer are declared", leastKeys(top)))
		return nil
	}
	if len(child(top, "properties").Members) == 0 { // parameters are left unset
		if free(top) {
			w.narrower("", "additionalProperties", "keys that are not declared can't be given")
		}
		w.lost(top, &object{}, "")
		return nil
	}
	out, ok := w.geminiTyped(top, "object", "")
	if !ok && w.refused == nil {
		if len(top.List("required")) == 0 && leastKeys(top) == 0 && !mixed { // none of them can be given, and none is required
			return nil
		}
		w.refuse(Unrepresentable, "", "Gemini has no schema for these arguments")
	}
	return out
}

// sayable returns the alternatives whose required arguments can be expressed, if there are several.
func (w *writer) sayable(list []alternative) (out []alternative) {
	if len(list) < 2 {
		return list
	}
	can := func(a alternative, name string) bool {
		trial := &writer{dialect: w.dialect, defs: w.defs, inlining: slices.Clone(a.via)}
		_, ok := trial.geminiSchema(at(a.object, name), name)
		return ok
	}
	for i, a := range list {
		lacks := ""
		for _, v := range a.List("required") {
			name, _ := v.(string)
			null := isNull(at(a.object, name)) && slices.ContainsFunc(list, func(b alternative) bool { return can(b, name) })
			if !null && !can(a, name) {
				lacks = name
			}
		}
		if lacks == "" {
			out = append(out, a)
			continue
		}
		w.narrower("", "anyOf", "alternative %d of %d requires %s, which Gemini has no schema for", i+1, len(list), clip(lacks))
	}
	return out
}

// geminiSchema rewrites one schema. It returns false if nothing of it can be expressed.
func (w *writer) geminiSchema(v any, path string) (*object, bool) {
	if !w.countSchema(path) {
		return nil, false
	}
	list, notes, overlap := w.alternatives(v, path)
	switch len(list) {
	case 0:
		return nil, false
	case 1:
		return w.geminiAlternative(list[0], notes, path)
	}
	return w.geminiChoice(notes, list, overlap, path)
}

func (w *writer) geminiAlternative(a alternative, notes *object, path string) (*object, bool) {
	schema := a.Clone()
	for _, m := range notes.Members {
		schema.Set(m.Key, m.Value)
	}
	if ref := schema.Text("$ref"); ref != "" {
		return w.geminiRef(schema, ref, path)
	}
	before := w.inlining
	w.inlining = slices.Concat(before, a.via)
	defer func() { w.inlining = before }()
	if values, ok := literals(schema); ok {
		return w.geminiLiterals(schema, values, path)
	}
	ts := types(schema)
	if len(ts) == 0 {
		if t := implied(schema); t != "" {
			w.narrower(path, "type", "Gemini needs a type: only a value of type %s can be given here", t)
			return w.geminiTyped(schema, t, path)
		}
		w.narrower(path, "type", "Gemini needs a type: lists and objects can't be given here")
		ts = []string{"string", "number", "boolean", "null"}
	}
	if len(ts) == 1 {
		return w.geminiTyped(schema, ts[0], path)
	}
	return w.geminiTypes(schema, ts, path)
}

// geminiRef inlines a definition.
func (w *writer) geminiRef(schema *object, ref, path string) (*object, bool) {
	name, target, ok := definition(w.defs, ref)
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
		beside := o.Clone()
		for _, m := range schema.Members { // annotations only
			if m.Key != "$ref" {
				beside.Set(m.Key, m.Value)
			}
		}
		target = beside
	}
	return w.geminiSchema(target, path)
}

// geminiTypes expresses several types: null by nullable, others as alternatives.
func (w *writer) geminiTypes(schema *object, ts []string, path string) (*object, bool) {
	var choices []alternative
	for _, t := range ts {
		one := schema.Clone()
		one.Remove("type", "description", "title", "default")
		one.Set("type", t)
		for _, m := range schema.Members { // keywords of other types mean nothing here
			if of, ok := typed[m.Key]; ok && !slices.Contains(of, t) {
				one.Remove(m.Key)
			}
		}
		choices = append(choices, alternative{object: one})
	}
	rest := &object{}
	for _, key := range []string{"description", "title", "default"} {
		if v, ok := schema.Find(key); ok {
			rest.Set(key, v)
		}
	}
	return w.geminiChoice(rest, choices, false, path)
}

// typed are the keywords that apply to values of some types only.
var typed = map[string][]string{
	"pattern": {"string"}, "format": {"string"}, "minLength": {"string"}, "maxLength": {"string"},
	"minimum": {"integer", "number"}, "maximum": {"integer", "number"}, "exclusiveMinimum": {"integer", "number"}, "exclusiveMaximum": {"integer", "number"}, "multipleOf": {"integer", "number"},
	"items": {"array"}, "prefixItems": {"array"}, "minItems": {"array"}, "maxItems": {"array"}, "uniqueItems": {"array"},
	"properties": {"object"}, "required": {"object"}, "additionalProperties": {"object"}, "patternProperties": {"object"}, "minProperties": {"object"}, "maxProperties": {"object"},
}

// geminiChoice expresses alternatives. anyOf allows no siblings, so the description goes into each
// alternative.
func (w *writer) geminiChoice(schema *object, choices []alternative, overlap bool, path string) (*object, bool) {
	var said []any
	var sayable []alternative
	nullable := false
	for i, choice := range choices {
		if isNull(choice.object) {
			nullable, sayable = true, append(sayable, choice)
			continue
		}
		if c, ok := w.geminiAlternative(choice, &object{}, path); ok {
			sayable = append(sayable, choice)
			if nested := c.List("anyOf"); nested != nil { // which allows no siblings
				said = append(said, nested...)
				continue
			}
			said = append(said, c)
		} else if w.refused == nil {
			w.narrower(path, "anyOf", "alternative %d of %d can't be said to Gemini", i+1, len(choices))
		}
	}
	if said == nil || overlap && !separate(sayable, choices) {
		return nil, false
	}
	around := &object{}
	if d := schema.Text("description"); d != "" {
		around.Set("description", d)
	}
	if d, ok := schema.Find("default"); ok && len(said) == 1 {
		around.Set("default", d)
	}
	w.lost(schema, around, path)
	for i, c := range said {
		c := c.(*object).Clone()
		said[i] = c
		if nullable {
			c.Set("nullable", true)
		}
		if d := around.Text("description"); d != "" {
			if own := c.Text("description"); own != "" {
				d += "\n" + own
			}
			c.Set("description", d)
		}
	}
	if said = distinct(said); len(said) > 1 {
		return strictjson.New("anyOf", said), true
	}
	one := said[0].(*object)
	if d, ok := around.Find("default"); ok {
		one.Set("default", d)
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

// geminiLiterals expresses enum and const, which Gemini has for strings only: integers become bounds.
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
		out = strictjson.New("type", "STRING", "format", "enum", "enum", kept)
	case kind == "boolean":
		out.Set("type", "BOOLEAN")
		if len(kept) == 1 {
			w.wider(path, literalKeyword(schema), "%s: %s", literalKeyword(schema), short(kept[0]))
		}
	default:
		w.geminiNumbers(out, kept, literalKeyword(schema), path)
	}
	if d := schema.Text("description"); d != "" {
		out.Set("description", d)
	}
	if out.Text("type") != "STRING" && (len(kept) > 1 || out.Text("type") == "BOOLEAN") {
		saying(out, []string{"One of: " + short(kept) + "."})
	}
	if len(kept) < len(values) && slices.Contains(values, any(nil)) {
		out.Set("nullable", true)
	}
	if d, ok := schema.Find("default"); ok {
		out.Set("default", d)
	}
	rest := schema.Clone()
	rest.Remove("enum", "const", "minimum", "maximum", "minLength", "maxLength", "pattern", "anyOf")
	w.lost(rest, out, path)
	return out, true
}

// literalKeyword returns the keyword that holds the literal values of a schema.
func literalKeyword(schema *object) string {
	if schema.Has("const") {
		return "const"
	}
	return "enum"
}

// geminiMixed expresses values of several types as one alternative for each type.
func (w *writer) geminiMixed(schema *object, values []any, path string) (*object, bool) {
	var choices []alternative
	kinds := map[string]*object{}
	for _, v := range values {
		kind, _ := kindOf([]any{v})
		if kind == "integer" {
			kind = "number"
		}
		if kinds[kind] == nil {
			kinds[kind] = &object{}
			choices = append(choices, alternative{object: kinds[kind]})
		}
		kinds[kind].Set("enum", append(kinds[kind].List("enum"), v))
	}
	rest := schema.Clone()
	rest.Remove("enum", "type")
	return w.geminiChoice(rest, choices, false, path)
}

// kindOf returns the type of all the values, number for integers among numbers; all is false if they differ.
// kind is empty for values that are not scalars.
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

// geminiNumbers expresses numbers by their bounds, which is exact for a single one and for consecutive
// integers.
func (w *writer) geminiNumbers(out *object, values []any, keyword, path string) {
	kind, _ := kindOf(values)
	out.Set("type", strings.ToUpper(kind))
	ordered := slices.Clone(values)
	slices.SortFunc(ordered, func(a, b any) int { return compare(a.(json.Number), b.(json.Number)) })
	low, high := ordered[0], ordered[len(ordered)-1]
	out.Set("minimum", low)
	out.Set("maximum", high)
	from, ok := number(low)
	to, also := number(high)
	if run := kind == "integer" && ok && also && to-from == int64(len(values)-1); !run && len(values) > 1 {
		w.wider(path, keyword, "%s: %s", keyword, short(values))
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
	out := strictjson.New("type", strings.ToUpper(t))
	if d := schema.Text("description"); d != "" {
		out.Set("description", d)
	}
	for _, m := range schema.Members {
		switch {
		case slices.Contains(geminiKept, m.Key):
			out.Set(m.Key, m.Value)
		case slices.Contains(geminiCounts, m.Key):
			out.Set(m.Key, string(encode(m.Value)))
		}
	}
	if schema.Text("format") == "date-time" { // of the string formats, the Gemini API accepts this one and enum
		out.Set("format", "date-time")
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
	rest := schema.Clone()
	for _, bound := range []string{"exclusiveMinimum", "exclusiveMaximum"} {
		if _, ok := schema.Find(bound); ok && t == "integer" && out.Has(inclusiveOf[bound]) {
			rest.Remove(bound)
		}
	}
	w.lost(rest, out, path)
	return out, true
}

var inclusiveOf = map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}

// inclusive converts an exclusive bound of integers to an inclusive one.
func inclusive(schema, out *object) {
	for i, bound := range []string{"exclusiveMinimum", "exclusiveMaximum"} {
		step := int64(1 - 2*i)
		v, ok := schema.Find(bound)
		n, isInt := number(v)
		next := n + step
		if !ok || !isInt || (next > n) != (step > 0) {
			continue
		}
		if old, ok := number(first(out.Find(inclusiveOf[bound]))); ok && (old > next) == (step > 0) {
			continue // the other bound is tighter
		}
		out.Set(inclusiveOf[bound], json.Number(strconv.FormatInt(next, 10)))
	}
}

// asked reports whether an argument is required together with another.
func asked(schema *object, name string) bool {
	return slices.ContainsFunc(child(schema, "dependentRequired").Members, func(m member) bool {
		names, _ := m.Value.([]any)
		return slices.Contains(names, any(name))
	})
}

func first(v any, _ bool) any { return v }

func (w *writer) geminiArray(schema, out *object, path string) bool {
	items, ok := schema.Find("items")
	prefix := schema.List("prefixItems")
	switch {
	case len(prefix) > 0:
		choices := slices.Clone(prefix)
		switch {
		case items == false:
			out.Set("maxItems", strconv.FormatInt(mostItems(schema, len(prefix)), 10))
		case ok:
			choices = append(choices, items)
		default:
			w.narrower(path, "items", "the items after the first %d take what these take", len(prefix))
		}
		items = strictjson.New("anyOf", distinct(choices))
		w.wider(path, "prefixItems", "which item stands at which place")
	case !ok:
		items = true
	}
	said, sayable := w.geminiSchema(items, path+"[]")
	if sayable {
		out.Set("items", said)
	}
	return sayable
}

func (w *writer) geminiObject(schema, out *object, path string) bool {
	schema = declaring(schema)
	properties := child(schema, "properties")
	if len(properties.Members) == 0 || len(properties.Members) < leastKeys(schema) {
		return false // "properties: should be non-empty for OBJECT type"
	}
	if free(schema) {
		w.narrower(path, "additionalProperties", "keys that are not declared can't be given")
	}
	required := schema.List("required")
	said, names := &object{}, []any{}
	for _, p := range properties.Members {
		here := below(path, p.Key)
		needed := slices.Contains(required, any(p.Key))
		p.Value = at(schema, p.Key)
		if p.Value == false && !needed {
			continue // no value is accepted
		}
		before := len(w.refused)
		property, ok := w.geminiSchema(p.Value, here)
		switch {
		case !ok && len(w.refused) > before:
			continue
		case !ok && (needed || asked(schema, p.Key)):
			w.refuse(Unrepresentable, here, "Gemini has no schema for this (a struct without fields, a map, or values of several kinds), and the argument is required, or required by another")
			continue
		case !ok:
			w.narrower(here, "properties", "Gemini has no schema for this: the argument is left out and can't be given")
			continue
		case needed:
			names = append(names, p.Key)
		}
		said.Set(p.Key, property)
	}
	if len(said.Members) == 0 {
		return false
	}
	out.Set("properties", said)
	if len(names) > 0 {
		out.Set("required", names)
	}
	return true
}
