package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/serve"
	"github.com/catalogd/catalogd/internal/token"
)

// holders are the bearers of tokens of a test, by name.
type holders struct {
	path  string
	store *token.Store
	// header is what each sends.
	header map[string][]string
	secret map[string]string
}

// issue makes a file of tokens.
func issue(t testing.TB, log *slog.Logger, tokens ...token.Token) *holders {
	t.Helper()
	h := &holders{path: filepath.Join(t.TempDir(), "tokens"), header: map[string][]string{"nobody": nil}, secret: map[string]string{}}
	for _, one := range tokens {
		h.add(t, one)
	}
	var err error
	if h.store, err = token.Open(h.path, log); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *holders) add(t testing.TB, one token.Token) {
	t.Helper()
	secret, hash := token.New()
	one.Hash = hash
	if err := token.Add(h.path, one); err != nil {
		t.Fatal(err)
	}
	h.secret[one.Name], h.header[one.Name] = secret, []string{"Authorization", "Bearer " + secret}
}

// guarded serves the weather catalog to the bearers of some tokens.
func guarded(t testing.TB) (*daemon, *holders) {
	t.Helper()
	h := issue(t, slog.New(slog.DiscardHandler),
		token.Token{Name: "ann", Branches: []string{"research"}, Groups: []string{"staff"}},
		token.Token{Name: "bob", Branches: []string{"research", "default"}},
		token.Token{Name: "root", Branches: []string{"*"}, Admin: true},
		token.Token{Name: "late", Branches: []string{"*"}, Admin: true, Expires: time.Now().Add(-time.Second)},
	)
	return start(t, weather(), func(b *serve.Backend) { b.Tokens = h.store }), h
}

