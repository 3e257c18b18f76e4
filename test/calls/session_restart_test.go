package calls

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestSessionOutlivesRestart begins a session of an older revision, restarts the daemon, and goes on with it: many
// clients don't begin anew. The key for that is private, and a key that others can read is refused.
func TestSessionOutlivesRestart(t *testing.T) {
	t.Parallel()
	cfg := catalogd.Config{Dir: harness.Starter(t), State: filepath.Join(t.TempDir(), "state")}
	post := func(d *harness.Daemon, session, body string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+"/branches/default/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		answer, err := io.ReadAll(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		return got, string(answer)
	}
	d := harness.Serve(t, cfg)
	begun, body := post(d, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	session := begun.Header.Get("Mcp-Session-Id")
	if begun.StatusCode != http.StatusOK || session == "" {
		t.Fatalf("initialize: %d %s", begun.StatusCode, body)
	}
	d.End()
	d = harness.Serve(t, cfg)
	if r, body := post(d, session, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); r.StatusCode != http.StatusOK || !strings.Contains(body, `"inputSchema"`) {
		t.Errorf("a session after the restart: %d %s", r.StatusCode, body)
	}
	d.End()

	keys, err := filepath.Glob(filepath.Join(cfg.State, "*", "session.key"))
	if err != nil || len(keys) != 1 {
		t.Fatalf("the keys are %q, %v", keys, err)
	}
	if info, err := os.Stat(keys[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(keys[0], 0o644); err != nil {
		t.Fatal(err)
	}
	if c, err := catalogd.New(t.Context(), cfg); err == nil {
		c.Close()
		t.Error("a key that others can read is taken")
	} else if !strings.Contains(err.Error(), "mode 0600") {
		t.Error(err)
	}
}
