package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/registry"
)

// thousand is a catalog of 1,000 tools of five arguments each.
func thousand() catalog {
	const schema = `{"type":"object","properties":{"query":{"type":"string","description":"What to look for."},"limit":{"type":"integer","minimum":1,"maximum":100,"default":10},` +
		`"order":{"enum":["asc","desc"],"default":"asc"},"exact":{"type":"boolean","default":false},"tag":{"type":"string","maxLength":40}},"required":["query"],"additionalProperties":false}`
	fields := []contract.Field{
		{Name: "query", Types: []string{"string"}, Required: true}, {Name: "limit", Types: []string{"integer"}, Default: json.RawMessage("10")},
		{Name: "order", Types: []string{"string"}, Default: json.RawMessage(`"asc"`)}, {Name: "exact", Types: []string{"boolean"}, Default: json.RawMessage("false")},
		{Name: "tag", Types: []string{"string"}},
	}
	c := catalog{id: "g1", branches: map[string][]string{"default": nil}}
	for i := range 1000 {
		c.tools = append(c.tools, tool(fmt.Sprintf("tool_%04d", i), schema, invoker(func(_ context.Context, args contract.Args) (*registry.Result, error) {
			query, _ := args.Lookup("query")
			return &registry.Result{Content: []json.RawMessage{registry.Text(fmt.Sprint(query))}, Structured: args.JSON()}, nil
		}), func(t *registry.Tool) { t.Args.Fields = fields }))
	}
	return c
}

// quiet is a ResponseWriter that keeps the status alone.
type quiet struct {
	header http.Header
	status int
}

func (q *quiet) Header() http.Header         { return q.header }
func (q *quiet) Write(p []byte) (int, error) { return len(p), nil }
func (q *quiet) WriteHeader(status int)      { q.status = status }

func benchmark(b *testing.B, method, params string) {
	d := open(b, thousand())
	h := d.Handler()
	body := modernBody(method, params)
	header := http.Header{"Content-Type": {"application/json"}}
	pairs := modernHeader(method, params)
	for i := 0; i < len(pairs); i += 2 {
		header.Set(pairs[i], pairs[i+1])
	}
	legacy := legacyBody(method, params)
	first := httptest.NewRecorder()
	initialize := request("POST", "/mcp", initializeLine, "localhost:8420")
	initialize.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(first, initialize)
	session := http.Header{"Content-Type": {"application/json"}, "Mcp-Session-Id": {first.Header().Get("Mcp-Session-Id")}}
	for _, era := range []struct {
		name, body string
		header     http.Header
	}{{"modern", body, header}, {"legacy", legacy, session}} {
		b.Run(era.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := request("POST", "/mcp", era.body, "localhost:8420")
				r.Header = era.header
				w := &quiet{header: http.Header{}}
				h.ServeHTTP(w, r)
				if w.status != 200 {
					b.Fatal(w.status)
				}
			}
		})
	}
}

// BenchmarkList is tools/list of 1,000 tools through ServeHTTP.
func BenchmarkList(b *testing.B) { benchmark(b, "tools/list", "") }

// BenchmarkCall is tools/call through ServeHTTP, the contract's check and the record in the log included.
func BenchmarkCall(b *testing.B) {
	benchmark(b, "tools/call", `"name":"tool_0500","arguments":{"query":"what is it","limit":5}`)
}

// BenchmarkEncodeList is what one changed view of 1,000 tools costs before its clients are told.
func BenchmarkEncodeList(b *testing.B) {
	d := open(b, thousand())
	smaller := thousand()
	smaller.tools = smaller.tools[1:]
	generations := [...]catalog{thousand(), smaller}
	h := d.Handler()
	r := request("GET", "/healthz", "", "localhost:8420")
	h.ServeHTTP(&quiet{header: http.Header{}}, r)
	go d.Stdio(context.Background(), "default", blocked{}, io.Discard)
	first, second := generations[0].generation(b, d.logger), generations[1].generation(b, d.logger)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.served.Store(first)
		if i%2 == 1 {
			d.served.Store(second)
		}
		d.Changed([]string{"default"})
	}
}

type blocked struct{}

func (blocked) Read([]byte) (int, error) { select {} }
