package mcpserver_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/registry"
)

func sessions(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather())
	const a, b = "/mcp", "/branches/research/mcp"
	live, other, ended := d.Session(t, a), d.Session(t, b), d.Session(t, a)
	if r := d.Do(t, "DELETE", a, "", ended...); r.Status != 200 {
		t.Fatalf("DELETE: %+v", r)
	}
	forged := []string{"Mcp-Session-Id", "mcp-session-00000000-0000-4000-8000-000000000000"}
	none := []string{"Mcp-Protocol-Version", servetest.LegacyVersion}
	for _, test := range []struct {
		name    string
		session []string
		status  int
	}{
		{"live", live, 200}, {"missing", none, 400}, {"forged", forged, 404}, {"ended", ended, 404},
		{"other branch's", other, 404}, {"malformed", []string{"Mcp-Session-Id", "../x"}, 404},
	} {
		r := d.Do(t, "POST", a, servetest.LegacyBody("tools/list", ""), test.session...)
		if r.Status != test.status {
			t.Errorf("POST with %s session: %d %s", test.name, r.Status, r.Body)
		}
		if test.status == 200 {
			continue
		}
		if strings.Contains(r.Body, "tools") {
			t.Errorf("%s tells of tools: %s", test.name, r.Body)
		}
		if r := d.Do(t, "DELETE", a, "", test.session...); r.Status != test.status {
			t.Errorf("DELETE with %s session: %d %s", test.name, r.Status, r.Body)
		}
		r = d.Do(t, "GET", a, "", test.session...)
		if test.name == "missing" { // some clients ask before they begin (AI SDK), and take only this for "no stream"
			test.status = 405
		}
		if r.Status != test.status || test.status == 405 && r.Header.Get("Allow") != "POST" {
			t.Errorf("GET with %s session: %d %s", test.name, r.Status, r.Body)
		}
		if test.name == "missing" {
			test.status = 400
		}
		if r := d.Do(t, "POST", a, servetest.LegacyBody("ping", ""), test.session...); r.Status != test.status {
			t.Errorf("ping with %s session: %d %s", test.name, r.Status, r.Body)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		r := d.Do(t, method, a, "", "Mcp-Protocol-Version", servetest.ModernVersion)
		if r.Status != 405 || r.Header.Get("Allow") != "POST" {
			t.Errorf("%s in 2026-07-28: %+v", method, r)
		}
	}
	for _, method := range []string{"PUT", "PATCH", "OPTIONS", "HEAD"} {
		if r := d.Do(t, method, a, ""); r.Status != 405 || r.Header.Get("Allow") != "POST, GET, DELETE" {
			t.Errorf("%s: %+v", method, r)
		}
	}
}

func TestDeleteEndsStream(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather())
	session := d.Session(t, "/mcp")
	s := d.Stream(t, "/mcp", session)
	d.Do(t, "DELETE", "/mcp", "", session...)
	s.Rest(t)
}

func TestIdleSessionsEnd(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) { b.Limits.SessionIdle = 3 * time.Second })
	idle, streaming := d.Session(t, "/mcp"), d.Session(t, "/mcp")
	s := d.Stream(t, "/mcp", streaming)
	servetest.Until(t, "the idle session ends", func() bool {
		// Looking with GET would keep the session in use; the gauge does not.
		return strings.Contains(d.Do(t, "GET", "/metrics", "").Body, `catalogd_sessions{branch="default"} 1`)
	})
	if r := d.Do(t, "POST", "/mcp", servetest.LegacyBody("tools/list", ""), idle...); r.Status != 404 {
		t.Errorf("idle: %+v", r)
	}
	d.Swap(t, servetest.Weather(), "default")
	if got := s.Event(t); !strings.Contains(got, "list_changed") {
		t.Errorf("a session with a stream is not idle: %s", got)
	}
}

func TestSessionCap(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) { b.Limits.Sessions = 1 })
	session := d.Session(t, "/mcp")
	const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	if r := d.Do(t, "POST", "/mcp", initialize); r.Status != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("%+v", r)
	}
	d.Do(t, "DELETE", "/mcp", "", session...)
	if r := d.Do(t, "POST", "/mcp", initialize); r.Status != 200 {
		t.Errorf("%+v", r)
	}
}