// sessionAs is session for the bearer of a token.
func (d *daemon) sessionAs(t testing.TB, path string, who []string) []string {
	t.Helper()
	r := d.do(t, http.MethodPost, path, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+legacyVersion+`","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, who...)
	id := r.header.Get("Mcp-Session-Id")
	if r.status != 200 || id == "" {
		t.Fatalf("initialize: %+v", r)
	}
	return append(slices.Clone(who), "Mcp-Session-Id", id, "Mcp-Protocol-Version", legacyVersion)
}

// Who may do what, at every address.
func tokensOpen(t *testing.T) {
	t.Parallel()
	d, h := guarded(t)
	h.header["mistyped"] = []string{"Authorization", h.header["root"][1] + "x"}
	h.header["basic"] = []string{"Authorization", "Basic " + h.secret["root"]}
	h.header["schemeless"] = []string{"Authorization", h.secret["root"]}
	h.header["lower"] = []string{"Authorization", "bearer  " + h.secret["root"]}
	const list = "/branches/default/tools"
	for path, want := range map[string]map[string]int{
		"/healthz":                              {"nobody": 200, "ann": 200, "mistyped": 200},
		"/readyz":                               {"nobody": 200, "ann": 200, "mistyped": 200},
		"/status":                               {"nobody": 401, "ann": 200, "root": 200, "late": 401, "mistyped": 401, "basic": 401, "schemeless": 401, "lower": 200},
		"/branches":                             {"nobody": 401, "ann": 200, "root": 200, "late": 401},
		"/metrics":                              {"nobody": 401, "ann": 403, "root": 200, "late": 401},
		list:                                    {"nobody": 401, "ann": 404, "bob": 200, "root": 200, "late": 401},
		"/branches/nosuch/tools":                {"nobody": 401, "ann": 404, "root": 404},
		"/mcp":                                  {"nobody": 401, "ann": 404, "late": 401},
		"/nothing":                              {"nobody": 404, "root": 404},
		"/.well-known/oauth-protected-resource": {"nobody": 404},
		"/status?access_token=" + h.secret["root"]: {"nobody": 401},
		"/status?token=" + h.secret["root"]:        {"nobody": 401},
	} {
		for who, status := range want {
			r := d.do(t, "GET", path, "", h.header[who]...)
			if r.status != status {
				t.Errorf("%s %s: %d, want %d: %s", who, path, r.status, status, r.body)
			}
			if asked := r.header.Get("WWW-Authenticate"); (r.status == 401) != strings.HasPrefix(asked, `Bearer realm="catalogd"`) {
				t.Errorf("%s %s: WWW-Authenticate %q", who, path, asked)
			}
		}
	}
	if r := d.do(t, "POST", "/-/reload", "", h.header["ann"]...); r.status != 403 {
		t.Errorf("reload: %+v", r)
	}
	if r := d.do(t, "POST", "/-/reload", "", h.header["root"]...); r.status != 200 {
		t.Errorf("reload: %+v", r)
	}
	for who, want := range map[string]int{"nobody": 401, "ann": 404, "bob": 200, "root": 200, "late": 401} {
		if r := d.modern(t, "/mcp", "tools/list", "", h.header[who]...); r.status != want {
			t.Errorf("tools/list as %s: %d, want %d", who, r.status, want)
		}
	}
	if r := d.do(t, "GET", "/branches", "", h.header["ann"]...); strings.Contains(r.body, "default") || !strings.Contains(r.body, `"research"`) {
		t.Errorf("ann's branches: %s", r.body)
	}
	if r := d.do(t, "GET", "/status", "", h.header["ann"]...); strings.Contains(r.body, "servers") || !strings.Contains(r.body, `"restricted":true`) {
		t.Errorf("ann's status: %s", r.body)
	}
	// Two credentials can't both be meant.
	req, err := http.NewRequest("GET", d.url+"/status", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header["Authorization"] = []string{h.header["root"][1], h.header["root"][1]}
	got, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	if got.StatusCode != 401 {
		t.Errorf("two credentials: %d", got.StatusCode)
	}
}

// A branch that a token doesn't open is, to its bearer, one that is not there: the same bytes, on every method and address.
func closedIsMissing(t *testing.T) {
	t.Parallel()
	d, h := guarded(t)
	for _, method := range []string{"GET", "POST", "DELETE", "PUT", "OPTIONS"} {
		for _, path := range []string{"/mcp", "/tools", "/tools?dialect=none", "/tools?tools=weather"} {
			for _, body := range []string{"", legacyBody("tools/list", ""), "{", modernBody("tools/call", `"name":"weather"`)} {
				closed := d.do(t, method, "/branches/default"+path, body, h.header["ann"]...)
				missing := d.do(t, method, "/branches/nosuch1"+path, body, h.header["ann"]...)
				for _, r := range []response{closed, missing} {
					r.header.Del("Date")
				}
				if want := strings.ReplaceAll(missing.body, "nosuch1", "default"); closed.status != missing.status || closed.body != want {
					t.Errorf("%s %s: %d %s; and where there is none: %d %s", method, path, closed.status, closed.body, missing.status, missing.body)
				}
				for name, values := range missing.header {
					if !slices.Equal(closed.header[name], values) {
						t.Errorf("%s %s: header %s is %q; and where there is none %q", method, path, name, closed.header[name], values)
					}
				}
				if strings.Contains(closed.body, "weather") && !strings.Contains(body, "weather") {
					t.Errorf("%s %s tells of tools: %s", method, path, closed.body)
				}
			}
		}
	}
}

// A session is one principal's: to another it is one that never was, whatever it wants with it.
func sessionsHaveOwners(t *testing.T) {
	t.Parallel()
	d, h := guarded(t)
	const path = "/branches/research/mcp"
	anns := d.sessionAs(t, path, h.header["ann"])
	stolen := append(slices.Clone(h.header["bob"]), anns[2:]...)
	forged := append(slices.Clone(h.header["bob"]), "Mcp-Session-Id", strings.Repeat("0", 32), "Mcp-Protocol-Version", legacyVersion)
	anonymous := anns[2:]
	for _, test := range []struct{ method, body string }{
		{"POST", legacyBody("tools/list", "")}, {"POST", legacyBody("ping", "")}, {"POST", legacyBody("tools/call", `"name":"weather","arguments":{"city":"Bern"}`)},
		{"POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`}, {"GET", ""}, {"DELETE", ""},
	} {
		theft, forgery := d.do(t, test.method, path, test.body, stolen...), d.do(t, test.method, path, test.body, forged...)
		if theft.status != 404 || theft.body != forgery.body || forgery.status != 404 {
			t.Errorf("%s %s: %d %s; a forged one: %d %s", test.method, test.body, theft.status, theft.body, forgery.status, forgery.body)
		}
		if r := d.do(t, test.method, path, test.body, anonymous...); r.status != 401 {
			t.Errorf("%s without a token: %d", test.method, r.status)
		}
	}
	if r := d.do(t, "POST", path, legacyBody("tools/list", ""), anns...); r.status != 200 {
		t.Errorf("the owner's: %+v", r)
	}
}

