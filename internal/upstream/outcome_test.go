package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/internal/intent/attempttest"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

// execute calls a tool with a side effect, and says what is known of it.
func execute(ctx context.Context, set *upstream.Set, tool, args string, to registry.Listener) (registry.Outcome, *registry.Result, error) {
	r, err := set.Execute(ctx, "fake", tool, json.RawMessage(args), attempttest.New("key-1"), to)
	return registry.OutcomeOf(r, err), r, err
}

// late is a context whose time is up when ok is true.
func late(t *testing.T, ok func() bool) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		for ctx.Err() == nil && !ok() {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	return ctx
}

// overdue is a context whose deadline passes when ok is true: a time-out that comes at a known moment.
func overdue(t *testing.T, ok func() bool) context.Context {
	t.Helper()
	c := overdueContext{late(t, ok), make(chan struct{})}
	go func() {
		<-c.Context.Done()
		close(c.done)
	}()
	return c
}

type overdueContext struct {
	context.Context
	done chan struct{}
}

func (c overdueContext) Done() <-chan struct{} { return c.done }

func (c overdueContext) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestOutcomesOverHTTP(t *testing.T) {
	t.Parallel()
	says := func(status int, body string) func(http.ResponseWriter, *http.Request, string) {
		return func(w http.ResponseWriter, _ *http.Request, id string) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			io.WriteString(w, strings.ReplaceAll(body, "ID", id))
		}
	}
	refuses := func(status, code int) func(http.ResponseWriter, *http.Request, string) {
		return says(status, fmt.Sprintf(`{"jsonrpc":"2.0","id":ID,"error":{"code":%d,"message":"no"}}`, code))
	}
	result := func(result string) func(http.ResponseWriter, *http.Request, string) {
		return says(200, `{"jsonrpc":"2.0","id":ID,"result":`+result+`}`)
	}
	blocks := `{"content":[` + strings.Repeat(`{"type":"text","text":""},`, 50_000) + `{"type":"text","text":""}]`
	const succeeded, failed, unclear, unsent = registry.OutcomeSucceeded, registry.OutcomeFailed, registry.OutcomeUnclear, registry.OutcomeUnsent
	for name, tt := range map[string]struct {
		call func(w http.ResponseWriter, r *http.Request, id string)
		want registry.Outcome
	}{
		"a result":                         {result(`{"content":[]}`), succeeded},
		"an error as a result":             {result(`{"content":[],"isError":true}`), failed},
		"too many blocks":                  {result(blocks + `}`), succeeded},
		"too many blocks of an error":      {result(blocks + `,"isError":true}`), failed},
		"a result that can't be read":      {result(`{"content":{}}`), unclear},
		"a task":                           {result(`{"task":{"taskId":"1"}}`), unclear},
		"a question that can't be asked":   {result(`{"resultType":"input_required","requestState":"s"}`), unclear},
		"wrong arguments":                  {refuses(200, -32602), failed},
		"an unknown method":                {refuses(200, -32601), failed},
		"an internal error":                {refuses(200, -32603), failed},
		"an error of its own":              {refuses(200, 42), failed},
		"a time-out":                       {refuses(200, -32001), unclear},
		"a lost connection behind it":      {refuses(200, -32000), unclear},
		"an error about no request":        {says(200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no"}}`), unclear},
		"a message that it could not read": {says(200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`), failed},
		"400":                              {says(400, "no"), failed},
		"400 with an error of the SDK":     {refuses(400, -32000), failed},
		"a session that it has forgotten":  {says(404, ""), unsent},
		"a session that it doesn't know":   {refuses(404, -32001), unsent},
		"401":                              {says(401, ""), failed},
		"403":                              {says(403, ""), failed},
		"405":                              {says(405, ""), failed},
		"408":                              {says(408, ""), unclear},
		"408 with an error":                {refuses(408, -32602), unclear},
		"429":                              {says(429, ""), failed},
		"500":                              {says(500, ""), unclear},
		"500 with an error":                {refuses(500, -32602), unclear},
		"501":                              {says(501, ""), failed},
		"502":                              {says(502, "<html>"), unclear},
		"503":                              {says(503, ""), unclear},
		"504":                              {says(504, ""), unclear},
		"a redirect to another address": {func(w http.ResponseWriter, r *http.Request, _ string) {
			http.Redirect(w, r, "/mcp", http.StatusPermanentRedirect)
		}, failed},
		"a redirect to where the answer is": {func(w http.ResponseWriter, r *http.Request, _ string) {
			http.Redirect(w, r, "/mcp", http.StatusSeeOther)
		}, unclear},
		"202 without a message":                {says(202, ""), unclear},
		"a page":                               {says(200, "<html>"), unclear},
		"an answer to another request":         {says(200, `{"jsonrpc":"2.0","id":77,"result":{"content":[]}}`), unclear},
		"neither result nor error":             {says(200, `{"jsonrpc":"2.0","id":ID}`), unclear},
		"too large an answer":                  {func(w http.ResponseWriter, _ *http.Request, _ string) { io.WriteString(w, strings.Repeat("x", 17<<20)) }, unclear},
		"a stream that ends before its answer": {says(200, ""), unclear},
		"half a stream": {func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, ": hello\n\ndata: {\"jsonrpc\":\"2.0\"")
		}, unclear},
		"half a body": {func(w http.ResponseWriter, _ *http.Request, id string) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "500")
			io.WriteString(w, `{"jsonrpc":"2.0","id":`+id)
		}, unclear},
		"it hangs up": {func(http.ResponseWriter, *http.Request, string) { panic(http.ErrAbortHandler) }, unclear},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{call: tt.call}
			_, set := open(t, serve(t, s), loopback)
			outcome, r, err := execute(t.Context(), set, "effect", "{}", registry.Listener{})
			if outcome != tt.want || s.calls.Load() != 1 {
				t.Errorf("got %s, want %s: %+v, %v; sent %d times", outcome, tt.want, r, err, s.calls.Load())
			}
			if err != nil && outcome == unclear && strings.Contains(err.Error(), "nothing was") {
				t.Errorf("the words say more than is known: %v", err)
			}
			if err != nil && outcome == succeeded && strings.Contains(err.Error(), "ask for less") {
				t.Errorf("it is told to call again: %v", err)
			}
		})
	}
}

// A stream that is gone on with from its last event is no second request, and what is not answered in time is unclear.
func TestOutcomesOfStreams(t *testing.T) {
	t.Parallel()
	var id atomic.Value
	s := &script{call: func(w http.ResponseWriter, r *http.Request, request string) {
		id.Store(request)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "id: 7\nretry: 10\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n")
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"hang"`) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") == "7" {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", id.Load())
			return
		}
		s.ServeHTTP(w, r)
	})
	_, set := open(t, serve(t, handler), loopback)
	if outcome, r, err := execute(t.Context(), set, "effect", "{}", registry.Listener{}); outcome != registry.OutcomeSucceeded || s.calls.Load() != 1 {
		t.Errorf("resumed: %s, %+v, %v; sent %d times", outcome, r, err, s.calls.Load())
	}
	ctx := late(t, func() bool { return s.calls.Load() == 2 })
	if outcome, r, err := execute(ctx, set, "hang", "{}", registry.Listener{}); outcome != registry.OutcomeUnclear || s.calls.Load() != 2 {
		t.Errorf("given up: %s, %+v, %v; sent %d times", outcome, r, err, s.calls.Load())
	}
}

