package upstream_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

var loopback = trust.Terms{Entry: "local", Addresses: []string{"127.0.0.0/8", "::1/128"}}

// mcpServer is a real server of both eras.
func mcpServer() *server.MCPServer {
	s := server.NewMCPServer("real", "1", server.WithToolCapabilities(false))
	s.AddTool(mcp.NewTool("echo"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(string(req.Params.RawArguments)), nil
	})
	return s
}

// httpServer serves s, on request only the initialize handshake, and is its declaration.
func httpServer(t *testing.T, s *server.MCPServer, legacy bool) registry.Server {
	t.Helper()
	var handler http.Handler = server.NewStreamableHTTPServer(s, server.WithStateful(true))
	if legacy {
		handler = withoutDiscover(handler)
	}
	return serve(t, handler)
}

func withoutDiscover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("server/discover")) {
			http.Error(w, "no session", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

func serve(t *testing.T, handler http.Handler) registry.Server {
	t.Helper()
	ts := httptest.NewServer(handler)
	t.Cleanup(ts.Close)
	return declared(ts.URL + "/mcp")
}

func declared(url string) registry.Server {
	return registry.Server{
		Name:           "fake",
		HTTP:           &registry.HTTPAddress{URL: url},
		MaxConnections: 4,
		ConnectTimeout: time.Minute,
		CallTimeout:    time.Minute,
		Source:         registry.Source{Digest: url},
	}
}

func TestHTTPBothEras(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		legacy   bool
		protocol string
	}{{false, "2026-07-28"}, {true, "2025-11-25"}} {
		t.Run(c.protocol, func(t *testing.T) {
			t.Parallel()
			begun, stopped := make(chan struct{}), make(chan struct{})
			s := mcpServer()
			s.AddTool(mcp.NewTool("hang"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				close(begun)
				<-ctx.Done()
				close(stopped)
				return nil, ctx.Err()
			})
			pool, set := open(t, httpServer(t, s, c.legacy), loopback)
			const args = `{"n":9007199254740993,"x":1e2,"b":1,"a":2}`
			if got := text(t, set, "echo", args); got != args {
				t.Errorf("the server got %s", got)
			}
			st := pool.Status()[0]
			if st.Protocol != c.protocol || st.State != upstream.Ready || st.Trust != "local" || st.Transport != "http" {
				t.Errorf("status %+v", st)
			}
			_, err := call(t, set, "missing", `{}`)
			fails(t, err, registry.BindingFailed, "-32602", "missing")

			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-begun; cancel() }()
			_, err = set.Call(ctx, "fake", "hang", nil, registry.Listener{})
			fails(t, err, registry.Cancelled)
			<-stopped // it was told
			if got := text(t, set, "echo", `{"a":1}`); got != `{"a":1}` {
				t.Errorf("afterwards %s", got)
			}
		})
	}
}

// script is an HTTP server that negotiates properly, and answers calls as a test wants.
type script struct {
	calls    atomic.Int32
	sessions atomic.Int32
	// handshake replaces the negotiation; call answers tools/call, whose id is given.
	handshake http.HandlerFunc
	call      func(w http.ResponseWriter, r *http.Request, id string)
	// posted gets every body that is neither.
	posted func(body string)
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var req request
	_ = json.Unmarshal(body, &req)
	switch {
	case s.handshake != nil && req.Method != "tools/call":
		r.Header.Set("Test-Id", string(req.ID))
		s.handshake(w, r)
	case req.Method == "server/discover":
		http.Error(w, "unknown", http.StatusBadRequest)
	case req.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", fmt.Sprint("session-", s.sessions.Add(1)))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`, req.ID)
	case req.Method == "tools/call":
		s.calls.Add(1)
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.call(w, r, string(req.ID))
	default:
		if s.posted != nil && len(body) > 0 {
			s.posted(string(body))
		}
		w.WriteHeader(http.StatusAccepted)
	}
}

