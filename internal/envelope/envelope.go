// Package envelope reads the tool calls that a model made, in the form in which its provider's API returns them,
// and writes the results in the form in which that API takes them.
//
// Read takes a single call, a list of calls, the message that has them, or the whole response of the API. Results
// answers in kind: a single result, a list, or the next message. The forms are those of OpenAI's Chat Completions
// and Responses, of Anthropic's Messages and of Gemini's generateContent, and a plain one, {"function": "name",
// "arguments": {…}}. docs/agents.md has an example of each.
//
// Everything but Run is a pure function of its arguments. Nothing here knows a branch: Run is given what calls.
package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/registry"
)

// Format is a provider's form of calls and results.
type Format string

// The formats.
const (
	OpenAI    Format = "openai"           // Chat Completions: tool_calls, answered by tool messages
	Responses Format = "openai-responses" // Responses: function_call items, answered by function_call_output items
	Anthropic Format = "anthropic"        // Messages: tool_use blocks, answered by tool_result blocks
	Gemini    Format = "gemini"           // generateContent: functionCall parts, answered by functionResponse parts
	Plain     Format = "plain"            // {function, arguments}, answered by {function, status, …}
)

const (
	// MaxCalls caps the calls in one envelope.
	MaxCalls = 128
	// maxDepth caps the nesting of an envelope, and of the structured content of a result.
	maxDepth = 1000
)

// Call is one call as the model made it.
type Call struct {
	// ID is the provider's id of the call, empty where the form has none.
	ID   string
	Name string
	// Arguments are the bytes that the model wrote. They have not been checked, and may be no JSON at all.
	Arguments json.RawMessage
}

// Batch is the calls of one envelope, of which there is at least one.
type Batch struct {
	Format Format
	Calls  []Call
	shape  shape
}

// shape is what the calls came in, and so what their results go out in.
type shape int

const (
	single  shape = iota // one call
	list                 // a list of calls, maybe among other items
	message              // a message or a response
)

// form is what differs between formats.
type form struct {
	// calls are the items of a message or of a whole response; false where it is neither of this format.
	calls func(o *strictjson.Object) (items []any, ok bool, err error)
	// call reads one item; false where it isn't a call of this format.
	call func(o *strictjson.Object) (c Call, ok bool, err error)
	// result is the item that answers a call.
	result func(c Call, of registry.Call) any
	// message wraps the results of a message's calls; nil where they are messages themselves.
	message func(results []any) any
	// needsID says that an answer is matched to its call by its id.
	needsID bool
}

// order is the order in which the formats are tried.
var order = []Format{OpenAI, Responses, Anthropic, Gemini, Plain}

var forms = map[Format]form{
	OpenAI: openAIForm, Responses: responsesForm, Anthropic: anthropicForm, Gemini: geminiForm, Plain: plainForm,
}

// Read reads an envelope. Its error says what is wrong, and where: broken or ambiguous JSON (internal/strictjson), no
// call, calls of different formats, a result beside them, an id that is missing or used twice, or more than MaxCalls calls. What else a
// provider puts beside calls, such as text, is left out.
func Read(data []byte) (Batch, error) {
	v, err := strictjson.Decode(data, strictjson.Options{MaxDepth: maxDepth})
	if err != nil {
		return Batch{}, fmt.Errorf("not JSON that can be read: %w", err)
	}
	var b Batch
	items, where := []any{v}, func(int) string { return "the value" }
	switch v := v.(type) {
	case []any:
		b.shape = list
		items, where = v, func(i int) string { return fmt.Sprintf("item %d of the list", i) }
	case *strictjson.Object:
		called := false
		for _, f := range order {
			found, ok, err := forms[f].calls(v)
			if err != nil {
				return Batch{}, err
			}
			calls := slices.ContainsFunc(found, forms[f].isCall)
			switch {
			case calls && called:
				return Batch{}, fmt.Errorf("the message has calls in the form %s and in the form %s; send them apart", b.Format, f)
			case ok && b.shape != message || calls:
				b.Format, b.shape, called = f, message, calls
				items, where = found, func(i int) string { return fmt.Sprintf("item %d of the message", i) }
			}
		}
	}
	ids := map[string]bool{}
	for i, item := range items {
		c, f, ok, err := readItem(item, b.Format)
		switch {
		case err != nil:
			return Batch{}, fmt.Errorf("%s: %w", where(i), err)
		case !ok && b.shape != single && isResult(item.(*strictjson.Object)):
			return Batch{}, fmt.Errorf("%s is a result, so the call before it has been run; send only the calls that the model has just made", where(i))
		case !ok && b.shape == single:
			return Batch{}, errNoCall
		case !ok && b.shape == list && !isOther(item.(*strictjson.Object)):
			return Batch{}, fmt.Errorf("%s is not a tool call", where(i))
		case !ok:
			continue
		case b.Format != "" && f != b.Format:
			return Batch{}, fmt.Errorf("%s is a call in the form %s, and one before it in the form %s; send them apart", where(i), f, b.Format)
		case c.Name == "":
			return Batch{}, fmt.Errorf("%s names no function", where(i))
		case c.ID == "" && forms[f].needsID:
			return Batch{}, fmt.Errorf("%s has no id; its result could not be matched to it", where(i))
		case c.ID != "" && ids[c.ID]:
			return Batch{}, fmt.Errorf("%s has the id %q, as one before it has", where(i), registry.Shown(c.ID))
		case len(b.Calls) == MaxCalls:
			return Batch{}, fmt.Errorf("more than %d calls at once; send fewer", MaxCalls)
		}
		b.Format = f
		ids[c.ID] = true
		b.Calls = append(b.Calls, c)
	}
	if len(b.Calls) == 0 {
		return Batch{}, errNoCall
	}
	return b, nil
}

