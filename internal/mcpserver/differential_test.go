package mcpserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/registry"
)

// The front answers as a stock mcp-go server with the same tools would, in both eras: status, content type and JSON.
// Only what catalogd adds to _meta is left out of the comparison.
func TestLikeStockServer(t *testing.T) {
	t.Parallel()
	const schema = servetest.CitySchema
	ours := servetest.Start(t, servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil}, Tools: []servetest.Fixture{
		servetest.Tool("city", schema, servetest.Invoker(echo), func(t *registry.Tool) {
			t.Title = "City"
			t.Args.Fields = servetest.CityFields()
			t.Result = &contract.Spec{Schema: json.RawMessage(`{"type":"object"}`), Strictness: contract.Open}
		}),
		servetest.Tool("fails", "", servetest.Invoker(func(context.Context, contract.Args) (*registry.Result, error) {
			return &registry.Result{Content: []json.RawMessage{registry.Text("exit status 1")}, IsError: true}, nil
		})),
		servetest.Tool("changes", "", servetest.Text("done"), func(t *registry.Tool) { t.Effect = registry.Write }),
	}})
	stock := httptest.NewServer(stockServer(schema))
	t.Cleanup(stock.Close)
	theirs := &servetest.Server{URL: stock.URL}

	compare := func(t *testing.T, got, want servetest.Response) {
		t.Helper()
		if got.Status != want.Status || got.Header.Get("Content-Type") != want.Header.Get("Content-Type") {
			t.Errorf("%d %s; stock: %d %s", got.Status, got.Header.Get("Content-Type"), want.Status, want.Header.Get("Content-Type"))
		}
		if diff := cmp.Diff(withoutCatalogd(decode(t, want.Body)), withoutCatalogd(decode(t, got.Body))); diff != "" {
			t.Errorf("-stock +front\n%s", diff)
		}
	}
	requests := []struct{ name, method, params string }{
		{"list", "tools/list", ""},
		{"call", "tools/call", `"name":"city","arguments":{"city":"Bern","units":"fahrenheit"}`},
		{"call with progress token", "tools/call", `"name":"city","arguments":{"city":"\u00e9<>&"}`},
		{"tool error", "tools/call", `"name":"fails"`},
		{"discover", "server/discover", ""},
		{"unknown method", "tools/nothing", ""},
	}
	for _, r := range requests {
		t.Run("modern/"+r.name, func(t *testing.T) {
			compare(t, ours.Modern(t, "/mcp", r.method, r.params), theirs.Modern(t, "/mcp", r.method, r.params))
		})
	}
	// A client that asks for progress gets plain JSON from a tool that says nothing.
	token := strings.Replace(servetest.ModernBody("tools/call", `"name":"city","arguments":{"city":"Bern"}`), `"_meta":{`, `"_meta":{"progressToken":"p","io.modelcontextprotocol/logLevel":"debug",`, 1)
	t.Run("modern/nothing to notify", func(t *testing.T) {
		header := servetest.ModernHeader("tools/call", `"name":"city"`)
		compare(t, ours.Do(t, "POST", "/mcp", token, header...), theirs.Do(t, "POST", "/mcp", token, header...))
	})
	ourSession, theirSession := ours.Session(t, "/mcp"), theirs.Session(t, "/mcp")
	for _, r := range append(requests, struct{ name, method, params string }{"ping", "ping", ""}) {
		t.Run("legacy/"+r.name, func(t *testing.T) {
			compare(t, ours.Do(t, "POST", "/mcp", servetest.LegacyBody(r.method, r.params), ourSession...),
				theirs.Do(t, "POST", "/mcp", servetest.LegacyBody(r.method, r.params), theirSession...))
		})
	}
	t.Run("legacy/nothing to notify", func(t *testing.T) {
		body := servetest.LegacyBody("tools/call", `"name":"city","arguments":{"city":"Bern"},"_meta":{"progressToken":7}`)
		compare(t, ours.Do(t, "POST", "/mcp", body, ourSession...), theirs.Do(t, "POST", "/mcp", body, theirSession...))
	})
	// Headers that disagree with the body.
	body := servetest.ModernBody("tools/call", `"name":"city","arguments":{"city":"Bern"}`)
	noCapabilities := strings.Replace(body, `,"io.modelcontextprotocol/clientCapabilities":{}`, "", 1)
	future := strings.ReplaceAll(body, servetest.ModernVersion, "2099-01-01")
	for _, test := range []struct {
		name, body string
		header     []string
	}{
		{"no version header", body, []string{"Mcp-Method", "tools/call", "Mcp-Name", "city"}},
		{"no version in the body", servetest.LegacyBody("tools/list", ""), []string{"Mcp-Protocol-Version", servetest.ModernVersion, "Mcp-Method", "tools/list"}},
		{"versions differ", body, []string{"Mcp-Protocol-Version", servetest.LegacyVersion, "Mcp-Method", "tools/call", "Mcp-Name", "city"}},
		{"unknown version", future, []string{"Mcp-Protocol-Version", "2099-01-01", "Mcp-Method", "tools/call", "Mcp-Name", "city"}},
		{"no capabilities", noCapabilities, []string{"Mcp-Protocol-Version", servetest.ModernVersion, "Mcp-Method", "tools/call", "Mcp-Name", "city"}},
		{"no method header", body, []string{"Mcp-Protocol-Version", servetest.ModernVersion, "Mcp-Name", "city"}},
		{"another method", body, []string{"Mcp-Protocol-Version", servetest.ModernVersion, "Mcp-Method", "tools/list", "Mcp-Name", "city"}},
		{"no name header", body, []string{"Mcp-Protocol-Version", servetest.ModernVersion, "Mcp-Method", "tools/call"}},
		{"another name", body, []string{"Mcp-Protocol-Version", servetest.ModernVersion, "Mcp-Method", "tools/call", "Mcp-Name", "fails"}},
		{"name in Base64", body, []string{"Mcp-Protocol-Version", servetest.ModernVersion, "Mcp-Method", "tools/call", "Mcp-Name", "=?base64?Y2l0eQ==?="}},
		{"resumes", body, []string{"Mcp-Protocol-Version", servetest.ModernVersion, "Mcp-Method", "tools/call", "Mcp-Name", "city", "Last-Event-ID", "1"}},
	} {
		t.Run("headers/"+test.name, func(t *testing.T) {
			compare(t, ours.Do(t, "POST", "/mcp", test.body, test.header...), theirs.Do(t, "POST", "/mcp", test.body, test.header...))
		})
	}
}

