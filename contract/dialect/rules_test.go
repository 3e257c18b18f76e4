package dialect_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract/dialect"
)

// rules check a tool against what its provider publishes, by code that shares nothing with the rewriter. Each rule is
// cited where it is checked.
var rules = map[dialect.Dialect]func(json.RawMessage) []string{
	dialect.MCP: ruleMCP, dialect.OpenAI: ruleOpenAI, dialect.OpenAIStrict: ruleStrict,
	dialect.OpenAIResponses: ruleResponses, dialect.Anthropic: ruleAnthropic, dialect.Gemini: ruleGemini,
}

type anyMap = map[string]any

// breaches collects what is wrong.
type breaches []string

func (b *breaches) must(ok bool, format string, args ...any) {
	if !ok {
		*b = append(*b, fmt.Sprintf(format, args...))
	}
}

func decode(raw json.RawMessage, b *breaches) anyMap {
	var m anyMap
	if err := json.Unmarshal(raw, &m); err != nil {
		b.must(false, "no JSON object: %v", err)
	}
	return m
}

func only(m anyMap, b *breaches, keys ...string) {
	for k := range m {
		b.must(slices.Contains(keys, k), "the key %q is none of %v", k, keys)
	}
}

// MCP specification 2025-11-25, schema "Tool": name and inputSchema with type "object" are required.
func ruleMCP(raw json.RawMessage) []string {
	var found breaches
	m := decode(raw, &found)
	only(m, &found, "name", "title", "description", "inputSchema", "outputSchema", "annotations")
	input, _ := m["inputSchema"].(anyMap)
	found.must(input["type"] == "object", "inputSchema must have type object")
	return found
}

var openAIName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// openai-node 6.49.0, resources/shared.d.ts, FunctionDefinition: "Must be a-z, A-Z, 0-9, or contain underscores and
// dashes, with a maximum length of 64"; parameters "described as a JSON Schema object"; strict is a boolean.
func ruleFunction(m anyMap, b *breaches) anyMap {
	name, _ := m["name"].(string)
	b.must(openAIName.MatchString(name) && len(name) <= 64, "name %q", name)
	parameters, ok := m["parameters"].(anyMap)
	b.must(ok && parameters["type"] == "object", "parameters must be of type object")
	for _, k := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
		// The API: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level".
		_, there := parameters[k]
		b.must(!there, "%s at the top", k)
	}
	eachSchema(parameters, func(s anyMap) {
		// The API: "object schema missing properties", "array schema missing items".
		if hasType(s, "object") {
			b.must(s["properties"] != nil, "object schema missing properties: %v", s)
		}
		if hasType(s, "array") {
			b.must(s["items"] != nil, "array schema missing items: %v", s)
		}
	})
	return parameters
}

// openai-node 6.49.0, resources/chat/completions, ChatCompletionFunctionTool: {type: "function", function}.
func ruleOpenAI(raw json.RawMessage) []string {
	var b breaches
	m := decode(raw, &b)
	only(m, &b, "type", "function")
	b.must(m["type"] == "function", "type")
	f, _ := m["function"].(anyMap)
	only(f, &b, "name", "description", "parameters", "strict")
	ruleFunction(f, &b)
	return b
}

// openai-node 6.49.0, resources/responses/responses.d.ts, FunctionTool: type, name, parameters and strict are required and
// stand side by side.
func ruleResponses(raw json.RawMessage) []string {
	var b breaches
	m := decode(raw, &b)
	only(m, &b, "type", "name", "description", "parameters", "strict")
	b.must(m["type"] == "function", "type")
	_, isBool := m["strict"].(bool)
	b.must(isBool, "strict must be said")
	ruleFunction(m, &b)
	return b
}

