package invoke

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/registry"
)

// maxPost caps what a post program may make of a result, in bytes, as the bindings cap their own.
const maxPost = 1 << 20

// shape runs the tool's post program over a result that is no error, and holds the outcome against the declared result.
// The program sees the structured result where there is one, else the text.
func shape(ctx context.Context, entry *registry.Entry, result *registry.Result) (*registry.Result, *registry.Error) {
	if result.IsError {
		return result, nil
	}
	if post := entry.Bound().Post; post != nil {
		in, err := shapeInput(result)
		if err != nil {
			return nil, &registry.Error{Code: registry.ResultInvalid, Msg: "the tool's result can't be read by its post program", Err: err}
		}
		out, err := post(ctx, in)
		if err != nil {
			return nil, &registry.Error{Code: registry.ResultInvalid, Msg: fmt.Sprintf("the tool's post program failed on its result: %v", err)}
		}
		if result, err = fromValue(out); err != nil {
			return nil, &registry.Error{Code: registry.Internal, Msg: "the tool's post program gave no JSON", Err: err}
		}
		if len(text(result)) > maxPost {
			return nil, &registry.Error{
				Code: registry.OutputTooLarge,
				Msg:  fmt.Sprintf("what the tool's post program makes of its result is larger than %d bytes, the most that a tool may answer; ask for less", maxPost),
			}
		}
	}
	return checkResult(ctx, entry, result)
}

// checkResult holds a result against what the tool declares. What the tool structured itself leaves as it came.
func checkResult(ctx context.Context, entry *registry.Entry, result *registry.Result) (*registry.Result, *registry.Error) {
	declared := entry.Result()
	if declared == nil {
		return result, nil
	}
	structured := result.Structured
	if structured == nil {
		// Text that holds the object is as good as a structured result (MCP 2025-06-18, tools, structured content).
		structured = json.RawMessage(text(result))
	}
	checked, violations, err := declared.Check(ctx, structured)
	if err != nil {
		return nil, &registry.Error{Code: registry.Unavailable, Msg: "the tool's result could not be checked, so it is not passed on; the tool has run", Err: err}
	}
	if violations != nil {
		return nil, &registry.Error{
			Code: registry.ResultInvalid,
			Msg:  fmt.Sprintf("tool %q answered what its declared result does not allow: %s", entry.Name(), list(violations)),
		}
	}
	if result.Structured == nil {
		result.Structured = checked.JSON()
	}
	return result, nil
}

func list(violations []contract.Violation) string {
	parts := make([]string, len(violations))
	for i, v := range violations {
		parts[i] = v.String()
	}
	return strings.Join(parts, "; ")
}

// fromValue makes a result of decoded JSON: an object is structured content (and its text), a string is text, anything
// else is its JSON as text.
func fromValue(v any) (*registry.Result, error) {
	if s, ok := v.(string); ok {
		return &registry.Result{Content: []json.RawMessage{registry.Text(s)}}, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	raw := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	result := &registry.Result{Content: []json.RawMessage{registry.Text(string(raw))}}
	if _, ok := v.(map[string]any); ok {
		result.Structured = raw
	}
	return result, nil
}

func shapeInput(result *registry.Result) (any, error) {
	if result.Structured == nil {
		return text(result), nil
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(result.Structured))
	dec.UseNumber()
	err := dec.Decode(&v)
	return v, err
}

// text is the text of a result's text blocks.
func text(result *registry.Result) string {
	var parts []string
	for _, raw := range result.Content {
		var block struct{ Type, Text string }
		if json.Unmarshal(raw, &block) == nil && block.Type == "text" {
			parts = append(parts, block.Text)
		}
	}
	return strings.Join(parts, "\n")
}
