package servetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// SessionAs is session for the bearer of a token.
func (d *Server) SessionAs(t testing.TB, path string, who []string) []string {
	t.Helper()
	r := d.Do(t, http.MethodPost, path, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+LegacyVersion+`","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, who...)
	id := r.Header.Get("Mcp-Session-ID")
	if r.Status != 200 || id == "" {
		t.Fatalf("initialize: %+v", r)
	}
	return append(slices.Clone(who), "Mcp-Session-ID", id, "Mcp-Protocol-Version", LegacyVersion)
}

func Initialize(t testing.TB, tr transport.Interface, version string) *client.Client {
	t.Helper()
	c := client.NewClient(tr, client.WithProtocolVersion(version))
	ctx := context.Background()
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	result, err := c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: version, ClientInfo: mcp.Implementation{Name: "test", Version: "1"},
	}})
	if err != nil {
		t.Fatalf("initialize: %v", err)
	}
	if result.Capabilities.Tools == nil || !result.Capabilities.Tools.ListChanged {
		t.Errorf("capabilities: %+v", result.Capabilities)
	}
	if c.ProtocolVersion() != version {
		t.Errorf("version %s; want %s", c.ProtocolVersion(), version)
	}
	return c
}

// Response is an HTTP answer, read.
type Response struct {
	Status int
	Header http.Header
	Body   string
}

// Result decodes a JSON-RPC answer.
func (r Response) Result(t testing.TB) (result map[string]any, failure map[string]any) {
	t.Helper()
	var m struct {
		Result, Error map[string]any
	}
	if err := json.Unmarshal([]byte(r.Body), &m); err != nil {
		t.Fatalf("%v in %q", err, r.Body)
	}
	return m.Result, m.Error
}

const (
	ModernVersion = "2026-07-28"
	LegacyVersion = "2025-11-25"
)

// Do sends one request; header is pairs of names and values.
func (d *Server) Do(t testing.TB, method, path, body string, header ...string) Response {
	t.Helper()
	r, err := http.NewRequest(method, d.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
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
	return Response{got.StatusCode, got.Header, string(b)}
}

// Modern sends a request of 2026-07-28; params is the inside of an object.
func (d *Server) Modern(t testing.TB, path, method, params string, header ...string) Response {
	t.Helper()
	return d.Do(t, http.MethodPost, path, ModernBody(method, params), append(ModernHeader(method, params), header...)...)
}

func ModernBody(method, params string) string {
	if params != "" {
		params += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		method, params, ModernVersion)
}

func ModernHeader(method, params string) []string {
	header := []string{"Mcp-Protocol-Version", ModernVersion, "Mcp-Method", method}
	var p struct{ Name string }
	if json.Unmarshal([]byte("{"+params+"}"), &p) == nil && p.Name != "" {
		header = append(header, "Mcp-Name", p.Name)
	}
	return header
}

// Session initializes a session of an older era and returns its header.
func (d *Server) Session(t testing.TB, path string) []string {
	t.Helper()
	r := d.Do(t, http.MethodPost, path, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+LegacyVersion+`","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	id := r.Header.Get("Mcp-Session-ID")
	if r.Status != 200 || id == "" {
		t.Fatalf("initialize: %+v", r)
	}
	header := []string{"Mcp-Session-ID", id, "Mcp-Protocol-Version", LegacyVersion}
	if r := d.Do(t, http.MethodPost, path, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, header...); r.Status != 202 {
		t.Fatalf("initialized: %+v", r)
	}
	return header
}

func LegacyBody(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, params)
}

// Request is a request as it comes in on 127.0.0.1:8420.
func Request(method, path, body, host string) *http.Request {
	r := httptest.NewRequest(method, "http://localhost:8420"+path, strings.NewReader(body))
	r.Host = host
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8420}
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local)))
}

// Dial opens a TCP connection to the daemon and writes says, with HOST replaced by the daemon's address.
func (d *Server) Dial(t testing.TB, says string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, strings.ReplaceAll(says, "HOST", strings.TrimPrefix(d.URL, "http://"))); err != nil {
		t.Fatal(err)
	}
	return conn
}

// Works fails the test unless a well-behaved client is served.
func (d *Server) Works(t testing.TB, path string) {
	t.Helper()
	if r := d.Modern(t, path, "tools/list", ""); r.Status != 200 {
		t.Errorf("a good client: %+v", r)
	}
}

// Post sends a request to /mcp that ctx may abort, and ignores the answer.
func (d *Server) Post(ctx context.Context, body string, header ...string) {
	r, err := http.NewRequestWithContext(ctx, "POST", d.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if got, err := http.DefaultClient.Do(r); err == nil {
		got.Body.Close()
	}
}

func Listed(t testing.TB, r Response) []string {
	t.Helper()
	result, failure := r.Result(t)
	if failure != nil {
		t.Fatal(failure)
	}
	names := []string{}
	for _, tool := range result["tools"].([]any) {
		names = append(names, tool.(map[string]any)["name"].(string))
	}
	return names
}