var errNoCall = errors.New("there is no tool call in it; there may be OpenAI's tool_calls or function_call items, Anthropic's tool_use, " +
	"Gemini's functionCall, or {\"function\": \"name\", \"arguments\": {}}, alone, in a list, or in the message or response that has them")

// readItem reads one item in the given format, in any if it is empty.
func readItem(item any, as Format) (c Call, f Format, ok bool, err error) {
	o, isObject := item.(*strictjson.Object)
	if !isObject {
		return c, "", false, errors.New("it is not an object")
	}
	for _, f := range order {
		if c, ok, err = forms[f].call(o); ok || err != nil {
			return c, f, ok, err
		}
	}
	return c, as, false, nil
}

// Results writes the results of the batch's calls, given in their order, as JSON.
func (b Batch) Results(calls []registry.Call) json.RawMessage {
	f := forms[b.Format]
	results := make([]any, len(b.Calls))
	for i, c := range b.Calls {
		results[i] = f.result(c, calls[i])
	}
	switch {
	case b.shape == single:
		return encode(results[0])
	case b.shape == message && f.message != nil:
		return encode(f.message(results))
	}
	return encode(results)
}

// encode writes a document. What a server sent may be no UTF-8, which MCP's clients tolerate, and providers don't.
func encode(v any) json.RawMessage {
	return bytes.ToValidUTF8(strictjson.Append(nil, v), []byte("\ufffd"))
}

// str is the value of a key that is a string; another value is an error.
func str(o *strictjson.Object, key string) (string, error) {
	switch v := o.Get(key).(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	}
	return "", fmt.Errorf("%s is not a string", key)
}

// isCall reports whether an item is a call of this format, with mistakes or without.
func (f form) isCall(item any) bool {
	o, isObject := item.(*strictjson.Object)
	if !isObject {
		return false
	}
	_, ok, err := f.call(o)
	return ok || err != nil
}

// isResult reports whether an item is the result of a call, as it is where a whole conversation is sent.
func isResult(o *strictjson.Object) bool {
	kind := o.Text("type")
	return kind == "function_call_output" || kind == "tool_result" || o.Text("role") == "tool" || o.Object("functionResponse") != nil || o.Object("function_response") != nil
}

// isOther reports whether an item of a list is one that providers put beside calls: it has a type, a role or a text.
func isOther(o *strictjson.Object) bool {
	_, typed := o.Get("type").(string)
	return typed || o.Has("role") || o.Has("text")
}

// quoted are arguments that a provider sends as a string of JSON. Some models leave it empty for none, and some servers
// send the object itself.
func quoted(o *strictjson.Object, key string) (json.RawMessage, error) {
	if o.Object(key) != nil {
		return object(o, key), nil
	}
	s, err := str(o, key)
	if s == "" {
		s = "{}"
	}
	return json.RawMessage(s), err
}

// object is the value of a key that holds arguments as an object; absent and null mean none.
func object(o *strictjson.Object, key string) json.RawMessage {
	v := o.Get(key)
	if v == nil {
		return json.RawMessage("{}")
	}
	return encode(v)
}
