package mcpserver_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/registry"
)

// A header that has one value is refused where it is sent more than once, even with the same value: a proxy before
// this server may read the other one. Nothing runs.
func TestRepeatedHeaders(t *testing.T) {
	t.Parallel()
	var ran atomic.Int32
	d := servetest.Start(t, servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil}, Tools: []servetest.Fixture{
		servetest.Tool("canary", `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"additionalProperties":false}`,
			servetest.Invoker(func(ctx context.Context, args contract.Args) (*registry.Result, error) {
				ran.Add(1)
				return servetest.Text("ran")(ctx, args)
			}), func(t *registry.Tool) { t.Args.Fields = []contract.Field{{Name: "region", Types: []string{"string"}}} }),
	}})
	const params = `"name":"canary","arguments":{"region":"eu"}`
	modern := append(servetest.ModernHeader("tools/call", params), "Mcp-Param-Region", "eu", "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
	legacy := append(d.Session(t, "/mcp"), "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
	send := func(method, body string, header []string, more ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequest(method, d.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		for i := 0; i < len(more); i += 2 {
			r.Header.Add(more[i], more[i+1])
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		b, err := io.ReadAll(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		return got.StatusCode, string(b)
	}
	session := legacy[1]
	for _, test := range []struct {
		name         string
		modern       bool
		header       []string
		status       int
		code, says   string
		alsoOnStream bool
	}{
		{"version", true, []string{"Mcp-Protocol-Version", "2025-06-18"}, 400, "-32020", "Mcp-Protocol-Version", false},
		{"version, the same", true, []string{"MCP-Protocol-Version", servetest.ModernVersion}, 400, "-32020", "Mcp-Protocol-Version", false},
		{"method", true, []string{"Mcp-Method", "tools/list"}, 400, "-32020", "Mcp-Method", false},
		{"name", true, []string{"Mcp-Name", "other"}, 400, "-32020", "Mcp-Name", false},
		{"name, the same", true, []string{"mcp-name", "canary"}, 400, "-32020", "Mcp-Name", false},
		{"argument", true, []string{"Mcp-Param-Region", "us"}, 400, "-32020", "Mcp-Param-Region", false},
		{"argument of no tool", true, []string{"Mcp-Param-X", "1", "Mcp-Param-X", "2"}, 400, "-32020", "Mcp-Param-X", false},
		{"media type", true, []string{"Content-Type", "text/plain"}, 400, "-32020", "Content-Type", false},
		{"encoding", true, []string{"Content-Encoding", "identity", "Content-Encoding", "gzip"}, 400, "-32020", "Content-Encoding", false},
		{"token", true, []string{"Authorization", "Bearer a", "Authorization", "Bearer b"}, 400, "-32020", "Authorization", false},
		{"origin", true, []string{"Origin", d.URL, "Origin", d.URL}, 403, "", "Origin", false},
		{"version, older", false, []string{"Mcp-Protocol-Version", servetest.LegacyVersion}, 400, "-32020", "Mcp-Protocol-Version", true},
		{"version of 2026-07-28 after an older one", false, []string{"Mcp-Protocol-Version", servetest.ModernVersion}, 400, "-32020", "Mcp-Protocol-Version", true},
		{"session", false, []string{"Mcp-Session-Id", strings.Repeat("0", 32)}, 400, "-32020", "Mcp-Session-Id", true},
		{"session, the same", false, []string{"Mcp-Session-Id", session}, 400, "-32020", "Mcp-Session-Id", true},
		{"resumption", false, []string{"Last-Event-ID", "1", "Last-Event-ID", "2"}, 400, "-32020", "Last-Event-Id", true},
	} {
		body, header := servetest.LegacyBody("tools/call", params), legacy
		if test.modern {
			body, header = servetest.ModernBody("tools/call", params), modern
		}
		status, got := send("POST", body, header, test.header...)
		if status != test.status || !strings.Contains(got, test.code) || !strings.Contains(got, test.says) {
			t.Errorf("%s: %d %s", test.name, status, got)
		}
		if !test.alsoOnStream {
			continue
		}
		for _, method := range []string{"GET", "DELETE"} {
			if status, got := send(method, "", header, test.header...); status != 400 || !strings.Contains(got, test.says) {
				t.Errorf("%s, %s: %d %s", method, test.name, status, got)
			}
		}
	}
	if n := ran.Load(); n != 0 {
		t.Errorf("the tool ran %d times", n)
	}
	// A header with a list of values may be sent in parts, and what nobody here reads is nobody's business.
	for name, header := range map[string][]string{"modern": modern, "legacy": legacy} {
		body := servetest.LegacyBody("tools/call", params)
		if name == "modern" {
			body = servetest.ModernBody("tools/call", params)
		}
		if status, got := send("POST", body, header, "Accept", "text/event-stream", "X-Forwarded-For", "192.0.2.1", "X-Forwarded-For", "192.0.2.2"); status != 200 || !strings.Contains(got, "ran") {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
}

// The stream of a call that its client of an older revision cancels ends, with what the tool has said and without an answer.
func TestCancelledStreamEnds(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, exactly(t, "http", servetest.ModernVersion, filepath.Join(t.TempDir(), "cancelled")))
	header := d.Session(t, "/mcp")
	r, err := http.NewRequest("POST", d.URL+"/mcp", strings.NewReader(servetest.LegacyBody("tools/call", `"name":"says","arguments":{"note":"wait"},"_meta":{"progressToken":1}`)))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultClient.Do(r) // it returns with the first event
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	d.Do(t, "POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, header...)
	rest, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(rest), "notifications/progress") || strings.Contains(string(rest), `"id"`) {
		t.Errorf("the stream has\n%s", rest)
	}
	servetest.Until(t, "the call is recorded", func() bool { return strings.Contains(d.Log.String(), "code=cancelled") })
}