func ok(w http.ResponseWriter, id string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"ok"}]}}`, id)
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		io.WriteString(w, "<html>a page of the proxy</html>")
	}
}

var statuses = []struct {
	name   string
	answer http.HandlerFunc
	says   []string
	code   registry.ErrorCode // unavailable where empty
}{
	{"401", status(401, "WWW-Authenticate", `Bearer resource_metadata="http://169.254.169.254/latest"`), []string{"401: it asks for credentials, and none are declared", `headers: Authorization: {secret: "env:NAME"`}, registry.Unauthorized},
	{"403", status(403), []string{"403: it refuses, and no credentials are declared"}, registry.Unauthorized},
	{"405", status(405), []string{"405", "old SSE transport not supported"}, ""},
	{"429", status(429, "Retry-After", "30"), []string{"429", "30"}, ""},
	{"502", status(502, "Content-Type", "text/html"), []string{"502 Bad Gateway"}, ""},
	{"redirect", status(307, "Location", "http://169.254.169.254/latest"), []string{"307", "redirects to http://169.254.169.254/latest", "declare that as url"}, ""},
	{"page", status(200, "Content-Type", "text/html"), []string{}, ""},
	{"nothing", status(204), []string{"204"}, ""},
}

func TestHTTPStatusOfTheHandshake(t *testing.T) {
	t.Parallel()
	for _, c := range statuses {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pool, set := open(t, serve(t, &script{handshake: c.answer}), loopback)
			_, err := call(t, set, "echo", `{}`)
			fails(t, err, cmp.Or(c.code, registry.Unavailable), append(c.says, `server "fake" `)...)
			if strings.Contains(err.(*registry.Error).Msg, "<html>") {
				t.Errorf("the page reaches the model: %v", err)
			}
			if st := pool.Status()[0]; st.State != upstream.Failed {
				t.Errorf("status %+v", st)
			}
		})
	}
}

func TestHTTPStatusOfACall(t *testing.T) {
	t.Parallel()
	for _, c := range statuses {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &script{}
			s.call = func(w http.ResponseWriter, r *http.Request, id string) {
				if s.calls.Load() == 1 {
					c.answer(w, r)
					return
				}
				ok(w, id)
			}
			_, set := open(t, serve(t, s), loopback)
			_, err := call(t, set, "echo", `{}`)
			var says []string
			if len(c.says) > 0 && c.name != "nothing" {
				says = c.says
			}
			fails(t, err, cmp.Or(c.code, registry.Unavailable), says...)
			if strings.Contains(err.(*registry.Error).Msg, "<html>") {
				t.Errorf("the page reaches the model: %v", err)
			}
			if n := s.calls.Load(); n != 1 {
				t.Errorf("sent %d times", n)
			}
			if got := text(t, set, "echo", `{}`); got != "ok" {
				t.Errorf("afterwards %s", got)
			}
		})
	}
}

func TestHTTPForgottenSession(t *testing.T) {
	t.Parallel()
	s := &script{}
	s.call = func(w http.ResponseWriter, r *http.Request, id string) {
		if r.Header.Get("Mcp-Session-Id") != "session-2" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		ok(w, id)
	}
	_, set := open(t, serve(t, s), loopback)
	if got := text(t, set, "echo", `{}`); got != "ok" {
		t.Errorf("got %s", got)
	}
	if s.calls.Load() != 2 || s.sessions.Load() != 2 {
		t.Errorf("%d calls, %d sessions", s.calls.Load(), s.sessions.Load())
	}
	// One that forgets at once is asked twice, no more.
	s = &script{call: func(w http.ResponseWriter, _ *http.Request, _ string) { w.WriteHeader(http.StatusNotFound) }}
	_, set = open(t, serve(t, s), loopback)
	_, err := call(t, set, "echo", `{}`)
	fails(t, err, registry.Unavailable, "404", "nothing was run")
	if s.calls.Load() != 2 {
		t.Errorf("%d calls", s.calls.Load())
	}
}

func httpLies(t *testing.T) {
	t.Parallel()
	stream := func(w http.ResponseWriter, lines ...string) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, l := range lines {
			fmt.Fprintf(w, "%s\n\n", l)
		}
	}
	text := func(id, text string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`, id, text)
	}
	big := strings.Repeat("x", 20<<20)
	for _, c := range []struct {
		name   string
		answer func(w http.ResponseWriter, id string)
		code   registry.ErrorCode
		says   string
	}{
		{"stream of lies", func(w http.ResponseWriter, id string) {
			stream(w, ": hello", "data: "+text("1", "wrong"), "data: "+text(`"`+id+`"`, "a string"), "data: no JSON", "event: x\ndata:{}",
				`data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}`,
				"data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":"+id+",\ndata: \"result\":{\"content\":[]}}",
				"data: "+text(id, "twice"), "data: "+text(id, "thrice"), "data: "+text(id, "four times"))
		}, "", ""},
		{"wrong id", func(w http.ResponseWriter, _ string) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, text("77", "wrong"))
		}, registry.ResultInvalid, "another request"},
		{"empty object", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`}`)
		}, registry.ResultInvalid, "no MCP message"},
		{"cut stream", func(w http.ResponseWriter, id string) {
			stream(w, ": hello", `data: {"jsonrpc":"2.0","method":"notifications/progress"}`)
		}, registry.Unavailable, "outcome of the call is unknown"},
		{"cut body", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"jsonrpc":`)
		}, registry.Unavailable, "outcome of the call is unknown"},
		{"large body", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, text(id, big))
		}, registry.OutputTooLarge, "16777216"},
		{"large event", func(w http.ResponseWriter, id string) { stream(w, "data: "+text(id, big)) }, registry.OutputTooLarge, "16777216"},
		{"many lines", func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 1 << 12 {
				io.WriteString(w, strings.Repeat("data:\n", 1<<10))
			}
		}, registry.OutputTooLarge, "16777216"},
		{"error without id", func(w http.ResponseWriter, _ string) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(400)
			io.WriteString(w, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`)
		}, registry.BindingFailed, "No valid session ID"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &script{}
			s.call = func(w http.ResponseWriter, _ *http.Request, id string) {
				if s.calls.Load() == 1 {
					c.answer(w, id)
					return
				}
				ok(w, id)
			}
			_, set := open(t, serve(t, s), loopback)
			r, err := call(t, set, "echo", `{}`)
			if c.code != "" {
				fails(t, err, c.code, c.says)
			} else if err != nil || len(r.Content) != 0 {
				t.Errorf("got %v, %v", r, err)
			}
			if n := s.calls.Load(); n != 1 {
				t.Errorf("sent %d times", n)
			}
			if _, err := call(t, set, "echo", `{}`); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

