package conformance

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// replicas are two daemons of the catalog that a third one serves, with one key, and the address of its default branch at
// a proxy that sends each request to the other of them, whoever it comes from. Each must have answered when the test ends.
func replicas(t *testing.T, of *harness.Daemon) (one, other *harness.Daemon, address string) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	secret := make([]byte, 32)
	rand.Read(secret)
	if err := os.WriteFile(key, secret, 0o600); err != nil {
		t.Fatal(err)
	}
	var daemons [2]*harness.Daemon
	var targets [2]*url.URL
	var answered [2]atomic.Int64
	for i := range daemons {
		daemons[i] = harness.Serve(t, catalogd.Config{Dir: of.Dir, RequestStateKey: key, Serving: pages})
		var err error
		if targets[i], err = url.Parse(daemons[i].URL); err != nil {
			t.Fatal(err)
		}
	}
	var turn atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			i := turn.Add(1) % 2
			answered[i].Add(1)
			r.SetURL(targets[i])
		},
		Transport: &http.Transport{},
	})
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
		for i := range answered {
			if answered[i].Load() < 5 {
				t.Errorf("replica %d got %d requests", i, answered[i].Load())
			}
		}
	})
	return daemons[0], daemons[1], proxy.URL + "/branches/default/mcp"
}
