package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/registry"
)

// TestFuncBuiltResults: what a Result that a function has made itself becomes; what would break the message around it
// is an error.
func TestFuncBuiltResults(t *testing.T) {
	t.Parallel()
	text := json.RawMessage(`{"type":"text","text":"a"}`)
	for _, c := range []struct {
		name string
		made registry.Result
		want string // of the result's JSON, or what the error says
		code registry.ErrorCode
	}{
		{name: "nothing", want: `{"content":null}`},
		{
			name: "lines", want: `{"content":[{"type":"text","text":"a"}],"structuredContent":[1],"_meta":{"a":2}}`,
			made: registry.Result{
				Content:    []json.RawMessage{json.RawMessage("{\"type\":\"text\",\r\n\"text\":\"a\"}")},
				Structured: json.RawMessage("[\n1]"), Meta: json.RawMessage("{\"a\":\n2}"),
			},
		},
		{name: "half a block", made: registry.Result{Content: []json.RawMessage{text, text[:9]}}, code: registry.ResultInvalid, want: "content block 1 of"},
		{name: "two blocks in one", made: registry.Result{Content: []json.RawMessage{json.RawMessage(`{},{}`)}}, code: registry.ResultInvalid, want: "content block 0 of"},
		{name: "an empty block", made: registry.Result{Content: []json.RawMessage{{}}}, code: registry.ResultInvalid, want: "content block 0 of"},
		{name: "a block that is a list", made: registry.Result{Content: []json.RawMessage{json.RawMessage(`[]`)}}, code: registry.ResultInvalid, want: "no JSON object"},
		{name: "half a character", made: registry.Result{Content: []json.RawMessage{json.RawMessage("{\"text\":\"\xc3\"}")}}, code: registry.ResultInvalid, want: "content block 0 of"},
		{name: "half of the structured content", made: registry.Result{Structured: json.RawMessage(`{"a":`)}, code: registry.ResultInvalid, want: "the structured content of"},
		{name: "a _meta that is none", made: registry.Result{Meta: json.RawMessage(`1`)}, code: registry.ResultInvalid, want: "the _meta of"},
		{
			name: "large", code: registry.OutputTooLarge, want: "larger than 1048576 bytes",
			made: registry.Result{Content: []json.RawMessage{registry.Text(strings.Repeat("a", 1<<19)), registry.Text(strings.Repeat("b", 1<<19))}},
		},
	} {
		for _, f := range []*registry.Function{
			function(t, func(context.Context, struct{}) (registry.Result, error) { return c.made, nil }, registry.Read),
			function(t, func(context.Context, struct{}) (*registry.Result, error) { return &c.made, nil }, registry.Read),
		} {
			result, err := f.Bound().Invoker.Invoke(t.Context(), registry.Invocation{Args: accepted(t, f, `{}`)})
			var known *registry.Error
			if errors.As(err, &known) {
				if known.Code != c.code || !strings.Contains(known.Msg, c.want) {
					t.Errorf("%s: got %s: %s, want %s: %s", c.name, known.Code, known.Msg, c.code, c.want)
				}
				continue
			}
			if got, failed := json.Marshal(result); err != nil || failed != nil || string(got) != c.want || c.code != "" {
				t.Errorf("%s: got %s, %v, %v, want %s", c.name, got, err, failed, c.want)
			}
		}
	}
}
