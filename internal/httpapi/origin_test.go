package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/catalogd/catalogd/internal/httpapi"
	"github.com/catalogd/catalogd/internal/servetest"
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
		if got := httpapi.HostNames(test.host, netip.MustParseAddrPort(test.here), test.remote); got != test.want {
			t.Errorf("Host %s at %s, remote %v: %v", test.host, test.here, test.remote, got)
		}
	}
}

// TestGuard: only exact pairs of Host and Origin pass, on every method.
func TestGuard(t *testing.T) {
	t.Parallel()
	passed := 0
	guard := httpapi.Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ }))
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
				r := servetest.Request(method, "/mcp", "", host)
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
