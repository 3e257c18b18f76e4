package generation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/progress"
	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// ExampleResult is the outcome of one example of a tool.
type ExampleResult struct {
	Tool string `json:"tool"`
	// Index counts the tool's examples from 0.
	Index int  `json:"index"`
	Pass  bool `json:"pass"`
	// Skipped is the reason why the example was not run; it has then neither passed nor failed.
	Skipped string `json:"skipped,omitempty"`
	// Message says what differs.
	Message string           `json:"message,omitempty"`
	Pos     problem.Position `json:"pos"`
}

// TestExamples runs the examples of every tool whose name matches. An example tests a tool and not access to
// it, so every decision allows; the policy's own tests test the policy. Untrusted tools, and tools with a
// side effect, are not run.
func (g *Generation) TestExamples(ctx context.Context, names *regexp.Regexp) []ExampleResult {
	all := registry.NewView(g.registry, registry.Branch{Name: "examples"}, func(*registry.Entry) bool { return true })
	path := &invoke.Path{
		View: all, Generation: g.ID, Log: slog.New(slog.DiscardHandler),
		Decide: func(context.Context, decision.CallInput) decision.Decision {
			return decision.Decision{Point: decision.Call, Allow: true, Code: decision.Allowed}
		},
		Judge: func(context.Context, decision.ResultInput, func() decision.ToolResult) decision.Decision {
			return decision.Decision{Point: decision.Result, Allow: true, Code: decision.Allowed}
		},
	}
	results := []ExampleResult{}
	step := progress.Begin(ctx, "running the examples", "tools")
	step.Of(g.registry.Len())
	for _, e := range g.registry.Entries() {
		t := e.Declared()
		step.Done()
		if !names.MatchString(t.Name) {
			continue
		}
		for i, example := range t.Examples {
			r := ExampleResult{Tool: t.Name, Index: i, Pos: t.At(fmt.Sprintf("examples.%d", i))}
			if hidden := e.Hidden(); hidden != "" {
				r.Skipped = hidden
			} else {
				call := path.Call(ctx, invoke.Request{Tool: t.Name, Arguments: example.Args, Principal: decision.Local()})
				r.Skipped, r.Message = judge(example, call)
				r.Message = invoke.Secrets(e, call.Arguments).Replace(r.Message)
				r.Pass = r.Skipped == "" && r.Message == ""
			}
			results = append(results, r)
		}
	}
	return results
}

// judge compares the expected outcome of an example with the actual one; it returns empty strings if they
// match.
func judge(want registry.Example, got registry.Call) (skipped, message string) {
	if got.Err != nil && got.Err.Code == registry.EffectorRequired {
		if want.Rejected != "" {
			return "", fmt.Sprintf("want a rejection with %q, but the arguments were accepted", want.Rejected)
		}
		return "the arguments were accepted; a tool with a side effect is not run", ""
	}
	if got.Err != nil && errors.Is(got.Err, registry.ErrStandIn) && want.Rejected == "" {
		return "the arguments were accepted; " + absent, ""
	}
	failed := failure(got)
	switch {
	case want.Rejected != "" && failed == "":
		return "", fmt.Sprintf("want a rejection with %q, but the call succeeded", want.Rejected)
	case want.Rejected != "":
		if !strings.Contains(failed, want.Rejected) {
			return "", fmt.Sprintf("want a rejection with %q, got: %s", want.Rejected, failed)
		}
		return "", ""
	case failed != "":
		return "", "want a result, got: " + failed
	case want.Result == nil:
		return "", ""
	}
	have := got.Result.Structured
	if have == nil {
		have = firstText(got.Result)
	}
	if !sameJSON(want.Result, have) {
		return "", fmt.Sprintf("want %s, got %s", want.Result, have)
	}
	return "", ""
}

// failure returns the code and text of a call that did not succeed, else empty.
func failure(call registry.Call) string {
	if call.Err != nil {
		return string(call.Err.Code) + ": " + call.Err.Msg
	}
	if call.Result.IsError {
		return string(registry.BindingFailed) + ": " + string(firstText(call.Result))
	}
	return ""
}

// firstText returns the text of the first text block as a JSON string, or null.
func firstText(r *registry.Result) json.RawMessage {
	for _, raw := range r.Content {
		var block struct {
			Type string          `json:"type"`
			Text json.RawMessage `json:"text"`
		}
		if json.Unmarshal(raw, &block) == nil && block.Type == "text" {
			return block.Text
		}
	}
	return json.RawMessage("null")
}

// sameJSON compares by value: 1, 1.0 and 1e0 are the same number, 9007199254740992 and 9007199254740993 are
// not.
func sameJSON(a, b json.RawMessage) bool {
	x, errX := decodeExact(a)
	y, errY := decodeExact(b)
	return errX == nil && errY == nil && sameValue(x, y)
}

func decodeExact(raw json.RawMessage) (any, error) {
	return strictjson.DecodeMaps(raw, strictjson.Options{}, nil)
}

func sameValue(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || sameNumber(a.String(), b.String()))
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameValue)
	}
	return a == b
}

// sameNumber compares exactly. Numbers whose expansion would need much memory are equal only as text.
func sameNumber(a, b string) bool {
	const most = 400
	x, okX := rational(a, most)
	y, okY := rational(b, most)
	return okX && okY && x.Cmp(y) == 0
}

func rational(number string, most int) (*big.Rat, bool) {
	if _, exponent, ok := strings.Cut(strings.ToLower(number), "e"); ok {
		if n, err := strconv.Atoi(exponent); err != nil || n > most || n < -most {
			return nil, false
		}
	}
	return new(big.Rat).SetString(number)
}
