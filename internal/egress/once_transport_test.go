package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/catalogd/catalogd/decision/trusttest"
	"github.com/catalogd/catalogd/internal/egress"
)

// faulty is a server that answers requests for /warm, and does to all others what a test says. It counts those as it reads
// them.
type faulty struct {
	url   string
	seen  atomic.Int32
	roots *x509.CertPool
}

// newFaulty serves one protocol: http/1.1 in the clear, http/1.1 over TLS, or h2.
func newFaulty(t *testing.T, protocol, fault string) *faulty {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{url: "http://" + ln.Addr().String()}
	if protocol != clear {
		certified := httptest.NewUnstartedServer(nil)
		certified.StartTLS()
		certified.Close()
		f.url, f.roots = "https://"+ln.Addr().String(), x509.NewCertPool()
		f.roots.AddCert(certified.Certificate())
		ln = tls.NewListener(ln, &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{protocol}})
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			// A client may keep it for longer than the test lasts.
			stop := context.AfterFunc(t.Context(), func() { c.Close() })
			open.Go(func() {
				defer stop()
				defer c.Close()
				if protocol == "h2" {
					f.http2(c, fault)
				} else {
					f.http1(c, fault)
				}
			})
		}
	})
	t.Cleanup(func() { ln.Close(); open.Wait() })
	return f
}

const clear, overTLS = "http/1.1 in the clear", "http/1.1"

func (f *faulty) http1(c net.Conn, fault string) {
	in := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if req.URL.Path == "/warm" {
			if _, err := io.WriteString(c, fine); err != nil {
				return
			}
			continue
		}
		f.seen.Add(1)
		if fault != "closes before the body" {
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return
			}
		}
		switch fault {
		case "resets":
			if tcp, ok := c.(*net.TCPConn); ok {
				tcp.SetLinger(0)
			}
		case "half a head":
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Le")
		case "half a body":
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf")
		}
		return
	}
}

func (f *faulty) http2(c net.Conn, fault string) {
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	out := http2.NewFramer(c, c)
	if out.WriteSettings() != nil {
		return
	}
	out.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	answer := func(stream uint32, end bool) {
		var block bytes.Buffer
		hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
		out.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: end})
	}
	for {
		frame, err := out.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() && out.WriteSettingsAck() != nil {
				return
			}
		case *http2.MetaHeadersFrame:
			id := frame.StreamID
			if frame.PseudoValue("path") == "/warm" {
				answer(id, true)
				continue
			}
			f.seen.Add(1)
			switch fault {
			case "closes":
				return
			case "refuses the stream":
				out.WriteRSTStream(id, http2.ErrCodeRefusedStream)
			case "resets with a protocol error":
				out.WriteRSTStream(id, http2.ErrCodeProtocol)
			case "resets with an internal error":
				out.WriteRSTStream(id, http2.ErrCodeInternal)
			case "goes away":
				out.WriteGoAway(0, http2.ErrCodeNo, nil)
				return
			case "half a body":
				answer(id, false)
				out.WriteData(id, false, []byte("half"))
				return
			}
		}
	}
}