// Where the server says that it ran nothing, a call is sent again, and one with a side effect is not; the next one is.
func TestRefusedUnread(t *testing.T) {
	t.Parallel()
	t.Run("a forgotten session", func(t *testing.T) {
		t.Parallel()
		for write, sent := range map[bool]int32{false: 2, true: 1} {
			s := &script{}
			s.call = func(w http.ResponseWriter, r *http.Request, id string) {
				if r.Header.Get("Mcp-Session-Id") == "session-1" {
					w.WriteHeader(http.StatusNotFound)
					return
				}
				ok(w, id)
			}
			_, set := open(t, serve(t, s), loopback)
			if !write {
				if _, err := call(t, set, "effect", "{}"); err != nil || s.calls.Load() != sent {
					t.Errorf("%v; sent %d times", err, s.calls.Load())
				}
				continue
			}
			if outcome, r, err := execute(t.Context(), set, "effect", "{}", registry.Listener{}); outcome != registry.OutcomeUnsent || s.calls.Load() != sent {
				t.Errorf("%s, %+v, %v; sent %d times", outcome, r, err, s.calls.Load())
			}
			if outcome, _, err := execute(t.Context(), set, "effect", "{}", registry.Listener{}); outcome != registry.OutcomeSucceeded {
				t.Errorf("the next call: %s, %v", outcome, err)
			}
		}
	})
	t.Run("headers that differ", func(t *testing.T) {
		t.Parallel()
		for write, sent := range map[bool]int32{false: 2, true: 1} {
			var lists, calls atomic.Int32
			s := modern(t, func(method string, _ json.RawMessage) string {
				if method == "tools/list" {
					header := ""
					if lists.Add(1) > 1 {
						header = `,"x-mcp-header":"Region"`
					}
					return `"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"effect","inputSchema":{"type":"object","properties":{"region":{"type":"string"` + header + `}}}}]}`
				}
				if calls.Add(1) == 1 {
					return `"error":{"code":-32020,"message":"header mismatch"}`
				}
				return `"result":{"resultType":"complete","content":[]}`
			})
			_, set := open(t, s, loopback)
			const args = `{"region":"eu"}`
			if !write {
				if _, err := call(t, set, "effect", args); err != nil || calls.Load() != sent {
					t.Errorf("%v; sent %d times", err, calls.Load())
				}
				continue
			}
			if outcome, r, err := execute(t.Context(), set, "effect", args, registry.Listener{}); outcome != registry.OutcomeUnsent || calls.Load() != sent {
				t.Errorf("%s, %+v, %v; sent %d times", outcome, r, err, calls.Load())
			}
			if outcome, _, err := execute(t.Context(), set, "effect", args, registry.Listener{}); outcome != registry.OutcomeSucceeded {
				t.Errorf("the next call: %s, %v", outcome, err)
			}
		}
	})
}

