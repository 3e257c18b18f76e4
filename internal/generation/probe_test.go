package generation_test

import (
	"fmt"
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