func httpServersRequestsAreRefused(t *testing.T) {
	t.Parallel()
	refusals := make(chan string, 100)
	s := &script{posted: func(body string) {
		if !strings.Contains(body, "notifications/") {
			refusals <- body
		}
	}}
	s.call = func(w http.ResponseWriter, r *http.Request, id string) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 1000 {
			io.WriteString(w, `data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"password?"}}`+"\n\n")
		}
		w.(http.Flusher).Flush()
		for range 16 {
			if got := <-refusals; !strings.Contains(got, "-32601") || !strings.Contains(got, `"id":"q"`) {
				t.Errorf("the server was answered %s", got)
			}
		}
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", id)
	}
	_, set := open(t, serve(t, s), loopback)
	if _, err := call(t, set, "echo", `{}`); err != nil {
		t.Error(err)
	}
	if len(refusals) != 0 {
		t.Errorf("%d refusals too many", len(refusals))
	}
}

func TestHTTPHeadersAreReadAtEachRequest(t *testing.T) {
	t.Setenv("UPSTREAM_TOKEN", "one")
	var got atomic.Value
	s := &script{call: func(w http.ResponseWriter, r *http.Request, id string) {
		got.Store(r.Header.Get("Authorization") + "|" + r.Header.Get("X-Team"))
		ok(w, id)
	}}
	d := serve(t, s)
	d.HTTP.Headers = map[string]registry.Value{"authorization": {Secret: "env:UPSTREAM_TOKEN", Prefix: "Bearer "}, "X-Team": {Literal: "a"}}
	_, set := open(t, d, loopback)
	text(t, set, "echo", `{}`)
	if got.Load() != "Bearer one|a" {
		t.Errorf("headers %s", got.Load())
	}
	t.Setenv("UPSTREAM_TOKEN", "two")
	text(t, set, "echo", `{}`)
	if got.Load() != "Bearer two|a" {
		t.Errorf("headers %s", got.Load())
	}
	t.Setenv("UPSTREAM_TOKEN", "")
	_, err := call(t, set, "echo", `{}`)
	fails(t, err, registry.Unavailable, "UPSTREAM_TOKEN", "nothing was sent")
}

