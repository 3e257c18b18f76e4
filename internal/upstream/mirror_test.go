package upstream_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/catalogd/catalogd/registry"
)

// regional is a real server of 2026-07-28, which refuses a call whose headers don't mirror its arguments.
func regional() *server.MCPServer {
	s := server.NewMCPServer("regional", "1", server.WithToolCapabilities(true))
	s.AddTool(mcp.NewToolWithRawSchema("query", "", json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"}}}`)),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(req.Header.Get("Mcp-Param-Region") + "|" + req.Header.Get("Mcp-Param-N")), nil
		})
	return s
}

func TestArgumentsAreMirrored(t *testing.T) {
	t.Parallel()
	var lists atomic.Int32
	handler := server.NewStreamableHTTPServer(regional())
	_, set := open(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "tools/list" {
			lists.Add(1)
		}
		handler.ServeHTTP(w, r)
	})), loopback)
	for args, want := range map[string]string{
		`{"region":"us-west1","n":42}`: "us-west1|42",
		`{"region":"世界"}`:              "=?base64?5LiW55WM?=|",
		`{"n":9007199254740991}`:       "|9007199254740991",
		`{"region":""}`:                "|",
		`{}`:                           "|",
	} {
		if got := text(t, set, "query", args); got != want {
			t.Errorf("%s: the server got the headers %s, want %s", args, got, want)
		}
	}
	if n := lists.Load(); n != 1 {
		t.Errorf("the server was asked for its tools %d times, want once", n)
	}
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if _, err := call(t, set, "query", `{"region":"a"}`); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
}

// A server whose annotations change refuses a call once: its tools are asked for again, and the call is sent
// again.
func TestChangedAnnotations(t *testing.T) {
	t.Parallel()
	var header atomic.Value
	header.Store("Old")
	var refusals atomic.Int32
	d := modern(t, func(string, json.RawMessage) string { return "" })
	d.HTTP = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req request
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			return // the client has gone
		}
		w.Header().Set("Content-Type", "application/json")
		said := discovery2026
		switch req.Method {
		case "tools/list":
			said = `"result":{"resultType":"complete","tools":[{"name":"query","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"` + header.Load().(string) + `"}}}},{"name":"odd","inputSchema":{"type":"object","properties":{"a":{"type":"array","x-mcp-header":"A"}}}}]}`
		case "tools/call":
			said = `"result":{"resultType":"complete","content":[{"type":"text","text":"ok"}]}`
			if r.Header.Get("Mcp-Param-"+header.Load().(string)) != "x" {
				refusals.Add(1)
				w.WriteHeader(http.StatusBadRequest)
				said = `"error":{"code":-32020,"message":"Header mismatch"}`
			}
		}
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(req.ID) + `,` + said + `}`))
	})).HTTP
	pool, set := open(t, d, loopback)
	if got := text(t, set, "query", `{"a":"x"}`); got != "ok" || refusals.Load() != 0 {
		t.Errorf("got %s after %d refusals, want ok after none", got, refusals.Load())
	}
	header.Store("New")
	if got := text(t, set, "query", `{"a":"x"}`); got != "ok" || refusals.Load() != 1 {
		t.Errorf("got %s after %d refusals, want ok after one", got, refusals.Load())
	}
	// One that is not to be mended by other headers is refused once.
	_, err := call(t, set, "query", `{}`)
	fails(t, err, registry.BindingFailed, "-32020")
	if refusals.Load() != 2 {
		t.Errorf("%d refusals, want 2", refusals.Load())
	}
	_, err = call(t, set, "odd", `{}`)
	fails(t, err, registry.BindingFailed, "must not be used", "x-mcp-header at /a", "nothing was sent")
	if st := pool.Status()[0]; !strings.Contains(st.Protocol, "2026") {
		t.Errorf("status %+v", st)
	}
}
