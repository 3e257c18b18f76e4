// Package servetest is what the tests of generation, daemon, mcpserver and httpapi share: a House is a catalog and
// policy in memory with a daemon over it, a Server serves given tools without a policy. Only tests import it.
package servetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/httpapi"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Holders are the bearers of tokens of a test, by name.
type Holders struct {
	Path  string
	Store *token.Store
	// Header is what each sends.
	Header map[string][]string
	Secret map[string]string
}

// Issue makes a file of tokens.
func Issue(t testing.TB, log *slog.Logger, tokens ...token.Token) *Holders {
	t.Helper()
	h := &Holders{Path: filepath.Join(t.TempDir(), "tokens"), Header: map[string][]string{"nobody": nil}, Secret: map[string]string{}}
	for _, one := range tokens {
		h.add(t, one)
	}
	var err error
	if h.Store, err = token.Open(h.Path, log); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *Holders) add(t testing.TB, one token.Token) {
	t.Helper()
	secret, hash := token.New()
	one.Hash = hash
	if err := token.Add(h.Path, one); err != nil {
		t.Fatal(err)
	}
	h.Secret[one.Name], h.Header[one.Name] = secret, []string{"Authorization", "Bearer " + secret}
}

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

// Listen opens a subscription of 2026-07-28.
func (d *Server) Listen(t testing.TB, path string, header []string) *stream {
	t.Helper()
	const params = `"notifications":{"toolsListChanged":true}`
	r, err := http.NewRequest(http.MethodPost, d.URL+path, strings.NewReader(ModernBody("subscriptions/listen", params)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	header = append(ModernHeader("subscriptions/listen", params), header...)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if got.StatusCode != 200 {
		t.Fatalf("subscriptions/listen: %d", got.StatusCode)
	}
	t.Cleanup(func() { got.Body.Close() })
	return &stream{got.Body, bufio.NewReader(got.Body)}
}

// Listening serves a front on a loopback port, and returns its daemon for requests.
func Listening(t testing.TB, b Backend) *Server {
	t.Helper()
	d := b.Daemon()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.URL = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return d
}

// Events collects what a stream says, until it ends.
func (s *stream) Events() <-chan string {
	heard := make(chan string, 100)
	go func() {
		defer close(heard)
		for {
			line, err := s.reader.ReadString('\n')
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				heard <- strings.TrimSpace(data)
			}
			if err != nil {
				return
			}
		}
	}()
	return heard
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

// Invoker is a tool in Go.
type Invoker func(context.Context, contract.Args) (*registry.Result, error)

func (f Invoker) Invoke(ctx context.Context, in registry.Invocation) (*registry.Result, error) {
	return f(ctx, in.Args)
}

func (f Invoker) Plan(contract.Args) (registry.Plan, error) { return registry.Plan{Kind: "jq"}, nil }

// Text is a tool that answers text.
func Text(s string) Invoker {
	return func(context.Context, contract.Args) (*registry.Result, error) {
		return &registry.Result{Content: []json.RawMessage{registry.Text(s)}}, nil
	}
}

// Fixture is a tool of a test catalog.
type Fixture struct {
	Tool registry.Tool
	Run  registry.Invoker
}

func Tool(name, schema string, run registry.Invoker, change ...func(*registry.Tool)) Fixture {
	if schema == "" {
		schema = `{"type":"object","properties":{},"additionalProperties":false}`
	}
	t := registry.Tool{
		Name: name, Description: "The tool " + name + ".", Effect: registry.Read, Timeout: 2 * time.Minute,
		Args:    contract.Spec{Schema: json.RawMessage(schema), Strictness: contract.Closed},
		Binding: registry.Binding{JQ: &registry.JQ{Program: "."}},
	}
	for _, c := range change {
		c(&t)
	}
	return Fixture{t, run}
}

// Catalog is a generation under construction: tools, and the branches with the names that each sees.
type Catalog struct {
	ID       string
	Tools    []Fixture
	Branches map[string][]string // nil: every tool
	Relay    []string            // what the call decision lets through
	Hosts    []string            // and the hosts of pages
	Deny     string              // the call decision denies this tool
	Withhold string              // why the result decision lets no result out; empty: it does
}

func (c Catalog) Generation(t testing.TB, log *slog.Logger) *generation.Generation {
	t.Helper()
	build := &registry.Build{Digest: c.ID}
	runs := map[string]registry.Invoker{}
	for _, f := range c.Tools {
		build.Tools = append(build.Tools, f.Tool)
		runs[f.Tool.Name] = f.Run
	}
	r, problems := registry.New(build, func(t registry.Tool) (registry.Bound, problem.List) {
		return registry.Bound{Invoker: runs[t.Name]}, nil
	}, nil, nil)
	if r == nil {
		t.Fatal(problems.Err())
	}
	paths := map[string]*invoke.Path{}
	for name, sees := range c.Branches {
		b := registry.Branch{Name: name, Description: "Branch " + name + ".", Labels: map[string]string{"team": name}}
		if sees != nil {
			b.Select = &registry.Selector{Names: sees}
		}
		paths[name] = &invoke.Path{
			View: registry.NewView(r, b, func(*registry.Entry) bool { return true }), Generation: c.ID, Log: log,
			Decide: func(_ context.Context, in decision.CallInput) decision.Decision {
				if in.Tool.Name == c.Deny {
					return decision.Decision{Point: decision.Call, Code: "denied", Reasons: []string{"not on Sundays"}}
				}
				return decision.Decision{Point: decision.Call, Allow: true, Code: "allowed", Relay: c.Relay, Hosts: c.Hosts}
			},
			Judge: func(context.Context, decision.ResultInput, func() decision.ToolResult) decision.Decision {
				if c.Withhold != "" {
					return decision.Decision{Point: decision.Result, Code: decision.Denied, Reasons: []string{c.Withhold}}
				}
				return decision.Decision{Point: decision.Result, Allow: true, Code: "allowed"}
			},
		}
	}
	return generation.Fixed(c.ID, paths)
}

// Server is a front on a listening socket, over generations that a test swaps.
type Server struct {
	*mcpserver.Server
	*httpapi.API
	URL    string
	Log    *SyncBuffer
	Logger *slog.Logger
	Served atomic.Pointer[generation.Generation]
	pins   atomic.Int64
	Status atomic.Pointer[daemon.Status]
}

// Backend is what a test serves over MCP and HTTP.
type Backend struct {
	Version string
	Pin     func() (*generation.Generation, func())
	Status  func() daemon.Status
	Reload  func(context.Context) daemon.Outcome
	Log     *slog.Logger
	Limits  mcpserver.Limits
	Tokens  *token.Store
	Effects *daemon.Effects
	Hosts   []string
}

// Daemon serves it, not listening yet.
func (b Backend) Daemon() *Server {
	metrics := httpapi.NewMetrics()
	front := mcpserver.New(mcpserver.Config{
		Version: b.Version, Pin: b.Pin, Called: metrics.Called, Refused: metrics.Refused, Log: b.Log, Limits: b.Limits, Tokens: b.Tokens,
	})
	return &Server{Server: front, API: httpapi.New(httpapi.Config{
		MCP: front, Metrics: metrics, Status: b.Status, Reload: b.Reload, Effects: b.Effects, Hosts: b.Hosts,
	})}
}

type SyncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *SyncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *SyncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Open makes a front that doesn't listen.
func Open(t testing.TB, c Catalog, change ...func(*Backend)) *Server {
	t.Helper()
	d := &Server{Log: &SyncBuffer{}}
	d.Logger = slog.New(slog.NewTextHandler(d.Log, nil))
	d.Served.Store(c.Generation(t, d.Logger))
	d.Status.Store(&daemon.Status{Version: "test", Healthy: true, Generation: daemon.GenerationStatus{ID: c.ID}})
	b := Backend{
		Version: "test",
		Pin: func() (*generation.Generation, func()) {
			d.pins.Add(1)
			return d.Served.Load(), func() { d.pins.Add(-1) }
		},
		Status: func() daemon.Status { return *d.Status.Load() },
		Reload: func(context.Context) daemon.Outcome { return daemon.Outcome{Result: "unchanged", Generation: c.ID} },
		Log:    d.Logger,
	}
	for _, f := range change {
		f(&b)
	}
	made := b.Daemon()
	d.Server, d.API = made.Server, made.API
	t.Cleanup(d.Close)
	return d
}

// Start serves a catalog on a loopback port.
func Start(t testing.TB, c Catalog, change ...func(*Backend)) *Server {
	t.Helper()
	d, end := StartEnded(t, c, change...)
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

// StartEnded is start for a test that ends the daemon itself, and may look at how it ends.
func StartEnded(t testing.TB, c Catalog, change ...func(*Backend)) (d *Server, end func() <-chan error) {
	t.Helper()
	d = Open(t, c, change...)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.URL = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx, ln) }()
	return d, func() <-chan error {
		cancel()
		return ended
	}
}

// Swap serves another generation and tells the branches.
func (d *Server) Swap(t testing.TB, c Catalog, changed ...string) {
	t.Helper()
	d.Served.Store(c.Generation(t, d.Logger))
	d.Changed(changed)
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

// Until waits for a condition.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("did not happen: %s", what)
}

const CitySchema = `{"type":"object","properties":{"city":{"type":"string","minLength":1},"units":{"enum":["celsius","fahrenheit"],"default":"celsius"}},"required":["city"],"additionalProperties":false}`

func CityFields() []contract.Field {
	return []contract.Field{
		{Name: "city", Types: []string{"string"}, Required: true},
		{Name: "units", Types: []string{"string"}, Default: json.RawMessage(`"celsius"`)},
	}
}

// Weather is a catalog with one tool of each kind of outcome, and branches that see different ones.
func Weather() Catalog {
	return Catalog{
		ID: "g1",
		Tools: []Fixture{
			Tool("weather", CitySchema, Invoker(func(_ context.Context, args contract.Args) (*registry.Result, error) {
				return &registry.Result{
					Content:    []json.RawMessage{json.RawMessage(`{"type":"text","text":"sunny","x-kept":9007199254740993}`)},
					Structured: args.JSON(), Meta: json.RawMessage(`{"example.com/a":1,"catalogd/call":"forged"}`),
				}, nil
			}), func(t *registry.Tool) {
				t.Title = "Weather"
				t.Args.Fields = CityFields()
				t.Result = &contract.Spec{Schema: json.RawMessage(`{"type":"object"}`), Strictness: contract.Open}
			}),
			Tool("broken", "", Invoker(func(context.Context, contract.Args) (*registry.Result, error) {
				return nil, fmt.Errorf("no such file /home/secret")
			})),
			Tool("complains", "", Invoker(func(context.Context, contract.Args) (*registry.Result, error) {
				return &registry.Result{Content: []json.RawMessage{registry.Text("exit status 3")}, IsError: true}, nil
			})),
			Tool("denied", "", Text("never")),
			Tool("writes", "", Text("never"), func(t *registry.Tool) { t.Effect = registry.Write }),
			Tool("panics", "", Invoker(func(context.Context, contract.Args) (*registry.Result, error) { panic("secret in a panic") })),
			Tool("old", "", Text("old"), func(t *registry.Tool) { t.Deprecated = "use weather" }),
			Tool("private", "", Text("for research only")),
		},
		Branches: map[string][]string{
			"default":  {"weather", "broken", "complains", "denied", "writes", "panics", "old"},
			"research": {"private", "weather"},
		},
		Deny: "denied",
	}
}

// Request is a request as it comes in on 127.0.0.1:8420.
func Request(method, path, body, host string) *http.Request {
	r := httptest.NewRequest(method, "http://localhost:8420"+path, strings.NewReader(body))
	r.Host = host
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8420}
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local)))
}