// A call of several rounds: each goes out once, because the server asked for it, and what was sent before is not unsent.
func TestOutcomesOfRounds(t *testing.T) {
	t.Parallel()
	const asks = `"result":{"resultType":"input_required","requestState":"s","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"sure?"}}}}`
	able := func(ask func(context.Context, registry.Question) registry.Reply) registry.Listener {
		return registry.Listener{Able: registry.Abilities{"elicitation": json.RawMessage("{}")}, Relay: []string{"elicitation"}, Ask: ask}
	}
	agrees := able(func(context.Context, registry.Question) registry.Reply {
		return registry.Reply{Result: json.RawMessage(`{"action":"accept"}`)}
	})
	declines := able(func(context.Context, registry.Question) registry.Reply {
		return registry.Reply{Error: json.RawMessage(`{"code":-1,"message":"no"}`)}
	})
	waits := agrees
	waits.Ask, waits.Rounds = nil, true
	for name, tt := range map[string]struct {
		to            registry.Listener
		first, second string
		sent          int32
		want          registry.Outcome
	}{
		"answered":                            {agrees, asks, `"result":{"resultType":"complete","content":[]}`, 2, registry.OutcomeSucceeded},
		"refused by the tool":                 {agrees, asks, `"error":{"code":-32602,"message":"no"}`, 2, registry.OutcomeFailed},
		"the second round is refused unread":  {agrees, asks, `"error":{"code":-32022,"message":"no"}`, 2, registry.OutcomeUnclear},
		"the caller gives no answer":          {declines, asks, "", 1, registry.OutcomeUnclear},
		"the caller can't be asked":           {registry.Listener{}, asks, "", 1, registry.OutcomeUnclear},
		"the caller is to call again":         {waits, asks, "", 1, registry.OutcomeUnclear},
		"the first round is refused unread":   {agrees, `"error":{"code":-32022,"message":"no"}`, "", 1, registry.OutcomeUnsent},
		"a capability is missing":             {agrees, `"error":{"code":-32021,"message":"no","data":{"requiredCapabilities":{"sampling":{}}}}`, "", 1, registry.OutcomeFailed},
		"a refusal of the arguments":          {agrees, `"error":{"code":-32602,"message":"no"}`, "", 1, registry.OutcomeFailed},
		"a code that means something in 2025": {agrees, `"error":{"code":-32004,"message":"no"}`, "", 1, registry.OutcomeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			s := modern(t, func(method string, raw json.RawMessage) string {
				if method == "tools/list" {
					return `"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}`
				}
				if !strings.Contains(string(raw), `"catalogd/idempotencyKey":"key-1"`) {
					t.Errorf("%s came without the key: %s", method, raw)
				}
				if calls.Add(1) == 1 {
					return tt.first
				}
				return tt.second
			})
			_, set := open(t, s, loopback)
			outcome, r, err := execute(t.Context(), set, "effect", "{}", tt.to)
			if outcome != tt.want || calls.Load() != tt.sent {
				t.Errorf("got %s, want %s: %+v, %v; sent %d times", outcome, tt.want, r, err, calls.Load())
			}
		})
	}
}

