package envelope

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/registry"
)

// plainForm is that of programs without a provider's API. It has no message, and its results tell the most.
var plainForm = form{
	calls: func(*strictjson.Object) ([]any, bool, error) { return nil, false, nil },
	call: func(o *strictjson.Object) (c Call, ok bool, err error) {
		name, ok := o.Get("function").(string)
		if !ok {
			return c, false, nil
		}
		if c.ID, err = str(o, "id"); err != nil {
			return c, false, err
		}
		c.Name = name
		switch o.Get("arguments").(type) {
		case nil, *strictjson.Object:
			c.Arguments = object(o, "arguments")
		default:
			return c, false, errors.New("arguments is not an object")
		}
		return c, true, nil
	},
	result: func(c Call, of registry.Call) any {
		o := strictjson.New()
		if c.ID != "" {
			o.Add("id", c.ID)
		}
		o.Add("function", c.Name)
		o.Add("status", string(of.Status))
		if of.ID != "" {
			o.Add("call", of.ID)
		}
		if of.Intent != "" {
			o.Add("intent", of.Intent)
		}
		if of.Err != nil {
			o.Add("error", plainError(of.Err))
			return o
		}
		content := []any{}
		for _, block := range of.Result.Content {
			content = append(content, block)
		}
		s := structured(of)
		if s == nil && of.Result.Structured != nil && len(content) == 0 {
			content = append(content, registry.Text(text(of)))
		}
		o.Add("content", content)
		if s != nil {
			o.Add("structuredContent", s)
		}
		return o
	},
}

// plainError is an error with what a program needs to act on it.
func plainError(err *registry.Error) any {
	e := strictjson.New("code", string(err.Code), "message", err.Msg)
	if err.Decision != "" {
		e.Add("decision", err.Decision)
	}
	if err.Limit != "" {
		e.Add("limit", err.Limit)
	}
	if err.RetryAfter > 0 {
		e.Add("retryAfter", json.Number(strconv.Itoa(registry.Seconds(err.RetryAfter))))
	}
	if len(err.Violations) > 0 {
		violations, failed := json.Marshal(err.Violations)
		if failed != nil {
			panic("envelope: violations always encode: " + failed.Error())
		}
		e.Add("violations", json.RawMessage(violations))
	}
	if len(err.Nearest) > 0 {
		nearest := make([]any, len(err.Nearest))
		for i, name := range err.Nearest {
			nearest[i] = name
		}
		e.Add("nearest", nearest)
	}
	return e
}
