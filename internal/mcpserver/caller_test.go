package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
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

	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/internal/token"
)

// guarded serves the weather catalog to the bearers of some tokens.
func guarded(t testing.TB) (*servetest.Server, *servetest.Holders) {
	t.Helper()
	h := servetest.Issue(t, slog.New(slog.DiscardHandler),
		token.Token{Name: "ann", Branches: []string{"research"}, Groups: []string{"staff"}},
		token.Token{Name: "bob", Branches: []string{"research", "default"}},
		token.Token{Name: "root", Branches: []string{"*"}, Admin: true},
		token.Token{Name: "late", Branches: []string{"*"}, Admin: true, Expires: time.Now().Add(-time.Second)},
	)
	return servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) { b.Tokens = h.Store }), h
}

// Who may do what, at every address.
func tokensOpen(t *testing.T) {
	t.Parallel()
	d, h := guarded(t)
	h.Header["mistyped"] = []string{"Authorization", h.Header["root"][1] + "x"}
	h.Header["basic"] = []string{"Authorization", "Basic " + h.Secret["root"]}
	h.Header["schemeless"] = []string{"Authorization", h.Secret["root"]}
	h.Header["lower"] = []string{"Authorization", "bearer  " + h.Secret["root"]}
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
		"/status?access_token=" + h.Secret["root"]: {"nobody": 401},
		"/status?token=" + h.Secret["root"]:        {"nobody": 401},
	} {
		for who, status := range want {
			r := d.Do(t, "GET", path, "", h.Header[who]...)
			if r.Status != status {
				t.Errorf("%s %s: %d, want %d: %s", who, path, r.Status, status, r.Body)
			}
			if asked := r.Header.Get("WWW-Authenticate"); (r.Status == 401) != strings.HasPrefix(asked, `Bearer realm="catalogd"`) {
				t.Errorf("%s %s: WWW-Authenticate %q", who, path, asked)
			}
		}
	}
	if r := d.Do(t, "POST", "/-/reload", "", h.Header["ann"]...); r.Status != 403 {
		t.Errorf("reload: %+v", r)
	}
	if r := d.Do(t, "POST", "/-/reload", "", h.Header["root"]...); r.Status != 200 {
		t.Errorf("reload: %+v", r)
	}
	for who, want := range map[string]int{"nobody": 401, "ann": 404, "bob": 200, "root": 200, "late": 401} {
		if r := d.Modern(t, "/mcp", "tools/list", "", h.Header[who]...); r.Status != want {
			t.Errorf("tools/list as %s: %d, want %d", who, r.Status, want)
		}
	}
	if r := d.Do(t, "GET", "/branches", "", h.Header["ann"]...); strings.Contains(r.Body, "default") || !strings.Contains(r.Body, `"research"`) {
		t.Errorf("ann's branches: %s", r.Body)
	}
	if r := d.Do(t, "GET", "/status", "", h.Header["ann"]...); strings.Contains(r.Body, "servers") || !strings.Contains(r.Body, `"restricted":true`) {
		t.Errorf("ann's status: %s", r.Body)
	}
	// Two credentials can't both be meant.
	req, err := http.NewRequest("GET", d.URL+"/status", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header["Authorization"] = []string{h.Header["root"][1], h.Header["root"][1]}
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
			for _, body := range []string{"", servetest.LegacyBody("tools/list", ""), "{", servetest.ModernBody("tools/call", `"name":"weather"`)} {
				closed := d.Do(t, method, "/branches/default"+path, body, h.Header["ann"]...)
				missing := d.Do(t, method, "/branches/nosuch1"+path, body, h.Header["ann"]...)
				for _, r := range []servetest.Response{closed, missing} {
					r.Header.Del("Date")
				}
				if want := strings.ReplaceAll(missing.Body, "nosuch1", "default"); closed.Status != missing.Status || closed.Body != want {
					t.Errorf("%s %s: %d %s; and where there is none: %d %s", method, path, closed.Status, closed.Body, missing.Status, missing.Body)
				}
				for name, values := range missing.Header {
					if !slices.Equal(closed.Header[name], values) {
						t.Errorf("%s %s: header %s is %q; and where there is none %q", method, path, name, closed.Header[name], values)
					}
				}
				if strings.Contains(closed.Body, "weather") && !strings.Contains(body, "weather") {
					t.Errorf("%s %s tells of tools: %s", method, path, closed.Body)
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
	anns := d.SessionAs(t, path, h.Header["ann"])
	stolen := append(slices.Clone(h.Header["bob"]), anns[2:]...)
	forged := append(slices.Clone(h.Header["bob"]), "Mcp-Session-Id", strings.Repeat("0", 32), "Mcp-Protocol-Version", servetest.LegacyVersion)
	anonymous := anns[2:]
	for _, test := range []struct{ method, body string }{
		{"POST", servetest.LegacyBody("tools/list", "")}, {"POST", servetest.LegacyBody("ping", "")}, {"POST", servetest.LegacyBody("tools/call", `"name":"weather","arguments":{"city":"Bern"}`)},
		{"POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`}, {"GET", ""}, {"DELETE", ""},
	} {
		theft, forgery := d.Do(t, test.method, path, test.body, stolen...), d.Do(t, test.method, path, test.body, forged...)
		if theft.Status != 404 || theft.Body != forgery.Body || forgery.Status != 404 {
			t.Errorf("%s %s: %d %s; a forged one: %d %s", test.method, test.body, theft.Status, theft.Body, forgery.Status, forgery.Body)
		}
		if r := d.Do(t, test.method, path, test.body, anonymous...); r.Status != 401 {
			t.Errorf("%s without a token: %d", test.method, r.Status)
		}
	}
	if r := d.Do(t, "POST", path, servetest.LegacyBody("tools/list", ""), anns...); r.Status != 200 {
		t.Errorf("the owner's: %+v", r)
	}
}

// Who is revoked, or has another principal now, is out at once: streams end, sessions are forgotten.
func revokedIsOut(t *testing.T) {
	t.Parallel()
	d, h := guarded(t)
	const path = "/branches/research/mcp"
	ann, bob := d.SessionAs(t, path, h.Header["ann"]), d.SessionAs(t, path, h.Header["bob"])
	anns, bobs := d.Stream(t, path, ann), d.Stream(t, path, bob)
	listening := d.Listen(t, path, h.Header["ann"])
	if err := token.Remove(h.Path, "ann"); err != nil {
		t.Fatal(err)
	}
	if !h.Store.Reload() {
		t.Fatal("the tokens have not changed")
	}
	d.Reauthorize()
	anns.Rest(t)
	listening.Rest(t)
	if r := d.Do(t, "POST", path, servetest.LegacyBody("tools/list", ""), ann...); r.Status != 401 {
		t.Errorf("revoked: %+v", r)
	}
	if r := d.Do(t, "POST", path, servetest.LegacyBody("tools/list", ""), bob...); r.Status != 200 {
		t.Errorf("another: %+v", r)
	}
	// The same secret with other claims is another principal, whose sessions begin anew.
	file, err := os.ReadFile(h.Path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(file), `"branches":["research","default"]`, `"branches":["research"],"groups":["staff"]`, 1)
	if err := os.WriteFile(h.Path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if !h.Store.Reload() {
		t.Fatal("the tokens have not changed")
	}
	d.Reauthorize()
	bobs.Rest(t)
	if r := d.Do(t, "POST", path, servetest.LegacyBody("tools/list", ""), bob...); r.Status != 404 {
		t.Errorf("with other claims: %+v", r)
	}
	if r := d.Modern(t, "/mcp", "tools/list", "", h.Header["bob"]...); r.Status != 404 {
		t.Errorf("a branch that is closed now: %+v", r)
	}
}

// Guessing is answered ever more shortly, a good token is not held up by it, and no secret is ever logged.
func guessingIsBounded(t *testing.T) {
	t.Parallel()
	d, h := guarded(t)
	counts := map[int]int{}
	for range 300 {
		guess, _ := token.New()
		r := d.Do(t, "GET", "/branches", "", "Authorization", "Bearer "+guess)
		counts[r.Status]++
		if r.Status == 429 && r.Header.Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
		if strings.Contains(d.Log.String(), guess) || strings.Contains(r.Body, guess) {
			t.Fatal("a guess is repeated")
		}
	}
	if counts[401] < 100 || counts[401]+counts[429] != 300 || counts[429] == 0 {
		t.Errorf("%v", counts)
	}
	if r := d.Do(t, "GET", "/branches", "", h.Header["ann"]...); r.Status != 200 {
		t.Errorf("a good token: %+v", r)
	}
	if r := d.Do(t, "GET", "/branches", ""); r.Status != 401 {
		t.Errorf("no token: %+v", r)
	}
	if r := d.Do(t, "GET", "/metrics", "", h.Header["root"]...); !strings.Contains(r.Body, "\ncatalogd_unauthorized_total ") {
		t.Error("the refusals are not counted")
	}
	for _, secret := range h.Secret {
		if strings.Contains(d.Log.String(), secret) {
			t.Error("a secret is in the log")
		}
	}
}

// With tokens, the operator's names and the address that was connected to are good hosts; a page of another origin is not.
func guardKnowsNames(t *testing.T) {
	t.Parallel()
	h := servetest.Issue(t, slog.New(slog.DiscardHandler), token.Token{Name: "ann", Branches: []string{"*"}})
	d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) { b.Tokens, b.Hosts = h.Store, []string{"tools.example"} })
	port := d.URL[strings.LastIndexByte(d.URL, ':'):]
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
		r, err := http.NewRequest("GET", d.URL+"/branches", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = test.host
		r.Header.Set("Authorization", h.Header["ann"][1])
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

// What is kept for a bearer goes when nothing is open any more, and not before.
func TestIdleBearersAreForgotten(t *testing.T) {
	t.Parallel()
	h := servetest.Issue(t, slog.New(slog.DiscardHandler),
		token.Token{Name: "ann", Branches: []string{"*"}}, token.Token{Name: "bob", Branches: []string{"*"}}, token.Token{Name: "eve", Branches: []string{"*"}})
	d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) {
		b.Tokens, b.Limits = h.Store, mcpserver.Limits{SessionIdle: 3 * time.Second}
	})
	anns := d.Stream(t, "/mcp", d.SessionAs(t, "/mcp", h.Header["ann"])).Events()
	bobs := d.Listen(t, "/mcp", h.Header["bob"]).Events()
	if r := d.Modern(t, "/mcp", "tools/list", "", h.Header["eve"]...); r.Status != 200 {
		t.Fatal(r)
	}
	servetest.Until(t, "eve's is forgotten", func() bool { return d.Bearers() == 2 })
	c := servetest.Weather()
	c.Tools, c.Branches["default"] = c.Tools[:1], nil
	d.Swap(t, c, "default")
	for who, events := range map[string]<-chan string{"ann": anns, "bob": bobs} {
		for event := ""; !strings.Contains(event, "list_changed"); {
			select {
			case event = <-events:
			case <-time.After(2 * time.Minute):
				t.Fatalf("%s hears nothing", who)
			}
		}
	}
	if r := d.Modern(t, "/mcp", "tools/list", "", h.Header["eve"]...); r.Status != 200 {
		t.Errorf("eve comes again: %+v", r)
	}
}

// On stdio, too, a token opens its branches to its principal, for as long as it is good.
func stdioBearer(t *testing.T) {
	t.Parallel()
	d, h := guarded(t)
	serve := func(who, branch string, in io.Reader, out io.Writer) error {
		return d.StdioBearer(t.Context(), h.Secret[who], branch, in, out)
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
	if err := serve("ann", "research", strings.NewReader(servetest.ModernBody("tools/call", `"name":"private"`)+"\n"), &out); err != nil || !strings.Contains(out.String(), "for research only") {
		t.Errorf("%v: %s", err, &out)
	}
	if !strings.Contains(d.Log.String(), "principal=ann") {
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
	if _, err := io.WriteString(hold, servetest.ModernBody("tools/list", "")+"\n"); err != nil {
		t.Fatal(err)
	}
	<-attached
	if err := token.Remove(h.Path, "ann"); err != nil {
		t.Fatal(err)
	}
	if !h.Store.Reload() {
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
	h := servetest.Issue(t, slog.New(slog.DiscardHandler), token.Token{Name: "ann", Branches: []string{"*"}}, token.Token{Name: "bob", Branches: []string{"*"}})
	d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) {
		b.Tokens, b.Limits = h.Store, mcpserver.Limits{Sessions: 2, AllSessions: 3}
	})
	begin := func(who string) int {
		return d.Do(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+servetest.LegacyVersion+`","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, h.Header[who]...).Status
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
	h := servetest.NewHouse(b)
	var cue strings.Builder
	cue.WriteString("package catalog\n\nbranches: default: {}\n")
	for i := range tools {
		fmt.Fprintf(&cue, "tools: t%d: {description: \"Tool %d.\", effect: \"read\", binding: jq: program: \"1\"}\n", i, i)
	}
	h.Set("catalog/home.cue", cue.String())
	h.Set("policy/each.rego", "package catalogd.list\n\ndeny contains \"not yours\" if {\n\tinput.tool.name == \"t7\"\n\tendswith(input.principal.name, \"7\")\n}\n")
	if err := h.Open(b); err != nil {
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
		d := servetest.Listening(b, servetest.Backend{
			Version: "test", Log: slog.New(slog.DiscardHandler), Tokens: all.Store,
			Pin:    func() (*generation.Generation, func()) { return h.Pin() },
			Status: func() daemon.Status { return h.Status() },
			Reload: func(ctx context.Context) daemon.Outcome { return h.Reload(ctx) },
		})
		before := memory()
		start := time.Now()
		for i := range people {
			who := all.Header[fmt.Sprint("p", i)]
			if r := d.Modern(b, "/mcp", "tools/list", "", who...); r.Status != 200 {
				b.Fatal(r.Body)
			}
			if r := d.Modern(b, "/mcp", "tools/call", `"name":"t1"`, who...); r.Status != 200 {
				b.Fatal(r.Body)
			}
		}
		b.ReportMetric(float64(time.Since(start).Microseconds())/people, "us/person")
		http.DefaultClient.CloseIdleConnections()
		b.ReportMetric(float64(memory()-before)/people, "B/person")
	}
}

// issueAll is issue for many tokens: it writes the file at once.
func issueAll(t testing.TB, tokens []token.Token) *servetest.Holders {
	t.Helper()
	h := &servetest.Holders{Path: filepath.Join(t.TempDir(), "tokens"), Header: map[string][]string{}, Secret: map[string]string{}}
	var file strings.Builder
	for _, one := range tokens {
		secret, hash := token.New()
		one.Hash = hash
		line, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		file.Write(append(line, '\n'))
		h.Header[one.Name] = []string{"Authorization", "Bearer " + secret}
	}
	if err := os.WriteFile(h.Path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.Store, err = token.Open(h.Path, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	return h
}

// What HTTP may do beside serving is to reload, for admins; no method at any address does more, and none of it for others.
func adminsOnly(t *testing.T) {
	t.Parallel()
	h := servetest.Issue(t, slog.New(slog.DiscardHandler), token.Token{Name: "ann", Branches: []string{"*"}}, token.Token{Name: "root", Branches: []string{"*"}, Admin: true})
	var reloads atomic.Int32
	d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) {
		b.Tokens = h.Store
		b.Reload = func(context.Context) daemon.Outcome {
			reloads.Add(1)
			return daemon.Outcome{Result: "unchanged"}
		}
	})
	before, err := os.ReadFile(h.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"nobody", "ann", "root"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			for _, path := range []string{"/", "/status", "/metrics", "/branches", "/branches/default", "/branches/default/tools", "/-/reload", "/-/tokens", "/tokens", "/catalog/home.cue", "/policy/list.rego"} {
				r := d.Do(t, method, path, `{"name":"eve"}`, h.Header[who]...)
				open := map[string]bool{"/status": true, "/metrics": who == "root", "/branches": true, "/branches/default": true, "/branches/default/tools": true}
				get := method == "GET" || method == "HEAD"
				may := path == "/" && get || // which says where the others are
					who != "nobody" && (open[path] && get || who == "root" && path == "/-/reload" && method == "POST")
				if (r.Status == 200) != may {
					t.Errorf("%s %s as %s: %d", method, path, who, r.Status)
				}
			}
		}
	}
	if n := reloads.Load(); n != 1 {
		t.Errorf("%d reloads", n)
	}
	if after, err := os.ReadFile(h.Path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the tokens have changed: %v", err)
	}
}