// The caps hold however many begin at once, and what fails to begin keeps no room.
func TestSessionCapAtOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		limits mcpserver.Limits
		paths  []string
	}{
		{"a branch", mcpserver.Limits{Sessions: 5}, []string{"/mcp"}},
		{"all branches", mcpserver.Limits{AllSessions: 5}, []string{"/mcp", "/branches/research/mcp"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) { b.Limits = test.limits })
			for range 10 { // these begin nothing
				d.Do(t, "POST", "/mcp", `{"jsonrpc":"2.0","method":"initialize","params":{}}`)
				d.Do(t, "POST", "/mcp", initializeLine, "Content-Type", "text/plain")
			}
			var begun, refused atomic.Int32
			var all sync.WaitGroup
			at := make(chan struct{})
			for i := range 60 {
				all.Go(func() {
					<-at
					switch r := d.Do(t, "POST", test.paths[i%len(test.paths)], initializeLine); r.Status {
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
	d := servetest.Start(t, waiting(started, ended), func(b *servetest.Backend) {
		b.Limits = mcpserver.Limits{Calls: 1, QueueWait: time.Millisecond, Streams: 1}
	})
	session, call := d.Session(t, "/mcp"), servetest.LegacyBody("tools/call", `"name":"wait"`)
	done := make(chan servetest.Response, 1)
	go func() { done <- d.Do(t, "POST", "/mcp", call, session...) }()
	<-started
	if r := d.Do(t, "POST", "/mcp", call, session...); r.Status != 429 || r.Header.Get("Retry-After") == "" {
		t.Errorf("a second call: %+v", r)
	}
	if r := d.Modern(t, "/branches/other/mcp", "tools/call", `"name":"nosuch"`); r.Status != 400 {
		t.Errorf("another branch: %+v", r)
	}
	if r := d.Do(t, "POST", "/mcp", servetest.LegacyBody("tools/list", ""), session...); r.Status != 200 {
		t.Errorf("a list: %+v", r)
	}
	d.Do(t, "POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, session...)
	<-ended
	<-done

	d.Stream(t, "/mcp", session)
	if r := d.Do(t, "GET", "/mcp", "", append(session, "Accept", "text/event-stream")...); r.Status != 503 {
		t.Errorf("a second stream: %+v", r)
	}
	if r := d.Modern(t, "/mcp", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`); r.Status != 503 {
		t.Errorf("a subscription beside it: %+v", r)
	}
}

// waiting is a catalog with a tool that runs until it is cancelled.
func waiting(started chan<- struct{}, ended chan<- error) servetest.Catalog {
	return servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil, "other": nil}, Tools: []servetest.Fixture{
		servetest.Tool("wait", "", servetest.Invoker(func(ctx context.Context, _ contract.Args) (*registry.Result, error) {
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
	d := servetest.Start(t, waiting(started, ended))
	session, stranger := d.Session(t, "/mcp"), d.Session(t, "/mcp")
	answer := make(chan servetest.Response, 1)
	call := func(header ...string) {
		go func() {
			answer <- d.Do(t, "POST", "/mcp", servetest.LegacyBody("tools/call", `"name":"wait"`), append(header, session...)...)
		}()
		<-started
	}
	call()
	cancel := func(header []string, id string) {
		t.Helper()
		r := d.Do(t, "POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`, header...)
		if r.Status != 202 {
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
	if r := <-answer; r.Status != 200 || r.Header.Get("Content-Type") != "text/event-stream" || r.Body != "" {
		t.Errorf("a call that was cancelled is answered: %+v", r)
	}
	cancel(session, "1") // late: no effect
	call("Accept", "application/json")
	cancel(session, "1")
	<-ended
	if r := <-answer; r.Status != 202 || r.Body != "" {
		t.Errorf("a call that was cancelled is answered to a client that takes no stream: %+v", r)
	}
	if n := strings.Count(d.Log.String(), "code=cancelled"); n != 2 {
		t.Errorf("%d calls are recorded as cancelled, want 2", n)
	}
}

func disconnectCancels(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}, 1), make(chan error, 1)
	d := servetest.Start(t, waiting(started, ended))
	ctx, disconnect := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, "POST", d.URL+"/mcp", strings.NewReader(servetest.ModernBody("tools/call", `"name":"wait"`)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	header := servetest.ModernHeader("tools/call", `"name":"wait"`)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	go http.DefaultClient.Do(r)
	<-started
	disconnect()
	<-ended
}
