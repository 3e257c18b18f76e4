package dialect

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// What strict mode limits (OpenAI, Structured model outputs, "Supported schemas").
const (
	strictProperties = 5_000
	strictDepth      = 10
	strictEnumValues = 1_000
	strictCharacters = 120_000
	// strictLargeEnum is how many values make an enum large; their characters are then limited to strictLargeEnumCharacters.
	strictLargeEnum           = 250
	strictLargeEnumCharacters = 15_000
)

// strictKept are the keywords that strict mode supports and that mean there what they mean here. Those with schemas in
// them are rewritten one by one.
var strictKept = []string{"title", "pattern", "multipleOf", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "minItems", "maxItems"}

// strictFormats are the formats that strict mode supports.
var strictFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// strict is the schema in the subset that OpenAI holds a model to: every property required, no further ones, optional
// ones nullable. Arguments reads null there as left out.
func (w *writer) strict(schema *object) *object {
	top := w.top(schema, openAITop)
	out, ok := w.strictSchema(top, "", 0)
	if !ok {
		return nil
	}
	if defs := w.strictDefs(); len(defs.members) > 0 {
		out.set("$defs", defs)
	}
	w.strictLimits()
	return out
}

// strictDefs rewrites the definitions. What strict mode can't say in one is refused: its references are everywhere.
func (w *writer) strictDefs() *object {
	defs := &object{}
	for _, d := range w.defs.members {
		w.characters += utf8.RuneCountInString(d.key)
		before := len(w.refused)
		out, ok := w.strictSchema(d.value, "$defs."+d.key, 1)
		if !ok && len(w.refused) == before {
			w.refuse(Unrepresentable, "$defs."+d.key, "strict mode can't say this definition")
		}
		if ok {
			defs.set(d.key, out)
		}
	}
	return defs
}

// strictSchema rewrites one schema. It is false where nothing of it can be said; the caller then does without it or
// refuses. depth is how many objects are around it.
func (w *writer) strictSchema(v any, path string, depth int) (*object, bool) {
	schema, ok := v.(*object)
	if v == true {
		schema, ok = &object{}, true
	}
	if !ok {
		return nil, false // false: no value fits
	}
	schema = w.merged(schema)
	if ref := schema.text("$ref"); ref != "" {
		return w.strictRef(schema, ref, path)
	}
	schema, choices := w.choices(schema, path)
	if len(choices) > 0 {
		return w.strictChoice(schema, choices, path, depth)
	}
	if _, fixed := literals(schema); !fixed && len(types(schema)) == 0 {
		out := obj("type", []any{"string", "number", "boolean", "null"})
		if d := schema.text("description"); d != "" {
			out.set("description", d)
		}
		w.narrower(path, "type", "strict mode needs a type: lists and objects can't be given here")
		w.lost(schema, out, path)
		return out, true
	}
	return w.strictTyped(schema, path, depth)
}

func (w *writer) strictRef(schema *object, ref, path string) (*object, bool) {
	if _, _, ok := w.definition(ref); !ok {
		w.refuse(BadSchema, path, "the schema refers to nothing of its own: "+short(ref))
		return nil, false
	}
	said := &object{}
	if d := schema.text("description"); d != "" {
		said.set("description", d)
	}
	rest := schema.clone()
	rest.remove("$ref")
	w.besideRef(schema, path)
	w.lost(rest, said, path)
	if len(said.members) == 0 {
		return obj("$ref", ref), true
	}
	said.set("anyOf", []any{obj("$ref", ref)}) // beside $ref nothing may stand
	return said, true
}

// strictChoice keeps the alternatives that can be said. What stands beside them holds for each, so that it is lost.
func (w *writer) strictChoice(schema *object, choices []any, path string, depth int) (*object, bool) {
	var said []any
	for i, choice := range choices {
		if c, ok := w.strictSchema(choice, path, depth); ok {
			said = append(said, c)
		} else {
			w.narrower(path, "anyOf", "alternative %d of %d can't be said in strict mode", i+1, len(choices))
		}
	}
	if said == nil {
		return nil, false
	}
	out := &object{}
	if d := schema.text("description"); d != "" {
		out.set("description", d)
	}
	out.set("anyOf", said)
	if schema.has("oneOf") {
		w.wider(path, "oneOf", "that exactly one alternative fits")
	}
	rest := schema.clone()
	rest.remove("oneOf")
	w.lost(rest, out, path)
	return out, true
}

