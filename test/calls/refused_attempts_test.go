package calls

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// decisions keeps the lines of a decision log.
type decisions struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (d *decisions) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

// attempt is an event of a refused attempt.
type attempt struct {
	Path  string
	By    string `json:"requested_by"`
	Input struct {
		Branch, Method, Name string
		Hidden               bool
		Principal            *struct{ Name string }
	}
	Result struct {
		Allow bool
		Code  string
	}
	Custom struct {
		What   string
		Events int
	}
}

func (d *decisions) events(t *testing.T, path string) (events []attempt) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for line := range strings.Lines(d.text.String()) {
		if !strings.Contains(line, `"path":"`+path+`"`) {
			continue
		}
		var e attempt
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, e)
	}
	return events
}

// TestRefusedAttempts: whatever is refused before a policy decides is in the decision log, in both eras, over
// HTTP and on standard input: who asked for what, and why it was refused, without arguments and without the
// token.
func TestRefusedAttempts(t *testing.T) {
	t.Parallel()
	dir, tokens := harness.Starter(t), filepath.Join(t.TempDir(), "tokens")
	harness.Edit(t, dir, "policy/access/data.yaml", "hide: []", "hide: [{labels: {}, tags: [numbers]}]")
	harness.WriteFile(t, filepath.Join(dir, "policy/rate.rego"), "package catalogd.call\n\nrate_limit := {\"calls\": 1, \"per\": \"1h\"} if input.tool.name == \"text_stats\"\n")
	good, hash := token.New()
	old, oldHash := token.New()
	for _, it := range []token.Token{
		{Name: "ann", Hash: hash, Branches: []string{"default"}},
		{Name: "old", Hash: oldHash, Branches: []string{"default"}, Expires: time.Now().Add(-time.Hour)},
	} {
		if err := token.Add(tokens, it); err != nil {
			t.Fatal(err)
		}
	}
	var log decisions
	r := harness.Serve(t, catalogd.Config{Dir: dir, Tokens: tokens, DecisionLog: catalogd.DecisionLog{Writer: &log}})
	const secret = "swordfish"
	modern := func(params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s,"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`, params, harness.Modern)
	}
	as := func(secret string, more ...string) []string {
		return append([]string{"Authorization", "Bearer " + secret}, more...)
	}
	modernHeaders := func(name string) []string {
		return as(good, "Mcp-Protocol-Version", harness.Modern, "Mcp-Method", "tools/call", "Mcp-Name", name)
	}
	begun, _ := r.Exchange(t, "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, as(good)...)
	session := as(good, "Mcp-Session-Id", begun.Header.Get("Mcp-Session-Id"))
	legacy := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + params + `}}`
	}
	fits, wrong := `"name":"slugify","arguments":{"title":"`+secret+`"}`, `"name":"slugify","arguments":{"titel":"`+secret+`"}`
	stats := `"name":"text_stats","arguments":{"text":"` + secret + `"}`
	r.Post(t, "/mcp", modern(stats), modernHeaders("text_stats")...) // the one that the policy lets through
	long := strings.Repeat("x", 300)
	for _, step := range []struct {
		name, path, body string
		headers          []string
		want             attempt
	}{
		{"unknown tool", "/mcp", modern(`"name":"nonsense","arguments":{"a":"` + secret + `"}`), modernHeaders("nonsense"), refusedAs("unknown_tool", "default", "tools/call", "nonsense", "ann")},
		{"unknown tool, older era", "/mcp", legacy(`"name":"nonsense\u200b"`), session, refusedAs("unknown_tool", "default", "tools/call", `nonsense\u200b`, "ann")},
		{"a long name", "/mcp", legacy(`"name":"` + long + `"`), session, refusedAs("unknown_tool", "default", "tools/call", long[:128]+"...", "ann")},
		{"hidden tool", "/mcp", legacy(`"name":"convert_temperature","arguments":{}`), session, hiddenTool(refusedAs("unknown_tool", "default", "tools/call", "convert_temperature", "ann"))},
		{"wrong arguments", "/mcp", modern(wrong), modernHeaders("slugify"), refusedAs("invalid_arguments", "default", "tools/call", "slugify", "ann")},
		{"wrong arguments, older era", "/mcp", legacy(wrong), session, refusedAs("invalid_arguments", "default", "tools/call", "slugify", "ann")},
		{"arguments of a wrong type", "/mcp", legacy(`"name":"slugify","arguments":["` + secret + `"]`), session, refusedAs("invalid_message", "default", "tools/call", "slugify", "ann")},
		{"another name in the header", "/mcp", modern(fits), modernHeaders("text_stats"), refusedAs("invalid_message", "default", "tools/call", "slugify", "ann")},
		{"over the rate", "/mcp", legacy(stats), session, refusedAs("rate_limited", "default", "tools/call", "text_stats", "ann")},
		{"no token", "/branches/research/mcp", legacy(fits), nil, refusedAs("token_missing", "research", "", "", "")},
		{"bad token", "/mcp", legacy(fits), as("cat_" + secret), refusedAs("token_invalid", "default", "", "", "")},
		{"expired token", "/mcp", legacy(fits), as(old), refusedAs("token_invalid", "default", "", "", "")},
		{"a branch that the token does not open", "/branches/research/mcp", legacy(fits), as(good), refusedAs("unknown_branch", "research", "", "", "ann")},
		{"no such branch", "/branches/rresearch/mcp", legacy(fits), as(good), refusedAs("unknown_branch", "rresearch", "", "", "ann")},
		{"no such session", "/mcp", legacy(fits), as(good, "Mcp-Session-Id", "0123"), refusedAs("unknown_session", "default", "tools/call", "slugify", "ann")},
		{"no admin", "/-/reload", "", as(good), refusedAs("admin_required", "", "", "", "ann")},
		{"no tool call in an envelope", "/branches/default/calls", `{"role":"assistant","content":"` + secret + `"}`, as(good), refusedAs("invalid_message", "default", "", "", "ann")},
		{"unknown tool in an envelope", "/branches/default/calls", `{"function":"nonsense","arguments":{"a":"` + secret + `"}}`, as(good), refusedAs("unknown_tool", "default", "tools/call", "nonsense", "ann")},
		{"an envelope without a token", "/branches/research/calls", `{"function":"slugify"}`, nil, refusedAs("token_missing", "research", "", "", "")},
		{"an envelope for a branch that the token does not open", "/branches/research/calls", `{"function":"slugify"}`, as(good), refusedAs("unknown_branch", "research", "", "", "ann")},
		{"an envelope of a web page", "/branches/default/calls", `{"function":"slugify"}`, as(good, "Origin", "https://evil.example"), refusedAs("foreign_origin", "default", "", "", "")},
		{"a web page", "/mcp", legacy(fits), as(good, "Origin", "https://evil.example"), refusedAs("foreign_origin", "default", "", "", "")},
	} {
		before := len(log.events(t, "catalogd/attempt"))
		answer := r.Post(t, step.path, step.body, step.headers...)
		harness.Await(t, "the event of "+step.name, func() bool { return len(log.events(t, "catalogd/attempt")) > before })
		checkAttempt(t, step.name+" ("+answer+")", log.events(t, "catalogd/attempt")[before:], step.want)
	}

	// The same on standard input.
	before := len(log.events(t, "catalogd/attempt"))
	in := strings.Join([]string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, legacy(wrong),
	}, "\n") + "\n"
	if err := r.StdioBearer(t.Context(), good, "default", strings.NewReader(in), io.Discard); err != nil {
		t.Error(err)
	}
	if err := r.StdioBearer(t.Context(), "cat_"+secret, "default", strings.NewReader(in), io.Discard); err == nil {
		t.Error("stdio with an unknown token: got no error, want a refusal")
	}
	r.End()
	checkAttempt(t, "stdio", log.events(t, "catalogd/attempt")[before:],
		refusedAs("invalid_arguments", "default", "tools/call", "slugify", "ann"), refusedAs("token_invalid", "default", "", "", ""))
	for _, never := range []string{secret, good, old, "titel"} {
		if strings.Contains(log.text.String(), never) {
			t.Errorf("the log has %q", never)
		}
	}
}