func TestHTTPMaxConnections(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ declared, granted, want int }{{2, 0, 2}, {4, 3, 3}, {1, 9, 1}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			var running atomic.Int32
			enough, release := make(chan struct{}, 100), make(chan struct{})
			s := &script{call: func(w http.ResponseWriter, _ *http.Request, id string) {
				if n := running.Add(1); int(n) > c.want {
					t.Errorf("%d calls at once", n)
				}
				defer running.Add(-1)
				enough <- struct{}{}
				<-release
				ok(w, id)
			}}
			d := serve(t, s)
			d.MaxConnections = c.declared
			terms := loopback
			terms.MaxConnections = c.granted
			pool, set := open(t, d, terms)
			var calls sync.WaitGroup
			for range 3 * c.want {
				calls.Go(func() {
					if _, err := set.Call(t.Context(), "fake", "echo", nil, registry.Listener{}); err != nil {
						t.Error(err)
					}
				})
			}
			for range c.want {
				<-enough
			}
			// All the others that have no turn wait for one already, and this one does.
			ctx := overdue(t, func() bool { return pool.Status()[0].Waiting == 2*c.want+1 })
			_, err := set.Call(ctx, "fake", "echo", nil, registry.Listener{})
			fails(t, err, registry.Timeout, "busy", "nothing was sent", "maxConnections")
			close(release)
			calls.Wait()
		})
	}
}

func TestHTTPServerThatIsDown(t *testing.T) {
	t.Parallel()
	ts := httptest.NewServer(nil)
	url := ts.URL
	ts.Close()
	pool, set := open(t, declared(url+"/mcp"), loopback)
	_, err := call(t, set, "echo", `{}`)
	fails(t, err, registry.Unavailable, "connection refused")
	if st := pool.Status()[0]; st.State != upstream.Failed || !strings.Contains(st.LastError, "refused") {
		t.Errorf("status %+v", st)
	}
	// An address that the trust doesn't cover is not dialled.
	_, set = open(t, httpServer(t, mcpServer(), false), trust.Terms{Entry: "public"})
	_, err = call(t, set, "echo", `{}`)
	fails(t, err, registry.Unavailable, "loopback")
}

