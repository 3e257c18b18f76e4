package serve_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/serve"
)

// With tokens this machine may be reached by its other addresses, too, each by itself.
func TestRemoteHosts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		host, here   string
		remote, want bool
	}{
		{"10.0.0.5:8420", "10.0.0.5:8420", true, true}, {"10.0.0.5:8420", "10.0.0.5:8420", false, false},
		{"10.0.0.6:8420", "10.0.0.5:8420", true, false}, {"10.0.0.5", "10.0.0.5:8420", true, false}, {"10.0.0.5", "10.0.0.5:80", true, true},
		{"[2001:db8::1]:8420", "[2001:db8::1]:8420", true, true}, {"2001:db8::1:8420", "[2001:db8::1]:8420", true, false},
		{"localhost:8420", "10.0.0.5:8420", true, true}, {"evil.example:8420", "10.0.0.5:8420", true, false},
	} {
		if got := serve.HostNames(test.host, netip.MustParseAddrPort(test.here), test.remote); got != test.want {
			t.Errorf("Host %s at %s, remote %v: %v", test.host, test.here, test.remote, got)
		}
	}
}

// TestGuard is the table of threat T1: only exact pairs of Host and Origin pass, on every method.
func guard(t *testing.T) {
	t.Parallel()
	passed := 0
	guard := serve.Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ }))
	hosts := map[string]bool{
		"localhost:8420": true, "127.0.0.1:8420": true, "[::1]:8420": true, "LOCALHOST:8420": true,
		"localhost": false, "127.0.0.1": false, "[::1]": false, "localhost:80": false, "127.0.0.1:8421": false,
		"evil": false, "evil:8420": false, "localhost.evil:8420": false, "127.0.0.1.nip.example:8420": false, "": false,
		"127.1:8420": false, "0.0.0.0:8420": false, "user@localhost:8420": false, "localhost.:8420": false,
	}
	origins := []struct {
		values []string
		ok     bool
	}{
		{nil, true},
		{[]string{"http://localhost:8420"}, true},
		{[]string{"http://127.0.0.1:8420"}, true},
		{[]string{"http://[::1]:8420"}, true},
		{[]string{""}, false},
		{[]string{"null"}, false},
		{[]string{"http://evil.example"}, false},
		{[]string{"http://localhost"}, false},
		{[]string{"http://localhost:8421"}, false},
		{[]string{"http://localhost.evil:8420"}, false},
		{[]string{"https://localhost:8420"}, false},
		{[]string{"localhost:8420"}, false},
		{[]string{"http://localhost:8420/"}, false},
		{[]string{"http://user@localhost:8420"}, false},
		{[]string{"http://localhost:8420, http://evil.example"}, false},
		{[]string{"http://localhost:8420", "http://localhost:8420"}, false},
		{[]string{"http://localhost:8420", "http://evil.example"}, false},
	}
	for _, method := range []string{"POST", "GET", "DELETE", "OPTIONS", "HEAD", "PUT"} {
		for host, hostOK := range hosts {
			for _, origin := range origins {
				before := passed
				r := request(method, "/mcp", "", host)
				if origin.values != nil {
					r.Header["Origin"] = origin.values
				}
				w := httptest.NewRecorder()
				guard.ServeHTTP(w, r)
				want := hostOK && origin.ok
				if got := passed > before; got != want || !got && w.Code != http.StatusForbidden {
					t.Errorf("%s Host %q Origin %q: %d, passed %t", method, host, origin.values, w.Code, got)
				}
			}
		}
	}
}

// A request that came in no known way is refused, and so is every path before it is looked at.
func guardComesFirst(t *testing.T) {
	t.Parallel()
	d := open(t, weather())
	h := d.Handler()
	for _, path := range []string{"/mcp", "/branches/default/mcp", "/healthz", "/status", "/metrics", "/branches", "/-/reload", "/nothing"} {
		for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request(method, path, "{", "evil.example:8420"))
			if w.Code != http.StatusForbidden {
				t.Errorf("%s %s: %d", method, path, w.Code)
			}
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost:8420/healthz", nil))
	if w.Code != http.StatusForbidden {
		t.Errorf("without a listening address: %d", w.Code)
	}
}

// request is a request as it comes in on 127.0.0.1:8420.
func request(method, path, body, host string) *http.Request {
	r := httptest.NewRequest(method, "http://localhost:8420"+path, strings.NewReader(body))
	r.Host = host
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8420}
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local)))
}