func refusedAs(code, branch, method, name, who string) (a attempt) {
	a.Path, a.By, a.Result.Code = "catalogd/attempt", who, code
	a.Input.Branch, a.Input.Method, a.Input.Name = branch, method, name
	return a
}

func hiddenTool(a attempt) attempt {
	a.Input.Hidden = true
	return a
}

func checkAttempt(t *testing.T, name string, got []attempt, want ...attempt) {
	t.Helper()
	for i := range got {
		if p := got[i].Input.Principal; (p == nil) != (got[i].By == "") || p != nil && p.Name != got[i].By {
			t.Errorf("%s: principal %+v, requested by %q", name, p, got[i].By)
		}
		got[i].Input.Principal = nil
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
	}
}

// TestAttemptsAreBounded: requests with bad tokens, however many there are, leave no more in the log than a
// bounded rate does, and hide nobody else's.
func TestAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	good, hash := token.New()
	if err := token.Add(tokens, token.Token{Name: "ann", Hash: hash, Branches: []string{"default"}}); err != nil {
		t.Fatal(err)
	}
	var log decisions
	r := harness.Serve(t, catalogd.Config{Dir: harness.Starter(t), Tokens: tokens, DecisionLog: catalogd.DecisionLog{Writer: &log}})
	const flood = 1000
	begin := time.Now()
	for range flood {
		r.Post(t, "/mcp", "{}", "Authorization", "Bearer cat_bad")
	}
	most := 100 + int(10*time.Since(begin).Seconds()) + 1
	r.Post(t, "/branches/research/mcp", "{}", "Authorization", "Bearer "+good)
	suppressed := int(r.Status().DecisionLog.Suppressed)
	r.End()
	events := log.events(t, "catalogd/attempt")
	bad, anns := 0, 0
	for _, e := range events {
		switch e.By {
		case "":
			bad++
		case "ann":
			anns++
		}
	}
	if bad > most || anns != 1 || bad+suppressed != flood {
		t.Errorf("%d of %d bad tokens are logged (at most %d), %d suppressed; %d events of another principal", bad, flood, most, suppressed, anns)
	}
	said := 0
	for _, e := range log.events(t, "catalogd/log") {
		if e.Custom.What == "suppressed" {
			said += e.Custom.Events
		}
	}
	if said != suppressed {
		t.Errorf("the log says that %d are suppressed, and %d are", said, suppressed)
	}
}
