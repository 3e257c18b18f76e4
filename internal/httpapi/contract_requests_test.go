package httpapi_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/httpapi"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// house is a daemon whose every operation the test drives.
type house struct {
	client
	*servetest.Server
	holders *servetest.Holders
	store   *intent.Store
	outcome atomic.Pointer[daemon.Outcome]
	events  *invoke.Events
	// entered and leave are those of the tool hold, which runs until the test lets it go.
	entered, leave chan struct{}
}

// as are the headers of a bearer.
func (h *house) as(name string, more ...string) []string {
	return append(slices.Clone(h.holders.Header[name]), more...)
}

func catalog(h *house) servetest.Catalog {
	return servetest.Catalog{
		ID: "g1", Branches: map[string][]string{"default": nil, "research": nil}, Limited: "rare",
		Tools: []servetest.Fixture{
			servetest.Tool("hello", "", servetest.Text("hello")),
			servetest.Tool("hold", "", servetest.Invoker(func(ctx context.Context, _ contract.Args) (*registry.Result, error) {
				h.entered <- struct{}{}
				select {
				case <-h.leave:
				case <-ctx.Done():
				}
				return &registry.Result{Content: []json.RawMessage{registry.Text("held")}}, nil
			})),
			servetest.Tool("rare", "", servetest.Text("rare")),
			servetest.Tool("note", "", servetest.Text("noted"), func(t *registry.Tool) { t.Effect = registry.Write }),
		},
	}
}

