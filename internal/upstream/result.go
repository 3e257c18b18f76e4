package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/registry"
)

// inputRequired is the resultType of a result that asks for input.
const inputRequired = `"input_required"`

// result parses a CallToolResult, with its parts as the bytes that the server sent, unless one of their objects has a key
// twice: a policy and a client could read different values of it, so what the policy reads is what is passed on. Field
// names are matched exactly.
func result(raw json.RawMessage) (*registry.Result, error) {
	if !utf8.Valid(raw) {
		return nil, errors.New("its result is not UTF-8")
	}
	members, fields, err := fieldsOf(raw)
	if err != nil {
		return nil, err
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
	clear, err := strictjson.Unambiguous(raw)
	if err != nil {
		return nil, fmt.Errorf("its result can't be read: %w", err)
	}
	if !bytes.Equal(clear, raw) {
		if members, fields, err = fieldsOf(clear); err != nil {
			return nil, err
		}
	}
	r := &registry.Result{Structured: present(fields["structuredContent"])}
	if content := present(fields["content"]); content != nil {
		if err := strictjson.Items(content, func(block []byte) { r.Content = append(r.Content, block) }); err != nil {
			return nil, errors.New("the content of its result is not a list")
		}
	} else if r.Structured == nil && present(fields["task"]) != nil {
		return nil, errors.New("its result is a task, which was not requested")
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
	for i, m := range members {
		known := slices.Contains(resultFields, m.Name)
		switch {
		case !known && slices.ContainsFunc(resultFields, func(k string) bool { return strings.EqualFold(m.Name, k) }):
			continue // a client that ignores case would read it as the known field
		case known && !slices.Contains(answerFields, m.Name), slices.ContainsFunc(members[i+1:], func(later registry.Member) bool { return later.Name == m.Name }):
			continue
		case !known:
			if r.Fields == nil {
				r.Fields = map[string]json.RawMessage{}
			}
			r.Fields[m.Name] = m.Value
		}
		r.Answer = append(r.Answer, m)
	}
	return withMeta(r, fields)
}

// fieldsOf splits a result. Of duplicate fields the last one counts.
func fieldsOf(raw json.RawMessage) (members []registry.Member, fields map[string]json.RawMessage, err error) {
	members, ok := registry.Split(raw)
	if !ok {
		return nil, nil, errors.New("its result is not a JSON object")
	}
	fields = make(map[string]json.RawMessage, len(members))
	for _, m := range members {
		fields[m.Name] = m.Value
	}
	return members, fields, nil
}

// answerFields are the fields of a final answer, and resultFields those of any result of a call in some
// revision: the fields of a result that asks for input are not forwarded with an answer.
var (
	answerFields = []string{"content", "structuredContent", "isError", "_meta", "resultType"}
	resultFields = append([]string{"inputRequests", "requestState", "task"}, answerFields...)
)

func withMeta(r *registry.Result, fields map[string]json.RawMessage) (*registry.Result, error) {
	if r.Meta = present(fields["_meta"]); r.Meta != nil && r.Meta[0] != '{' {
		return nil, errors.New("_meta of its result is not an object")
	}
	return r, nil
}

// present returns raw, and nil for an absent field and for null.
func present(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}
