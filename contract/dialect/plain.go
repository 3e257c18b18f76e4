package dialect

// What stands at the top of a schema besides properties is refused by OpenAI ("schema must have type 'object' and not
// have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level") and, but for enum and not, by Anthropic ("input_schema
// does not support oneOf, allOf, or anyOf at the top level").
var (
	openAITop    = []string{"oneOf", "anyOf", "allOf", "enum", "not"}
	anthropicTop = []string{"oneOf", "anyOf", "allOf"}
)

// plain is the schema for function calling without strict, which reads JSON Schema as advice: nothing below the top is
// taken away. An object must have properties and an array must have items, so that they are written where they say nothing.
func (w *writer) plain(schema *object) *object {
	out, ok := spelt(w.top(schema, openAITop)).(*object)
	if !ok {
		panic("dialect: an object stays one")
	}
	return out
}

// spelt writes out what JSON Schema leaves to be understood. It changes no meaning.
func spelt(v any) any {
	schema, ok := v.(*object)
	if !ok {
		return v
	}
	out := within(schema, spelt)
	for _, t := range types(out) {
		switch t {
		case "object":
			if !out.has("properties") {
				out.set("properties", &object{})
			}
		case "array":
			if !out.has("items") {
				out.set("items", &object{})
			} else if items, _ := out.get("items"); items == true {
				out.set("items", &object{})
			}
		}
	}
	return out
}

// anthropic is the schema as it is, but for what the provider refuses at the top.
func (w *writer) anthropic(schema *object) *object {
	w.parameterNames(schema, anthropicParameter)
	return w.top(schema, anthropicTop)
}

// top takes away what may not stand at the top of a schema.
func (w *writer) top(schema *object, forbidden []string) *object {
	out := w.merged(schema).clone()
	for _, keyword := range forbidden {
		if v, ok := out.get(keyword); ok {
			out.remove(keyword)
			w.wider("", keyword, "%s may not stand at the top: %s", keyword, short(v))
		}
	}
	return out
}
