package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/catalogd/catalogd/registry"
)

// inputRequired is the resultType of what is no answer yet.
const inputRequired = `"input_required"`

// result is a CallToolResult with its parts as the bytes that the server sent. Names of fields are matched exactly.
func result(raw json.RawMessage) (*registry.Result, error) {
	if !utf8.Valid(raw) {
		return nil, errors.New("its result is not UTF-8")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return nil, errors.New("its result is not a JSON object")
	}
	if kind, ok := fields["resultType"]; ok && string(kind) != `"complete"` {
		if string(kind) != inputRequired {
			return nil, fmt.Errorf("its result is of the unknown type %.40s", kind)
		}
		in, err := input(fields)
		if err != nil {
			return nil, err
		}
		return withMeta(&registry.Result{Input: in}, fields)
	}
	r := &registry.Result{Structured: present(fields["structuredContent"])}
	if content := present(fields["content"]); content != nil {
		if err := json.Unmarshal(content, &r.Content); err != nil {
			return nil, errors.New("the content of its result is not a list")
		}
	} else if r.Structured == nil {
		return nil, errors.New("its result has neither content nor structuredContent")
	}
	for i, block := range r.Content {
		if !bytes.HasPrefix(block, []byte("{")) {
			return nil, fmt.Errorf("block %d of its result's content is not an object", i)
		}
	}
	if r.Content == nil {
		r.Content = []json.RawMessage{}
	}
	if flag := present(fields["isError"]); flag != nil {
		if err := json.Unmarshal(flag, &r.IsError); err != nil {
			return nil, errors.New("isError of its result is not true or false")
		}
	}
	r.Fields = unknown(fields)
	return withMeta(r, fields)
}

// unknown are the fields of a result that no revision names. One that some client could take for a known one, because it
// doesn't look at the case, is left out.
func unknown(fields map[string]json.RawMessage) (more map[string]json.RawMessage) {
	for name, value := range fields {
		if slices.ContainsFunc(resultFields, func(known string) bool { return strings.EqualFold(name, known) }) {
			continue
		}
		if more == nil {
			more = map[string]json.RawMessage{}
		}
		more[name] = value
	}
	return more
}

var resultFields = []string{"content", "structuredContent", "isError", "_meta", "resultType", "inputRequests", "requestState", "task"}

func withMeta(r *registry.Result, fields map[string]json.RawMessage) (*registry.Result, error) {
	if r.Meta = present(fields["_meta"]); r.Meta != nil && r.Meta[0] != '{' {
		return nil, errors.New("_meta of its result is not an object")
	}
	return r, nil
}

// present is nil for an absent field and for null.
func present(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}
