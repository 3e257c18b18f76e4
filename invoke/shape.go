package invoke

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/registry"
)

// maxPost caps what a post program may make of a result, in bytes, as the bindings cap their own.
const maxPost = 1 << 20

// shape runs the tool's post program over a result that is no error, and checks the outcome against the
// declared result. The program sees the structured result where there is one, else the text.
func (p *Path) shape(ctx context.Context, entry *registry.Entry, result *registry.Result) (*registry.Result, *registry.Error) {
	if result.IsError {
		return result, nil
	}
	if post := entry.Post(); post != nil {
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
	result, failed := p.checkResult(ctx, entry, result)
	if failed != nil {
		return nil, failed
	}
	if entry.Declared().Binding.MCP != nil && entry.Post() == nil {
		return result, nil // as its server answered, which knows its clients
	}
	return withText(result), nil
}

// checkResult checks a result against what the tool declares. What the tool structured itself leaves as it
// came. A result that does not fit is withheld; by resultCheck "warn" it is passed on under a note that says
// so, which is no breach of MCP's rule on output schemas, because such a tool advertises none.
func (p *Path) checkResult(ctx context.Context, entry *registry.Entry, result *registry.Result) (*registry.Result, *registry.Error) {
	declared, rule := entry.Result(), entry.Declared().ResultCheck
	if declared == nil || rule == registry.IgnoreResult {
		return result, nil
	}
	structured := result.Structured
	if structured == nil {
		// Text that holds the object is as good as a structured result (MCP 2025-06-18, tools, structured
		// content).
		structured = json.RawMessage(text(result))
	}
	checked, violations, err := declared.Check(ctx, structured)
	if violations != nil { // servers cut texts in the middle of a character, and their clients take it
		if readable, ok := decoded(structured); ok {
			checked, violations, err = declared.Check(ctx, encoded(readable))
		}
	}
	if err != nil {
		return nil, &registry.Error{Code: registry.Unavailable, Msg: "the tool's result could not be checked, so it is not passed on; the tool has run", Err: err}
	}
	if violations != nil {
		if rule != registry.WarnResult {
			violations = untold(violations) // the result decision is not asked about what is withheld
		}
		says := fmt.Sprintf("tool %q answered what its declared result does not allow:%s", entry.Name(), lines(violations))
		if result.Structured == nil && !json.Valid(structured) {
			says = fmt.Sprintf("tool %q answered with no structured content, which its declared result asks for, and its text is no JSON either", entry.Name())
		}
		if rule != registry.WarnResult {
			return nil, &registry.Error{Code: registry.ResultInvalid, Msg: says + "\nThe tool has run; its result is withheld"}
		}
		p.Log.Warn("result does not fit", "tool", entry.Name(), "branch", p.View.Declared().Name, "violations", len(violations), "first", violations[0].Pointer)
		noted := *result
		noted.Answer = nil
		noted.Content = append([]json.RawMessage{registry.Text("Note: " + says + "\nWhat follows is that answer; don't rely on its form.")}, withText(result).Content...)
		return &noted, nil
	}
	if result.Structured == nil {
		result.Structured, result.Answer = checked.JSON(), nil
	}
	return result, nil
}

// withText is a result whose structured content stands as text as well, for a client that reads only that
// (MCP, tools, structured content). Text that the tool gave itself is left alone.
func withText(result *registry.Result) *registry.Result {
	if result.Structured == nil || text(result) != "" {
		return result
	}
	full := *result
	full.Answer = nil
	full.Content = append([]json.RawMessage{registry.Text(string(result.Structured))}, result.Content...)
	return &full
}

// lines are violations as lines that a model can act on: the first of them, within what is worth its context.
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

// untold returns violations that report what was expected where, without the value received.
func untold(violations []contract.Violation) []contract.Violation {
	told := slices.Clone(violations)
	for i := range told {
		told[i].Got = "something else"
	}
	return told
}

// fromValue makes a result of decoded JSON: an object is structured content (and its text), a string is text,
// anything else is its JSON as text.
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
	return strictjson.DecodeMaps(result.Structured, lenient, nil)
}

// text is the text of a result's text blocks.
func text(result *registry.Result) string {
	var parts []string
	for _, raw := range result.Content {
		if s, ok := textOf(raw); ok {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n")
}
