package mcpserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/catalogd/catalogd/internal/servetest"
)

// A request that came in no known way is refused, and so is every path before it is looked at.
func guardComesFirst(t *testing.T) {
	t.Parallel()
	d := servetest.Open(t, servetest.Weather())
	h := d.Handler()
	for _, path := range []string{"/mcp", "/branches/default/mcp", "/healthz", "/status", "/metrics", "/branches", "/-/reload", "/intents", "/intents/x", "/intents/x/approve", "/-/intents/pause", "/nothing"} {
		for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, servetest.Request(method, path, "{", "evil.example:8420"))
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
