package upstream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// upstreamServer is an MCP server over HTTP in this process. It speaks an older revision, or where modern is set 2026-07-28.
type upstreamServer struct {
	*httptest.Server
	modern bool
	// version is the older revision; 2025-06-18 where it is empty.
	version string

	mu sync.Mutex
	// got is every request, headers and body.
	got []string
	// tools is what it offers, instructions what it says of itself, result what answers a call.
	tools        []string
	instructions string
	result       string
	// session is which one it knows; it has forgotten those before.
	session int
	// numbered gives each client a session of its own, and has a call answer which one it came on.
	numbered bool
}

func newUpstreamServer(t *testing.T, modern bool) *upstreamServer {
	t.Helper()
	s := &upstreamServer{modern: modern, result: `{"content":[{"type":"text","text":"done"}]}`}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// entry is the trust entry of the server.
func (s *upstreamServer) entry(name string) string {
	host, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	return fmt.Sprintf("  %s: {scheme: http, host: %s, port: %s, addresses: [127.0.0.0/8], headers: [X-Key], secrets: [\"env:CATALOGD_TEST_UPSTREAM\"]}\n", name, host, port)
}

// offer changes what the server offers. It forgets its sessions, so that the next call finds it out.
func (s *upstreamServer) offer(tools ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = tools
	s.session++
}

// known is the session that the server knows.
func (s *upstreamServer) known() string { return fmt.Sprint("of-the-upstream-", s.session) }

func (s *upstreamServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	var req struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.Unmarshal(body, &req) // a GET and a DELETE have no body
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, fmt.Sprintf("%s %s %v %s", r.Method, r.URL, r.Header, body))
	result := ""
	switch req.Method {
	case "server/discover":
		if !s.modern {
			http.Error(w, "unknown", http.StatusBadRequest)
			return
		}
		result = fmt.Sprintf(`{"resultType":"complete","supportedVersions":[%q],"capabilities":{"tools":{}},"instructions":%q,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bad","version":"1"}}}`, harness.Modern, s.instructions)
	case "initialize":
		if s.numbered {
			s.session++
		}
		w.Header().Set("Mcp-Session-Id", s.known())
		instructions, err := json.Marshal(s.instructions)
		if err != nil {
			panic(err)
		}
		result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"bad","version":"1"},"instructions":%s}`,
			cmp.Or(s.version, "2025-06-18"), instructions)
	case "tools/list":
		result = `{"resultType":"complete","tools":[` + strings.Join(s.tools, ",") + `]}`
	case "tools/call":
		if s.numbered {
			result = fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, r.Header.Get("Mcp-Session-Id"))
			break
		}
		if !s.modern && r.Header.Get("Mcp-Session-Id") != s.known() {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		result = s.result
	default:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, response(req.ID, result))
}

func response(id json.RawMessage, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// modernCall is a tools/call with its headers.
func modernCall(tool, meta string) (body string, headers []string) {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{},"_meta":{%s"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, meta, harness.Modern),
		[]string{"Mcp-Protocol-Version", harness.Modern, "Mcp-Method", "tools/call", "Mcp-Name", tool}
}

// legacySession begins a session and returns its headers, with what it was answered.
func legacySession(t *testing.T, r *harness.Daemon) (headers []string, answer string) {
	t.Helper()
	return sessionOf(t, r, "2025-06-18")
}

// sessionOf is legacySession in an older revision.
func sessionOf(t *testing.T, r *harness.Daemon, version string) (headers []string, answer string) {
	t.Helper()
	begun, answer := r.Exchange(t, "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, version))
	if !strings.Contains(answer, fmt.Sprintf(`"protocolVersion":%q`, version)) {
		t.Fatalf("a client of %s is answered %s", version, answer)
	}
	return []string{"Mcp-Session-Id", begun.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", version}, answer
}