func open(t *testing.T) *house {
	h := &house{entered: make(chan struct{}), leave: make(chan struct{})}
	h.holders = servetest.Issue(t, slog.New(slog.DiscardHandler),
		token.Token{Name: "ann", Branches: []string{"*"}},
		token.Token{Name: "bob", Branches: []string{"default"}, Groups: []string{"ops"}},
		token.Token{Name: "root", Branches: []string{"*"}, Admin: true},
	)
	var effects *daemon.Effects
	h.outcome.Store(&daemon.Outcome{Result: "unchanged", Generation: "g1"})
	h.Server = servetest.Start(t, catalog(h), func(b *servetest.Backend) {
		b.Limits = mcpserver.Limits{Calls: 1, QueueWait: time.Nanosecond, Sessions: 1}
		b.Tokens = h.holders.Store
		b.Reload = func(context.Context) daemon.Outcome { return *h.outcome.Load() }
		effects = daemon.NewEffects(daemon.EffectsConfig{
			Store:  intent.Config{Dir: filepath.Join(t.TempDir(), "intents"), Durability: intent.Process},
			Pin:    func() (*generation.Generation, func()) { return h.Served.Load(), func() {} },
			Tokens: b.Tokens, Log: b.Log,
		})
		b.Effects = effects
		h.events = b.Events
	})
	t.Cleanup(func() {
		if err := effects.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	var err error
	if h.store, err = effects.Store(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.client = client{t, readDescription(t, h.Do(t, "GET", "/openapi.json", "").Body), h.URL}
	return h
}

// note writes down an intent of ann's that came on this way into its state.
func (h *house) note(approval *intent.Approval, way ...intent.State) string {
	h.t.Helper()
	hash, err := h.holders.Store.Find(h.holders.Secret["ann"]).Hash.MarshalText()
	if err != nil {
		h.t.Fatal(err)
	}
	in, made, err := h.store.Stage(h.t.Context(), intent.Intent{
		Branch: "default", Tool: "note", Principal: "ann", Credential: string(hash), Arguments: json.RawMessage(`{}`),
		Digest: "sha256:0", Fingerprint: "p", Policy: "y", Generation: "g1", State: way[0], Approval: approval,
	})
	if err != nil || !made {
		h.t.Fatal(made, err)
	}
	owner := h.store.Owner()
	for i, to := range way[1:] {
		if err := h.store.Change(h.t.Context(), in.ID, way[i], intent.Change{Steps: []intent.Step{{State: to}}, Owner: &owner}); err != nil {
			h.t.Fatal(err)
		}
	}
	return in.ID
}

// TestHandlersAnswerAsDescribed sends good and bad requests for every operation to real daemons. Each answer must be one
// that /openapi.json describes, by path, method, status, media type, headers and schema, and each described one must come.
func TestHandlersAnswerAsDescribed(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.daemon()
	h.tools()
	h.intents()
	h.conversations()
	for _, path := range []string{"/mcp", "/branches/default/mcp"} {
		h.mcp(path)
	}
	for path, operations := range h.d.paths {
		for method, o := range operations {
			h.refusals(strings.ToUpper(method), path, o)
		}
		h.methods(path)
	}
	h.bare(t)
	h.faults()
	h.Server.Server.Close()
	for _, path := range []string{"/mcp", "/branches/default/mcp"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			h.want(503, method, path, "", h.as("ann")...)
		}
	}
	for _, form := range h.d.unseen() {
		t.Errorf("described, and answered to no request of this test: %s", form)
	}
}

// filled is a path with its variables filled in.
func filled(path string) string {
	return strings.NewReplacer("{branch}", "default", "{tool}", "hello", "{id}", strings.Repeat("0", 32)).Replace(path)
}

// refusals sends what is answered before the handler of an operation.
func (h *house) refusals(method, path string, o described) {
	h.t.Helper()
	at := filled(path)
	h.want(403, method, at, "", "Origin", "http://example.com")
	if o.Security == nil {
		h.want(401, method, at, "")
		for i := 0; ; i++ {
			if status, _, _ := h.do(method, at, "", "Authorization", "Bearer nonsense"); status == 429 {
				break
			} else if status != 401 || i > 10_000 {
				h.t.Fatalf("%s %s with a bad token: %d", method, at, status)
			}
		}
	}
	if strings.HasPrefix(path, "/-/") || path == "/metrics" {
		h.want(403, method, at, "", h.as("ann")...)
	}
	if _, strict := o.Responses["400"]; strict && !strings.HasSuffix(path, "/mcp") {
		h.want(400, method, at+"?nonsense=1", "", h.as("root")...)
	}
	if o.RequestBody != nil {
		who := "ann"
		if strings.HasPrefix(path, "/-/") {
			who = "root"
		}
		h.want(415, method, at, "{}", h.as(who, "Content-Type", "text/plain")...)
		h.want(406, method, at, "{}", h.as(who, "Accept", "text/html")...)
		h.raw(413, method, at, 64<<20, h.as(who)...)
	}
}

// methods sends the methods that a path doesn't have, and HEAD.
func (h *house) methods(path string) {
	h.t.Helper()
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "NONSENSE"} {
		if _, has := h.d.paths[path][strings.ToLower(method)]; has {
			continue
		}
		status, header, _ := h.do(method, filled(path), "", h.as("root")...)
		if method != "HEAD" || h.d.paths[path]["get"].ID == "" || strings.HasSuffix(path, "/mcp") {
			if status != 405 {
				h.t.Errorf("%s %s: %d, want 405", method, path, status)
			}
			continue
		}
		if want, like, _ := h.do("GET", filled(path), "", h.as("root")...); status != want || header.Get("Content-Type") != like.Get("Content-Type") {
			h.t.Errorf("HEAD %s: %d %v, and GET %d %v", path, status, header, want, like)
		}
	}
	h.want(404, "GET", path+"/nonsense/nonsense/nonsense", "", h.as("root")...)
}

func (h *house) daemon() {
	h.t.Helper()
	for _, path := range []string{"/", "/healthz", "/readyz", "/openapi.json"} {
		h.want(200, "GET", path, "")
	}
	h.want(200, "GET", "/status", "", h.as("root")...)
	h.want(200, "GET", "/status", "", h.as("ann")...)
	h.want(200, "GET", "/metrics", "", h.as("root")...)
	h.want(200, "POST", "/-/reload", "", h.as("root")...)
	h.outcome.Store(&daemon.Outcome{Result: "superseded", Generation: "g1"})
	h.want(409, "POST", "/-/reload", "", h.as("root")...)
	h.outcome.Store(&daemon.Outcome{Result: "refused", Generation: "g1", Problems: problem.List{{
		Position: problem.Position{File: "catalog/a.cue", Line: 1}, Code: problem.CUESyntax, Severity: problem.Error, Message: "expected }",
	}}})
	h.want(422, "POST", "/-/reload", "", h.as("root")...)
}

func (h *house) tools() {
	h.t.Helper()
	h.want(200, "GET", "/branches", "", h.as("ann")...)
	for _, query := range []string{"", "?dialect=openai-strict", "?tools=hello,note", "?tools=", "?none=true"} {
		h.want(200, "GET", "/branches/default/tools"+query, "", h.as("ann")...)
	}
	for _, query := range []string{"/default/tools?details=true&", "?"} {
		h.want(200, "GET", "/branches"+query+"principal=bob", "", h.as("root")...)
		h.want(200, "GET", "/branches"+query+"principal=eve&group=ops&group=x&admin=true", "", h.as("root")...)
		h.want(403, "GET", "/branches"+query+"principal=bob", "", h.as("ann")...)
		h.want(400, "GET", "/branches"+query+"group=ops", "", h.as("root")...)
		h.want(400, "GET", "/branches"+query+"principal=bob&admin=1", "", h.as("root")...)
	}
	h.want(404, "GET", "/branches/research/tools?principal=bob", "", h.as("root")...)
	if text := h.want(200, "GET", "/branches/default/tools?details=true", "", h.as("ann")...); strings.Contains(text, `"binding"`) {
		h.t.Errorf("the answer to a token without admin says how tools are executed: %s", text)
	}
	h.want(404, "GET", "/branches/default/tools?tools=helo", "", h.as("ann")...)
	h.want(404, "GET", "/branches/research/tools", "", h.as("bob")...)
	for _, query := range []string{"?dialect=x", "?none=1", "?none=true&tools=", "?tools=a&tools=b", "?a=%zz", "?details=1"} {
		h.want(400, "GET", "/branches/default/tools"+query, "", h.as("ann")...)
	}
	const calls, hello = "/branches/default/calls", `{"function": "hello"}`
	h.want(200, "POST", calls+"?strategy=sequential&onError=stop&dialect=mcp", hello, h.as("ann")...)
	h.want(200, "POST", calls, `{"tool_calls": [{"id": "1", "function": {"name": "hello", "arguments": "{}"}}]}`, h.as("ann")...)
	h.want(400, "POST", calls, `{}`, h.as("ann")...)
	h.want(404, "POST", "/branches/research/calls", hello, h.as("bob")...)
	h.busy(func() { h.want(429, "POST", calls, hello, h.as("ann")...) })
	h.want(200, "POST", calls, `{"function": "rare"}`, h.as("ann")...)
	h.want(429, "POST", calls, `{"function": "rare"}`, h.as("ann")...)
	h.want(200, "GET", "/calls/"+idIn(h.t, h.want(200, "POST", calls, hello, h.as("ann")...)), "", h.as("ann")...)
	h.want(404, "GET", "/calls/nonsense", "", h.as("ann")...)
}

// busy runs f while ann's only call on the branch default runs.
func (h *house) busy(f func()) {
	h.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.Do(h.t, "POST", "/branches/default/calls", `{"function": "hold"}`, h.as("ann")...)
	}()
	<-h.entered
	f()
	h.leave <- struct{}{}
	<-done
}

