package httpapi_test

import (
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/servetest"
)

// A client that was answered 401 looks for OAuth, and shows its user what it gets there.
func TestNoOAuth(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, servetest.Weather())
	for path, hint := range map[string]bool{
		"/register": true, "/authorize": true, "/token": true, "/.well-known/oauth-protected-resource": true,
		"/.well-known/oauth-authorization-server/branches/default/mcp": true, "/.well-known/openid-configuration": true,
		"/tokens": false, "/registers": false,
	} {
		r := d.Do(t, "GET", path, "")
		if r.Status != 404 || strings.Contains(r.Body, "Authorization: Bearer") != hint {
			t.Errorf("%s: %d %s, want a hint: %v", path, r.Status, r.Body, hint)
		}
	}
}
