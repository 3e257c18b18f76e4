package docs

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestDocsAccess does what docs/access.md shows, in the starter catalog, with a free port in place of the page's.
func TestDocsAccess(t *testing.T) {
	dir := t.TempDir()
	usePrograms(t)
	if err := os.CopyFS(dir, catalogd.Starter()); err != nil {
		t.Fatal(err)
	}
	addr := "127.0.0.1:" + harness.FreePort(t)
	r := reader{t: t, dir: dir}
	serves, connected, transcripts := false, false, 0
	for _, b := range harness.Blocks(t, "docs/access.md") {
		at, text := "docs/access.md:"+strings.SplitN(b.Text, "\n", 2)[0], strings.ReplaceAll(b.Text, "127.0.0.1:8420", addr)
		switch {
		case b.Kind == "console" && text == "$ catalogd serve --tokens tokens\n":
			serves = true
			r.daemon(addr)
		case b.Kind == "console":
			transcripts++
			r.console(at, text)
		case b.Kind == "rego":
			name := strings.TrimPrefix(strings.SplitN(text, "\n", 2)[0], "# ")
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		case b.Kind == "json":
			connected = true
			r.bearer(text)
		default:
			t.Errorf("%s: no test runs blocks of kind %q", at, b.Kind)
		}
	}
	if !serves || !connected || transcripts < 4 {
		t.Errorf("serves %v, connected %v, %d transcripts", serves, connected, transcripts)
	}
}

// daemon starts `catalogd serve --tokens tokens`, or with other arguments, on an address and waits until it serves; it ends
// with the test.
func (r *reader) daemon(addr string, args ...string) {
	r.t.Helper()
	if args == nil {
		args = []string{"serve", "--tokens", "tokens", "--addr", addr}
	}
	cmd := exec.Command("catalogd", args...)
	cmd.Dir = r.dir
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	r.t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err == nil {
			<-ended
		}
		if r.t.Failed() {
			r.t.Logf("catalogd serve:\n%s", &log)
		}
	})
	for deadline := time.Now().Add(harness.Timeout); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if resp, err := http.Get("http://" + addr + "/readyz"); err == nil {
			resp.Body.Close()
			return
		}
	}
	r.t.Fatal("the daemon does not serve")
}

// bearer uses a client's configuration with ann's secret.
func (r *reader) bearer(text string) {
	r.t.Helper()
	secret, err := os.ReadFile(filepath.Join(r.dir, "ann.secret"))
	if err != nil {
		r.t.Fatal(err)
	}
	var config struct {
		Servers map[string]struct {
			URL     string
			Headers map[string]string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "${CATALOGD_TOKEN}", strings.TrimSpace(string(secret)))), &config); err != nil {
		r.t.Fatal(err)
	}
	server := config.Servers["catalogd"]
	ctx, cancel := context.WithTimeout(context.Background(), harness.Timeout)
	defer cancel()
	c, err := client.NewStreamableHttpClient(server.URL, transport.WithHTTPHeaders(server.Headers))
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	if err := c.Start(ctx); err != nil {
		r.t.Fatal(err)
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = "2025-11-25"
	hello.Params.ClientInfo = mcp.Implementation{Name: "docs", Version: "1"}
	if _, err := c.Initialize(ctx, hello); err != nil {
		r.t.Fatal(err)
	}
	if tools, err := c.ListTools(ctx, mcp.ListToolsRequest{}); err != nil || len(tools.Tools) == 0 {
		r.t.Errorf("%+v %v", tools, err)
	}
}
