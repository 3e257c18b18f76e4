package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/serve"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// invoker is a tool in Go.
type invoker func(context.Context, contract.Args) (*registry.Result, error)

func (f invoker) Invoke(ctx context.Context, args contract.Args) (*registry.Result, error) {
	return f(ctx, args)
}

func (f invoker) Plan(contract.Args) (registry.Plan, error) { return registry.Plan{Kind: "jq"}, nil }

// text is a tool that answers text.
func text(s string) invoker {
	return func(context.Context, contract.Args) (*registry.Result, error) {
		return &registry.Result{Content: []json.RawMessage{registry.Text(s)}}, nil
	}
}

// fixture is a tool of a test catalog.
type fixture struct {
	tool registry.Tool
	run  registry.Invoker
}

func tool(name, schema string, run registry.Invoker, change ...func(*registry.Tool)) fixture {
	if schema == "" {
		schema = `{"type":"object","properties":{},"additionalProperties":false}`
	}
	t := registry.Tool{
		Name: name, Description: "The tool " + name + ".", Effect: registry.Read, Timeout: 10 * time.Second,
		Args:    contract.Spec{Schema: json.RawMessage(schema), Strictness: contract.Closed},
		Binding: registry.Binding{JQ: &registry.JQ{Program: "."}},
	}
	for _, c := range change {
		c(&t)
	}
	return fixture{t, run}
}

// catalog is a generation under construction: tools, and the branches with the names that each sees.
type catalog struct {
	id       string
	tools    []fixture
	branches map[string][]string // nil: every tool
	relay    []string            // what the call decision lets through
	hosts    []string            // and the hosts of pages
	deny     string              // the call decision denies this tool
}

func (c catalog) generation(t testing.TB, log *slog.Logger) *serve.Generation {
	t.Helper()
	build := &registry.Build{Digest: c.id}
	runs := map[string]registry.Invoker{}
	for _, f := range c.tools {
		build.Tools = append(build.Tools, f.tool)
		runs[f.tool.Name] = f.run
	}
	r, problems := registry.New(build, func(t registry.Tool) (registry.Bound, problem.List) {
		return registry.Bound{Invoker: runs[t.Name]}, nil
	}, nil, nil)
	if r == nil {
		t.Fatal(problems.Err())
	}
	paths := map[string]*invoke.Path{}
	for name, sees := range c.branches {
		b := registry.Branch{Name: name, Description: "Branch " + name + ".", Labels: map[string]string{"team": name}}
		if sees != nil {
			b.Select = &registry.Selector{Names: sees}
		}
		paths[name] = &invoke.Path{
			View: registry.NewView(r, b, func(*registry.Entry) bool { return true }), Generation: c.id, Log: log,
			Decide: func(_ context.Context, in decision.CallInput) decision.Decision {
				if in.Tool.Name == c.deny {
					return decision.Decision{Point: decision.Call, Code: "denied", Reasons: []string{"not on Sundays"}}
				}
				return decision.Decision{Point: decision.Call, Allow: true, Code: "allowed", Relay: c.relay, Hosts: c.hosts}
			},
			Release: func(context.Context, decision.ResultInput, func() decision.ToolResult) decision.Decision {
				return decision.Decision{Point: decision.Result, Allow: true, Code: "allowed"}
			},
		}
	}
	return serve.NewTestGeneration(c.id, paths)
}

// daemon is a front on a listening socket, over generations that a test swaps.
type daemon struct {
	*serve.Front
	url    string
	log    *syncBuffer
	logger *slog.Logger
	served atomic.Pointer[serve.Generation]
	pins   atomic.Int64
	status atomic.Pointer[serve.Status]
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// open makes a front that doesn't listen.
func open(t testing.TB, c catalog, change ...func(*serve.Backend)) *daemon {
	t.Helper()
	d := &daemon{log: &syncBuffer{}}
	d.logger = slog.New(slog.NewTextHandler(d.log, nil))
	d.served.Store(c.generation(t, d.logger))
	d.status.Store(&serve.Status{Version: "test", Healthy: true, Generation: serve.GenerationStatus{ID: c.id}})
	backend := serve.Backend{
		Version: "test",
		Pin: func() (*serve.Generation, func()) {
			d.pins.Add(1)
			return d.served.Load(), func() { d.pins.Add(-1) }
		},
		Status: func() serve.Status { return *d.status.Load() },
		Reload: func(context.Context) serve.Outcome { return serve.Outcome{Result: "unchanged", Generation: c.id} },
		Log:    d.logger,
	}
	for _, f := range change {
		f(&backend)
	}
	d.Front = serve.NewFront(backend)
	t.Cleanup(d.Close)
	return d
}

// start serves a catalog on a loopback port.
func start(t testing.TB, c catalog, change ...func(*serve.Backend)) *daemon {
	t.Helper()
	d, end := startEnded(t, c, change...)
	t.Cleanup(func() {
		if err := <-end(); err != nil {
			t.Errorf("serve: %v", err)
		}
		if n := d.pins.Load(); n != 0 {
			t.Errorf("%d generations are still pinned", n)
		}
	})
	return d
}

// startEnded is start for a test that ends the daemon itself, and may look at how it ends.
func startEnded(t testing.TB, c catalog, change ...func(*serve.Backend)) (d *daemon, end func() <-chan error) {
	t.Helper()
	d = open(t, c, change...)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.url = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- serve.Serve(ctx, ln, d.Front) }()
	return d, func() <-chan error {
		cancel()
		return ended
	}
}

