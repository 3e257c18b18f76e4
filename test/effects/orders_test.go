package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// receiver is a service that side effects reach: it keeps what it was sent, and answers as told.
type receiver struct {
	*httptest.Server
	answer func(w http.ResponseWriter, r *http.Request, body map[string]any)

	mu   sync.Mutex
	seen []sent
}

type sent struct {
	key  string
	body map[string]any
}

func newReceiver(t testing.TB) *receiver {
	s := &receiver{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.seen = append(s.seen, sent{r.Header.Get("Idempotency-Key"), body})
		answer := s.answer
		s.mu.Unlock()
		if answer != nil {
			answer(w, r, body)
			return
		}
		fmt.Fprintf(w, `{"order": %v}`, len(s.seen))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *receiver) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

func (s *receiver) answers(f func(w http.ResponseWriter, r *http.Request, body map[string]any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// orderCatalog is a catalog with one tool that writes, order, at the receiver; more is a part of its declaration.
func orderCatalog(t testing.TB, s *receiver, more string) (dir string) {
	t.Helper()
	if !strings.Contains(more, "timeout:") { // a busy machine takes its time
		more += "\n\ttimeout: \"2m\""
	}
	dir = harness.Starter(t)
	host, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	harness.WriteFile(t, filepath.Join(dir, "catalog/order.cue"), fmt.Sprintf(`package catalog

tools: order: {
	description: "Orders something."
	args: {
		what!: string
		n: *1 | int
	}
	result: order!: int
	effect: "write"
	tags: ["everyday"]
	binding: http: {method: "POST", url: "%s/orders", body: kind: "json", output: "json"}
	%s
}
`, s.URL, more))
	trust := filepath.Join(dir, "policy/trust/data.yaml")
	harness.WriteFile(t, trust, harness.ReadFile(t, trust)+fmt.Sprintf("  orders:\n    scheme: http\n    host: %s\n    port: %s\n    path: /orders\n    addresses: [127.0.0.0/8]\n", host, port))
	return dir
}

// reply is what a call was answered.
type effectReply struct {
	IsError bool                       `json:"isError"`
	Content []struct{ Text string }    `json:"content"`
	Out     map[string]json.RawMessage `json:"structuredContent"`
	Meta    struct {
		Call  struct{ Intent string } `json:"catalogd/call"`
		Error struct{ Code string }   `json:"catalogd/error"`
	} `json:"_meta"`
	status int
}

func (r effectReply) text() string {
	if len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

// handle is what a handle says; empty fields where the answer is none.
func (r effectReply) handle() (h struct{ ID, State, Tool, Message string }) {
	_ = json.Unmarshal(r.Out["intent"], &h) // which is what makes it none
	return h
}

// caller calls tools of a branch as a client of 2026-07-28.
type caller struct {
	t     testing.TB
	url   string // of the branch
	token string
}

func (c caller) request(ctx context.Context, tool, args, meta string) *http.Request {
	c.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}%s}}}`, tool, args, meta)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool} {
		req.Header.Set(name, value)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req
}

// call calls a tool; meta are further members of its _meta, each after a comma.
func (c caller) call(tool, args, meta string) (r effectReply) {
	c.t.Helper()
	resp, err := http.DefaultClient.Do(c.request(c.t.Context(), tool, args, meta))
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var a struct {
		Result *effectReply
		Error  json.RawMessage
	}
	if err := json.Unmarshal(raw, &a); err != nil || a.Result == nil {
		c.t.Fatalf("%s %s: %d %s", tool, args, resp.StatusCode, raw)
	}
	a.Result.status = resp.StatusCode
	return *a.Result
}

// serveEffects is a catalog that is served with intents of its own.
func serveEffects(t testing.TB, cfg catalogd.Config) (*harness.Daemon, caller) {
	t.Helper()
	if cfg.State == "" {
		cfg.State = filepath.Join(t.TempDir(), "state")
	}
	if cfg.Intents.Durability == "" {
		cfg.Intents.Durability = "process"
	}
	r := harness.Serve(t, cfg)
	return r, caller{t: t, url: r.URL + "/branches/default/mcp"}
}

// tokenFor makes a token for all branches, and returns its secret.
func tokenFor(t testing.TB, file, name string, groups ...string) (secret string) {
	t.Helper()
	secret, hash := token.New()
	if err := token.Add(file, token.Token{Name: name, Hash: hash, Branches: []string{token.AllBranches}, Groups: groups}); err != nil {
		t.Fatal(err)
	}
	return secret
}

func revokeToken(t testing.TB, file, name string) {
	t.Helper()
	if err := token.Remove(file, name); err != nil {
		t.Fatal(err)
	}
}
