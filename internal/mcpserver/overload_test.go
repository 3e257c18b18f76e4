package mcpserver_test

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
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/registry"
)

// hungUp waits until the server ends a connection, and returns what it said.
func hungUp(t testing.TB, conn net.Conn) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
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
		d := servetest.Start(t, servetest.Weather())
		conn := d.Dial(t, "POST /mcp HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nContent-Length: 67108864\r\n\r\n{")
		if said := hungUp(t, conn); !strings.HasPrefix(said, "HTTP/1.1 413 ") {
			t.Errorf("%q", said)
		}
	})
	t.Run("E8/one byte over", func(t *testing.T) {
		d := servetest.Start(t, servetest.Weather())
		for _, test := range []struct{ size, status int }{{4 << 20, 200}, {4<<20 + 1, 413}} {
			body := servetest.ModernBody("tools/list", "")
			body += strings.Repeat(" ", test.size-len(body))
			if r := d.Do(t, "POST", "/mcp", body, servetest.ModernHeader("tools/list", "")...); r.Status != test.status {
				t.Errorf("%d bytes: %d", test.size, r.Status)
			}
		}
	})
	t.Run("E13/headers that never end", func(t *testing.T) {
		d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) { b.Limits.HeaderTime = time.Second })
		hungUp(t, d.Dial(t, "GET /healthz HTTP/1.1\r\nHost: "))
		hungUp(t, d.Dial(t, ""))
		d.Works(t, "/mcp")
	})
	t.Run("E13/a body that never ends", func(t *testing.T) {
		d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) { b.Limits.BodyTime = time.Second })
		for _, framing := range []string{"Content-Length: 1000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"} {
			conn := d.Dial(t, "POST /mcp HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n"+framing)
			if said := hungUp(t, conn); !strings.HasPrefix(said, "HTTP/1.1 408 ") {
				t.Errorf("%q", said)
			}
		}
		d.Works(t, "/mcp")
	})
	t.Run("E13/a body that drips", func(t *testing.T) {
		d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) { b.Limits.BodyTime = time.Second })
		conn := d.Dial(t, "POST /mcp HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
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
		d.Works(t, "/mcp")
	})
	t.Run("E13/a body that is cut off", func(t *testing.T) {
		d := servetest.Start(t, servetest.Weather())
		conn := d.Dial(t, "POST /mcp HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"+servetest.ModernBody("tools/list", ""))
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if said := hungUp(t, conn); !strings.HasPrefix(said, "HTTP/1.1 400 ") {
			t.Errorf("%q", said)
		}
	})
	t.Run("E13/idle connections", func(t *testing.T) {
		d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) { b.Limits.IdleTime = 50 * time.Millisecond })
		conn := d.Dial(t, "GET /healthz HTTP/1.1\r\nHost: HOST\r\n\r\n")
		if said := hungUp(t, conn); !strings.HasPrefix(said, "HTTP/1.1 200 ") {
			t.Errorf("%q", said)
		}
	})
	t.Run("E13/too many connections", func(t *testing.T) {
		d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) { b.Limits.Conns = 20 })
		var last net.Conn
		for range 21 {
			last = d.Dial(t, "")
		}
		hungUp(t, last)
	})
	t.Run("E13/1000 idle GETs", func(t *testing.T) {
		d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) { b.Limits.Streams = 900 })
		session := d.Session(t, "/mcp")
		get := "GET /mcp HTTP/1.1\r\nHost: HOST\r\nAccept: text/event-stream\r\nMcp-Session-ID: " + session[1] + "\r\n\r\n"
		var opened, refused atomic.Int32
		var clients sync.WaitGroup
		for range 10 {
			clients.Go(func() {
				for range 100 {
					line, err := bufio.NewReader(d.Dial(t, get)).ReadString('\n')
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
		d.Works(t, "/mcp")
		d.Works(t, "/branches/research/mcp")
	})
	t.Run("E22/200 calls on one branch", func(t *testing.T) {
		release := make(chan struct{})
		var running, most atomic.Int32
		d := servetest.Start(t, servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil, "other": {"quick"}}, Tools: []servetest.Fixture{
			servetest.Tool("slow", "", servetest.Invoker(func(ctx context.Context, _ contract.Args) (*registry.Result, error) {
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
			servetest.Tool("quick", "", servetest.Text("quick")),
		}}, func(b *servetest.Backend) {
			b.Limits.Calls, b.Limits.CallsPerTool, b.Limits.Queue, b.Limits.QueueWait = 8, 8, 16, time.Hour
		})
		var done, busy atomic.Int32
		var callers sync.WaitGroup
		for range 200 {
			callers.Go(func() {
				switch r := d.Modern(t, "/mcp", "tools/call", `"name":"slow"`); {
				case r.Status == 200 && strings.Contains(r.Body, "done"):
					done.Add(1)
				case r.Status == http.StatusTooManyRequests && r.Header.Get("Retry-After") != "":
					busy.Add(1)
				default:
					t.Errorf("%+v", r)
				}
			})
		}
		servetest.Until(t, "all but those that run and wait are refused", func() bool { return busy.Load() == 200-8-16 })
		if r := d.Modern(t, "/branches/other/mcp", "tools/call", `"name":"quick"`); !strings.Contains(r.Body, "quick") {
			t.Errorf("another branch: %+v", r)
		}
		d.Works(t, "/mcp")
		close(release)
		callers.Wait()
		if done.Load() != 24 || most.Load() > 8 {
			t.Errorf("%d were run, %d at once", done.Load(), most.Load())
		}
	})
	t.Run("E22/a queue that doesn't move", func(t *testing.T) {
		started, ended := make(chan struct{}, 1), make(chan error, 1)
		d := servetest.Start(t, waiting(started, ended), func(b *servetest.Backend) {
			b.Limits.Calls, b.Limits.QueueWait = 1, 20*time.Millisecond
		})
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		go d.Post(ctx, servetest.ModernBody("tools/call", `"name":"wait"`), servetest.ModernHeader("tools/call", `"name":"wait"`)...)
		<-started
		if r := d.Modern(t, "/mcp", "tools/call", `"name":"wait"`); r.Status != http.StatusTooManyRequests {
			t.Errorf("%+v", r)
		}
		stop()
		<-ended
	})
}

// A stream outlives the time that one write may take.
func TestStreamsLiveLong(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) { b.Limits.WriteTime = 500 * time.Millisecond })
	session := d.Session(t, "/mcp")
	s := d.Stream(t, "/mcp", session)
	for i := range 2 {
		time.Sleep(600 * time.Millisecond)
		d.Changed([]string{"default"})
		if e := s.Event(t); !strings.Contains(e, "list_changed") {
			t.Errorf("%d: %s", i, e)
		}
	}
	d.Works(t, "/mcp") // on a connection whose last deadline may have passed
	time.Sleep(600 * time.Millisecond)
	d.Works(t, "/mcp")
}

// A client that takes nothing of a long answer loses its connection, and holds nothing else.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	c := servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil}}
	for i := range 200 {
		c.Tools = append(c.Tools, servetest.Tool(fmt.Sprint("tool_", i), "", servetest.Text("x"), func(t *registry.Tool) { t.Description = strings.Repeat("d", 100_000) }))
	}
	d := servetest.Open(t, c, func(b *servetest.Backend) { b.Limits.WriteTime = 50 * time.Millisecond })
	ended := make(chan struct{}, 1)
	h := d.Handler()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	defer ts.Close()
	d.URL = ts.URL
	header := ""
	for pairs := servetest.ModernHeader("tools/list", ""); len(pairs) > 0; pairs = pairs[2:] {
		header += pairs[0] + ": " + pairs[1] + "\r\n"
	}
	body := servetest.ModernBody("tools/list", "")
	d.Dial(t, fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", header, len(body), body))
	<-ended // although nothing is ever read
}