func (h *house) intents() {
	h.t.Helper()
	approval := &intent.Approval{Groups: []string{"ops"}, Reason: "look"}
	for _, one := range []struct {
		action, body string
		who, other   string // who may, and who sees the intent and may not
		way          []intent.State
	}{
		{"approve", `{"why": "so"}`, "bob", "ann", []intent.State{intent.AwaitingApproval}},
		{"refuse", "", "bob", "ann", []intent.State{intent.AwaitingApproval}},
		{"cancel", "", "ann", "bob", []intent.State{intent.AwaitingApproval}},
		{"retry", "{}", "root", "ann", []intent.State{intent.Staged, intent.Released, intent.Attempted, intent.Failed}},
		{"resolve", `{"as": "failed"}`, "root", "ann", []intent.State{intent.Staged, intent.Released, intent.Attempted, intent.Unknown}},
	} {
		id := h.note(approval, one.way...)
		at := "/intents/" + id + "/" + one.action
		h.want(200, "GET", "/intents/"+id+"?wait=0", "", h.as("ann")...)
		h.want(200, "GET", "/intents?state=staged&state="+string(one.way[len(one.way)-1])+"&limit=5&branch=default", "", h.as("ann")...)
		h.want(403, "POST", at, one.body, h.as(one.other)...)
		h.want(404, "POST", strings.Replace(at, id, strings.Repeat("0", 32), 1), one.body, h.as(one.who)...)
		h.want(422, "POST", at, `{"nonsense": "x"}`, h.as(one.who)...)
		h.want(200, "POST", at, one.body, h.as(one.who)...)
		ended := h.note(approval, intent.Staged, intent.Cancelled)
		h.want(409, "POST", "/intents/"+ended+"/"+one.action, one.body, h.as(one.who)...)
	}
	h.want(404, "GET", "/intents/"+strings.Repeat("0", 32), "", h.as("ann")...)
	for _, path := range []string{"/intents?limit=0", "/intents?state=x", "/intents?before=x", "/intents/x?wait=26"} {
		h.want(400, "GET", path, "", h.as("ann")...)
	}
	h.want(200, "POST", "/-/intents/pause", "", h.as("root")...)
	h.want(200, "POST", "/-/intents/resume", "", h.as("root")...)
}

