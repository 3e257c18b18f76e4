package serve_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/serve"
	"github.com/catalogd/catalogd/registry"
)

// stream is an open GET or listen stream.
type stream struct {
	body   io.ReadCloser
	reader *bufio.Reader
}

// stream opens the stream of notifications of a session.
func (d *daemon) stream(t testing.TB, path string, header []string) *stream {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, d.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if got.StatusCode != 200 {
		t.Fatalf("GET %s: %d", path, got.StatusCode)
	}
	t.Cleanup(func() { got.Body.Close() })
	return &stream{got.Body, bufio.NewReader(got.Body)}
}

// event reads the data of the next event.
func (s *stream) event(t testing.TB) string {
	t.Helper()
	for {
		line, err := s.reader.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended: %v", err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimSpace(data)
		}
	}
}

// rest reads to the stream's end.
func (s *stream) rest(t testing.TB) string {
	t.Helper()
	done := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(s.reader)
		done <- string(b)
	}()
	select {
	case rest := <-done:
		return rest
	case <-time.After(10 * time.Second):
		t.Fatal("the stream does not end")
		return ""
	}
}

func sessions(t *testing.T) {
	t.Parallel()
	d := start(t, weather())
	const a, b = "/mcp", "/branches/research/mcp"
	live, other, ended := d.session(t, a), d.session(t, b), d.session(t, a)
	if r := d.do(t, "DELETE", a, "", ended...); r.status != 200 {
		t.Fatalf("DELETE: %+v", r)
	}
	forged := []string{"Mcp-Session-Id", "mcp-session-00000000-0000-4000-8000-000000000000"}
	none := []string{"Mcp-Protocol-Version", legacyVersion}
	for _, test := range []struct {
		name    string
		session []string
		status  int
	}{
		{"live", live, 200}, {"missing", none, 400}, {"forged", forged, 404}, {"ended", ended, 404},
		{"other branch's", other, 404}, {"malformed", []string{"Mcp-Session-Id", "../x"}, 404},
	} {
		r := d.do(t, "POST", a, legacyBody("tools/list", ""), test.session...)
		if r.status != test.status {
			t.Errorf("POST with %s session: %d %s", test.name, r.status, r.body)
		}
		if test.status == 200 {
			continue
		}
		if strings.Contains(r.body, "tools") {
			t.Errorf("%s tells of tools: %s", test.name, r.body)
		}
		if r := d.do(t, "DELETE", a, "", test.session...); r.status != test.status {
			t.Errorf("DELETE with %s session: %d %s", test.name, r.status, r.body)
		}
		r = d.do(t, "GET", a, "", test.session...)
		if test.name == "missing" { // some clients ask before they begin (AI SDK), and take only this for "no stream"
			test.status = 405
		}
		if r.status != test.status || test.status == 405 && r.header.Get("Allow") != "POST" {
			t.Errorf("GET with %s session: %d %s", test.name, r.status, r.body)
		}
		if test.name == "missing" {
			test.status = 400
		}
		if r := d.do(t, "POST", a, legacyBody("ping", ""), test.session...); r.status != test.status {
			t.Errorf("ping with %s session: %d %s", test.name, r.status, r.body)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		r := d.do(t, method, a, "", "Mcp-Protocol-Version", modernVersion)
		if r.status != 405 || r.header.Get("Allow") != "POST" {
			t.Errorf("%s in 2026-07-28: %+v", method, r)
		}
	}
	for _, method := range []string{"PUT", "PATCH", "OPTIONS", "HEAD"} {
		if r := d.do(t, method, a, ""); r.status != 405 || r.header.Get("Allow") != "POST, GET, DELETE" {
			t.Errorf("%s: %+v", method, r)
		}
	}
}

func TestDeleteEndsStream(t *testing.T) {
	t.Parallel()
	d := start(t, weather())
	session := d.session(t, "/mcp")
	s := d.stream(t, "/mcp", session)
	d.do(t, "DELETE", "/mcp", "", session...)
	s.rest(t)
}

func TestIdleSessionsEnd(t *testing.T) {
	t.Parallel()
	d := start(t, weather(), func(b *serve.Backend) { b.Limits.SessionIdle = 300 * time.Millisecond })
	idle, streaming := d.session(t, "/mcp"), d.session(t, "/mcp")
	s := d.stream(t, "/mcp", streaming)
	until(t, "the idle session ends", func() bool {
		// Looking with GET would keep the session in use; the gauge does not.
		return strings.Contains(d.do(t, "GET", "/metrics", "").body, `catalogd_sessions{branch="default"} 1`)
	})
	if r := d.do(t, "POST", "/mcp", legacyBody("tools/list", ""), idle...); r.status != 404 {
		t.Errorf("idle: %+v", r)
	}
	d.swap(t, weather(), "default")
	if got := s.event(t); !strings.Contains(got, "list_changed") {
		t.Errorf("a session with a stream is not idle: %s", got)
	}
}

func TestSessionCap(t *testing.T) {
	t.Parallel()
	d := start(t, weather(), func(b *serve.Backend) { b.Limits.Sessions = 1 })
	session := d.session(t, "/mcp")
	const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	if r := d.do(t, "POST", "/mcp", initialize); r.status != 503 || r.header.Get("Retry-After") == "" {
		t.Errorf("%+v", r)
	}
	d.do(t, "DELETE", "/mcp", "", session...)
	if r := d.do(t, "POST", "/mcp", initialize); r.status != 200 {
		t.Errorf("%+v", r)
	}
}

// The caps hold however many begin at once, and what fails to begin keeps no room.
func TestSessionCapAtOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		limits serve.FrontLimits
		paths  []string
	}{
		{"a branch", serve.FrontLimits{Sessions: 5}, []string{"/mcp"}},
		{"all branches", serve.FrontLimits{AllSessions: 5}, []string{"/mcp", "/branches/research/mcp"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := start(t, weather(), func(b *serve.Backend) { b.Limits = test.limits })
			for range 10 { // these begin nothing
				d.do(t, "POST", "/mcp", `{"jsonrpc":"2.0","method":"initialize","params":{}}`)
				d.do(t, "POST", "/mcp", initializeLine, "Content-Type", "text/plain")
			}
			var begun, refused atomic.Int32
			var all sync.WaitGroup
			at := make(chan struct{})
			for i := range 60 {
				all.Go(func() {
					<-at
					switch r := d.do(t, "POST", test.paths[i%len(test.paths)], initializeLine); r.status {
					case 200:
						begun.Add(1)
					case 503:
						refused.Add(1)
					default:
						t.Errorf("%+v", r)
					}
				})
			}
			close(at)
			all.Wait()
			if begun.Load() != 5 || refused.Load() != 55 {
				t.Errorf("%d sessions began and %d were refused, where 5 may be", begun.Load(), refused.Load())
			}
		})
	}
}