// OpenAI, guide "Structured model outputs", section "Supported schemas" (subsections: "Supported properties", "Root
// objects must not be anyOf and must be an object", "All fields must be required", "Objects have limitations on nesting
// depth and size", "Limitations on total string size", "Limitations on enum size", "additionalProperties: false must
// always be set in objects", "Some type-specific keywords are not yet supported").
func ruleStrict(raw json.RawMessage) []string {
	var b breaches
	m := decode(raw, &b)
	f, _ := m["function"].(anyMap)
	only(f, &b, "name", "description", "parameters", "strict")
	if f["strict"] == false { // what strict mode can't say
		return ruleOpenAI(raw)
	}
	b.must(f["strict"] == true, "strict must be said")
	parameters := ruleFunction(f, &b)
	supported := []string{
		"type", "description", "title", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref", "$defs",
		"pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
	}
	formats := []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
	properties, enums, characters := 0, 0, 0
	eachSchema(parameters, func(s anyMap) {
		only(s, &b, supported...)
		_, isRef := s["$ref"]
		_, isAny := s["anyOf"]
		b.must(s["type"] != nil || isRef || isAny, "a schema without a type: %v", s)
		b.must(!isRef || len(s) == 1, "something beside $ref: %v", s)
		if format, ok := s["format"]; ok {
			b.must(slices.Contains(formats, fmt.Sprint(format)), "format %v", format)
		}
		if hasType(s, "object") {
			declared, _ := s["properties"].(anyMap)
			required, _ := s["required"].([]any)
			b.must(s["additionalProperties"] == false, "additionalProperties must be false: %v", s)
			b.must(len(required) == len(declared), "all fields must be required: %v", s)
			for name := range declared {
				b.must(slices.Contains(required, any(name)), "%s must be required", name)
				characters += len([]rune(name))
			}
			properties += len(declared)
		}
		values, _ := s["enum"].([]any)
		enums += len(values)
		size := 0
		for _, v := range values {
			size += len([]rune(fmt.Sprint(v)))
		}
		b.must(len(values) <= 250 || size <= 15_000, "an enum of %d values and %d characters", len(values), size)
		characters += size
	})
	b.must(properties <= 5_000, "%d properties", properties)
	b.must(enums <= 1_000, "%d enum values", enums)
	b.must(characters <= 120_000, "%d characters", characters)
	b.must(objectDepth(parameters) <= 10, "nesting")
	return b
}

func objectDepth(v any) (depth int) {
	m, ok := v.(anyMap)
	if !ok {
		return 0
	}
	children := []any{m["items"]}
	if choices, ok := m["anyOf"].([]any); ok {
		children = append(children, choices...)
	}
	if properties, ok := m["properties"].(anyMap); ok {
		for _, p := range properties {
			children = append(children, p)
		}
	}
	for _, c := range children {
		depth = max(depth, objectDepth(c))
	}
	if hasType(m, "object") {
		depth++
	}
	return depth
}