func (w *writer) strictTyped(schema *object, path string, depth int) (*object, bool) {
	out := &object{}
	if t, ok := schema.get("type"); ok {
		out.set("type", t)
	}
	if d := schema.text("description"); d != "" {
		out.set("description", d)
	}
	if values, ok := literals(schema); ok {
		if !w.strictLiterals(schema, out, values, path) {
			return nil, false
		}
	}
	for _, m := range schema.members {
		if slices.Contains(strictKept, m.key) {
			out.set(m.key, m.value)
		}
	}
	if f := schema.text("format"); slices.Contains(strictFormats, f) {
		out.set("format", f)
	}
	ts := types(schema)
	if slices.Contains(ts, "array") && !w.strictArray(schema, out, path, depth) {
		return nil, false
	}
	if slices.Contains(ts, "object") && !w.strictObject(schema, out, path, depth+1) {
		return nil, false
	}
	w.lost(schema, out, path)
	return out, true
}

// literals are the values of an enum or const.
func literals(schema *object) ([]any, bool) {
	if c, ok := schema.get("const"); ok {
		return []any{c}, true
	}
	values, ok := schema.get("enum")
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
	if !schema.has("const") && len(values) > strictLargeEnum && characters > strictLargeEnumCharacters {
		w.refuse(TooLong, path, fmt.Sprintf("the %d values of the enum have %d characters, more than %d", len(values), characters, strictLargeEnumCharacters))
	}
	w.characters += characters
	if c, ok := schema.get("const"); ok {
		out.set("const", c)
	} else {
		w.enumValues += len(values)
		out.set("enum", values)
	}
	if !out.has("type") {
		out.set("type", typeOf(values))
	}
	return true
}

// typeOf is the type, or the types, of literal values.
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
	items, ok := schema.get("items")
	prefix := schema.list("prefixItems")
	if len(prefix) == 0 {
		if !ok {
			items = true
		}
		said, sayable := w.strictSchema(items, path+"[]", depth)
		if sayable {
			out.set("items", said)
		}
		return sayable
	}
	// A tuple becomes a list of what may stand at any of its places.
	choices := slices.Clone(prefix)
	if items != false && ok {
		choices = append(choices, items)
	} else if items == false {
		out.set("maxItems", json.Number(fmt.Sprint(len(prefix))))
	}
	said, sayable := w.strictSchema(obj("anyOf", distinct(choices)), path+"[]", depth)
	if sayable {
		out.set("items", said)
		w.wider(path, "prefixItems", "which item stands at which place")
	}
	return sayable
}

func (w *writer) strictObject(schema, out *object, path string, depth int) bool {
	if depth > strictDepth {
		w.refuse(TooDeep, path, fmt.Sprintf("objects nest %d levels deep, more than %d", depth, strictDepth))
		return false
	}
	properties := schema.object("properties")
	open := free(schema)
	if len(properties.members) == 0 && open && path != "" {
		return false // a map: strict mode could say only {}
	}
	if open {
		w.narrower(path, "additionalProperties", "keys that are not declared can't be given")
	}
	w.properties += len(properties.members)
	required := schema.list("required")
	said, names := &object{}, []any{}
	for _, p := range properties.members {
		here := below(path, p.key)
		needed := slices.Contains(required, any(p.key))
		before := len(w.refused)
		property, ok := w.strictSchema(p.value, here, depth)
		switch {
		case !ok && needed:
			if len(w.refused) == before {
				w.refuse(Unrepresentable, here, "strict mode can't say this, a map or a value without a type; and the argument is required")
			}
			continue
		case !ok:
			w.narrower(here, "properties", "strict mode can't say this: the argument is left out of the schema and can't be given")
			continue
		case !needed:
			property = w.optional(property, p.value, here)
		}
		w.characters += utf8.RuneCountInString(p.key)
		said.set(p.key, property)
		names = append(names, p.key)
	}
	out.set("properties", said)
	out.set("required", names)
	out.set("additionalProperties", false)
	return true
}

// free reports whether an object takes keys that are not declared.
func free(schema *object) bool {
	extra, ok := schema.get("additionalProperties")
	return !ok || extra != false || len(schema.object("patternProperties").members) > 0
}

// optional makes a property nullable: null says that it is left out.
func (w *writer) optional(said *object, original any, path string) *object {
	if accepts(w.defs, original, 0) {
		w.narrower(path, "required", "the argument takes null itself: null is that value, and leaving the argument out can't be said")
		return said
	}
	out := said.clone()
	switch {
	case out.has("type"):
		out.set("type", append(anys(types(out)), "null"))
		if c, ok := out.get("const"); ok {
			out.remove("const")
			out.set("enum", []any{c, nil})
			w.enumValues += 2
		} else if values := out.list("enum"); values != nil {
			out.set("enum", append(slices.Clone(values), nil))
			w.enumValues++
		}
	case out.has("anyOf"):
		out.set("anyOf", append(slices.Clone(out.list("anyOf")), obj("type", "null")))
	default: // $ref, beside which nothing may stand
		out = obj("anyOf", []any{out, obj("type", "null")})
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

// distinct leaves out schemas that stand there already.
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