// Party is what the interleavings test knows of one branch.
type Party struct {
	Path, Own, Other string // own and other are the words of the tools
	mu               sync.Mutex
	Sessions         [][]string
}

func (c *Party) session(rng *rand.Rand) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.Sessions) == 0 {
		return []string{"Mcp-Session-ID", "none"}
	}
	return c.Sessions[rng.IntN(len(c.Sessions))]
}

// Step sends one request to c's branch, and looks for what it must not be told.
func (d *Server) Step(t *testing.T, rng *rand.Rand, c, foreign *Party) {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	session := c.session(rng)
	stranger := rng.IntN(3) == 0
	if stranger {
		session = foreign.session(rng)
	}
	named := fmt.Sprintf("%s_%d", pick(c.Own, foreign.Own), rng.IntN(5))
	var r Response
	withSession := true
	switch rng.IntN(10) {
	case 0, 1:
		withSession = false
		r = d.Modern(t, c.Path, "tools/call", fmt.Sprintf(`"name":%q`, named))
		if strings.HasPrefix(named, c.Other) && !strings.Contains(r.Body, "unknown tool") {
			t.Errorf("%s could call %s: %s", c.Path, named, r.Body)
		}
	case 2:
		r = d.Do(t, "POST", c.Path, LegacyBody("tools/call", fmt.Sprintf(`"name":%q`, named)), session...)
	case 3:
		named, withSession = "", false
		r = d.Modern(t, c.Path, "tools/list", pick("", `"cursor":"1"`, `"cursor":"YQ=="`))
	case 4:
		named = ""
		r = d.Do(t, "POST", c.Path, LegacyBody("tools/list", pick("", `"cursor":"YQ=="`)), session...)
	case 5:
		named = ""
		r = d.Do(t, "POST", c.Path, LegacyBody(pick("ping", "logging/setLevel", "resources/list", "prompts/list", "completion/complete", "nothing"), `"level":"debug"`), session...)
	case 6:
		r = d.Do(t, "POST", c.Path, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, session...)
	case 7:
		if stranger { // one that it may end would end the others' work
			r = d.Do(t, "DELETE", c.Path, "", session...)
		}
	case 8:
		if stranger {
			r = d.Do(t, "GET", c.Path, "", append([]string{"Accept", "text/event-stream"}, session...)...)
		}
	case 9:
		fresh := d.Session(t, c.Path)
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.Sessions) < 5 {
			c.Sessions = append(c.Sessions, fresh)
		}
	}
	if stranger && withSession && r.Status != 0 && r.Status != http.StatusNotFound {
		t.Errorf("%s took a session of the other branch: %+v", c.Path, r)
	}
	body := r.Body
	if named != "" {
		body = strings.ReplaceAll(body, named, "")
	}
	if strings.Contains(body, c.Other) {
		t.Errorf("%s, asked for %s, is told of the other branch: %s", c.Path, named, r.Body)
	}
}

