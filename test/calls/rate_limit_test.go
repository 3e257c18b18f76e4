package calls

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestRateLimitOverHTTP: a call over the policy's rate_limit is not run, whatever it came over, and its
// answer says in how many whole seconds it may be made again: in Retry-After (RFC 9110 10.2.3) wherever the
// whole answer is about such calls, and in its body. docs/operations.md has the forms.
func TestRateLimitOverHTTP(t *testing.T) {
	t.Parallel()
	dir := harness.Starter(t)
	harness.WriteFile(t, filepath.Join(dir, "policy/rate.rego"), `package catalogd.call

rate_limit := {"calls": 1, "per": "1h"} if input.tool.name in {"slugify", "write_note"}
`)
	r := harness.Serve(t, catalogd.Config{Dir: dir, Intents: catalogd.Intents{Dir: filepath.Join(t.TempDir(), "intents")}})
	const calls = "/branches/default/calls"
	const slugify, note = `{"function":"slugify","arguments":{"title":"A"}}`, `{"function":"write_note","arguments":{"name":"a","text":"b"}}`
	begun, _ := r.Exchange(t, "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	session := []string{"Mcp-Session-Id", begun.Header.Get("Mcp-Session-Id")}
	const plain = `"error":\{"code":"rate_limited",.*"limit":"rate_limit","retryAfter":([0-9]+)`
	const inMeta = `"isError":true.*"catalogd/error":\{"code":"rate_limited","limit":"rate_limit","retryAfter":([0-9]+)\}`
	for _, step := range []struct {
		name, path, body string
		headers          []string
		status           int
		header           bool   // Retry-After is there
		want             string // a regular expression, whose group is the same number
	}{
		{"the one that is let through", calls, slugify, nil, 200, false, `"succeeded"`},
		{"a call", calls, slugify, nil, 429, true, plain},
		{"a provider's call", calls, `{"id":"1","function":{"name":"slugify","arguments":"{\"title\":\"A\"}"}}`, nil, 429, true, `"role":"tool".*Try again in ([0-9]+) s`},
		{"beside one that runs", calls, `[` + slugify + `,{"function":"text_stats","arguments":{"text":"a"}}]`, nil, 200, false, plain + `.*"succeeded"`},
		{"MCP", "/mcp", callBody("slugify", `{"title":"A"}`, ""), callHeader("slugify"), 200, true, inMeta},
		{"MCP with a session", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slugify","arguments":{"title":"A"}}}`, session, 200, true, inMeta},
		{"the side effect that is let through", calls, note, nil, 200, false, `"succeeded"`},
		{"a side effect", calls, note, nil, 429, true, plain},
	} {
		res, body := r.Exchange(t, step.path, step.body, step.headers...)
		wait := res.Header.Get("Retry-After")
		found := regexp.MustCompile(step.want).FindStringSubmatch(body)
		if res.StatusCode != step.status || found == nil || (wait != "") != step.header {
			t.Errorf("%s: got %d, Retry-After %q, %s\nwant %d, %s", step.name, res.StatusCode, wait, body, step.status, step.want)
			continue
		}
		if len(found) < 2 {
			continue
		}
		if n, err := strconv.Atoi(found[1]); err != nil || n < 1 || n > 3600 || step.header && wait != fmt.Sprint(n) {
			t.Errorf("%s: Retry-After is %q and the body says %s; want the same whole seconds, 1 to 3600", step.name, wait, found[1])
		}
	}
	if staged := strings.Count(get(t, r.URL+"/intents"), `"state"`); staged != 1 {
		t.Errorf("%d intents were staged, want that of the call that was let through", staged)
	}
}
