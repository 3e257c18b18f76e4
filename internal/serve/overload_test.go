package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
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

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/serve"
	"github.com/catalogd/catalogd/registry"
)

// dial is a bare connection to the daemon that has said something.
func (d *daemon) dial(t testing.TB, says string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, strings.ReplaceAll(says, "HOST", strings.TrimPrefix(d.url, "http://"))); err != nil {
		t.Fatal(err)
	}
	return conn
}

// works fails the test unless a good client is served.
func (d *daemon) works(t testing.TB, path string) {
	t.Helper()
	if r := d.modern(t, path, "tools/list", ""); r.status != 200 {
		t.Errorf("a good client: %+v", r)
	}
}

// hungUp waits until the server ends a connection, and returns what it said.
func hungUp(t testing.TB, conn net.Conn) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(conn)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		t.Fatal("the server does not hang up")
	}
	return string(said)
}

func badOverload(t *testing.T) {
	t.Run("E8/announced too large", func(t *testing.T) {
		d := start(t, weather())
		conn := d.dial(t, "POST /mcp HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nContent-Length: 67108864\r\n\r\n{")
		if said := hungUp(t, conn); !strings.HasPrefix(said, "HTTP/1.1 413 ") {
			t.Errorf("%q", said)
		}
	})
	t.Run("E8/one byte over", func(t *testing.T) {
		d := start(t, weather())
		for _, test := range []struct{ size, status int }{{4 << 20, 200}, {4<<20 + 1, 413}} {
			body := modernBody("tools/list", "")
			body += strings.Repeat(" ", test.size-len(body))
			if r := d.do(t, "POST", "/mcp", body, modernHeader("tools/list", "")...); r.status != test.status {
				t.Errorf("%d bytes: %d", test.size, r.status)
			}
		}
	})
	t.Run("E13/headers that never end", func(t *testing.T) {
		d := start(t, weather(), func(b *serve.Backend) { b.Limits.HeaderTime = 50 * time.Millisecond })
		hungUp(t, d.dial(t, "GET /healthz HTTP/1.1\r\nHost: "))
		hungUp(t, d.dial(t, ""))
		d.works(t, "/mcp")
	})
	t.Run("E13/a body that never ends", func(t *testing.T) {
		d := start(t, weather(), func(b *serve.Backend) { b.Limits.BodyTime = 50 * time.Millisecond })
		for _, framing := range []string{"Content-Length: 1000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"} {
			conn := d.dial(t, "POST /mcp HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n"+framing)
			if said := hungUp(t, conn); !strings.HasPrefix(said, "HTTP/1.1 408 ") {
				t.Errorf("%q", said)
			}
		}
		d.works(t, "/mcp")
	})
	t.Run("E13/a body that drips", func(t *testing.T) {
		d := start(t, weather(), func(b *serve.Backend) { b.Limits.BodyTime = 200 * time.Millisecond })
		conn := d.dial(t, "POST /mcp HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
		go func() {
			for {
				if _, err := conn.Write([]byte(" ")); err != nil {
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		}()
		// The end may be a reset, for what it still writes is not read any more.
		hungUp(t, conn)
		d.works(t, "/mcp")
	})
	t.Run("E13/a body that is cut off", func(t *testing.T) {
		d := start(t, weather())
		conn := d.dial(t, "POST /mcp HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"+modernBody("tools/list", ""))
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if said := hungUp(t, conn); !strings.HasPrefix(said, "HTTP/1.1 400 ") {
			t.Errorf("%q", said)
		}
	})
	t.Run("E13/idle connections", func(t *testing.T) {
		d := start(t, weather(), func(b *serve.Backend) { b.Limits.IdleTime = 50 * time.Millisecond })
		conn := d.dial(t, "GET /healthz HTTP/1.1\r\nHost: HOST\r\n\r\n")
		if said := hungUp(t, conn); !strings.HasPrefix(said, "HTTP/1.1 200 ") {
			t.Errorf("%q", said)
		}
	})
	t.Run("E13/too many connections", func(t *testing.T) {
		d := start(t, weather(), func(b *serve.Backend) { b.Limits.Conns = 20 })
		var last net.Conn
		for range 21 {
			last = d.dial(t, "")
		}
		hungUp(t, last)
	})
	t.Run("E13/1000 idle GETs", func(t *testing.T) {
		d := start(t, weather(), func(b *serve.Backend) { b.Limits.Streams = 900 })
		session := d.session(t, "/mcp")
		get := "GET /mcp HTTP/1.1\r\nHost: HOST\r\nAccept: text/event-stream\r\nMcp-Session-Id: " + session[1] + "\r\n\r\n"
		var opened, refused atomic.Int32
		var clients sync.WaitGroup
		for range 10 {
			clients.Go(func() {
				for range 100 {
					line, err := bufio.NewReader(d.dial(t, get)).ReadString('\n')
					switch {
					case err != nil:
						t.Error(err)
					case strings.Contains(line, " 200 "):
						opened.Add(1)
					case strings.Contains(line, " 503 "):
						refused.Add(1)
					}
				}
			})
		}
		clients.Wait()
		if opened.Load() > 900 || opened.Load()+refused.Load() != 1000 {
			t.Errorf("%d opened, %d refused", opened.Load(), refused.Load())
		}
		d.works(t, "/mcp")
		d.works(t, "/branches/research/mcp")
	})
	t.Run("E22/200 calls on one branch", func(t *testing.T) {
		release := make(chan struct{})
		var running, most atomic.Int32
		d := start(t, catalog{id: "g1", branches: map[string][]string{"default": nil, "other": {"quick"}}, tools: []fixture{
			tool("slow", "", invoker(func(ctx context.Context, _ contract.Args) (*registry.Result, error) {
				for n := running.Add(1); n > most.Load(); {
					most.CompareAndSwap(most.Load(), n)
				}
				defer running.Add(-1)
				select {
				case <-release:
				case <-ctx.Done():
				}
				return &registry.Result{Content: []json.RawMessage{registry.Text("done")}}, nil
			})),
			tool("quick", "", text("quick")),
		}}, func(b *serve.Backend) {
			b.Limits.Calls, b.Limits.Queue, b.Limits.QueueWait = 8, 16, time.Minute
		})
		var done, busy atomic.Int32
		var callers sync.WaitGroup
		for range 200 {
			callers.Go(func() {
				switch r := d.modern(t, "/mcp", "tools/call", `"name":"slow"`); {
				case r.status == 200 && strings.Contains(r.body, "done"):
					done.Add(1)
				case r.status == http.StatusTooManyRequests && r.header.Get("Retry-After") != "":
					busy.Add(1)
				default:
					t.Errorf("%+v", r)
				}
			})
		}
		until(t, "all but those that run and wait are refused", func() bool { return busy.Load() == 200-8-16 })
		if r := d.modern(t, "/branches/other/mcp", "tools/call", `"name":"quick"`); !strings.Contains(r.body, "quick") {
			t.Errorf("another branch: %+v", r)
		}
		d.works(t, "/mcp")
		close(release)
		callers.Wait()
		if done.Load() != 24 || most.Load() > 8 {
			t.Errorf("%d were run, %d at once", done.Load(), most.Load())
		}
	})
	t.Run("E22/a queue that doesn't move", func(t *testing.T) {
		started, ended := make(chan struct{}, 1), make(chan error, 1)
		d := start(t, waiting(started, ended), func(b *serve.Backend) {
			b.Limits.Calls, b.Limits.QueueWait = 1, 20*time.Millisecond
		})
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		go d.post(ctx, modernBody("tools/call", `"name":"wait"`), modernHeader("tools/call", `"name":"wait"`)...)
		<-started
		if r := d.modern(t, "/mcp", "tools/call", `"name":"wait"`); r.status != http.StatusTooManyRequests {
			t.Errorf("%+v", r)
		}
		stop()
		<-ended
	})
}

// post sends a request that may be broken off.
func (d *daemon) post(ctx context.Context, body string, header ...string) {
	r, err := http.NewRequestWithContext(ctx, "POST", d.url+"/mcp", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if got, err := http.DefaultClient.Do(r); err == nil {
		got.Body.Close()
	}
}

// A stream outlives the time that one write may take.
func TestStreamsLiveLong(t *testing.T) {
	t.Parallel()
	d := start(t, weather(), func(b *serve.Backend) { b.Limits.WriteTime = 50 * time.Millisecond })
	session := d.session(t, "/mcp")
	s := d.stream(t, "/mcp", session)
	for i := range 4 {
		time.Sleep(60 * time.Millisecond)
		d.Changed([]string{"default"})
		if e := s.event(t); !strings.Contains(e, "list_changed") {
			t.Errorf("%d: %s", i, e)
		}
	}
	d.works(t, "/mcp") // on a connection whose last deadline may have passed
	time.Sleep(60 * time.Millisecond)
	d.works(t, "/mcp")
}

// A client that takes nothing of a long answer loses its connection, and holds nothing else.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	c := catalog{id: "g1", branches: map[string][]string{"default": nil}}
	for i := range 200 {
		c.tools = append(c.tools, tool(fmt.Sprint("tool_", i), "", text("x"), func(t *registry.Tool) { t.Description = strings.Repeat("d", 100_000) }))
	}
	d := open(t, c, func(b *serve.Backend) { b.Limits.WriteTime = 50 * time.Millisecond })
	ended := make(chan struct{}, 1)
	h := d.Handler()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	defer ts.Close()
	d.url = ts.URL
	header := ""
	for pairs := modernHeader("tools/list", ""); len(pairs) > 0; pairs = pairs[2:] {
		header += pairs[0] + ": " + pairs[1] + "\r\n"
	}
	body := modernBody("tools/list", "")
	d.dial(t, fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", header, len(body), body))
	<-ended // although nothing is ever read
}