func (h *house) mcp(path string) {
	h.t.Helper()
	const modern = servetest.ModernVersion
	as := func(more ...string) []string { return h.as("ann", more...) }
	send := func(status int, method, params string) {
		h.t.Helper()
		h.want(status, "POST", path, servetest.ModernBody(method, params), as(servetest.ModernHeader(method, params)...)...)
	}
	send(200, "tools/list", "")
	send(200, "tools/call", `"name":"hello"`)
	status, header, body := h.do("POST", path, servetest.ModernBody("tools/call", `"name":"rare"`), as(servetest.ModernHeader("tools/call", `"name":"rare"`)...)...)
	if status != 200 || header.Get("Retry-After") == "" {
		h.t.Errorf("a call over a rate limit, which tools has made: %d, Retry-After %q, %s", status, header.Get("Retry-After"), body)
	}
	send(404, "nonsense", "")
	send(200, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	h.want(400, "POST", path, "{", as()...)
	h.busy(func() { send(429, "tools/call", `"name":"hello"`) })
	begin := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + servetest.LegacyVersion +
		`","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	status, header, body = h.do("POST", path, begin, as()...)
	if status != 200 {
		h.t.Fatalf("initialize: %d %s", status, body)
	}
	session := as("Mcp-Session-Id", header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", servetest.LegacyVersion)
	h.want(503, "POST", path, begin, as()...)
	h.want(202, "POST", path, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...)
	h.want(200, "GET", path, "", append(session, "Accept", "text/event-stream")...)
	h.want(406, "GET", path, "", append(session, "Accept", "application/json")...)
	h.want(405, "GET", path, "", as()...)
	for _, method := range []string{"GET", "DELETE"} {
		h.want(400, method, path, "", as("Mcp-Session-Id", "a", "Mcp-Session-Id", "b")...)
		h.want(404, method, path, "", as("Mcp-Session-Id", "nonsense")...)
		h.want(405, method, path, "", as("Mcp-Protocol-Version", modern)...)
	}
	h.want(200, "DELETE", path, "", session...)
}

// conversations sends requests about conversation branches to a daemon that keeps few and small ones.
func (h *house) conversations() {
	h.t.Helper()
	catalog := servetest.NewHouse(h.t)
	var err error
	dir := filepath.Join(h.t.TempDir(), "branches")
	if catalog.Conversations, err = conversation.Open(conversation.Config{Dir: dir, Limits: conversation.Limits{Owner: 3, Bytes: 520}}); err != nil {
		h.t.Fatal(err)
	}
	if err := catalog.Open(h.t); err != nil {
		h.t.Fatal(err)
	}
	c := client{h.t, h.d, servetest.Listening(h.t, servetest.Backend{
		Version: "test", Log: slog.New(slog.DiscardHandler), Pin: catalog.Pin, Status: catalog.Status, Reload: catalog.Reload,
	}).URL}
	fork := func(status int, body string) (at string) {
		h.t.Helper()
		var made struct{ Name string }
		if text := c.want(status, "POST", "/branches", body); status == 201 {
			if err := json.Unmarshal([]byte(text), &made); err != nil {
				h.t.Fatal(err)
			}
		}
		return "/branches/" + made.Name
	}
	one := fork(201, `{"from":"default","hide":{"names":["upper"]},"labels":{"session/note":"a"}}`)
	fork(404, `{"from":"default","hide":{"names":["uppper"]}}`)
	fork(409, `{"from":"`+strings.TrimPrefix(one, "/branches/")+`","labels":{"session/note":"b"}}`)
	fork(422, `{"from":"default","ttl":"1ms"}`)
	c.want(200, "GET", "/branches", "")
	c.want(200, "GET", "/-/branches", "")
	c.want(200, "GET", one, "")
	c.want(200, "GET", "/branches/default", "")
	c.want(404, "GET", "/branches/nonsense", "")
	c.want(200, "PATCH", one, `{"ttl":"2h","select":null}`)
	c.want(404, "PATCH", one, `{"select":{"names":["uppper"]}}`)
	c.want(200, "PATCH", one, `{"narrow":{"secret":{"title":"S"}},"rename":{"secret":"hush"}}`)
	c.want(409, "PATCH", one, `{"rename":{"secret":"upper"}}`)
	c.want(422, "PATCH", one, `{"narrow":{"secret":{"args":{"properties":{"none":{"const":1}}}}}}`)
	c.want(400, "PATCH", one, `{"narrow":{"secret":{"arg":{}}}}`)
	c.want(200, "PATCH", one, `{"narrow":null}`)
	c.want(409, "PATCH", "/branches/default", `{"ttl":"2h"}`)
	c.want(422, "PATCH", one, `{"ttl":"200h"}`)
	upper := one + "/tools/upper"
	c.want(404, "GET", upper, "")
	c.want(404, "DELETE", upper, "")
	c.want(201, "PUT", upper, "")
	c.want(409, "PUT", upper, "")
	c.want(200, "PUT", upper+"?update=true", "")
	c.want(200, "GET", upper+"?dialect=openai", "")
	c.want(400, "GET", upper+"?dialect=x", "")
	c.want(400, "PUT", upper+"?update=perhaps", "")
	c.want(404, "PUT", one+"/tools/uppper", "")
	c.want(204, "DELETE", upper, "")
	c.want(409, "DELETE", "/branches/default/tools/upper", "")
	asked := `{"branch":"` + strings.TrimPrefix(one, "/branches/") + `","tool":"secret","arguments":{}`
	c.want(200, "POST", "/-/explain", asked+`,"result":{"is_error":false,"bytes":1,"structured":null,"text":["a"],"types":["text"]}}`)
	c.want(404, "POST", "/-/explain", `{"branch":"default","tool":"uppper"}`)
	c.want(200, "POST", "/-/input", asked+`}`)
	c.want(404, "POST", "/-/input", asked+`,"principal":"ann"}`)
	c.want(422, "POST", "/-/input", asked+`,"point":"release"}`)
	c.want(200, "POST", "/-/plan", asked+`}`)
	c.want(200, "POST", "/-/plan", `{"branch":"default","tool":"uppper"}`)
	c.want(404, "POST", "/-/plan", `{"branch":"nonsense","tool":"upper"}`)
	for _, wrong := range []string{`{"branch":"default"}`, `{"branch":"default","tool":"upper","groups":["ops"]}`} {
		for _, path := range []string{"/-/explain", "/-/input", "/-/plan"} {
			c.want(400, "POST", path, wrong)
		}
	}
	c.want(200, "POST", "/-/matrix", `{}`)
	c.want(200, "POST", "/-/matrix", `{"principals":[{"name":"ann"},{"name":"bob","groups":["ops"],"admin":true}]}`)
	c.want(400, "POST", "/-/matrix", `{"principals":[{"name":"ann"},{"name":"ann"}]}`)
	full := "" // as large as it may be, but for less than what is said of a tool
	for n := 256; full == ""; n -= 4 {
		body := `{"from":"default","hide":{"names":["upper"]},"labels":{"session/note":"` + strings.Repeat("a", n) + `"}}`
		var made struct{ Name string }
		if status, _, text := c.do("POST", "/branches", body); status == 201 {
			if err := json.Unmarshal([]byte(text), &made); err != nil {
				h.t.Fatal(err)
			}
			full = "/branches/" + made.Name
		}
	}
	c.want(422, "PUT", full+"/tools/upper", "")
	c.want(422, "DELETE", full+"/tools/secret", "")
	last := fork(201, `{"from":"default"}`)
	fork(429, `{"from":"default"}`)
	c.want(204, "DELETE", one, "")
	c.want(404, "DELETE", one, "")
	if err := os.RemoveAll(dir); err != nil {
		h.t.Fatal(err)
	}
	for method, path := range map[string]string{"POST": "/branches", "PATCH": last, "PUT": last + "/tools/upper?update=true", "DELETE": last + "/tools/secret"} {
		body := map[string]string{"POST": `{"from":"default"}`, "PATCH": `{"ttl":"3h"}`}[method]
		if text := c.want(500, method, path, body); !strings.Contains(text, "can't be stored") {
			h.t.Errorf("%s %s without a directory for branches: %s", method, path, text)
		}
	}
	c.want(409, "DELETE", "/branches/default", "")
}

// bare sends requests to daemons without intents, with a store that can't be opened, and with little time for bodies.
func (h *house) bare(t *testing.T) {
	t.Helper()
	none := client{t, h.d, servetest.Start(t, servetest.Weather()).URL}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := client{t, h.d, servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) {
		b.Effects = daemon.NewEffects(daemon.EffectsConfig{Store: intent.Config{Dir: file}, Pin: b.Pin, Log: b.Log})
		b.Limits.BodyTime = time.Millisecond
	}).URL}
	for path, operations := range h.d.paths {
		for method, o := range operations {
			method = strings.ToUpper(method)
			body := ""
			if strings.HasSuffix(path, "/resolve") {
				body = `{"as": "failed"}`
			}
			if _, ok := o.Responses["503"]; ok && strings.Contains(path, "/intents") {
				none.want(http.StatusNotFound, method, filled(path), body)
				broken.want(http.StatusServiceUnavailable, method, filled(path), body)
			}
			if o.RequestBody != nil {
				broken.raw(http.StatusRequestTimeout, method, filled(path), 10)
			}
			if strings.Contains(path, "{branch}") {
				none.want(http.StatusNotFound, method, strings.Replace(path, "{branch}", "nonsense", 1), "", "Accept", "*/*")
			}
		}
	}
}

// faults sends a request for each operation to a daemon whose handlers panic, with a text that no answer may have.
func (h *house) faults() {
	h.t.Helper()
	server := httptest.NewServer(httpapi.Faulty(h.API, "quokka"))
	defer server.Close()
	c := client{h.t, h.d, server.URL}
	for path, operations := range h.d.paths {
		for method := range operations {
			method = strings.ToUpper(method)
			if body := c.want(500, method, filled(path), "", h.as("root")...); strings.Contains(body, "quokka") {
				h.t.Errorf("%s %s: the answer has the panic's text: %s", method, path, body)
			}
		}
	}
}
