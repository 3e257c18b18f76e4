package dialect

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// The limits of strict mode (OpenAI, Structured model outputs, "Supported schemas").
const (
	strictProperties = 5_000
	strictDepth      = 10
	strictEnumValues = 1_000
	strictCharacters = 120_000
	// strictLargeEnum is the number of values above which the characters of an enum are limited to
	// strictLargeEnumCharacters.
	strictLargeEnum           = 250
	strictLargeEnumCharacters = 15_000
)

// strictKept are the keywords that strict mode supports with the same meaning. Those that contain schemas are
// rewritten one by one.
var strictKept = []string{"title", "pattern", "multipleOf", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "minItems", "maxItems"}

// strictFormats are the formats that strict mode supports.
var strictFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// strict returns the schema in the subset that OpenAI enforces: every property required, no further ones,
// optional ones nullable. Arguments reads null there as omitted.
func (w *writer) strict(schema *object) *object {
	top, mixed := w.root(schema, false, nil)
	if w.refused != nil {
		return nil
	}
	before := w.inlining
	out, ok := w.strictTyped(top, mixed, "", 0)
	w.inlining = before
	switch {
	case w.refused != nil:
		return nil
	case !ok:
		w.refuse(Unrepresentable, "", "strict mode can't say these arguments")
		return nil
	}
	if defs := w.strictDefs(out); len(defs.Members) > 0 {
		out.Set("$defs", defs)
	}
	w.strictLimits()
	return out
}

// strictDefs rewrites the definitions that out refers to, in the order of the contract. A definition that
// strict mode can't express is refused, because its references may be anywhere.
func (w *writer) strictDefs(out *object) *object {
	needed := map[string]bool{}
	said := map[string]*object{}
	need := func(schema *object) {
		visit(schema, func(s *object) {
			if name, _, ok := definition(w.defs, s.Text("$ref")); ok {
				needed[name] = true
			}
		})
	}
	need(out)
	for more := true; more; {
		more = false
		for _, d := range w.defs.Members {
			if !needed[d.Key] || said[d.Key] != nil {
				continue
			}
			more = true
			w.characters += utf8.RuneCountInString(d.Key)
			before := len(w.refused)
			w.inlining = []string{d.Key}
			def, ok := w.strictSchema(d.Value, "$defs."+d.Key, 1)
			if !ok {
				def = &object{}
				if len(w.refused) == before {
					w.refuse(Unrepresentable, "$defs."+d.Key, "strict mode can't say this definition")
				}
			}
			said[d.Key] = def
			need(def)
		}
	}
	defs := &object{}
	for _, d := range w.defs.Members {
		if said[d.Key] != nil {
			defs.Set(d.Key, said[d.Key])
		}
	}
	return defs
}

// strictSchema rewrites one schema. It returns false if nothing of it can be expressed; the caller then drops
// it or refuses. depth is the number of enclosing objects.
func (w *writer) strictSchema(v any, path string, depth int) (*object, bool) {
	if !w.countSchema(path) {
		return nil, false
	}
	list, notes, overlap := w.alternatives(v, path)
	switch len(list) {
	case 0:
		return nil, false // no value matches
	case 1:
		return w.strictAlternative(list[0], notes, path, depth)
	}
	return w.strictChoice(list, notes, overlap, path, depth)
}

func (w *writer) strictAlternative(a alternative, notes *object, path string, depth int) (*object, bool) {
	schema := a.Clone()
	for _, m := range notes.Members {
		schema.Set(m.Key, m.Value)
	}
	if ref := schema.Text("$ref"); ref != "" {
		return w.strictRef(schema, ref, path)
	}
	if _, fixed := literals(schema); !fixed && len(types(schema)) == 0 {
		t := implied(schema)
		if t == "" {
			out := strictjson.New("type", []any{"string", "number", "boolean", "null"})
			if d := schema.Text("description"); d != "" {
				out.Set("description", d)
			}
			w.narrower(path, "type", "strict mode needs a type: lists and objects can't be given here")
			w.lost(schema, out, path)
			return out, true
		}
		w.narrower(path, "type", "strict mode needs a type: only a value of type %s can be given here", t)
		schema.Set("type", t)
	}
	before := w.inlining
	w.inlining = slices.Concat(before, a.via)
	defer func() { w.inlining = before }()
	return w.strictTyped(schema, a.mixed, path, depth)
}