func (f *faulty) client(t *testing.T, once bool) *http.Client {
	t.Helper()
	target := httpTarget(t, f.url+"/{path}")
	c, err := egress.Client(trusttest.New(target, loopback), target, egress.ClientConfig{Once: once, TLS: &tls.Config{RootCAs: f.roots}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// do sends a request to path, and reads its answer in full.
func (f *faulty) do(ctx context.Context, c *http.Client, method, path, body string) error {
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body) // which can be read anew
	}
	req, err := http.NewRequestWithContext(ctx, method, f.url+path, content)
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", `"k"`)
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	return err
}

var faults = map[string][]string{
	clear:   {"closes", "resets", "closes before the body", "half a head", "half a body"},
	overTLS: {"closes", "closes before the body", "half a head", "half a body"},
	"h2": {
		"closes", "refuses the stream", "resets with a protocol error", "resets with an internal error", "goes away", "half a body",
	},
}

var methods = []string{"GET", "HEAD", "OPTIONS", "TRACE", "POST", "PUT", "PATCH", "DELETE"}

// A request with a side effect is seen at most once, whatever becomes of the connection, and is never called unsent when
// it was seen.
func TestOnceSendsOnce(t *testing.T) {
	t.Parallel()
	for protocol, all := range faults {
		for _, fault := range all {
			t.Run(protocol+" "+fault, func(t *testing.T) {
				t.Parallel()
				f := newFaulty(t, protocol, fault)
				c := f.client(t, true)
				for _, method := range methods {
					for _, body := range []string{"", "body", strings.Repeat("x", 100_000)} {
						what := fmt.Sprintf("%s with %d bytes", method, len(body))
						if err := f.do(t.Context(), c, http.MethodGet, "/warm", ""); err != nil {
							t.Fatal(err)
						}
						before := f.seen.Load()
						ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
						err := f.do(ctx, c, method, "/effect", body)
						cancel()
						if seen := f.seen.Load() - before; seen != 1 {
							t.Errorf("%s: seen %d times", what, seen)
						}
						headless := method == http.MethodHead && fault == "half a body"
						var unsent *egress.UnsentError
						if errors.As(err, &unsent) || err == nil && !headless {
							t.Errorf("%s: the error is %v", what, err)
						}
					}
				}
			})
		}
	}
}

// The harness sees a repetition where there is one: net/http's transport repeats such requests, and so does straight.
func TestOthersRepeat(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		protocol, fault, method, body string
		atLeast                       int32
	}{
		{clear, "closes", "GET", "", 2},
		{overTLS, "closes", "GET", "", 2},
		{overTLS, "closes", "POST", "body", 2}, // for its Idempotency-Key
		{"h2", "refuses the stream", "POST", "body", 2},
		{"h2", "goes away", "DELETE", "", 2},
		{"h2", "resets with a protocol error", "POST", "", 2},
	} {
		t.Run(strings.Join([]string{tt.protocol, tt.fault, tt.method}, " "), func(t *testing.T) {
			t.Parallel()
			f := newFaulty(t, tt.protocol, tt.fault)
			c := f.client(t, false)
			if err := f.do(t.Context(), c, http.MethodGet, "/warm", ""); err != nil {
				t.Fatal(err)
			}
			ctx := until(t, func() bool { return f.seen.Load() >= tt.atLeast }) // it repeats for minutes
			if err := f.do(ctx, c, tt.method, "/effect", tt.body); err == nil || f.seen.Load() < tt.atLeast {
				t.Errorf("seen %d times, %v", f.seen.Load(), err)
			}
		})
	}
}

