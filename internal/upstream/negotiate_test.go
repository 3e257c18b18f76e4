package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/registry"
)

const (
	handshake2025 = `"result":{"protocolVersion":"%s","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
	discovery2026 = `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	noMethod      = `"error":{"code":-32601,"message":"Method not found"}`
	echoed        = `"result":{"content":[{"type":"text","text":"ok"}]}`
)

// conversation is an HTTP server that answers each request as answer says, with a status and the rest of a
// response.
type conversation struct {
	mu     sync.Mutex
	seen   []string // "METHOD VERSION", the version being the one that the message names for itself
	answer func(c *conversation, method, version string) (status int, said string)
}

func (c *conversation) methods() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.seen)
}

func (c *conversation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	var req struct {
		ID     json.RawMessage
		Method string
		Params struct {
			ProtocolVersion string
			Meta            map[string]json.RawMessage `json:"_meta"`
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	version := req.Params.ProtocolVersion
	if v, ok := req.Params.Meta["io.modelcontextprotocol/protocolVersion"]; ok {
		version = strings.Trim(string(v), `"`)
		if got := r.Header.Get("Mcp-Protocol-Version"); got != version {
			version += " but header " + got
		}
	}
	c.mu.Lock()
	c.seen = append(c.seen, strings.TrimSpace(req.Method+" "+version))
	c.mu.Unlock()
	if req.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	status, said := c.answer(c, req.Method, version)
	if strings.HasPrefix(said, "<") {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		io.WriteString(w, said)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if said != "" {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, req.ID, said)
	}
}

// count is how often a message was seen.
func (c *conversation) count(message string) (n int) {
	for _, m := range c.methods() {
		if strings.HasPrefix(m, message) {
			n++
		}
	}
	return n
}

// older answers initialize with a version, and a call.
func older(version string) func(method string) (int, string) {
	return func(method string) (int, string) {
		switch method {
		case "initialize":
			return 200, fmt.Sprintf(handshake2025, version)
		case "tools/call":
			return 200, echoed
		}
		return 200, noMethod
	}
}

// What a server answers to server/discover decides how it is spoken to: as one of 2026-07-28 only if it is a
// valid result that lists that revision, in what it lists if it lists others, and as an older one in any
// other case.
func TestNegotiation(t *testing.T) {
	t.Parallel()
	discover := func(status int, said string) func(*conversation, string, string) (int, string) {
		return func(_ *conversation, method, _ string) (int, string) {
			if method == "server/discover" {
				return status, said
			}
			return older("2025-11-25")(method)
		}
	}
	refuses := func(times int, supported string, then func(string) (int, string)) func(*conversation, string, string) (int, string) {
		return func(c *conversation, method, version string) (int, string) {
			if c.count("server/discover")+c.count("initialize") <= times {
				return 400, fmt.Sprintf(`"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":%s,"requested":%q}}`, supported, version)
			}
			return then(method)
		}
	}
	modern := func(method string) (int, string) {
		if method == "server/discover" {
			return 200, discovery2026
		}
		return 200, `"result":{"resultType":"complete","content":[{"type":"text","text":"ok"}]}`
	}
	const older2025 = "initialize 2025-11-25"
	for _, c := range []struct {
		name, pin string
		answer    func(c *conversation, method, version string) (int, string)
		protocol  string
		seen      []string // before the call
		says      []string // of an error
	}{
		{name: "2026-07-28", answer: discover(200, discovery2026), protocol: "2026-07-28", seen: []string{"server/discover 2026-07-28"}},
		{name: "lists older ones only", answer: discover(200, `"result":{"resultType":"complete","supportedVersions":["2025-11-25","2025-06-18"],"capabilities":{"tools":{}}}`), protocol: "2025-11-25",
			seen: []string{"server/discover 2026-07-28", older2025}},
		{name: "lists an older one that is not the newest", answer: func(_ *conversation, method, version string) (int, string) {
			if method == "server/discover" {
				return 200, `"result":{"supportedVersions":["2025-06-18","2024-11-05"],"capabilities":{"tools":{}}}`
			}
			return older(version)(method)
		}, protocol: "2025-06-18", seen: []string{"server/discover 2026-07-28", "initialize 2025-06-18"}},
		{name: "lists a newer one too", answer: discover(200, `"result":{"resultType":"complete","supportedVersions":["2031-01-01","2026-07-28"],"capabilities":{"tools":{}}}`), protocol: "2026-07-28",
			seen: []string{"server/discover 2026-07-28"}},
		{name: "lists only newer ones", answer: discover(200, `"result":{"resultType":"complete","supportedVersions":["2031-01-01"],"capabilities":{"tools":{}}}`),
			says: []string{"2031-01-01", "supported are 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05"}},
		{name: "an empty result", answer: discover(200, `"result":{}`), protocol: "2025-11-25", seen: []string{"server/discover 2026-07-28", older2025}},
		{name: "no versions", answer: discover(200, `"result":{"supportedVersions":[],"capabilities":{"tools":{}}}`), protocol: "2025-11-25", seen: []string{"server/discover 2026-07-28", older2025}},
		{name: "versions of another type", answer: discover(200, `"result":{"supportedVersions":"2026-07-28","capabilities":{"tools":{}}}`), protocol: "2025-11-25", seen: []string{"server/discover 2026-07-28", older2025}},
		{name: "a result of null", answer: discover(200, `"result":null`), protocol: "2025-11-25", seen: []string{"server/discover 2026-07-28", older2025}},
		{name: "an unknown method", answer: discover(200, noMethod), protocol: "2025-11-25", seen: []string{"server/discover 2026-07-28", older2025}},
		{name: "an unknown method with 404", answer: discover(404, noMethod), protocol: "2025-11-25", seen: []string{"server/discover 2026-07-28", older2025}},
		{name: "an error with 400", answer: discover(400, `"error":{"code":-32000,"message":"Bad Request: Server not initialized"}`), protocol: "2025-11-25", seen: []string{"server/discover 2026-07-28", older2025}},
		{name: "nothing with 202", answer: discover(202, ""), protocol: "2025-11-25", seen: []string{"server/discover 2026-07-28", older2025}},
		{name: "a page", answer: discover(200, "<html></html>"), protocol: "2025-11-25", seen: []string{"server/discover 2026-07-28", older2025}},
		{name: "a page with 401", answer: discover(401, "<html></html>"), protocol: "2025-11-25", seen: []string{"server/discover 2026-07-28", older2025}},
		{name: "a page with 500", answer: discover(500, "<html></html>"), protocol: "2025-11-25", seen: []string{"server/discover 2026-07-28", older2025}},
		{name: "refuses the first version and supports it", answer: refuses(1, `["2026-07-28"]`, modern), protocol: "2026-07-28",
			seen: []string{"server/discover 2026-07-28", "server/discover 2026-07-28"}},
		{name: "refuses, and supports older ones", answer: refuses(1, `["2025-06-18","2025-03-26"]`, older("2025-06-18")), protocol: "2025-06-18",
			seen: []string{"server/discover 2026-07-28", "initialize 2025-06-18"}},
		{name: "refuses, and supports unknown ones", answer: refuses(99, `["2031-01-01"]`, modern), says: []string{"2031-01-01", "supported are 2026-07-28"}},
		{name: "refuses what it supports, again and again", answer: refuses(99, `["2026-07-28"]`, modern), says: []string{"2026-07-28"}},
		{name: "refuses the version of the handshake", answer: func(_ *conversation, method, version string) (int, string) {
			switch {
			case method == "initialize" && version != "2024-11-05":
				return 200, `"error":{"code":-32602,"message":"Unsupported protocol version","data":{"supported":["2024-11-05"],"requested":"2025-11-25"}}`
			case method == "server/discover":
				return 200, noMethod
			}
			return older(version)(method)
		}, protocol: "2024-11-05", seen: []string{"server/discover 2026-07-28", older2025, "initialize 2024-11-05"}},
		{name: "answers the handshake with another version", answer: func(_ *conversation, method, _ string) (int, string) { return older("2025-03-26")(method) }, protocol: "2025-03-26",
			seen: []string{"server/discover 2026-07-28", older2025}},
		{name: "answers the handshake with an unknown version", answer: func(_ *conversation, method, _ string) (int, string) { return older("1999-01-01")(method) },
			says: []string{"1999-01-01", "supported are"}},
		{name: "answers the handshake with no version", answer: func(_ *conversation, method, _ string) (int, string) {
			return 200, `"result":{}`
		}, says: []string{"not a result with a protocolVersion"}},
		{name: "no capabilities at all", answer: func(_ *conversation, method, _ string) (int, string) {
			if method == "initialize" {
				return 200, `"result":{"protocolVersion":"2025-06-18","serverInfo":null,"capabilities":null}`
			}
			return older("2025-06-18")(method)
		}, protocol: "2025-06-18", seen: []string{"server/discover 2026-07-28", older2025}},
		{name: "capabilities of other types", answer: func(_ *conversation, method, _ string) (int, string) {
			if method == "initialize" {
				return 200, `"result":{"protocolVersion":"2025-06-18","serverInfo":"s","capabilities":{"tools":true,"logging":[],"resources":"yes","x":1}}`
			}
			return older("2025-06-18")(method)
		}, protocol: "2025-06-18", seen: []string{"server/discover 2026-07-28", older2025}},

		{name: "pinned to an older one", pin: "2025-06-18", answer: func(_ *conversation, method, version string) (int, string) {
			if method == "server/discover" {
				return 200, discovery2026
			}
			return older(version)(method)
		}, protocol: "2025-06-18", seen: []string{"initialize 2025-06-18"}},
		{name: "pinned to 2026-07-28", pin: "2026-07-28", answer: discover(200, discovery2026), protocol: "2026-07-28", seen: []string{"server/discover 2026-07-28"}},
		{name: "pinned to an older one, speaks another", pin: "2025-11-25", answer: func(_ *conversation, method, _ string) (int, string) { return older("2025-03-26")(method) },
			says: []string{"pins the revision 2025-11-25", "speaks 2025-03-26", "pin one that it speaks"}},
		{name: "pinned to 2026-07-28, lists older ones", pin: "2026-07-28", answer: discover(200, `"result":{"supportedVersions":["2025-11-25"],"capabilities":{}}`),
			says: []string{"pins the revision 2026-07-28", "speaks 2025-11-25"}},
		{name: "pinned to 2026-07-28, is older", pin: "2026-07-28", answer: discover(200, noMethod), says: []string{"pins the revision 2026-07-28", "does not answer server/discover"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := &conversation{answer: c.answer}
			s := serve(t, server)
			s.Protocol = c.pin
			pool, set := open(t, s, loopback)
			if c.says != nil {
				_, err := call(t, set, "echo", `{}`)
				fails(t, err, registry.Unavailable, c.says...)
				return
			}
			if got := text(t, set, "echo", `{}`); got != "ok" {
				t.Errorf("got %s, want ok", got)
			}
			if got := pool.Status()[0].Protocol; got != c.protocol {
				t.Errorf("got the protocol %s, want %s", got, c.protocol)
			}
			if got := server.methods(); len(got) < len(c.seen) || !slices.Equal(got[:len(c.seen)], c.seen) {
				t.Errorf("the server saw %q, want %q first", got, c.seen)
			}
		})
	}
}

// A server of the official Go SDK with its default options keeps sessions: it knows server/discover, lists
// the older revisions only, and refuses requests of 2026-07-28.
func TestGoSDKServer(t *testing.T) {
	t.Parallel()
	type in struct {
		Message string `json:"message"`
	}
	for _, stateless := range []bool{false, true} {
		t.Run(fmt.Sprint("stateless ", stateless), func(t *testing.T) {
			t.Parallel()
			s := gosdk.NewServer(&gosdk.Implementation{Name: "sdk", Version: "1"}, nil)
			gosdk.AddTool(s, &gosdk.Tool{Name: "echo"}, func(_ context.Context, _ *gosdk.CallToolRequest, a in) (*gosdk.CallToolResult, any, error) {
				return &gosdk.CallToolResult{Content: []gosdk.Content{&gosdk.TextContent{Text: a.Message}}}, nil, nil
			})
			var options *gosdk.StreamableHTTPOptions
			protocol := "2025-11-25"
			if stateless {
				options, protocol = &gosdk.StreamableHTTPOptions{Stateless: true}, "2026-07-28"
			}
			ts := httptest.NewServer(gosdk.NewStreamableHTTPHandler(func(*http.Request) *gosdk.Server { return s }, options))
			t.Cleanup(func() {
				ts.CloseClientConnections()
				ts.Close()
			})
			pool, set := open(t, declared(ts.URL+"/mcp"), loopback)
			if got := text(t, set, "echo", `{"message":"hi"}`); got != "hi" {
				t.Errorf("got %s, want hi", got)
			}
			if got := pool.Status()[0].Protocol; got != protocol {
				t.Errorf("got the protocol %s, want %s", got, protocol)
			}
			offer, err := set.Offered(t.Context(), "fake")
			if err != nil || len(offer.Tools) != 1 || offer.Name != "sdk" {
				t.Errorf("it offers %+v, %v", offer, err)
			}
			_, err = call(t, set, "missing", `{}`)
			fails(t, err, registry.BindingFailed, "missing")
		})
	}
}

// A child that offers only newer revisions, or pins that it can't keep, is refused with what it speaks.
func TestPinnedChild(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ mode, pin, protocol, says string }{
		{"modern", "", "2026-07-28", ""},
		{"modern", "2025-06-18", "2025-06-18", ""},
		{"good", "2025-06-18", "2025-06-18", ""},
		{"initialize-first", "2025-06-18", "2025-06-18", ""},
		{"good", "2025-11-25", "", "speaks 2025-06-18"},
		{"good", "2026-07-28", "", "does not answer server/discover"},
	} {
		t.Run(c.mode+" "+c.pin, func(t *testing.T) {
			t.Parallel()
			s := stdioServer(t, c.mode)
			s.Protocol = c.pin
			pool, set := open(t, s, trust.Terms{})
			if c.says != "" {
				_, err := call(t, set, "echo", `{}`)
				fails(t, err, registry.Unavailable, c.says)
				return
			}
			text(t, set, "echo", `{}`)
			if got := pool.Status()[0].Protocol; got != c.protocol {
				t.Errorf("got the protocol %s, want %s", got, c.protocol)
			}
		})
	}
}