func (w *writer) strictRef(schema *object, ref, path string) (*object, bool) {
	if _, _, ok := definition(w.defs, ref); !ok {
		w.refuse(BadSchema, path, "the schema refers to nothing of its own: "+short(ref))
		return nil, false
	}
	said := &object{}
	if d := schema.Text("description"); d != "" {
		said.Set("description", d)
	}
	w.lost(without(schema, "$ref"), said, path)
	if len(said.Members) == 0 {
		return strictjson.New("$ref", ref), true
	}
	said.Set("anyOf", []any{strictjson.New("$ref", ref)}) // $ref allows no siblings
	return said, true
}

// strictChoice keeps the alternatives that can be expressed.
func (w *writer) strictChoice(list []alternative, notes *object, overlap bool, path string, depth int) (*object, bool) {
	var said []any
	var sayable []alternative
	for i, a := range list {
		if c, ok := w.strictAlternative(a, &object{}, path, depth); ok {
			said, sayable = append(said, c), append(sayable, a)
		} else {
			w.narrower(path, "anyOf", "alternative %d of %d can't be said in strict mode", i+1, len(list))
		}
	}
	if said == nil || overlap && !separate(sayable, list) {
		return nil, false
	}
	out := &object{}
	if d := notes.Text("description"); d != "" {
		out.Set("description", d)
	}
	out.Set("anyOf", distinct(said))
	w.lost(notes, out, path)
	return out, true
}

func (w *writer) strictTyped(schema *object, mixed bool, path string, depth int) (*object, bool) {
	out := &object{}
	if t, ok := schema.Find("type"); ok {
		out.Set("type", t)
	}
	if d := schema.Text("description"); d != "" {
		out.Set("description", d)
	}
	if values, ok := literals(schema); ok {
		if !w.strictLiterals(schema, out, values, path) {
			return nil, false
		}
	}
	for _, m := range schema.Members {
		if slices.Contains(strictKept, m.Key) {
			out.Set(m.Key, m.Value)
		}
	}
	if f := schema.Text("format"); slices.Contains(strictFormats, f) {
		out.Set("format", f)
	}
	ts := types(schema)
	if slices.Contains(ts, "array") && !w.strictArray(schema, out, path, depth) {
		return nil, false
	}
	if slices.Contains(ts, "object") && !w.strictObject(schema, out, mixed, path, depth+1) {
		return nil, false
	}
	w.lost(schema, out, path)
	return out, true
}

// literals returns the values of an enum or const.
func literals(schema *object) ([]any, bool) {
	if c, ok := schema.Find("const"); ok {
		return []any{c}, true
	}
	values, ok := schema.Find("enum")
	list, isList := values.([]any)
	return list, ok && isList
}

func (w *writer) strictLiterals(schema, out *object, values []any, path string) bool {
	characters := 0
	for _, v := range values {
		switch v := v.(type) {
		case string:
			characters += utf8.RuneCountInString(v)
		case *object, []any:
			return false
		default:
			characters += len(encode(v))
		}
	}
	if !schema.Has("const") && len(values) > strictLargeEnum && characters > strictLargeEnumCharacters {
		w.refuse(TooLong, path, fmt.Sprintf("the %d values of the enum have %d characters, more than %d", len(values), characters, strictLargeEnumCharacters))
	}
	w.characters += characters
	if c, ok := schema.Find("const"); ok {
		out.Set("const", c)
	} else {
		w.enumValues += len(values)
		out.Set("enum", values)
	}
	if !out.Has("type") {
		out.Set("type", typeOf(values))
	}
	return true
}

// typeOf returns the type, or the types, of literal values.
func typeOf(values []any) any {
	var names []any
	for _, v := range values {
		name := "string"
		switch v := v.(type) {
		case nil:
			name = "null"
		case bool:
			name = "boolean"
		case json.Number:
			name = "number"
			if whole.MatchString(string(v)) {
				name = "integer"
			}
		}
		if !slices.Contains(names, any(name)) {
			names = append(names, name)
		}
	}
	if len(names) == 1 {
		return names[0]
	}
	return names
}

func (w *writer) strictArray(schema, out *object, path string, depth int) bool {
	items, ok := schema.Find("items")
	prefix := schema.List("prefixItems")
	if len(prefix) == 0 {
		if !ok {
			items = true
		}
		said, sayable := w.strictSchema(items, path+"[]", depth)
		if sayable {
			out.Set("items", said)
		}
		return sayable
	}
	// A tuple becomes a list of what is accepted at any of its positions.
	choices := slices.Clone(prefix)
	switch {
	case items == false:
		out.Set("maxItems", json.Number(fmt.Sprint(mostItems(schema, len(prefix)))))
	case ok:
		choices = append(choices, items)
	default:
		w.narrower(path, "items", "the items after the first %d take what these take", len(prefix))
	}
	said, sayable := w.strictSchema(strictjson.New("anyOf", distinct(choices)), path+"[]", depth)
	if sayable {
		out.Set("items", said)
		w.wider(path, "prefixItems", "which item stands at which place")
	}
	return sayable
}

