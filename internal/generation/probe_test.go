package generation_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/doctor"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/servetest"
)

// TestProbe: trusted HTTP servers are asked, without what a declaration adds to a request, and the error says what is
// wrong. Servers that are not trusted get no request.
func TestProbe(t *testing.T) {
	t.Parallel()
	var asked, stranger atomic.Int64
	dated := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if len(r.Header["X-Note"]) > 0 {
			t.Errorf("a declared header was sent: %v", r.Header)
		}
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		http.Redirect(w, r, "/mcp/other", http.StatusTemporaryRedirect)
	}))
	defer dated.Close()
	untrusted := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stranger.Add(1) }))
	defer untrusted.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	clear := httptest.NewServer(http.NotFoundHandler()) // which is asked for TLS
	defer clear.Close()
	lost := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/%zz?"+r.URL.RawQuery)
		w.WriteHeader(http.StatusFound)
	}))
	defer lost.Close()
	garbled := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "%s\r\n\r\n", r.URL.RawQuery)
	}))
	defer garbled.Close()
	release := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hung.Close()
	defer close(release)

	h := servetest.NewHouse(t)
	var catalog, entries strings.Builder
	declare := func(name, address string, trusted bool) {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&catalog, "servers: %s: transport: http: {url: %q, headers: \"X-Note\": \"n\"}\n", name, address+"/mcp?token=walrus")
		if trusted {
			fmt.Fprintf(&entries, "  %s: {scheme: %s, host: 127.0.0.1, port: %s, path: /mcp, headers: [X-Note], addresses: [127.0.0.0/8]}\n", name, u.Scheme, u.Port())
		}
	}
	declare("dated", dated.URL, true)
	declare("stranger", untrusted.URL, false)
	declare("secure", secure.URL, true)
	declare("clear", strings.Replace(clear.URL, "http://", "https://", 1), true)
	declare("hung", hung.URL, true)
	declare("lost", lost.URL, true)
	declare("garbled", garbled.URL, true)
	h.Set("catalog/more.cue", "package catalog\n\n"+catalog.String())
	h.Set("policy/trust/data.yaml", servetest.HomeTrust+entries.String())
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	g, unpin := h.Pin()
	defer unpin()
	found := map[string]generation.Probed{}
	for _, p := range g.Probe(t.Context(), 2*time.Second) {
		found[p.Server] = p
		f := doctor.Server(p.Server, p.Origin, p.Status, p.Err)
		want := map[string]string{
			"dated":  "answers (status 307 without credentials)",
			"secure": "TLS: its certificate is signed by an authority that this machine does not know",
			"clear":  "TLS: ",
			"hung":   "it did not answer in time",
			"remote": "nothing listens there",
			// These repeat the query in what can't be parsed.
			"lost":    "answers (status 302 without credentials)",
			"garbled": "its answer is not valid HTTP",
		}[p.Server]
		if want == "" || !strings.Contains(f.Message, want) || (f.Severity == doctor.OK) != (p.Status > 0) || (f.Fix == "") != (p.Status > 0) {
			t.Errorf("%s: got %+v, want %q", p.Server, f, want)
		}
		if strings.Contains(fmt.Sprint(f, p), "walrus") {
			t.Errorf("%s: the query is shown: %+v", p.Server, f)
		}
	}
	if len(found) != 7 || asked.Load() != 1 || stranger.Load() != 0 {
		t.Errorf("probed %v; the dated one got %d requests, the stranger %d", found, asked.Load(), stranger.Load())
	}
	if p := found["dated"]; !p.Dated || p.Lead < 59*time.Minute || p.Lead > 24*time.Hour {
		t.Errorf("got %+v", p)
	}
}

// TestProbeTools: each origin that trusted http tools reach gets one connection and no request, whatever the number of
// tools. What is not trusted gets none.
func TestProbeTools(t *testing.T) {
	t.Parallel()
	listen := func(answer http.Handler, secure bool) (address string, connections *atomic.Int64) {
		connections = new(atomic.Int64)
		s := httptest.NewUnstartedServer(answer)
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		if secure {
			s.StartTLS()
		} else {
			s.Start()
		}
		t.Cleanup(s.Close)
		return s.URL, connections
	}
	unasked := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("a request was sent: %s", r.URL) })
	shared, ofShared := listen(unasked, false)
	secure, ofSecure := listen(unasked, true)
	clear, _ := listen(unasked, false) // which is asked for TLS
	stranger, ofStranger := listen(unasked, false)
	ungranted, ofUngranted := listen(unasked, false)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing of TLS
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()

	h := servetest.NewHouse(t)
	var catalog, entries strings.Builder
	declare := func(name, address, grants string) {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&catalog, "tools: %s: {description: \"A tool.\", effect: \"read\", args: x!: string, binding: http: url: %q}\n", name, address+"/"+name+"{?x}")
		if grants != "" {
			fmt.Fprintf(&entries, "  %s: {scheme: %s, host: 127.0.0.1, port: %s, path: /%s, %s}\n", name, u.Scheme, u.Port(), name, grants)
		}
	}
	const loopback = "addresses: [127.0.0.0/8]"
	declare("shared_a", shared, loopback)
	declare("shared_b", shared, loopback)
	declare("secure", secure, loopback)
	declare("clear", strings.Replace(clear, "http://", "https://", 1), loopback)
	declare("silent", "https://"+silent.Addr().String(), loopback)
	declare("gone", "http://127.0.0.1:1", loopback)
	declare("stranger", stranger, "")
	declare("ungranted", ungranted, "addresses: [10.0.0.0/8]")
	h.Set("catalog/more.cue", "package catalog\n\n"+catalog.String())
	h.Set("policy/trust/data.yaml", servetest.HomeTrust+entries.String())
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	g, unpin := h.Pin()
	defer unpin()
	want := map[string]string{
		"shared_a": "it accepts connections, for tool shared_a and 1 more",
		"secure":   "tool secure: TLS: its certificate is signed by an authority that this machine does not know",
		"clear":    "tool clear: TLS: ",
		"silent":   "tool silent: it did not answer in time",
		"gone":     "tool gone: nothing listens there",
	}
	for _, p := range g.ProbeTools(t.Context(), 5*time.Second) {
		f := doctor.Tools(p.Tools, p.Origin, p.Err)
		says, ok := want[p.Tools[0]]
		delete(want, p.Tools[0])
		good := f.Severity == doctor.OK && f.Fix == ""
		bad := f.Severity == doctor.Error && f.Fix != ""
		if !ok || !strings.HasPrefix(f.Message, says) || f.Where != p.Origin || p.Err == nil && !good || p.Err != nil && !bad {
			t.Errorf("%v: got %+v, want %q", p.Tools, f, says)
		}
	}
	if len(want) > 0 {
		t.Errorf("not probed: %v", want)
	}
	if a, b, c, d := ofShared.Load(), ofSecure.Load(), ofStranger.Load(), ofUngranted.Load(); a != 1 || b != 1 || c != 0 || d != 0 {
		t.Errorf("got %d, %d, %d and %d connections, want 1, 1, 0, 0", a, b, c, d)
	}
}