// TestTimesAreApart: who can't be reached fails by connectTimeout, who is reached and says nothing by initializeTimeout, and
// who doesn't answer a call by callTimeout.
func TestTimesAreApart(t *testing.T) {
	t.Parallel()
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deaf.Close() })
	hangs := make(chan struct{})
	hang := func(http.ResponseWriter, *http.Request) { <-hangs }
	for _, c := range []struct {
		name   string
		server registry.Server
		code   registry.ErrorCode
		says   string
	}{
		{"connect", declared("https://" + deaf.Addr().String() + "/mcp"), registry.Unavailable, "could not be reached within its connectTimeout"},
		{"initialize", serve(t, &script{handshake: hang}), registry.Unavailable, "within its initializeTimeout"},
		{"call", serve(t, &script{call: func(w http.ResponseWriter, r *http.Request, _ string) { hang(w, r) }}), registry.Timeout, "the request was sent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.server.ConnectTimeout, c.server.InitializeTimeout, c.server.CallTimeout = time.Minute, time.Minute, time.Minute
			switch c.name {
			case "connect": // it accepts, and no TLS handshake follows
				c.server.ConnectTimeout = 100 * time.Millisecond
			case "initialize":
				c.server.ConnectTimeout, c.server.InitializeTimeout = 5*time.Second, time.Second
			case "call":
				c.server.CallTimeout = 3 * time.Second
			}
			_, set := open(t, c.server, loopback)
			if c.name == "call" { // connecting counts for a call's time
				if err := set.Reach(t.Context(), "fake", ""); err != nil {
					t.Fatal(err)
				}
			}
			_, err := call(t, set, "echo", `{}`)
			fails(t, err, c.code, c.says)
		})
	}
	t.Cleanup(func() { close(hangs) }) // before the servers close, which wait for their handlers
}

// A redirect of the endpoint is followed where it is decided so, with the method, the body and the headers.
func TestHTTPRedirects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		status  int
		to      string
		refuses error
		says    []string // of the error; the call goes through where empty
	}{
		{"307", 307, "/mcp/", nil, nil},
		{"308", 308, "/mcp/", nil, nil},
		{"refused", 307, "/other", errors.New("not decided on"), []string{"307: it redirects to http://127.0.0.1", "/other; declare that as url", "not decided on"}},
		{"301", 301, "/mcp/", nil, []string{"301: it redirects to http://127.0.0.1", "/mcp/; declare that as url", "would turn the POST into a GET"}},
		{"303", 303, "/mcp/", nil, []string{"303: it redirects to http://127.0.0.1", "would turn the POST into a GET"}},
		{"another origin", 307, "http://127.0.0.1:1/mcp?key=s3cr3t", nil, []string{"307: it redirects to http://127.0.0.1:1/mcp; declare that as url"}},
		{"no address", 307, "", nil, []string{"307"}},
		{"a circle", 307, "/mcp", nil, []string{"redirects"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			s := &script{call: func(w http.ResponseWriter, r *http.Request, id string) {
				if got := r.Header.Get("X-Team") + r.Header.Get("Mcp-Session-Id"); got != "bluesession-1" {
					t.Errorf("the target got the headers %q", got)
				}
				ok(w, id)
			}}
			d := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/mcp" {
					if c.to != "" {
						w.Header().Set("Location", c.to)
					}
					w.WriteHeader(c.status)
					return
				}
				s.ServeHTTP(w, r)
			}))
			d.HTTP.Headers = map[string]registry.Value{"X-Team": {Literal: "blue"}}
			root := t.TempDir()
			pool := upstream.NewPool(upstream.Config{})
			t.Cleanup(pool.Close)
			up := trusted(t, d, root, loopback)
			up.Redirect = func(_ context.Context, to trust.Target) error {
				asked.Add(1)
				if to.URL.Path != c.to {
					t.Errorf("asked about %+v", to.URL)
				}
				return c.refuses
			}
			set := pool.Open(root, []upstream.Upstream{up})
			if c.says == nil {
				if got := text(t, set, "echo", `{}`); got != "ok" || asked.Load() == 0 {
					t.Errorf("got %s, asked %d times", got, asked.Load())
				}
				return
			}
			_, err := call(t, set, "echo", `{}`)
			fails(t, err, registry.Unavailable, c.says...)
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the query of a redirect is shown: %v", err)
			}
		})
	}
}
