package calls

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// A server over TLS that answers more than it was asked is not listened to further: the next call has a connection of its own, and
// the bytes, which may repeat a secret, are in no log.
func TestUnrequestedAnswers(t *testing.T) {
	t.Parallel()
	const unrequested = "a-secret-that-is-repeated"
	var connections atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections.Add(1) // each has one request
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfineHTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\n%s", unrequested)
		_, _ = io.Copy(io.Discard, conn) // until the client closes it
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of the client's closing
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := filepath.Join(t.TempDir(), "roots.pem")
	harness.WriteFile(t, roots, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	dir := harness.Assemble(t, "testdata/http", "port: 3002", "port: "+u.Port(), "scheme: http", "scheme: https")
	harness.Edit(t, dir, "catalog/http.cue", "http://127.0.0.1", "https://127.0.0.1")
	program, state := harness.Catalogd(t), t.TempDir()
	var out harness.Log
	port := harness.Listening(t, "catalogd", func(port string) *exec.Cmd {
		cmd := exec.Command(program, "serve", dir, "--tag", "port="+u.Port(), "--addr", "127.0.0.1:"+port)
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state, "SSL_CERT_FILE="+roots, "SSL_CERT_DIR="+t.TempDir(), "CATALOGD_TEST_TOKEN=token", "CATALOGD_TEST_PASSED=passed")
		cmd.Stdout, cmd.Stderr = &out, &out
		return cmd
	})
	for range 3 {
		content, _ := harness.RawCall(t, "http://127.0.0.1:"+port, "default", "get_status", `{"code":200}`)
		if want := `[{"type":"text","text":"fine"}]`; string(content) != want {
			t.Errorf("got %s, want %s", content, want)
		}
	}
	if got := connections.Load(); got != 3 {
		t.Errorf("got %d connections for 3 calls, want 3", got)
	}
	if strings.Contains(out.String(), unrequested) {
		t.Errorf("the log repeats what was not requested: %s", out.String())
	}
}
