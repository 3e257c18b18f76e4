// Package dialect converts a contract to the forms that model providers accept: mcp, openai, openai-strict,
// openai-responses, anthropic and gemini.
//
// Each dialect rewrites the contract's JSON Schema to what the provider's published rules allow, and lists
// what the provider's schema no longer expresses (Loss). The check of a call loses nothing: every call is
// checked against the contract itself, in whatever dialect the tool was offered. A schema that a provider
// can't express is refused with a code and a reason (Refusal) and never expressed wrongly. docs/dialects.md
// explains each rewrite.
//
// A rewrite deviates only in declared directions. A Loss that widens lets the model write arguments that the
// check then refuses. A Loss that narrows keeps the model from writing arguments that the check would accept.
// No rewrite makes a model write arguments with another meaning: the one convention that a dialect adds, null
// for an omitted argument (openai-strict), is undone by Arguments before the check.
//
// Everything here is a pure function of its arguments and safe for concurrent use. The output is byte-stable.
//
// Semantic versioning holds for this package (CONTRIBUTING.md).
package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/strictjson"
)

// Dialect is the name of a provider's form.
type Dialect string

// The dialects.
const (
	// MCP is the tool as tools/list shows it: the contract's schema, byte for byte.
	MCP Dialect = "mcp"
	// OpenAI is a function tool of Chat Completions, without strict.
	OpenAI Dialect = "openai"
	// OpenAIStrict is a function tool of Chat Completions with strict: the provider constrains the arguments
	// to the schema.
	OpenAIStrict Dialect = "openai-strict"
	// OpenAIResponses is a function tool of the Responses API, without strict.
	OpenAIResponses Dialect = "openai-responses"
	// Anthropic is a tool of the Messages API.
	Anthropic Dialect = "anthropic"
	// Gemini is a function declaration of the Gemini API.
	Gemini Dialect = "gemini"
)

// All returns the dialects in the order in which documents list them.
func All() []Dialect {
	return []Dialect{MCP, OpenAI, OpenAIStrict, OpenAIResponses, Anthropic, Gemini}
}

// Parse parses a dialect's name.
func Parse(name string) (Dialect, error) {
	var names []string
	for _, d := range All() {
		if string(d) == name {
			return d, nil
		}
		names = append(names, string(d))
	}
	return "", fmt.Errorf("there is no dialect %q; there are %s", name, strings.Join(names, ", "))
}

// Tool is the description of a tool that a client receives.
type Tool struct {
	Name, Title, Description string
	// Input is the JSON Schema (2020-12) of the arguments, of type object; Output that of the structured
	// result, or nil.
	Input, Output json.RawMessage
	// ReadOnly: calls of the tool change nothing. Idempotent: repeating one does no more than making it once.
	ReadOnly, Idempotent bool
}

// Offer is a tool in a dialect: either Tool, or the reasons why the dialect can't express it.
type Offer struct {
	// Tool is the provider's JSON; nil where the tool is refused.
	Tool json.RawMessage
	// Losses are what the provider's schema doesn't express, in the order of the schema.
	Losses []Loss
	// Fallback is everything about the tool that strict mode can't express; the tool is then offered without
	// strict.
	Fallback []Refusal
	// Refused is everything that prevents the tool from being offered in this dialect.
	Refused []Refusal
}

// Loss is one constraint that the contract's schema expresses and the provider's does not.
type Loss struct {
	// Path leads to it from the arguments: opts.tags[].name; empty for the arguments as a whole. [] is an
	// item of a list, {} a value under any key.
	Path string `json:"path"`
	// Keyword is the JSON Schema keyword that is lost.
	Keyword string `json:"keyword"`
	// Narrows: the model can't write everything that the contract accepts. Otherwise it can write more.
	Narrows bool `json:"narrows,omitempty"`
	// What briefly describes the loss.
	What string `json:"what"`
}

// Code is a reason why a dialect can't express a tool. The list is closed.
type Code string

// The codes.
const (
	BadToolName       Code = "bad_tool_name"
	BadParameterName  Code = "bad_parameter_name"
	Recursion         Code = "recursion"
	Unrepresentable   Code = "unrepresentable"
	TooDeep           Code = "too_deep"
	TooManyProperties Code = "too_many_properties"
	TooManyEnumValues Code = "too_many_enum_values"
	TooLong           Code = "too_long"
	BadSchema         Code = "bad_schema"
)

// Codes returns all codes in the order in which documents list them.
func Codes() []Code {
	return []Code{BadToolName, BadParameterName, Recursion, Unrepresentable, TooDeep, TooManyProperties, TooManyEnumValues, TooLong, BadSchema}
}