// A call without a side effect has no key.
func TestReadHasNoKey(t *testing.T) {
	t.Parallel()
	s := modern(t, func(_ string, raw json.RawMessage) string {
		if strings.Contains(string(raw), "idempotencyKey") {
			t.Errorf("the key of a read call: %s", raw)
		}
		return `"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[],"content":[]}`
	})
	_, set := open(t, s, loopback)
	if _, err := call(t, set, "reads", "{}"); err != nil {
		t.Fatal(err)
	}
}

func TestOutcomesOfChildren(t *testing.T) {
	t.Parallel()
	line := func(rest string) string {
		return `{"line":` + fmt.Sprintf("%q", `{"jsonrpc":"2.0","id":ID,`+rest+`}`) + `}`
	}
	for name, tt := range map[string]struct {
		tool, args string
		want       registry.Outcome
	}{
		"a result":                     {"echo", `{}`, registry.OutcomeSucceeded},
		"an error as a result":         {"result", `{"content":[],"isError":true}`, registry.OutcomeFailed},
		"a refusal":                    {"refuse", `{}`, registry.OutcomeFailed},
		"a time-out":                   {"line", line(`"error":{"code":-32001,"message":"no"}`), registry.OutcomeUnclear},
		"a result that is no UTF-8":    {"latin1", `{}`, registry.OutcomeUnclear},
		"it ends":                      {"crash", `{}`, registry.OutcomeUnclear},
		"it ends behind its answer":    {"crash-after", `{}`, registry.OutcomeSucceeded},
		"too long a line":              {"flood", `{}`, registry.OutcomeUnclear},
		"it is killed":                 {"hang", `{"file":"FILE"}`, registry.OutcomeUnclear},
		"it does not answer in time":   {"hang", `{"file":"FILE"}`, registry.OutcomeUnclear},
		"the connections are closed":   {"hang", `{"file":"FILE"}`, registry.OutcomeUnclear},
		"it answers to something else": {"line", `{"line":"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"x\"}}\nID: no message"}`, registry.OutcomeUnclear},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			notes, file := filepath.Join(dir, "notes"), filepath.Join(dir, "file")
			s := stdioServer(t, "good")
			s.Stdio.Args = append(s.Stdio.Args, notes)
			pool, set := open(t, s, trust.Terms{})
			pid := pidOf(t, set, "pid")
			running := func() bool { _, err := os.Stat(file); return err == nil }
			ctx := t.Context()
			switch name {
			case "it is killed":
				go func() {
					for !running() {
						time.Sleep(time.Millisecond)
					}
					syscall.Kill(pid, syscall.SIGKILL)
				}()
			case "the connections are closed":
				go func() {
					for !running() {
						time.Sleep(time.Millisecond)
					}
					pool.Close()
				}()
			case "it does not answer in time":
				ctx = late(t, running)
			case "it answers to something else":
				ctx = late(t, func() bool { return pool.Status()[0].Tally().Ignored == 2 })
			}
			outcome, r, err := execute(ctx, set, tt.tool, strings.ReplaceAll(tt.args, "FILE", file), registry.Listener{})
			if outcome != tt.want {
				t.Errorf("got %s, want %s: %+v, %v", outcome, tt.want, r, err)
			}
			pool.Close()
			noted, readErr := os.ReadFile(notes)
			if n := strings.Count(string(noted), "tools/call") - 1; readErr != nil || n != 1 {
				t.Errorf("sent %d times; %v", n, readErr)
			}
		})
	}
}

// What waits in this process for a child that does not read is not sent any more when its call has ended.
func TestUnsentInTheQueue(t *testing.T) {
	t.Parallel()
	notes := filepath.Join(t.TempDir(), "notes")
	s := stdioServer(t, "good")
	s.Stdio.Args = append(s.Stdio.Args, notes)
	_, set := open(t, s, trust.Terms{})
	if got := text(t, set, "deaf", `{}`); got != "deaf" {
		t.Fatal(got)
	}
	long := `{"x":"` + strings.Repeat("x", 1<<20) + `"}`
	within := func(limit time.Duration, args string) registry.Outcome {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		outcome, _, _ := execute(ctx, set, "echo", args, registry.Listener{})
		return outcome
	}
	// The child's pipe holds less than this message, so that the writer stays in it. A busy machine may end the call
	// before its first byte is written; then it is tried again.
	for limit := 100 * time.Millisecond; ; limit *= 2 {
		outcome := within(limit, long)
		if outcome == registry.OutcomeUnclear {
			break
		}
		if outcome != registry.OutcomeUnsent || limit > time.Minute {
			t.Fatalf("written in part within %s: got %s, want %s", limit, outcome, registry.OutcomeUnclear)
		}
	}
	if outcome := within(100*time.Millisecond, `{}`); outcome != registry.OutcomeUnsent {
		t.Errorf("in the queue behind it: got %s, want %s", outcome, registry.OutcomeUnsent)
	}
}

