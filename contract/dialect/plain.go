package dialect

import (
	"slices"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// Keywords at the top of a schema that OpenAI refuses ("schema must have type 'object' and not have
// 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level") and, except enum and not, Anthropic ("input_schema
// does not support oneOf, allOf, or anyOf at the top level").
var (
	openAITop    = []string{"oneOf", "anyOf", "allOf", "enum", "not"}
	anthropicTop = []string{"oneOf", "anyOf", "allOf"}
)

// plain returns the schema for function calling without strict, where the provider treats JSON Schema as
// advice: nothing below the top is removed. An object must have properties and an array must have items, so
// they are written even where they restrict nothing.
func (w *writer) plain(schema *object) *object {
	out, ok := spelt(w.top(schema, openAITop)).(*object)
	if !ok {
		panic("dialect: an object stays one")
	}
	return out
}

// spelt writes out keywords that JSON Schema leaves implicit. It doesn't change the meaning.
func spelt(v any) any {
	schema, ok := v.(*object)
	if !ok {
		return v
	}
	out := within(schema, spelt)
	for _, t := range types(out) {
		switch t {
		case "object":
			if !out.Has("properties") {
				out.Set("properties", &object{})
			}
		case "array":
			if !out.Has("items") {
				out.Set("items", &object{})
			} else if items, _ := out.Find("items"); items == true {
				out.Set("items", &object{})
			}
		}
	}
	return out
}

// anthropic returns the schema without the keywords that the provider refuses at the top.
func (w *writer) anthropic(schema *object) *object {
	out := w.top(schema, anthropicTop)
	w.parameterNames(out, anthropicParameter)
	return out
}

// top removes what is not allowed at the top of a schema: a reference and alternatives there become one
// object that has every argument. Conditions are allowed.
func (w *writer) top(schema *object, forbidden []string) *object {
	if schema.Has("$ref") || schema.Has("anyOf") || schema.Has("oneOf") || schema.Has("allOf") {
		out, _ := w.root(schema, true, forbidden)
		return out
	}
	return w.withoutTop(schema, forbidden)
}

func (w *writer) withoutTop(schema *object, forbidden []string) *object {
	out := schema.Clone()
	for _, keyword := range forbidden {
		v, ok := out.Find(keyword)
		if out.Remove(keyword); !ok {
			continue
		}
		if keyword == "allOf" { // what no keyword can express
			w.lost(strictjson.New(keyword, v), out, "")
			continue
		}
		w.wider("", keyword, "%s may not stand at the top: %s", keyword, short(v))
	}
	return out
}

// root returns the schema of the arguments as one object, which has every argument of every alternative.
// conditional keeps conditions. mixed is as in alternative.
func (w *writer) root(schema *object, conditional bool, forbidden []string) (root *object, mixed bool) {
	notes := annotationsOf(schema)
	e := expander{defs: w.defs, conditional: conditional}
	list := e.resolved(e.expand(without(schema, annotations...), 0), 0)
	if e.over() {
		w.refuse(TooLong, "", tooLong)
		return schema, false
	}
	if len(list) == 0 {
		w.refuse(Unrepresentable, "", "no arguments are accepted: the parts of the schema exclude each other")
		return schema, false
	}
	for _, a := range list {
		w.inlining = append(w.inlining, a.via...)
	}
	said := ""
	if len(list) > 1 {
		e.lost = append(e.chosen, e.lost...)
		said = told(list)
	}
	if !conditional && e.overlap && len(list) > 1 && !separate(list, list) {
		w.refuse(Unrepresentable, "", "exactly one alternative of oneOf must fit, and none can be given without fitting another")
	}
	if w.dialect == Gemini {
		if list = w.sayable(list); len(list) == 0 {
			w.refuse(Unrepresentable, "", "each alternative requires an argument that Gemini has no schema for")
			return schema, false
		}
	}
	only := e.one(list, "anyOf")[0]
	out := only.Clone()
	w.noted(&e, "")
	for _, m := range notes.Members {
		out.Set(m.Key, m.Value)
	}
	if defs := w.needed(without(out, "$defs")); len(defs.Members) > 0 {
		out.Set("$defs", defs)
	} else {
		out.Remove("$defs")
	}
	out.Set("type", "object")
	out = w.withoutTop(out, forbidden)
	if said != "" {
		saying(out, []string{said})
	}
	return out, only.mixed
}

// needed returns the definitions that a schema refers to, in the order of the contract.
func (w *writer) needed(schema *object) *object {
	names := map[string]bool{}
	var need func(v any)
	need = func(v any) {
		visit(v, func(s *object) {
			if name, target, ok := definition(w.defs, s.Text("$ref")); ok && !names[name] {
				names[name] = true
				need(target)
			}
		})
	}
	need(schema)
	defs := &object{}
	for _, d := range w.defs.Members {
		if names[d.Key] {
			defs.Set(d.Key, d.Value)
		}
	}
	return defs
}

// annotationsOf returns the annotations of a schema.
func annotationsOf(schema *object) *object {
	out := &object{}
	for _, m := range schema.Members {
		if slices.Contains(annotations, m.Key) {
			out.Members = append(out.Members, m)
		}
	}
	return out
}

// noted records the losses of an expander.
func (w *writer) noted(e *expander, path string) {
	seen := map[string]bool{}
	for _, m := range e.lost {
		key := m.Key + string(encode(m.Value))
		if seen[key] {
			continue
		}
		seen[key] = true
		switch schema, ok := m.Value.(*object); {
		case m.Key == "if" && ok:
			w.wider(path, "if", "%s", conditional(schema))
		case m.Key == "oneOf":
			w.wider(path, m.Key, "that exactly one alternative fits: %s", short(m.Value))
		default:
			w.wider(path, m.Key, "%s: %s", m.Key, short(m.Value))
		}
	}
	for _, key := range slices.Compact(e.narrows) {
		w.narrower(path, key, "where one alternative declares an argument and another takes any key, the argument takes what the first says")
	}
}