func echo(_ context.Context, args contract.Args) (*registry.Result, error) {
	return &registry.Result{Content: []json.RawMessage{registry.Text(string(args.JSON()))}, Structured: args.JSON()}, nil
}

// stockServer is mcp-go as it comes, with the same three tools.
func stockServer(schema string) http.Handler {
	s := server.NewMCPServer("catalogd", "test", server.WithToolCapabilities(true), server.WithLogging())
	yes, no := true, false
	s.AddTools(
		server.ServerTool{Tool: mcp.Tool{
			Name: "city", Title: "City", Description: "The tool city.", RawInputSchema: json.RawMessage(schema), RawOutputSchema: json.RawMessage(`{"type":"object"}`),
			Annotations: mcp.ToolAnnotation{Title: "City", ReadOnlyHint: &yes},
		}, Handler: func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			args := r.GetArguments()
			if args["units"] == nil {
				args["units"] = "celsius"
			}
			raw, err := json.Marshal(args)
			if err != nil {
				return nil, err
			}
			var plain any
			if err := json.Unmarshal(raw, &plain); err != nil {
				return nil, err
			}
			var b strings.Builder
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(plain); err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent(strings.TrimSpace(b.String()))}, StructuredContent: plain}, nil
		}},
		server.ServerTool{Tool: mcp.Tool{
			Name: "fails", Description: "The tool fails.", RawInputSchema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
			Annotations: mcp.ToolAnnotation{ReadOnlyHint: &yes},
		}, Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultError("exit status 1"), nil
		}},
		server.ServerTool{Tool: mcp.Tool{
			Name: "changes", Description: "The tool changes.", RawInputSchema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
			Annotations: mcp.ToolAnnotation{ReadOnlyHint: &no},
		}},
	)
	return server.NewStreamableHTTPServer(s, server.WithStateful(true))
}

// withoutCatalogd takes catalogd's own keys out of every _meta, and the _meta that is empty then.
func withoutCatalogd(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = withoutCatalogd(inner)
			if meta, ok := inner.(map[string]any); ok && key == "_meta" {
				delete(meta, "catalogd/call")
				delete(meta, "catalogd/error")
				if len(meta) == 0 {
					delete(v, "_meta")
				}
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutCatalogd(v[i])
		}
	}
	return v
}
