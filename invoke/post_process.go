package invoke

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/registry"
)

// maxPost is the maximum size of a post program's output in bytes.
const maxPost = 1 << 20

// postProcess runs the program's processors and the tool's post program on a result without IsError, and checks the output
// against the declared result. Their input is the structured content if there is some, else the text.
func (p *Path) postProcess(ctx context.Context, entry *registry.Entry, result *registry.Result) (*registry.Result, *registry.Error) {
	if result.IsError {
		return result, nil
	}
	for _, after := range entry.After() {
		next, failed := transformed(ctx, result, after, "a processor of the program")
		if failed != nil {
			return nil, failed
		}
		result = next
	}
	if post := entry.Post(); post != nil {
		next, failed := transformed(ctx, result, post, "the tool's post program")
		if failed != nil {
			return nil, failed
		}
		result = next
	}
	result, failed := p.checkResult(ctx, entry, result)
	if failed != nil {
		return nil, failed
	}
	if entry.Declared().Binding.MCP != nil && entry.Post() == nil && len(entry.After()) == 0 {
		return result, nil // unchanged: whether text repeats the structured content is the server's choice
	}
	return withText(result), nil
}

// transformed runs a program or function over a result.
func transformed(ctx context.Context, result *registry.Result, by registry.Transform, name string) (*registry.Result, *registry.Error) {
	in, err := postInput(result)
	if err != nil {
		return nil, &registry.Error{Code: registry.ResultInvalid, Msg: "the tool's result can't be read by " + name, Err: err}
	}
	out, err := by(ctx, in, maxPost)
	if err != nil && ctx.Err() != nil {
		return nil, Undecided(ctx, name+" had ended", "The tool has run")
	}
	if err != nil {
		return nil, postFailed(err)
	}
	next, err := fromJSON(out)
	if err != nil {
		return nil, &registry.Error{Code: registry.Internal, Msg: name + " returned a value that is not JSON", Err: err}
	}
	return next, nil
}

// postFailed is the error of a call whose post program failed; the tool has run.
func postFailed(err error) *registry.Error {
	known := &registry.Error{}
	errors.As(err, &known)
	switch known.Code {
	case registry.OutputTooLarge:
		return &registry.Error{
			Code: registry.OutputTooLarge,
			Msg:  fmt.Sprintf("the output of the tool's post program is larger than %d bytes, the maximum size of a result; ask for less", maxPost),
		}
	case registry.ProcessorFailed:
		return known
	case registry.Unavailable:
		return &registry.Error{Code: registry.Unavailable, Msg: "the tool's post program could not be run, so its result is not passed on; the tool has run", Err: known.Err}
	}
	const failed = "the tool's post program failed on its result"
	if known.Code == registry.BindingFailed {
		return &registry.Error{Code: registry.ProcessorFailed, Msg: failed + ": " + known.Msg}
	}
	// The program's own words may quote the result, which the result decision has not allowed the caller to see.
	return &registry.Error{Code: registry.ProcessorFailed, Msg: failed + "; the operator's log says why. The tool has run", Err: err}
}

// checkResult checks a result against the tool's declared result. Structured content is not changed. An
// invalid result is withheld; with resultCheck "warn" it is returned with a note. That does not violate MCP's
// rule on output schemas, because such a tool has none in tools/list.
func (p *Path) checkResult(ctx context.Context, entry *registry.Entry, result *registry.Result) (*registry.Result, *registry.Error) {
	declared, rule := entry.Result(), entry.Declared().ResultCheck
	if declared == nil || rule == registry.IgnoreResult {
		return result, nil
	}
	structured := result.Structured
	if structured == nil {
		// A text that is the JSON of the object counts as structured content (MCP 2025-06-18, tools,
		// structured content).
		structured = json.RawMessage(text(result))
	}
	checked, violations, err := declared.Check(ctx, structured)
	if violations != nil { // some servers truncate texts within a character, which clients tolerate
		if readable, ok := decoded(structured); ok {
			checked, violations, err = declared.Check(ctx, encoded(readable))
		}
	}
	if err != nil {
		return nil, &registry.Error{Code: registry.Unavailable, Msg: "the tool's result could not be checked, so it is withheld; the tool has run", Err: err}
	}
	if violations != nil {
		if rule != registry.WarnResult {
			violations = withoutValues(violations) // the result decision has not allowed the caller to see them
		}
		says := fmt.Sprintf("the answer of tool %q does not match its declared result:%s", entry.Name(), lines(violations))
		if result.Structured == nil && !(json.Valid(structured) && bytes.HasPrefix(bytes.TrimSpace(structured), []byte("{"))) {
			says = fmt.Sprintf("tool %q answered without structured content, which its declared result requires, and its text is not a JSON object", entry.Name())
		}
		if rule != registry.WarnResult {
			return nil, &registry.Error{Code: registry.ResultInvalid, Msg: says + "\nThe tool has run; its result is withheld"}
		}
		p.Log.Warn("result does not match its declaration", "tool", entry.Name(), "branch", p.View.Declared().Name, "violations", len(violations), "first", violations[0].Pointer)
		warned := *result
		warned.Answer = nil
		warned.Content = append([]json.RawMessage{registry.Text("Note: " + says + "\nWhat follows is that answer; don't rely on its form.")}, withText(result).Content...)
		return &warned, nil
	}
	if result.Structured == nil {
		result.Structured, result.Answer = checked.JSON(), nil
	}
	return result, nil
}

// withText adds the structured content as text for clients that read only text (MCP, tools, structured
// content), unless the result has text.
func withText(result *registry.Result) *registry.Result {
	if result.Structured == nil || text(result) != "" {
		return result
	}
	full := *result
	full.Answer = nil
	full.Content = append([]json.RawMessage{registry.Text(string(result.Structured))}, result.Content...)
	return &full
}

// lines returns the first violations, one a line: at most 20 and about 4 KiB, to save the model's context.
func lines(violations []contract.Violation) string {
	const (
		mostLines = 20
		mostBytes = 4 << 10
	)
	var b strings.Builder
	for i, v := range violations {
		line := "\n- " + v.String()
		if i > 0 && (i == mostLines || b.Len()+len(line) > mostBytes) {
			fmt.Fprintf(&b, "\n- and %d more", len(violations)-i)
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// withoutValues returns violations without the received values.
func withoutValues(violations []contract.Violation) []contract.Violation {
	out := slices.Clone(violations)
	for i := range out {
		out[i].Got = "something else"
	}
	return out
}

// fromJSON makes a result from the output of post: an object becomes structured content and text, a string
// text, and any other value its JSON as text.
func fromJSON(out json.RawMessage) (*registry.Result, error) {
	if out[0] == '"' {
		var s string
		if err := json.Unmarshal(out, &s); err != nil {
			return nil, err
		}
		return &registry.Result{Content: []json.RawMessage{registry.Text(s)}}, nil
	}
	result := &registry.Result{Content: []json.RawMessage{registry.Text(string(out))}}
	if out[0] == '{' {
		result.Structured = out
	}
	return result, nil
}

// postInput is what post sees of a result: its structured content, else its text.
func postInput(result *registry.Result) (json.RawMessage, error) {
	if result.Structured == nil {
		return json.Marshal(text(result))
	}
	if !json.Valid(result.Structured) {
		return nil, errors.New("the structured content is not JSON")
	}
	return result.Structured, nil
}

// text returns the text of a result's text blocks.
func text(result *registry.Result) string {
	var parts []string
	for _, raw := range result.Content {
		if s, ok := textOf(raw); ok {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n")
}