// Refusal is one reason why a dialect can't express a tool.
type Refusal struct {
	// Code says which kind of reason it is.
	Code Code `json:"code"`
	// Path is as in Loss.
	Path string `json:"path"`
	// What is the reason in words.
	What string `json:"what"`
}

func (r Refusal) String() string {
	if r.Path == "" {
		return fmt.Sprintf("%s: %s", r.Code, r.What)
	}
	return fmt.Sprintf("%s: %s: %s", r.Code, r.Path, r.What)
}

// Offer converts a tool to the dialect.
func (d Dialect) Offer(t Tool) Offer {
	if v, err := parse(t.Input); d == MCP && err == nil && isObject(v) {
		return Offer{Tool: encode(listed(t))}
	}
	schema, err := read(t.Input)
	w := &writer{dialect: d, defs: child(schema, "$defs")}
	if err != nil {
		w.refuse(BadSchema, "", "the schema of the arguments can't be read: "+clip(err.Error()))
		return Offer{Refused: w.refused}
	}
	var tool *object
	switch d {
	case OpenAI:
		w.toolName(t.Name, names64)
		tool = function(describe(t, "parameters", w.plain(schema)))
	case OpenAIResponses:
		w.toolName(t.Name, names64)
		tool = strictjson.New("type", "function")
		tool.Members = append(tool.Members, describe(t, "parameters", w.plain(schema)).Members...)
		tool.Set("strict", false)
	case OpenAIStrict:
		return w.strictOrNot(t, schema)
	case Anthropic:
		w.toolName(t.Name, names64)
		tool = describe(t, "input_schema", w.anthropic(schema))
	case Gemini:
		w.toolName(t.Name, geminiTool)
		parameters := w.gemini(schema)
		tool = describe(t, "parameters", parameters)
		if parameters == nil {
			tool.Remove("parameters") // "For function with no parameters, this can be left unset."
		}
	default:
		w.refuse(BadSchema, "", fmt.Sprintf("there is no dialect %q", string(d)))
	}
	if w.refused != nil {
		return Offer{Refused: w.refused}
	}
	return Offer{Tool: encode(tool), Losses: w.losses}
}

// strictOrNot returns the tool with strict, or without if strict mode can't express it.
func (w *writer) strictOrNot(t Tool, schema *object) Offer {
	w.toolName(t.Name, names64)
	if w.refused != nil {
		return Offer{Refused: w.refused}
	}
	parameters := w.strict(schema)
	if w.refused == nil {
		f := describe(t, "parameters", parameters)
		f.Set("strict", true)
		return Offer{Tool: encode(function(f)), Losses: w.losses}
	}
	plain := &writer{dialect: w.dialect, defs: w.defs}
	f := describe(t, "parameters", plain.plain(schema))
	if plain.refused != nil {
		return Offer{Refused: plain.refused}
	}
	f.Set("strict", false)
	return Offer{Tool: encode(function(f)), Losses: plain.losses, Fallback: w.refused}
}

func function(f *object) *object { return strictjson.New("type", "function", "function", f) }

// read returns the schema of a tool's arguments in draft 2020-12, whose references all lead into its $defs.
func read(input json.RawMessage) (*object, error) {
	latest, err := contract.Latest(input)
	if err != nil {
		return &object{}, err
	}
	v, err := parse(latest)
	if err != nil {
		return &object{}, err
	}
	if schema, ok := v.(*object); ok {
		return schema, nil
	}
	return &object{}, errors.New("it is no JSON object")
}

var (
	// names64 matches the function names that OpenAI and Anthropic accept.
	names64 = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	// geminiTool matches those that Gemini accepts; newer documents allow 128 characters.
	geminiTool = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$`)
	// geminiParameter matches the parameter names that Gemini accepts.
	geminiParameter = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	// anthropicParameter matches those that Anthropic accepts.
	anthropicParameter = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
)

// listed returns a tool in the form of MCP's tools/list.
func listed(t Tool) *object {
	o := strictjson.New("name", t.Name)
	if t.Title != "" {
		o.Set("title", t.Title)
	}
	if t.Description != "" {
		o.Set("description", t.Description)
	}
	o.Set("inputSchema", t.Input)
	if t.Output != nil {
		o.Set("outputSchema", t.Output)
	}
	annotations := &object{}
	if t.Title != "" {
		annotations.Set("title", t.Title)
	}
	annotations.Set("readOnlyHint", t.ReadOnly)
	if t.Idempotent {
		annotations.Set("idempotentHint", true)
	}
	o.Set("annotations", annotations)
	return o
}

// describe returns name, description and schema, which every provider's form has.
func describe(t Tool, key string, schema *object) *object {
	o := strictjson.New("name", t.Name)
	if t.Description != "" {
		o.Set("description", t.Description)
	}
	o.Set(key, schema)
	return o
}