// What provably did not leave the process is said to be unsent.
func TestOnceUnsent(t *testing.T) {
	t.Parallel()
	var accepted sync.WaitGroup
	hangsUp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted.Go(func() {
		for {
			c, err := hangsUp.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	})
	defer accepted.Wait()
	defer hangsUp.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	untrusted := newFaulty(t, overTLS, "closes")
	served := newFaulty(t, clear, "closes")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()

	for name, tt := range map[string]struct {
		ctx           context.Context
		origin, path  string
		roots, listed bool
	}{
		"nobody listens":                   {t.Context(), "http://" + closed.Addr().String(), "/effect", true, true},
		"it hangs up during the handshake": {t.Context(), "https://" + hangsUp.Addr().String(), "/effect", true, true},
		"no TLS is spoken":                 {t.Context(), strings.Replace(served.url, "http:", "https:", 1), "/effect", true, true},
		"the certificate is not trusted":   {t.Context(), untrusted.url, "/effect", false, true},
		"the call was cancelled":           {cancelled, served.url, "/effect", true, true},
		"outside of the path":              {t.Context(), served.url, "/../effect", true, true},
		"an address that is not named":     {t.Context(), strings.Replace(served.url, "127.0.0.1", "localhost", 1), "/effect", true, false},
	} {
		target, terms := httpTarget(t, tt.origin+"/{path}"), loopback
		if !tt.listed {
			terms.Addresses = nil
		}
		cfg := egress.ClientConfig{Once: true, TLS: &tls.Config{RootCAs: untrusted.roots}}
		if !tt.roots {
			cfg.TLS = nil
		}
		c, err := egress.Client(trusttest.New(target, terms), target, cfg)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err = (&faulty{url: tt.origin}).do(tt.ctx, c, http.MethodPost, tt.path, "body")
		var unsent *egress.UnsentError
		if !errors.As(err, &unsent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := served.seen.Load() + untrusted.seen.Load(); n != 0 {
		t.Errorf("%d requests were seen", n)
	}
}

// A request whose context ends when its connection stands and nothing of it is written stays unwritten, and is unsent.
func TestOnceGivenUpBeforeItIsWritten(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	read := make(chan int, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		n, _ := c.Read(make([]byte, 1))
		read <- n
		close(read)
	}()
	f := &faulty{url: "http://" + ln.Addr().String()}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sent := 0
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: func(string, []string) {
		cancel()
		sent += <-read // when the connection is closed
	}})
	err = f.do(ctx, f.client(t, true), http.MethodPost, "/effect", "body")
	var unsent *egress.UnsentError
	if !errors.As(err, &unsent) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if sent != 0 {
		t.Error("something was sent")
	}
}

// No redirect is followed: it is the answer.
func TestOnceFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		var seen atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen.Add(1)
			http.Redirect(w, r, "/again", status)
		}))
		defer server.Close()
		target := httpTarget(t, server.URL+"/{path}")
		c, err := egress.Client(trusttest.New(target, loopback), target, egress.ClientConfig{Once: true})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Post(server.URL+"/effect", "text/plain", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != status || seen.Load() != 1 {
			t.Errorf("%d: answered %d, seen %d times", status, resp.StatusCode, seen.Load())
		}
	}
}

// Each answer frees the place of its request, and ends its connection.
func TestOnceConnections(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	var mu sync.Mutex
	states := map[http.ConnState]int{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			<-hold
		}
		io.WriteString(w, "answer")
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		states[s]++
	}
	server.Start()
	defer server.Close()
	target := httpTarget(t, server.URL+"/{path}")
	c, err := egress.Client(trusttest.New(target, loopback), target, egress.ClientConfig{Once: true, MaxConnections: 1})
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{url: server.URL}
	for range 5 {
		if err := f.do(t.Context(), c, http.MethodPost, "/a", "body"); err != nil {
			t.Fatal(err)
		}
	}
	held := make(chan error, 1)
	go func() { held <- f.do(t.Context(), c, http.MethodPost, "/hold", "") }()
	for {
		mu.Lock()
		active := states[http.StateActive]
		mu.Unlock()
		if active == 6 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var unsent *egress.UnsentError
	if err := f.do(ctx, c, http.MethodPost, "/a", ""); !errors.As(err, &unsent) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a request over the limit: %v", err)
	}
	close(hold)
	if err := <-held; err != nil {
		t.Error(err)
	}
	if err := f.do(t.Context(), c, http.MethodPost, "/a", ""); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if states[http.StateNew] != 7 || states[http.StateIdle] != 0 {
		t.Errorf("connections: %v", states)
	}
}

func BenchmarkClients(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "answer") }))
	defer server.Close()
	secure := httptest.NewTLSServer(server.Config.Handler)
	defer secure.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	for _, url := range []string{server.URL, secure.URL} {
		for _, once := range []bool{false, true} {
			u, err := egress.ParseURL(url + "/a")
			if err != nil {
				b.Fatal(err)
			}
			target := httpTarget(b, u.Origin()+"/a")
			c, err := egress.Client(trusttest.New(target, loopback), target, egress.ClientConfig{Once: once, TLS: &tls.Config{RootCAs: roots}})
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s once=%t", u.Scheme, once), func(b *testing.B) {
				f := &faulty{url: url}
				for b.Loop() {
					if err := f.do(b.Context(), c, http.MethodPost, "/a", "body"); err != nil {
						b.Fatal(err)
					}
				}
			})
			c.CloseIdleConnections()
		}
	}
}
