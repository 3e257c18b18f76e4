package envelope

import (
	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/registry"
)

// openAIForm is that of Chat Completions. A response has choices, of which the first is read.
var openAIForm = form{
	needsID: true,
	calls: func(o *strictjson.Object) ([]any, bool, error) {
		if choices := o.List("choices"); len(choices) > 0 {
			choice, _ := choices[0].(*strictjson.Object)
			o = choice.Object("message")
		}
		return o.List("tool_calls"), o.Has("tool_calls"), nil
	},
	call: func(o *strictjson.Object) (c Call, ok bool, err error) {
		function := o.Object("function")
		if function == nil {
			return c, false, nil
		}
		if c.ID, err = str(o, "id"); err != nil {
			return c, false, err
		}
		if c.Name, err = str(function, "name"); err != nil {
			return c, false, err
		}
		c.Arguments, err = quoted(function, "arguments")
		return c, true, err
	},
	result: func(c Call, of registry.Call) any {
		return strictjson.New("role", "tool", "tool_call_id", c.ID, "content", text(of))
	},
}

// responsesForm is that of the Responses API. A response has its items under output.
var responsesForm = form{
	needsID: true,
	calls: func(o *strictjson.Object) ([]any, bool, error) {
		items := o.List("output")
		return items, items != nil, nil
	},
	call: func(o *strictjson.Object) (c Call, ok bool, err error) {
		if o.Get("type") != "function_call" {
			return c, false, nil
		}
		if c.ID, err = str(o, "call_id"); err != nil {
			return c, false, err
		}
		if c.Name, err = str(o, "name"); err != nil {
			return c, false, err
		}
		c.Arguments, err = quoted(o, "arguments")
		return c, true, err
	},
	result: func(c Call, of registry.Call) any {
		return strictjson.New("type", "function_call_output", "call_id", c.ID, "output", text(of))
	},
}