// Who is revoked, or has another principal now, is out at once: streams end, sessions are forgotten.
func revokedIsOut(t *testing.T) {
	t.Parallel()
	d, h := guarded(t)
	const path = "/branches/research/mcp"
	ann, bob := d.sessionAs(t, path, h.header["ann"]), d.sessionAs(t, path, h.header["bob"])
	anns, bobs := d.stream(t, path, ann), d.stream(t, path, bob)
	listening := d.listen(t, path, h.header["ann"])
	if err := token.Remove(h.path, "ann"); err != nil {
		t.Fatal(err)
	}
	if !h.store.Reload() {
		t.Fatal("the tokens have not changed")
	}
	d.Reauthorize()
	anns.rest(t)
	listening.rest(t)
	if r := d.do(t, "POST", path, legacyBody("tools/list", ""), ann...); r.status != 401 {
		t.Errorf("revoked: %+v", r)
	}
	if r := d.do(t, "POST", path, legacyBody("tools/list", ""), bob...); r.status != 200 {
		t.Errorf("another: %+v", r)
	}
	// The same secret with other claims is another principal, whose sessions begin anew.
	file, err := os.ReadFile(h.path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(file), `"branches":["research","default"]`, `"branches":["research"],"groups":["staff"]`, 1)
	if err := os.WriteFile(h.path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if !h.store.Reload() {
		t.Fatal("the tokens have not changed")
	}
	d.Reauthorize()
	bobs.rest(t)
	if r := d.do(t, "POST", path, legacyBody("tools/list", ""), bob...); r.status != 404 {
		t.Errorf("with other claims: %+v", r)
	}
	if r := d.modern(t, "/mcp", "tools/list", "", h.header["bob"]...); r.status != 404 {
		t.Errorf("a branch that is closed now: %+v", r)
	}
}

// listen opens a subscription of 2026-07-28.
func (d *daemon) listen(t testing.TB, path string, header []string) *stream {
	t.Helper()
	const params = `"notifications":{"toolsListChanged":true}`
	r, err := http.NewRequest(http.MethodPost, d.url+path, strings.NewReader(modernBody("subscriptions/listen", params)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	header = append(modernHeader("subscriptions/listen", params), header...)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if got.StatusCode != 200 {
		t.Fatalf("subscriptions/listen: %d", got.StatusCode)
	}
	t.Cleanup(func() { got.Body.Close() })
	return &stream{got.Body, bufio.NewReader(got.Body)}
}

// Guessing is answered ever more shortly, a good token is not held up by it, and no secret is ever logged.
func guessingIsBounded(t *testing.T) {
	t.Parallel()
	d, h := guarded(t)
	counts := map[int]int{}
	for range 300 {
		guess, _ := token.New()
		r := d.do(t, "GET", "/branches", "", "Authorization", "Bearer "+guess)
		counts[r.status]++
		if r.status == 429 && r.header.Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
		if strings.Contains(d.log.String(), guess) || strings.Contains(r.body, guess) {
			t.Fatal("a guess is repeated")
		}
	}
	if counts[401] < 100 || counts[401]+counts[429] != 300 || counts[429] == 0 {
		t.Errorf("%v", counts)
	}
	if r := d.do(t, "GET", "/branches", "", h.header["ann"]...); r.status != 200 {
		t.Errorf("a good token: %+v", r)
	}
	if r := d.do(t, "GET", "/branches", ""); r.status != 401 {
		t.Errorf("no token: %+v", r)
	}
	if r := d.do(t, "GET", "/metrics", "", h.header["root"]...); !strings.Contains(r.body, "\ncatalogd_unauthorized_total ") {
		t.Error("the refusals are not counted")
	}
	for _, secret := range h.secret {
		if strings.Contains(d.log.String(), secret) {
			t.Error("a secret is in the log")
		}
	}
}

// With tokens, the operator's names and the address that was connected to are good hosts; a page of another origin is not.
func guardKnowsNames(t *testing.T) {
	t.Parallel()
	h := issue(t, slog.New(slog.DiscardHandler), token.Token{Name: "ann", Branches: []string{"*"}})
	d := start(t, weather(), func(b *serve.Backend) { b.Tokens, b.Hosts = h.store, []string{"tools.example"} })
	port := d.url[strings.LastIndexByte(d.url, ':'):]
	for _, test := range []struct {
		host, origin string
		want         int
	}{
		{"tools.example", "", 200}, {"TOOLS.example:8443", "", 200}, {"tools.example", "https://tools.example", 200},
		{"tools.example:8443", "https://tools.example:8443", 200}, {"tools.example", "http://tools.example", 200},
		{"127.0.0.1" + port, "", 200}, {"localhost" + port, "http://localhost" + port, 200},
		{"tools.example", "https://evil.example", 403}, {"tools.example", "https://tools.example.evil.example", 403}, {"tools.example", "null", 403},
		{"tools.example", "https://tools.example:8443", 403}, {"evil.example", "", 403}, {"tools.example.evil.example", "", 403},
		{"tools.example:x", "", 403}, {"127.0.0.1", "", 403}, {"10.0.0.1" + port, "", 403},
	} {
		r, err := http.NewRequest("GET", d.url+"/branches", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = test.host
		r.Header.Set("Authorization", h.header["ann"][1])
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != test.want {
			t.Errorf("Host %s, Origin %q: %d, want %d", test.host, test.origin, got.StatusCode, test.want)
		}
	}
}

// listening serves a front on a loopback port, and returns its daemon for requests.
func listening(t testing.TB, b serve.Backend) *daemon {
	t.Helper()
	d := &daemon{Front: serve.NewFront(b)}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.url = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve.Serve(ctx, ln, d.Front) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return d
}

// events collects what a stream says, until it ends.
func (s *stream) events() <-chan string {
	heard := make(chan string, 100)
	go func() {
		defer close(heard)
		for {
			line, err := s.reader.ReadString('\n')
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				heard <- strings.TrimSpace(data)
			}
			if err != nil {
				return
			}
		}
	}()
	return heard
}

// What is kept for a bearer goes when nothing is open any more, and not before.
func TestIdleBearersAreForgotten(t *testing.T) {
	t.Parallel()
	h := issue(t, slog.New(slog.DiscardHandler),
		token.Token{Name: "ann", Branches: []string{"*"}}, token.Token{Name: "bob", Branches: []string{"*"}}, token.Token{Name: "eve", Branches: []string{"*"}})
	d := start(t, weather(), func(b *serve.Backend) {
		b.Tokens, b.Limits = h.store, serve.FrontLimits{SessionIdle: 300 * time.Millisecond}
	})
	anns := d.stream(t, "/mcp", d.sessionAs(t, "/mcp", h.header["ann"])).events()
	bobs := d.listen(t, "/mcp", h.header["bob"]).events()
	if r := d.modern(t, "/mcp", "tools/list", "", h.header["eve"]...); r.status != 200 {
		t.Fatal(r)
	}
	until(t, "eve's is forgotten", func() bool { return d.Bearers() == 2 })
	c := weather()
	c.tools, c.branches["default"] = c.tools[:1], nil
	d.swap(t, c, "default")
	for who, events := range map[string]<-chan string{"ann": anns, "bob": bobs} {
		for event := ""; !strings.Contains(event, "list_changed"); {
			select {
			case event = <-events:
			case <-time.After(10 * time.Second):
				t.Fatalf("%s hears nothing", who)
			}
		}
	}
	if r := d.modern(t, "/mcp", "tools/list", "", h.header["eve"]...); r.status != 200 {
		t.Errorf("eve comes again: %+v", r)
	}
}

// On stdio, too, a token opens its branches to its principal, for as long as it is good.
func stdioBearer(t *testing.T) {
	t.Parallel()
	d, h := guarded(t)
	serve := func(who, branch string, in io.Reader, out io.Writer) error {
		return d.StdioBearer(t.Context(), h.secret[who], branch, in, out)
	}
	for _, test := range []struct{ who, branch, want string }{
		{"late", "default", "the token is not good"}, {"nobody", "default", "the token is not good"},
		{"ann", "default", `there is no branch "default"`}, {"ann", "nosuch", `there is no branch "nosuch"`},
	} {
		if err := serve(test.who, test.branch, strings.NewReader(""), io.Discard); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s at %s: %v", test.who, test.branch, err)
		}
	}
	var out bytes.Buffer
	if err := serve("ann", "research", strings.NewReader(modernBody("tools/call", `"name":"private"`)+"\n"), &out); err != nil || !strings.Contains(out.String(), "for research only") {
		t.Errorf("%v: %s", err, &out)
	}
	if !strings.Contains(d.log.String(), "principal=ann") {
		t.Error("the principal is not in the log")
	}
	in, hold := io.Pipe() // a client that stays
	defer hold.Close()
	ended := make(chan error, 1)
	attached := make(chan struct{})
	var once sync.Once
	go func() {
		ended <- serve("ann", "research", in, writerFunc(func([]byte) { once.Do(func() { close(attached) }) }))
	}()
	if _, err := io.WriteString(hold, modernBody("tools/list", "")+"\n"); err != nil {
		t.Fatal(err)
	}
	<-attached
	if err := token.Remove(h.path, "ann"); err != nil {
		t.Fatal(err)
	}
	if !h.store.Reload() {
		t.Fatal("the tokens have not changed")
	}
	d.Reauthorize()
	if err := <-ended; err == nil || !strings.HasPrefix(err.Error(), "the token is not good") {
		t.Errorf("revoked: %v", err)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

// However many bearers there are, they have only so many sessions together; and one can't take another's.
func TestSessionsOfAll(t *testing.T) {
	t.Parallel()
	h := issue(t, slog.New(slog.DiscardHandler), token.Token{Name: "ann", Branches: []string{"*"}}, token.Token{Name: "bob", Branches: []string{"*"}})
	d := start(t, weather(), func(b *serve.Backend) {
		b.Tokens, b.Limits = h.store, serve.FrontLimits{Sessions: 2, AllSessions: 3}
	})
	begin := func(who string) int {
		return d.do(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+legacyVersion+`","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, h.header[who]...).status
	}
	for i, step := range []struct {
		who  string
		want int
	}{{"ann", 200}, {"ann", 200}, {"ann", 503}, {"bob", 200}, {"bob", 503}} {
		if got := begin(step.who); got != step.want {
			t.Errorf("%d, %s: %d, want %d", i, step.who, got, step.want)
		}
	}
}

// BenchmarkBearers has 1,000 bearers of tokens, whom the policy tells apart by name, list 1,000 tools each and call one. It
// reports what stays in memory for each of them, a tenth of whom see another list.
func BenchmarkBearers(b *testing.B) {
	const people, tools = 1000, 1000
	h := newHouse(b)
	var cue strings.Builder
	cue.WriteString("package catalog\n\nbranches: default: {}\n")
	for i := range tools {
		fmt.Fprintf(&cue, "tools: t%d: {description: \"Tool %d.\", effect: \"read\", binding: jq: program: \"1\"}\n", i, i)
	}
	h.set("catalog/home.cue", cue.String())
	h.set("policy/each.rego", "package catalogd.list\n\ndeny contains \"not yours\" if {\n\tinput.tool.name == \"t7\"\n\tendswith(input.principal.name, \"7\")\n}\n")
	if err := h.open(b); err != nil {
		b.Fatal(err)
	}
	var tokens []token.Token
	for i := range people {
		tokens = append(tokens, token.Token{Name: fmt.Sprint("p", i), Branches: []string{"*"}})
	}
	all := issueAll(b, tokens)
	memory := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		d := listening(b, serve.Backend{
			Version: "test", Log: slog.New(slog.DiscardHandler), Tokens: all.store,
			Pin:    func() (*serve.Generation, func()) { return h.Pin() },
			Status: func() serve.Status { return h.Status() },
			Reload: func(ctx context.Context) serve.Outcome { return h.Reload(ctx) },
		})
		before := memory()
		start := time.Now()
		for i := range people {
			who := all.header[fmt.Sprint("p", i)]
			if r := d.modern(b, "/mcp", "tools/list", "", who...); r.status != 200 {
				b.Fatal(r.body)
			}
			if r := d.modern(b, "/mcp", "tools/call", `"name":"t1"`, who...); r.status != 200 {
				b.Fatal(r.body)
			}
		}
		b.ReportMetric(float64(time.Since(start).Microseconds())/people, "us/person")
		http.DefaultClient.CloseIdleConnections()
		b.ReportMetric(float64(memory()-before)/people, "B/person")
	}
}

// issueAll is issue for many tokens: it writes the file at once.
func issueAll(t testing.TB, tokens []token.Token) *holders {
	t.Helper()
	h := &holders{path: filepath.Join(t.TempDir(), "tokens"), header: map[string][]string{}, secret: map[string]string{}}
	var file strings.Builder
	for _, one := range tokens {
		secret, hash := token.New()
		one.Hash = hash
		line, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		file.Write(append(line, '\n'))
		h.header[one.Name] = []string{"Authorization", "Bearer " + secret}
	}
	if err := os.WriteFile(h.path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.store, err = token.Open(h.path, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	return h
}

// What HTTP may do beside serving is to reload, for admins; no method at any address does more, and none of it for others.
func adminsOnly(t *testing.T) {
	t.Parallel()
	h := issue(t, slog.New(slog.DiscardHandler), token.Token{Name: "ann", Branches: []string{"*"}}, token.Token{Name: "root", Branches: []string{"*"}, Admin: true})
	var reloads atomic.Int32
	d := start(t, weather(), func(b *serve.Backend) {
		b.Tokens = h.store
		b.Reload = func(context.Context) serve.Outcome {
			reloads.Add(1)
			return serve.Outcome{Result: "unchanged"}
		}
	})
	before, err := os.ReadFile(h.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"nobody", "ann", "root"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			for _, path := range []string{"/", "/status", "/metrics", "/branches", "/branches/default", "/branches/default/tools", "/-/reload", "/-/tokens", "/tokens", "/catalog/home.cue", "/policy/list.rego"} {
				r := d.do(t, method, path, `{"name":"eve"}`, h.header[who]...)
				open := map[string]bool{"/status": true, "/metrics": who == "root", "/branches": true, "/branches/default/tools": true}
				may := who != "nobody" && (open[path] && (method == "GET" || method == "HEAD") || who == "root" && path == "/-/reload" && method == "POST")
				if (r.status == 200) != may {
					t.Errorf("%s %s as %s: %d", method, path, who, r.status)
				}
			}
		}
	}
	if n := reloads.Load(); n != 1 {
		t.Errorf("%d reloads", n)
	}
	if after, err := os.ReadFile(h.path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the tokens have changed: %v", err)
	}
}