func (w *writer) strictObject(schema, out *object, mixed bool, path string, depth int) bool {
	if depth > strictDepth {
		w.refuse(TooDeep, path, fmt.Sprintf("objects nest %d levels deep, more than %d", depth, strictDepth))
		return false
	}
	schema = declaring(schema)
	properties := child(schema, "properties")
	open := free(schema)
	if len(properties.Members) == 0 && open && path != "" {
		return false // a map: strict mode could express only {}
	}
	if len(properties.Members) < leastKeys(schema) {
		return false
	}
	matters := mixed || slices.ContainsFunc(presence, schema.Has)
	if open {
		w.narrower(path, "additionalProperties", "keys that are not declared can't be given")
	}
	w.properties += len(properties.Members)
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
		property, ok := w.strictSchema(p.Value, here, depth)
		switch {
		case !ok:
			if len(w.refused) == before {
				w.refuse(Unrepresentable, here, "strict mode has no form for this, such as a map")
			}
			continue
		case !needed && matters && accepts(w.defs, p.Value, 0):
			w.refuse(Unrepresentable, here, "the argument takes null itself, so that null can't say that it is left out, which other arguments depend on")
			continue
		case !needed:
			property = w.optional(property, p.Value, here)
		}
		w.characters += utf8.RuneCountInString(p.Key)
		said.Set(p.Key, property)
		names = append(names, p.Key)
	}
	out.Set("properties", said)
	out.Set("required", names)
	out.Set("additionalProperties", false)
	return true
}

// presence are keywords for which it matters whether an argument is omitted.
var presence = []string{"not", "allOf", "dependentRequired", "maxProperties"}

// leastKeys returns the minimal number of keys of an object.
func leastKeys(schema *object) int {
	v, _ := schema.Find("minProperties")
	n, _ := number(v)
	return int(n)
}

// free reports whether an object accepts undeclared keys.
func free(schema *object) bool {
	extra, ok := schema.Find("additionalProperties")
	return !ok || extra != false || len(child(schema, "patternProperties").Members) > 0
}

// optional makes a property nullable: null means that it is omitted.
func (w *writer) optional(said *object, original any, path string) *object {
	if accepts(w.defs, original, 0) {
		w.narrower(path, "required", "the argument takes null itself: null is that value, and leaving the argument out can't be said")
		return said
	}
	out := said.Clone()
	switch {
	case out.Has("type"):
		if !slices.Contains(types(out), "null") {
			out.Set("type", append(anys(types(out)), "null"))
		}
		if c, ok := out.Find("const"); ok {
			out.Remove("const")
			out.Set("enum", []any{c, nil})
			w.enumValues += 2
		} else if values := out.List("enum"); values != nil {
			out.Set("enum", append(slices.Clone(values), nil))
			w.enumValues++
		}
	case out.Has("anyOf"):
		out.Set("anyOf", distinct(append(slices.Clone(out.List("anyOf")), strictjson.New("type", "null"))))
	default: // $ref, which allows no siblings
		out = strictjson.New("anyOf", []any{out, strictjson.New("type", "null")})
	}
	saying(out, []string{"Null leaves it out."})
	return out
}

func anys(names []string) (out []any) {
	for _, n := range names {
		out = append(out, n)
	}
	return out
}

// distinct removes duplicate schemas.
func distinct(schemas []any) (out []any) {
	seen := map[string]bool{}
	for _, s := range schemas {
		if key := string(encode(s)); !seen[key] {
			seen[key] = true
			out = append(out, s)
		}
	}
	return out
}

// mostItems returns maxItems of a schema, or n if that is less.
func mostItems(schema *object, n int) int64 {
	v, _ := schema.Find("maxItems")
	if m, ok := number(v); ok && m < int64(n) {
		return m
	}
	return int64(n)
}

func (w *writer) strictLimits() {
	for _, l := range []struct {
		code      Code
		what      string
		is, limit int
	}{
		{TooManyProperties, "properties", w.properties, strictProperties},
		{TooManyEnumValues, "enum values", w.enumValues, strictEnumValues},
		{TooLong, "characters of names and enum values", w.characters, strictCharacters},
	} {
		if l.is > l.limit {
			w.refuse(l.code, "", fmt.Sprintf("the schema has %d %s, more than %d", l.is, l.what, l.limit))
		}
	}
}