// swap serves another generation and tells the branches.
func (d *daemon) swap(t testing.TB, c catalog, changed ...string) {
	t.Helper()
	d.served.Store(c.generation(t, d.logger))
	d.Changed(changed)
}

// response is an HTTP answer, read.
type response struct {
	status int
	header http.Header
	body   string
}

// result decodes a JSON-RPC answer.
func (r response) result(t testing.TB) (result map[string]any, failure map[string]any) {
	t.Helper()
	var m struct {
		Result, Error map[string]any
	}
	if err := json.Unmarshal([]byte(r.body), &m); err != nil {
		t.Fatalf("%v in %q", err, r.body)
	}
	return m.Result, m.Error
}

const (
	modernVersion = "2026-07-28"
	legacyVersion = "2025-11-25"
)

// do sends one request; header is pairs of names and values.
func (d *daemon) do(t testing.TB, method, path, body string, header ...string) response {
	t.Helper()
	r, err := http.NewRequest(method, d.url+path, strings.NewReader(body))
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
	return response{got.StatusCode, got.Header, string(b)}
}

// modern sends a request of 2026-07-28; params is the inside of an object.
func (d *daemon) modern(t testing.TB, path, method, params string, header ...string) response {
	t.Helper()
	return d.do(t, http.MethodPost, path, modernBody(method, params), append(modernHeader(method, params), header...)...)
}

func modernBody(method, params string) string {
	if params != "" {
		params += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		method, params, modernVersion)
}

func modernHeader(method, params string) []string {
	header := []string{"Mcp-Protocol-Version", modernVersion, "Mcp-Method", method}
	var p struct{ Name string }
	if json.Unmarshal([]byte("{"+params+"}"), &p) == nil && p.Name != "" {
		header = append(header, "Mcp-Name", p.Name)
	}
	return header
}

// session initializes a session of an older era and returns its header.
func (d *daemon) session(t testing.TB, path string) []string {
	t.Helper()
	r := d.do(t, http.MethodPost, path, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+legacyVersion+`","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	id := r.header.Get("Mcp-Session-Id")
	if r.status != 200 || id == "" {
		t.Fatalf("initialize: %+v", r)
	}
	header := []string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", legacyVersion}
	if r := d.do(t, http.MethodPost, path, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, header...); r.status != 202 {
		t.Fatalf("initialized: %+v", r)
	}
	return header
}

func legacyBody(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, params)
}

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("did not happen: %s", what)
}

const citySchema = `{"type":"object","properties":{"city":{"type":"string","minLength":1},"units":{"enum":["celsius","fahrenheit"],"default":"celsius"}},"required":["city"],"additionalProperties":false}`

func cityFields() []contract.Field {
	return []contract.Field{
		{Name: "city", Types: []string{"string"}, Required: true},
		{Name: "units", Types: []string{"string"}, Default: json.RawMessage(`"celsius"`)},
	}
}

// weather is a catalog with one tool of each kind of outcome, and branches that see different ones.
func weather() catalog {
	return catalog{
		id: "g1",
		tools: []fixture{
			tool("weather", citySchema, invoker(func(_ context.Context, args contract.Args) (*registry.Result, error) {
				return &registry.Result{
					Content:    []json.RawMessage{json.RawMessage(`{"type":"text","text":"sunny","x-kept":9007199254740993}`)},
					Structured: args.JSON(), Meta: json.RawMessage(`{"example.com/a":1,"catalogd/call":"forged"}`),
				}, nil
			}), func(t *registry.Tool) {
				t.Title = "Weather"
				t.Args.Fields = cityFields()
				t.Result = &contract.Spec{Schema: json.RawMessage(`{"type":"object"}`), Strictness: contract.Open}
			}),
			tool("broken", "", invoker(func(context.Context, contract.Args) (*registry.Result, error) {
				return nil, fmt.Errorf("no such file /home/secret")
			})),
			tool("complains", "", invoker(func(context.Context, contract.Args) (*registry.Result, error) {
				return &registry.Result{Content: []json.RawMessage{registry.Text("exit status 3")}, IsError: true}, nil
			})),
			tool("denied", "", text("never")),
			tool("writes", "", text("never"), func(t *registry.Tool) { t.Effect = registry.Write }),
			tool("panics", "", invoker(func(context.Context, contract.Args) (*registry.Result, error) { panic("secret in a panic") })),
			tool("old", "", text("old"), func(t *registry.Tool) { t.Deprecated = "use weather" }),
			tool("private", "", text("for research only")),
		},
		branches: map[string][]string{
			"default":  {"weather", "broken", "complains", "denied", "writes", "panics", "old"},
			"research": {"private", "weather"},
		},
		deny: "denied",
	}
}
