package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/registry"
)

// thousand is a catalog of 1,000 tools of five arguments and a declared result each, which the jq binding runs. Its call
// decision is a constant: what a policy costs is measured in package decision.
func thousand(t testing.TB) servetest.Catalog {
	t.Helper()
	const schema = `{"type":"object","properties":{"query":{"type":"string","description":"What to look for."},"limit":{"type":"integer","minimum":1,"maximum":100,"default":10},` +
		`"order":{"enum":["asc","desc"],"default":"asc"},"exact":{"type":"boolean","default":false},"tag":{"type":"string","maxLength":40}},"required":["query"],"additionalProperties":false}`
	fields := []contract.Field{
		{Name: "query", Types: []string{"string"}, Required: true}, {Name: "limit", Types: []string{"integer"}, Default: json.RawMessage("10")},
		{Name: "order", Types: []string{"string"}, Default: json.RawMessage(`"asc"`)}, {Name: "exact", Types: []string{"boolean"}, Default: json.RawMessage("false")},
		{Name: "tag", Types: []string{"string"}},
	}
	c := servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil}}
	for i := range 1000 {
		c.Tools = append(c.Tools, servetest.Tool(fmt.Sprintf("tool_%04d", i), schema, nil, func(t *registry.Tool) {
			t.Args.Fields = fields
			t.Result = &contract.Spec{Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},"page":{"type":"integer"}},"required":["query","page"],"additionalProperties":false}`), Strictness: contract.Closed, Fields: []contract.Field{{Name: "query", Types: []string{"string"}, Required: true}, {Name: "page", Types: []string{"integer"}, Required: true}}}
			t.Binding = registry.Binding{JQ: &registry.JQ{Program: `{query: .query, page: (.limit * 2)}`}}
		}))
	}
	bound, problems := binding.Compile(c.Tools[0].Tool, "")
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	run := bound.Bind(trust.Trust{}, binding.Deps{})
	for i := range c.Tools {
		c.Tools[i].Run = run
	}
	return c
}

// quiet is a ResponseWriter that keeps the status alone.
type quiet struct {
	header http.Header
	status int
}

func (q *quiet) Header() http.Header { return q.header }

func (q *quiet) Write(p []byte) (int, error) { return len(p), nil }

func (q *quiet) WriteHeader(status int) { q.status = status }

// A connection has deadlines; without them ServeHTTP would measure the error that says so.
func (q *quiet) SetReadDeadline(time.Time) error { return nil }

func (q *quiet) SetWriteDeadline(time.Time) error { return nil }

type rewound struct{ strings.Reader }

func (*rewound) Close() error { return nil }

func benchmark(b *testing.B, method, params string) {
	d := servetest.Open(b, thousand(b))
	h := d.Handler()
	body := servetest.ModernBody(method, params)
	header := http.Header{"Content-Type": {"application/json"}}
	pairs := servetest.ModernHeader(method, params)
	for i := 0; i < len(pairs); i += 2 {
		header.Set(pairs[i], pairs[i+1])
	}
	legacy := servetest.LegacyBody(method, params)
	first := httptest.NewRecorder()
	initialize := servetest.Request("POST", "/mcp", initializeLine, "localhost:8420")
	initialize.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(first, initialize)
	session := http.Header{"Content-Type": {"application/json"}, "Mcp-Session-Id": {first.Header().Get("Mcp-Session-Id")}}
	for _, era := range []struct {
		name, body string
		header     http.Header
	}{{"modern", body, header}, {"legacy", legacy, session}} {
		b.Run(era.name, func(b *testing.B) {
			b.ReportAllocs()
			// The request and the response are made once: net/http makes them, so their cost is not the front's.
			r := servetest.Request("POST", "/mcp", "", "localhost:8420")
			r.Header, r.ContentLength = era.header, int64(len(era.body))
			body := &rewound{}
			r.Body = body
			w := &quiet{header: http.Header{}}
			for b.Loop() {
				body.Reset(era.body)
				clear(w.header)
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

// BenchmarkCall is tools/call through ServeHTTP with every check and the record in the log.
func BenchmarkCall(b *testing.B) {
	benchmark(b, "tools/call", `"name":"tool_0500","arguments":{"query":"what is it","limit":5}`)
}

// BenchmarkScan is the strict reading of a body of 1 KiB.
func BenchmarkScan(b *testing.B) {
	for _, era := range []struct{ name, body string }{
		{"modern", servetest.ModernBody("tools/call", `"name":"tool_0500","arguments":`+kilobyte(1024-210))},
		{"legacy", servetest.LegacyBody("tools/call", `"name":"tool_0500","arguments":`+kilobyte(1024-90))},
	} {
		b.Run(era.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(era.body)))
			for b.Loop() {
				if _, _, _, code, text := mcpserver.Scan([]byte(era.body)); code != 0 {
					b.Fatal(text)
				}
			}
		})
	}
}

// kilobyte is an object of about n bytes: short texts, numbers and a list, as arguments are.
func kilobyte(n int) string {
	s := `{"list":[1,2,{"deep":true}]`
	for i := 0; len(s) < n-1; i++ {
		s += fmt.Sprintf(`,"field_%d":"a text, and %d more"`, i, i)
	}
	return s + "}"
}

// BenchmarkEncodeList is what one changed view of 1,000 tools costs before its clients are notified.
func BenchmarkEncodeList(b *testing.B) {
	d := servetest.Open(b, thousand(b))
	smaller := thousand(b)
	smaller.Tools = smaller.Tools[1:]
	generations := [...]servetest.Catalog{thousand(b), smaller}
	h := d.Handler()
	r := servetest.Request("GET", "/healthz", "", "localhost:8420")
	h.ServeHTTP(&quiet{header: http.Header{}}, r)
	go d.Stdio(context.Background(), "default", servetest.Blocked{}, io.Discard)
	first, second := generations[0].Generation(b, d.Logger), generations[1].Generation(b, d.Logger)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.Served.Store(first)
		if i%2 == 1 {
			d.Served.Store(second)
		}
		d.Changed([]string{"default"})
	}
}