// What one branch has too much of is refused, and other branches go on.
func TestLimits(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}, 1), make(chan error, 1)
	d := start(t, waiting(started, ended), func(b *serve.Backend) {
		b.Limits = serve.FrontLimits{Calls: 1, QueueWait: time.Millisecond, Streams: 1}
	})
	session, call := d.session(t, "/mcp"), legacyBody("tools/call", `"name":"wait"`)
	done := make(chan response, 1)
	go func() { done <- d.do(t, "POST", "/mcp", call, session...) }()
	<-started
	if r := d.do(t, "POST", "/mcp", call, session...); r.status != 429 || r.header.Get("Retry-After") == "" {
		t.Errorf("a second call: %+v", r)
	}
	if r := d.modern(t, "/branches/other/mcp", "tools/call", `"name":"nosuch"`); r.status != 400 {
		t.Errorf("another branch: %+v", r)
	}
	if r := d.do(t, "POST", "/mcp", legacyBody("tools/list", ""), session...); r.status != 200 {
		t.Errorf("a list: %+v", r)
	}
	d.do(t, "POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, session...)
	<-ended
	<-done

	d.stream(t, "/mcp", session)
	if r := d.do(t, "GET", "/mcp", "", append(session, "Accept", "text/event-stream")...); r.status != 503 {
		t.Errorf("a second stream: %+v", r)
	}
	if r := d.modern(t, "/mcp", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`); r.status != 503 {
		t.Errorf("a subscription beside it: %+v", r)
	}
}

// waiting is a catalog with a tool that runs until it is cancelled.
func waiting(started chan<- struct{}, ended chan<- error) catalog {
	return catalog{id: "g1", branches: map[string][]string{"default": nil, "other": nil}, tools: []fixture{
		tool("wait", "", invoker(func(ctx context.Context, _ contract.Args) (*registry.Result, error) {
			started <- struct{}{}
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		})),
	}}
}

func cancel(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}, 1), make(chan error, 1)
	d := start(t, waiting(started, ended))
	session, stranger := d.session(t, "/mcp"), d.session(t, "/mcp")
	answer := make(chan response, 1)
	call := func(header ...string) {
		go func() {
			answer <- d.do(t, "POST", "/mcp", legacyBody("tools/call", `"name":"wait"`), append(header, session...)...)
		}()
		<-started
	}
	call()
	cancel := func(header []string, id string) {
		t.Helper()
		r := d.do(t, "POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`, header...)
		if r.status != 202 {
			t.Fatalf("cancelled: %+v", r)
		}
	}
	cancel(stranger, "1")
	cancel(session, `"1"`)
	cancel(session, "2")
	select {
	case <-ended:
		t.Fatal("another session or another id ended the call")
	case <-time.After(50 * time.Millisecond):
	}
	cancel(session, "1")
	<-ended
	if r := <-answer; r.status != 200 || r.header.Get("Content-Type") != "text/event-stream" || r.body != "" {
		t.Errorf("a call that was cancelled is answered: %+v", r)
	}
	cancel(session, "1") // late: no effect
	call("Accept", "application/json")
	cancel(session, "1")
	<-ended
	if r := <-answer; r.status != 202 || r.body != "" {
		t.Errorf("a call that was cancelled is answered to a client that takes no stream: %+v", r)
	}
	if n := strings.Count(d.log.String(), "code=cancelled"); n != 2 {
		t.Errorf("%d calls are recorded as cancelled, want 2", n)
	}
}

func disconnectCancels(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}, 1), make(chan error, 1)
	d := start(t, waiting(started, ended))
	ctx, disconnect := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, "POST", d.url+"/mcp", strings.NewReader(modernBody("tools/call", `"name":"wait"`)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	header := modernHeader("tools/call", `"name":"wait"`)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	go http.DefaultClient.Do(r)
	<-started
	disconnect()
	<-ended
}