func TestUnsentWithoutConnection(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	missing := serve(t, &script{call: func(http.ResponseWriter, *http.Request, string) { t.Error("it was called") }})
	missing.HTTP.Headers = map[string]registry.Value{"X-Key": {Secret: "file:" + file}}
	toolless := serve(t, &script{
		handshake: func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"logging":{}},"serverInfo":{"name":"s","version":"1"}}}`, r.Header.Get("Test-Id"))
		},
		call: func(http.ResponseWriter, *http.Request, string) { t.Error("it was called") },
	})
	unadmitted := serve(t, &script{call: func(http.ResponseWriter, *http.Request, string) { t.Error("it was called") }})
	unadmitted.Discover = &registry.Discover{}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		s       registry.Server
		prepare func(*testing.T, *upstream.Pool, *upstream.Set)
		ctx     context.Context
		code    registry.ErrorCode
	}{
		"nobody listens":             {s: declared("http://127.0.0.1:1/mcp"), code: registry.Unavailable},
		"the program ends at once":   {s: stdioServer(t, "usage"), code: registry.Unavailable},
		"the breaker is open":        {s: stdioServer(t, "usage"), code: registry.Unavailable, prepare: func(t *testing.T, _ *upstream.Pool, set *upstream.Set) { call(t, set, "echo", "{}") }},
		"the generation is closed":   {s: stdioServer(t, "good"), code: registry.Unavailable, prepare: func(_ *testing.T, _ *upstream.Pool, set *upstream.Set) { set.Close() }},
		"the pool is closed":         {s: stdioServer(t, "good"), code: registry.Unavailable, prepare: func(_ *testing.T, pool *upstream.Pool, _ *upstream.Set) { pool.Close() }},
		"the call was cancelled":     {s: stdioServer(t, "mute"), ctx: cancelled, code: registry.Cancelled},
		"it has no tools":            {s: toolless, code: registry.Unavailable},
		"its definition has changed": {s: unadmitted, code: registry.Denied},
		"a secret is missing": {s: missing, code: registry.Unavailable, prepare: func(t *testing.T, _ *upstream.Pool, set *upstream.Set) {
			if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := set.Reach(t.Context(), "fake", ""); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			cfg := upstream.Config{BreakAfter: 1, Backoff: time.Hour, MaxBackoff: time.Hour}
			cfg.Watch.Admit = func(registry.Server, string) error {
				return &registry.Error{Code: registry.Denied, Msg: "it has changed"}
			}
			pool := upstream.NewPool(cfg)
			t.Cleanup(pool.Close)
			set := pool.Open(root, []upstream.Upstream{trusted(t, tt.s, root, loopback)})
			if tt.prepare != nil {
				tt.prepare(t, pool, set)
			}
			ctx := t.Context()
			if tt.ctx != nil {
				ctx = tt.ctx
			}
			outcome, r, err := execute(ctx, set, "echo", "{}", registry.Listener{})
			var e *registry.Error
			if outcome != registry.OutcomeUnsent || !errors.As(err, &e) || e.Code != tt.code {
				t.Errorf("got %s: %+v, %v; want the code %s", outcome, r, err, tt.code)
			}
		})
	}
	_, set := open(t, stdioServer(t, "good"), trust.Terms{})
	if r, err := set.Execute(t.Context(), "fake", "echo", nil, attempt.Attempt{}, registry.Listener{}); registry.OutcomeOf(r, err) != registry.OutcomeUnsent {
		t.Errorf("without an attempt: %+v, %v", r, err)
	}
	if r, err := set.Execute(t.Context(), "other", "echo", nil, attempttest.New("k"), registry.Listener{}); registry.OutcomeOf(r, err) != registry.OutcomeUnsent {
		t.Errorf("of an unknown server: %+v, %v", r, err)
	}
}