// anthropic-sdk-typescript 1.14.0, resources/messages/messages.d.ts, Tool and Tool.InputSchema: input_schema is JSON
// Schema 2020-12 with type "object"; name and input_schema are required. Claude docs, "Define tools": the name matches
// ^[a-zA-Z0-9_-]{1,64}$. The API: "input_schema does not support oneOf, allOf, or anyOf at the top level", "Property keys
// should match pattern '^[a-zA-Z0-9_.-]{1,64}$'" (anthropics/claude-code issue 79418).
func ruleAnthropic(raw json.RawMessage) []string {
	var b breaches
	m := decode(raw, &b)
	only(m, &b, "name", "description", "input_schema")
	name, _ := m["name"].(string)
	b.must(regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(name), "name %q", name)
	input, _ := m["input_schema"].(anyMap)
	b.must(input["type"] == "object", "input_schema must be of type object")
	for _, k := range []string{"oneOf", "anyOf", "allOf"} {
		_, there := input[k]
		b.must(!there, "%s at the top", k)
	}
	properties, _ := input["properties"].(anyMap)
	for key := range properties {
		b.must(regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`).MatchString(key), "property key %q", key)
	}
	return b
}

// Google: @google/genai 2.32.0, genai.d.ts, FunctionDeclaration and Schema (the fields and their types: counts are int64
// and so strings; enum is a list of strings); Vertex AI reference, FunctionDeclaration (names: a letter or underscore
// first, 64 characters; parameter names: a letter or underscore, then a-z, A-Z, 0-9 or underscores, 64; "for function with
// no parameters, this can be left unset"). The API: "properties: should be non-empty for OBJECT type", "enum: only allowed
// for STRING type", "enum[0]: cannot be empty", "items: missing field", and "when using any_of, it must be the only field
// set".
func ruleGemini(raw json.RawMessage) []string {
	var b breaches
	m := decode(raw, &b)
	only(m, &b, "name", "description", "parameters")
	name, _ := m["name"].(string)
	b.must(regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$`).MatchString(name), "name %q", name)
	if m["parameters"] == nil {
		return b
	}
	top, _ := m["parameters"].(anyMap)
	b.must(top["type"] == "OBJECT", "parameters must be an OBJECT")
	properties, _ := top["properties"].(anyMap)
	for key := range properties {
		b.must(regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`).MatchString(key), "parameter %q", key)
	}
	geminiSchema(top, &b)
	return b
}

func geminiSchema(s anyMap, b *breaches) {
	fields := map[string]string{
		"anyOf": "list", "default": "any", "description": "string", "enum": "list", "example": "any", "format": "string", "items": "object",
		"maxItems": "int64", "maxLength": "int64", "maxProperties": "int64", "minItems": "int64", "minLength": "int64", "minProperties": "int64",
		"maximum": "number", "minimum": "number", "nullable": "bool", "pattern": "string", "properties": "object",
		"propertyOrdering": "list", "required": "list", "title": "string", "type": "string",
	}
	for key, v := range s {
		kind, known := fields[key]
		b.must(known, "Schema has no field %q", key)
		ok := true
		switch kind {
		case "string":
			_, ok = v.(string)
		case "int64":
			text, isString := v.(string)
			ok = isString && regexp.MustCompile(`^[0-9]+$`).MatchString(text)
		case "number":
			_, ok = v.(float64)
		case "bool":
			_, ok = v.(bool)
		case "list":
			_, ok = v.([]any)
		case "object":
			_, ok = v.(anyMap)
		}
		b.must(ok, "%s is no %s: %v", key, kind, v)
	}
	if choices, ok := s["anyOf"].([]any); ok {
		b.must(len(s) == 1, "something beside anyOf: %v", s)
		for _, c := range choices {
			c, ok := c.(anyMap)
			b.must(ok, "an alternative is no schema")
			geminiSchema(c, b)
		}
		return
	}
	b.must(slices.Contains([]string{"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"}, fmt.Sprint(s["type"])), "type %v", s["type"])
	if values, ok := s["enum"].([]any); ok {
		b.must(s["type"] == "STRING" && s["format"] == "enum" && len(values) > 0, "enum is for STRING alone: %v", s)
		for _, v := range values {
			text, isString := v.(string)
			b.must(isString && text != "", "enum value %v", v)
		}
	} else if format, ok := s["format"]; ok {
		b.must(format == "date-time", "format %v", format)
	}
	switch s["type"] {
	case "ARRAY":
		items, ok := s["items"].(anyMap)
		b.must(ok, "items: missing field")
		geminiSchema(items, b)
	case "OBJECT":
		properties, _ := s["properties"].(anyMap)
		b.must(len(properties) > 0, "properties: should be non-empty for OBJECT type")
		required, _ := s["required"].([]any)
		for _, r := range required {
			b.must(properties[fmt.Sprint(r)] != nil, "required %v is no property", r)
		}
		for _, p := range properties {
			p, ok := p.(anyMap)
			b.must(ok, "a property is no schema")
			geminiSchema(p, b)
		}
	}
}

func hasType(s anyMap, name string) bool {
	list, _ := s["type"].([]any)
	return s["type"] == name || slices.Contains(list, any(name))
}

// eachSchema visits a schema and all below it.
func eachSchema(v any, f func(anyMap)) {
	s, ok := v.(anyMap)
	if !ok {
		return
	}
	f(s)
	for key, v := range s {
		switch v := v.(type) {
		case anyMap:
			switch key {
			case "properties", "patternProperties", "$defs":
				for _, p := range v {
					eachSchema(p, f)
				}
			case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames":
				eachSchema(v, f)
			}
		case []any:
			if strings.HasSuffix(key, "Of") || key == "prefixItems" {
				for _, item := range v {
					eachSchema(item, f)
				}
			}
		}
	}
}

// TestRules holds that the validators find something at all.
func TestRules(t *testing.T) {
	t.Parallel()
	for d, tools := range map[dialect.Dialect][]string{
		dialect.MCP:             {`{"name":"a","inputSchema":{"type":"string"}}`},
		dialect.OpenAI:          {`{"type":"function","function":{"name":"a.b","parameters":{"type":"object","properties":{}}}}`, `{"type":"function","function":{"name":"a","parameters":{"type":"object"}}}`},
		dialect.OpenAIResponses: {`{"type":"function","name":"a","parameters":{"type":"object","properties":{}}}`},
		dialect.OpenAIStrict: {
			`{"type":"function","function":{"name":"a","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}}}`,
			`{"type":"function","function":{"name":"a","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"string","minLength":1}},"required":["a"],"additionalProperties":false}}}`,
			`{"type":"function","function":{"name":"a","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"object","properties":{}}},"required":["a"],"additionalProperties":false}}}`,
		},
		dialect.Anthropic: {`{"name":"a","input_schema":{"type":"object","allOf":[{}]}}`, `{"name":"a","input_schema":{"type":"object","properties":{"a b":{}}}}`},
		dialect.Gemini: {
			`{"name":"a","parameters":{"type":"OBJECT","properties":{}}}`,
			`{"name":"a","parameters":{"type":"OBJECT","properties":{"a":{"type":"INTEGER","enum":[1]}}}}`,
			`{"name":"a","parameters":{"type":"OBJECT","properties":{"a":{"type":"STRING","maxLength":4}}}}`,
			`{"name":"a","parameters":{"type":"OBJECT","properties":{"a":{"$ref":"#/$defs/a"}}}}`,
		},
	} {
		for _, tool := range tools {
			if rules[d](json.RawMessage(tool)) == nil {
				t.Errorf("%s: the rules let this pass: %s", d, tool)
			}
		}
	}
}