// Dial is a bare connection to the daemon that has said something.
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

// Works fails the test unless a good client is served.
func (d *Server) Works(t testing.TB, path string) {
	t.Helper()
	if r := d.Modern(t, path, "tools/list", ""); r.Status != 200 {
		t.Errorf("a good client: %+v", r)
	}
}

// Post sends a request that may be broken off.
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

// Stubborn compiles as it should but for files that say "hang": with those it does not end before it is let
// go, or where it obeys, before its context ends.
type Stubborn struct {
	generation.Compiler
	Obeys bool
	Let   chan struct{}
	LetGo func() // closes let
	Begun chan struct{}
}

func (c *Stubborn) Compile(ctx context.Context, s *loader.Snapshot) (*registry.Build, problem.List) {
	data, err := fs.ReadFile(s.FS(), "catalog/home.cue")
	if err != nil || !strings.Contains(string(data), "hang") {
		return c.Compiler.Compile(ctx, s)
	}
	c.Begun <- struct{}{}
	done := ctx.Done()
	if !c.Obeys {
		done = nil
	}
	select {
	case <-done:
	case <-c.Let:
	}
	return c.Compiler.Compile(ctx, s)
}

// stream is an open GET or listen stream.
type stream struct {
	Body   io.ReadCloser
	reader *bufio.Reader
}

// Stream opens the stream of notifications of a session.
func (d *Server) Stream(t testing.TB, path string, header []string) *stream {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, d.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if got.StatusCode != 200 {
		t.Fatalf("GET %s: %d", path, got.StatusCode)
	}
	t.Cleanup(func() { got.Body.Close() })
	return &stream{got.Body, bufio.NewReader(got.Body)}
}

// Event reads the data of the next event.
func (s *stream) Event(t testing.TB) string {
	t.Helper()
	for {
		line, err := s.reader.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended: %v", err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimSpace(data)
		}
	}
}

// Rest reads to the stream's end.
func (s *stream) Rest(t testing.TB) string {
	t.Helper()
	done := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(s.reader)
		done <- string(b)
	}()
	select {
	case rest := <-done:
		return rest
	case <-time.After(2 * time.Minute):
		t.Fatal("the stream does not end")
		return ""
	}
}

const Never = "count([1 | some i in numbers.range(1, 1000000); some j in numbers.range(1, 1000000); i * j == 7]) > 0"
