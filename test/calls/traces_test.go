package calls

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// span is a span as a collector gets it.
type span struct {
	TraceID, SpanID, ParentSpanID, TraceState, Name string
	Kind                                            int
	Attributes                                      []struct {
		Key   string
		Value struct{ StringValue string }
	}
	Status struct {
		Code    int
		Message string
	}
}

// collector receives OTLP over HTTP, as JSON.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	spans  []span
	raw    bytes.Buffer
	header []string
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var got struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []span }
			}
		}
		if err == nil {
			err = json.Unmarshal(body, &got)
		}
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" {
			t.Errorf("%s %s: %v: %s", r.Method, r.URL, err, body)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw.Write(body)
		c.header = append(c.header, r.Header.Get("Authorization"))
		for _, resource := range got.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(c.Close)
	return c
}

// tree is the trace of an id: each span's name with those of its ancestors, up to the client's span.
func (c *collector) tree(trace, client string) (paths []string) {
	of := map[string]span{}
	for _, s := range c.spans {
		if s.TraceID == trace {
			of[s.SpanID] = s
		}
	}
	for _, s := range of {
		path := s.Name
		at := s
		for at.ParentSpanID != client {
			up, ok := of[at.ParentSpanID]
			if !ok {
				path = "lost > " + path
				break
			}
			at, path = up, up.Name+" > "+path
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

const (
	clientSpan = "00f067aa0ba902b7"
	sentByTest = "velvet-otter" // an argument, which no span may have
)

func traceOf(n int) (id, parent string) {
	id = fmt.Sprintf("4bf92f3577b34da6a3ce929d0e0e47%02x", n)
	return id, "00-" + id + "-" + clientSpan + "-01"
}

func callBody(tool, args, meta string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{%s`+
		`"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, args, meta, harness.Modern)
}

func callHeader(tool string, more ...string) []string {
	return append([]string{"Mcp-Protocol-Version", harness.Modern, "Mcp-Method", "tools/call", "Mcp-Name", tool}, more...)
}

// TestTraces: the spans of a call are below the span that its client names, in a header or in _meta, with names, codes and
// ids alone. What the client was told, the log line and the decision have the same id, and the log line the trace's.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	var decisions harness.Log
	d := harness.Serve(t, catalogd.Config{
		Dir: harness.Starter(t), State: filepath.Join(t.TempDir(), "state"), Intents: catalogd.Intents{Durability: "process"},
		DecisionLog: catalogd.DecisionLog{Writer: &decisions}, Traces: catalogd.Traces{OTLP: c.URL, Authorization: "Bearer quiet-heron"},
	})
	read := []string{
		"tools/call", "tools/call > call", "tools/call > call > decide call", "tools/call > call > decide result", "tools/call > call > invoke",
	}
	write := []string{
		"tools/call", "tools/call > call", "tools/call > call > attempt", "tools/call > call > attempt > decide result",
		"tools/call > call > attempt > invoke", "tools/call > call > decide call", "tools/call > call > decide release",
	}
	title := `{"title":"` + sentByTest + `"}`
	type row struct {
		name, body string
		path       string
		header     []string
		want       []string
		trace      string
	}
	var rows []row
	for i, r := range []row{
		{name: "header", path: "/mcp", body: callBody("slugify", title, ""), header: callHeader("slugify", "Traceparent", "PARENT", "Tracestate", "vendor=kestrel"), want: read},
		{name: "_meta", path: "/mcp", body: callBody("slugify", title, `"traceparent":"PARENT",`), header: callHeader("slugify"), want: read},
		{name: "write", path: "/mcp", body: callBody("write_note", `{"name":"a-note","text":"`+sentByTest+`"}`, `"traceparent":"PARENT",`), header: callHeader("write_note"), want: write},
		{name: "envelope", path: "/branches/default/calls", body: `{"function":"slugify","arguments":` + title + `}`, header: []string{"Traceparent", "PARENT"},
			want: []string{"calls", "calls > call", "calls > call > decide call", "calls > call > decide result", "calls > call > invoke"}},
		{name: "refused", path: "/mcp", body: callBody("slugify", `{"tilte":"`+sentByTest+`"}`, `"traceparent":"PARENT",`), header: callHeader("slugify"), want: read[:2]},
		{name: "not sampled", path: "/mcp", body: callBody("slugify", title, strings.Replace(`"traceparent":"PARENT",`, "PARENT", "UNSAMPLED", 1)), header: callHeader("slugify")},
	} {
		id, parent := traceOf(i)
		fill := strings.NewReplacer("PARENT", parent, "UNSAMPLED", strings.TrimSuffix(parent, "1")+"0")
		r.trace, r.body = id, fill.Replace(r.body)
		for i := range r.header {
			r.header[i] = fill.Replace(r.header[i])
		}
		answer := d.Post(t, r.path, r.body, r.header...)
		var got struct {
			Call   string
			Result struct {
				Meta struct {
					Call struct{ ID, Generation, Intent string } `json:"catalogd/call"`
				} `json:"_meta"`
			}
		}
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			t.Fatalf("%s: %v: %s", r.name, err, answer)
		}
		told := got.Result.Meta.Call
		if told.ID == "" {
			told.ID = got.Call
		}
		if told.ID == "" {
			t.Fatalf("%s: the answer names no call: %s", r.name, answer)
		}
		line := logged(t, d.Log.String(), told.ID)
		if line["trace"] != r.trace || line["generation"] != d.Status().Generation.ID {
			t.Errorf("%s: the log line of the call is %v, want the trace %s and the generation served", r.name, line, r.trace)
		}
		if told.Intent != "" && line["intent"] != told.Intent || r.name == "write" && told.Intent == "" {
			t.Errorf("%s: intent %q in the answer, %v in the log", r.name, told.Intent, line["intent"])
		}
		want := `"` + told.ID + `"`
		harness.Await(t, r.name+": the decision about call "+told.ID, func() bool { return strings.Contains(decisions.String(), want) })
		rows = append(rows, r)
	}
	d.End() // sends what is left
	for _, r := range rows {
		if got := c.tree(r.trace, clientSpan); !slices.Equal(got, r.want) {
			t.Errorf("%s: the trace is\n%s\nwant\n%s", r.name, strings.Join(got, "\n"), strings.Join(r.want, "\n"))
		}
	}
	if strings.Contains(c.raw.String(), sentByTest) || strings.Contains(c.raw.String(), "quiet-heron") {
		t.Errorf("an argument or a secret is in a span: %s", c.raw.String())
	}
	if slices.ContainsFunc(c.header, func(h string) bool { return h != "Bearer quiet-heron" }) {
		t.Errorf("the collector was sent %q", c.header)
	}
	kept := slices.ContainsFunc(c.spans, func(s span) bool { return s.TraceState == "vendor=kestrel" })
	failed := slices.ContainsFunc(c.spans, func(s span) bool {
		return s.Name == "call" && s.Status.Code == 2 && s.Status.Message == "invalid_arguments"
	})
	if !kept || !failed {
		t.Errorf("the client's tracestate is kept: %v; the refused call is marked as failed: %v", kept, failed)
	}
}

// logged is the log line of a call.
func logged(t *testing.T, log, id string) (line map[string]any) {
	t.Helper()
	for text := range strings.Lines(log) {
		if !strings.Contains(text, id) || !strings.Contains(text, `"msg":"call"`) {
			continue
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if line["id"] == id {
			return line
		}
	}
	t.Fatalf("no log line has the id %s", id)
	return nil
}
