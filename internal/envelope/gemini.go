package envelope

import (
	"errors"

	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/registry"
)

// geminiForm is that of generateContent. A response has candidates, of which the first is read.
var geminiForm = form{
	calls: func(o *strictjson.Object) ([]any, bool, error) {
		if candidates := o.List("candidates"); len(candidates) > 0 {
			candidate, _ := candidates[0].(*strictjson.Object)
			o = candidate.Object("content")
		}
		items := o.List("parts")
		return items, items != nil, nil
	},
	call: func(o *strictjson.Object) (c Call, ok bool, err error) {
		function := o.Object("functionCall")
		if function == nil {
			function = o.Object("function_call") // as the Python SDK spells it
		}
		if function == nil {
			return c, false, nil
		}
		if function.Has("arguments") && !function.Has("args") {
			return c, false, errors.New("its functionCall has arguments and no args; OpenAI's function_call is deprecated and not read, only its tool_calls are")
		}
		if c.ID, err = str(function, "id"); err != nil {
			return c, false, err
		}
		if c.Name, err = str(function, "name"); err != nil {
			return c, false, err
		}
		c.Arguments = object(function, "args")
		return c, true, nil
	},
	// A response has the key output, or error where the call failed.
	result: func(c Call, of registry.Call) any {
		key, value := "output", any(text(of))
		if failed(of) {
			key = "error"
		} else if s := structured(of); s != nil {
			value = s
		}
		response := strictjson.New()
		if c.ID != "" {
			response.Add("id", c.ID)
		}
		response.Add("name", c.Name)
		response.Add("response", strictjson.New(key, value))
		return strictjson.New("functionResponse", response)
	},
	message: func(results []any) any { return strictjson.New("role", "user", "parts", results) },
}
