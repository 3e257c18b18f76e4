package egress_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision/trusttest"
	"github.com/catalogd/catalogd/internal/egress"
)

// scripted is a server that answers the n-th request on its m-th connection, both from 1, with whatever answer says,
// byte for byte, and hangs up where that is empty.
func scripted(t *testing.T, answer func(conn, request int) string) (url string, conns *atomic.Int32) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns = new(atomic.Int32)
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			number := int(conns.Add(1))
			open.Go(func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for n := 1; ; n++ {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					if _, err := io.Copy(io.Discard, req.Body); err != nil {
						return
					}
					text := answer(number, n)
					if text == "" {
						return
					}
					if _, err := io.WriteString(c, text); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { ln.Close(); open.Wait() })
	return "http://" + ln.Addr().String() + "/", conns
}

func http1Client(t *testing.T, url string, cfg egress.ClientConfig) *http.Client {
	t.Helper()
	target := httpTarget(t, url)
	c, err := egress.Client(trusttest.New(target, loopback), target, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// ask is one request with a small body, and its answer in full.
func ask(c *http.Client, method, url string) (string, error) {
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader("hello")
	}
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		return "", err
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// A connection is used again when its answer has ended and nothing else stands on it; otherwise a new one is made.
func TestHTTP1Reuse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer string
		conns  int32 // for three requests
	}{
		"length":            {fine, 1},
		"chunked":           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 1},
		"nothing":           {"HTTP/1.1 204 No Content\r\n\r\n", 1},
		"informational":     {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + fine, 1},
		"close":             {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 3},
		"old":               {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 3},
		"more than it said": {fine + "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsmuggle", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, conns := scripted(t, func(int, int) string { return tt.answer })
			c := http1Client(t, url, egress.ClientConfig{})
			for range 3 {
				if text, err := ask(c, http.MethodPost, url); err != nil || text != "ok" && text != "" {
					t.Fatal(text, err)
				}
			}
			if n := conns.Load(); n != tt.conns {
				t.Errorf("%d connections for three requests, not %d", n, tt.conns)
			}
		})
	}
}

// What is no answer is an error, and costs its own request alone.
func TestHTTP1BadAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ answer, want string }{
		"no HTTP":              {"hello\r\n\r\n", "malformed HTTP"},
		"a long head":          {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 300<<10) + "\r\n\r\n", "head of the answer is too long"},
		"endless interim":      {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 50) + fine, "informational"},
		"another protocol":     {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", "switches protocols"},
		"two lengths":          {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", "Content-Length"},
		"an unknown encoding":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok", "transfer encoding"},
		"silence and hangs up": {"", "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := scripted(t, func(conn, _ int) string {
				if conn == 1 {
					return tt.answer
				}
				return fine
			})
			c := http1Client(t, url, egress.ClientConfig{})
			if text, err := ask(c, http.MethodPost, url); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%q, %v; want %q", text, err, tt.want)
			}
			if text, err := ask(c, http.MethodPost, url); err != nil || text != "ok" {
				t.Fatal(text, err)
			}
		})
	}
}

// A request on a connection that closes is sent again only where that can't do anything twice.
func TestHTTP1Repeats(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		url, conns := scripted(t, func(_, request int) string {
			if request == 2 {
				return ""
			}
			return fine
		})
		c := http1Client(t, url, egress.ClientConfig{})
		if _, err := ask(c, method, url); err != nil {
			t.Fatal(err)
		}
		_, err := ask(c, method, url)
		if method == http.MethodGet && (err != nil || conns.Load() != 2) || method == http.MethodPost && (err == nil || conns.Load() != 1) {
			t.Errorf("%s: %v after %d connections", method, err, conns.Load())
		}
	}
}

// The end of a request's context ends it, before an answer and within one, and frees its place.
func TestHTTP1Ends(t *testing.T) {
	t.Parallel()
	url, _ := scripted(t, func(conn, _ int) string {
		if conn == 1 {
			return "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegins"
		}
		return fine
	})
	c := http1Client(t, url, egress.ClientConfig{MaxConnections: 1})
	because := errors.New("nobody waits any more")
	ctx, cancel := context.WithCancelCause(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	// The only place is taken.
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := c.Do(req.Clone(short)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside a request: %v", err)
	}
	cancel(because)
	if text, err := io.ReadAll(resp.Body); !errors.Is(err, because) {
		t.Errorf("%q, %v", text, err)
	}
	resp.Body.Close()
	if text, err := ask(c, http.MethodGet, url); err != nil || text != "ok" {
		t.Fatal(text, err)
	}
}

// Many at once are answered each with its own, over no more connections than there may be.
func TestHTTP1Concurrent(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int32
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("X-Number")) }),
		ConnState: func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				most.Store(max(most.Load(), now.Add(1)))
			case http.StateClosed:
				now.Add(-1)
			}
		},
	}
	go func() { _ = srv.Serve(ln) }() // it ends with Close
	t.Cleanup(func() { srv.Close() })
	url := "http://" + ln.Addr().String() + "/"
	c := http1Client(t, url, egress.ClientConfig{MaxConnections: 4})
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			for n := range 50 {
				req, err := http.NewRequest(http.MethodGet, url, nil)
				if err != nil {
					t.Error(err)
					return
				}
				want := fmt.Sprint(i, n)
				req.Header.Set("X-Number", want)
				resp, err := c.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(resp.Body)
				if resp.Body.Close(); err != nil || string(got) != want {
					t.Errorf("%q, %v; want %q", got, err, want)
				}
			}
		})
	}
	callers.Wait()
	if n := most.Load(); n > 4 {
		t.Errorf("%d connections", n)
	}
}
