package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/decision/trusttest"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

// speaker is a tool in Go that says something while it runs.
type speaker func(context.Context, contract.Args, registry.Listener) (*registry.Result, error)

func (f speaker) Invoke(ctx context.Context, in registry.Invocation) (*registry.Result, error) {
	return f(ctx, in.Args, in.To)
}

func (f speaker) Plan(contract.Args) (registry.Plan, error) { return registry.Plan{Kind: "mcp"}, nil }

const noteSchema = `{"type":"object","properties":{"note":{"type":"string"}},"required":["note"],"additionalProperties":false}`

func noteFields(t *registry.Tool) {
	t.Args.Fields = []contract.Field{{Name: "note", Types: []string{"string"}, Required: true}}
}

// scriptedServer is an upstream whose tool sends three notifications of progress, each with the call's note, one of
// a call that doesn't exist, two log messages, and the result at once.
func scriptedServer(w http.ResponseWriter, r *http.Request) {
	var req struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Arguments struct{ Note string }
			Meta      map[string]json.RawMessage `json:"_meta"`
		}
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &req)
	switch req.Method {
	case "server/discover":
		http.Error(w, "unknown", http.StatusBadRequest)
	case "initialize":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`, req.ID)
	case "tools/call":
		w.Header().Set("Content-Type", "text/event-stream")
		event := func(format string, args ...any) { fmt.Fprintf(w, "data: "+format+"\n\n", args...) }
		note, token := req.Params.Arguments.Note, req.Params.Meta["progressToken"]
		if token == nil {
			token = json.RawMessage(`"nobody asked"`)
		}
		event(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"quiet %s"}}`, note)
		for i := range 3 {
			event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":3,"message":"%s"}}`, token, i+1, note)
		}
		event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":77777,"progress":1,"message":"stray"}}`)
		event(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"s","data":{"big":9007199254740993,"note":"%s"}}}`, note)
		event(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`, req.ID, note)
		// Too late for anyone.
		event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":9,"message":"late"}}`, token)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// proxying is a catalog with one tool, of an upstream whose log messages are relayed.
func proxying(t testing.TB) servetest.Catalog {
	t.Helper()
	return upstreamOf(t, scriptedServer, []string{"logging"})
}

// upstreamOf is a catalog with one tool, of an upstream, for which the call decision answers relay.
func upstreamOf(t testing.TB, h http.HandlerFunc, relay []string) servetest.Catalog {
	t.Helper()
	ts := httptest.NewServer(h)
	t.Cleanup(ts.Close)
	s := registry.Server{
		Name: "s", HTTP: &registry.HTTPAddress{URL: ts.URL}, MaxConnections: 8,
		ConnectTimeout: time.Minute, CallTimeout: time.Minute, Source: registry.Source{Digest: ts.URL},
	}
	target, problems := upstream.Target(s, "")
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	pool := upstream.NewPool(upstream.Config{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(pool.Close)
	set := pool.Open("", []upstream.Upstream{{Server: s, Trust: trusttest.New(target, trust.Terms{Addresses: []string{"127.0.0.0/8", "::1/128"}})}})
	return servetest.Catalog{ID: "g1", Relay: relay, Branches: map[string][]string{"default": nil}, Tools: []servetest.Fixture{
		servetest.Tool("says", noteSchema, speaker(func(ctx context.Context, args contract.Args, to registry.Listener) (*registry.Result, error) {
			return set.Call(ctx, "s", "says", args.JSON(), to)
		}), noteFields),
	}}
}

// call is a tools/call in either era; meta is the inside of its _meta.
func callBody(modern bool, id, note, meta string) string {
	if modern {
		if meta != "" {
			meta += ","
		}
		meta += fmt.Sprintf(`"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}`, servetest.ModernVersion)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":"says","arguments":{"note":%q},"_meta":{%s}}}`, id, note, meta)
}

// What an upstream says during a call goes to that call: all of it, in order, before the result, and to no other. 8
// callers share one session, or one pipe.
func TestNotificationsOfACall(t *testing.T) {
	t.Parallel()
	for _, era := range []struct {
		name   string
		modern bool
		meta   string
	}{
		{"modern", true, `"io.modelcontextprotocol/logLevel":"info"`},
		{"legacy", false, ""},
	} {
		want := func(id string) []string {
			var all []string
			for i := range 3 {
				all = append(all, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"token %s","progress":%d,"total":3,"message":"%s"}}`, id, i+1, id))
			}
			return append(all, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"s","data":{"big":9007199254740993,"note":"%s"}}}`, id))
		}
		meta := func(id string) string {
			m := fmt.Sprintf(`"progressToken":"token %s"`, id)
			if era.meta != "" {
				m += "," + era.meta
			}
			return m
		}
		t.Run("http/"+era.name, func(t *testing.T) {
			t.Parallel()
			d := servetest.Start(t, proxying(t))
			header := servetest.ModernHeader("tools/call", `"name":"says"`)
			if !era.modern {
				header = d.Session(t, "/mcp")
			}
			eachCaller(func(id string) {
				r := d.Do(t, "POST", "/mcp", callBody(era.modern, id, id, meta(id)), header...)
				events := eventsOf(r.Body)
				if len(events) == 0 || r.Status != 200 || r.Header.Get("Content-Type") != "text/event-stream" {
					t.Errorf("%s: %+v", id, r)
					return
				}
				last := len(events) - 1
				if !slices.Equal(events[:last], want(id)) {
					t.Errorf("%s heard %s", id, events)
				}
				if !strings.HasPrefix(events[last], fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"content":[{"type":"text","text":%q}]`, id, id)) {
					t.Errorf("%s was answered %s", id, events[last])
				}
			})
		})
		t.Run("stdio/"+era.name, func(t *testing.T) {
			t.Parallel()
			d := servetest.Start(t, proxying(t))
			p := servetest.Attach(t, d, "default")
			if !era.modern {
				p.Send(t, initializeLine)
				p.Next(t)
				p.Send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			}
			var mu sync.Mutex // of the pipe's writing end, and of answers
			answers := map[string]chan []string{}
			heard := map[string][]string{}
			go func() {
				for line := range p.Lines {
					mu.Lock()
					for id, answer := range answers {
						if !strings.Contains(line, fmt.Sprintf(`%q`, id)) && !strings.Contains(line, fmt.Sprintf(`"token %s"`, id)) {
							continue
						}
						heard[id] = append(heard[id], line)
						if strings.Contains(line, `"result"`) {
							answer <- heard[id]
						}
					}
					mu.Unlock()
				}
			}()
			eachCaller(func(id string) {
				answer := make(chan []string, 100)
				mu.Lock()
				answers[id] = answer
				p.Send(t, callBody(era.modern, id, id, meta(id)))
				mu.Unlock()
				lines := <-answer
				mu.Lock()
				defer mu.Unlock()
				delete(answers, id)
				if last := len(lines) - 1; !slices.Equal(lines[:last], want(id)) {
					t.Errorf("%s heard %s", id, lines)
				}
			})
		})
	}
}

// What the call decision does not let through is not heard: log messages go without a word, progress stays.
func TestLogMessagesAreRelayedByDecision(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, upstreamOf(t, scriptedServer, []string{"elicitation"}))
	r := d.Do(t, "POST", "/mcp", callBody(false, "c", "c", `"progressToken":1`), d.Session(t, "/mcp")...)
	if events := eventsOf(r.Body); len(events) != 4 || strings.Contains(r.Body, "notifications/message") {
		t.Errorf("the client heard %s", events)
	}
}

// eachCaller makes 400 calls by 8 callers.
func eachCaller(call func(id string)) {
	var callers sync.WaitGroup
	for c := range 8 {
		callers.Go(func() {
			for i := range 50 {
				call(fmt.Sprintf("call %d.%d", c, i))
			}
		})
	}
	callers.Wait()
}

// eventsOf are the data of a finished event stream.
func eventsOf(body string) (events []string) {
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			events = append(events, strings.TrimSpace(data))
		}
	}
	return events
}

// Nothing is said to who didn't ask, and an answer without notifications is plain JSON.
func TestNotificationsAreOptIn(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, proxying(t))
	session := d.Session(t, "/mcp")
	silenced := d.Session(t, "/mcp")
	if r := d.Do(t, "POST", "/mcp", servetest.LegacyBody("logging/setLevel", `"level":"error"`), silenced...); r.Status != 200 {
		t.Fatalf("%+v", r)
	}
	if r := d.Do(t, "POST", "/mcp", servetest.LegacyBody("logging/setLevel", `"level":"loud"`), silenced...); !strings.Contains(r.Body, `"error"`) {
		t.Fatalf("%+v", r)
	}
	modern := servetest.ModernHeader("tools/call", `"name":"says"`)
	jsonOnly := []string{"Accept", "application/json"}
	for _, test := range []struct {
		name, body string
		header     []string
		kinds      string // of the messages before the result
	}{
		{"modern, nothing asked", callBody(true, "1", "n", ""), modern, ""},
		{"modern, progress", callBody(true, "1", "n", `"progressToken":5`), modern, "ppp"},
		{"modern, messages", callBody(true, "1", "n", `"io.modelcontextprotocol/logLevel":"debug"`), modern, "mm"},
		{"modern, grave messages", callBody(true, "1", "n", `"io.modelcontextprotocol/logLevel":"error"`), modern, ""},
		{"modern, no such level", callBody(true, "1", "n", `"io.modelcontextprotocol/logLevel":"loud"`), modern, ""},
		{"modern, a token that is none", callBody(true, "1", "n", `"progressToken":{"a":1}`), modern, ""},
		{"modern, reads JSON only", callBody(true, "1", "n", `"progressToken":5`), append(modern, jsonOnly...), ""},
		{"legacy, progress", callBody(false, "1", "n", `"progressToken":"a\"b"`), session, "pppm"},
		{"legacy, no progress", callBody(false, "1", "n", ""), session, "m"},
		{"legacy, silenced", callBody(false, "1", "n", ""), silenced, ""},
		{"legacy, reads JSON only", callBody(false, "1", "n", `"progressToken":5`), append(slices.Clone(session), jsonOnly...), ""},
	} {
		r := d.Do(t, "POST", "/mcp", test.body, test.header...)
		kinds := ""
		for _, e := range eventsOf(r.Body) {
			switch {
			case strings.Contains(e, `"notifications/progress"`):
				kinds += "p"
			case strings.Contains(e, `"notifications/message"`):
				kinds += "m"
			}
		}
		media := "application/json"
		if test.kinds != "" {
			media = "text/event-stream"
		}
		if kinds != test.kinds || r.Header.Get("Content-Type") != media || !strings.Contains(r.Body, `"text":"n"`) {
			t.Errorf("%s: %q %+v", test.name, kinds, r)
		}
	}
}

// A flood of notifications costs its caller the surplus, and nobody else anything.
func TestNotificationFlood(t *testing.T) {
	t.Parallel()
	say := func(n, size int) speaker {
		return func(_ context.Context, _ contract.Args, to registry.Listener) (*registry.Result, error) {
			params := json.RawMessage(fmt.Sprintf(`{"progress":1,"message":%q}`, strings.Repeat("x", size)))
			for range n {
				to.Progress(params)
			}
			return &registry.Result{Content: []json.RawMessage{registry.Text("done")}}, nil
		}
	}
	d := servetest.Start(t, servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil}, Tools: []servetest.Fixture{
		servetest.Tool("many", "", say(100_000, 1)), servetest.Tool("large", "", say(40, 100_000)),
	}})
	for name, most := range map[string]int{"many": 1000, "large": 2} {
		params := fmt.Sprintf(`"name":%q,"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}`, name, servetest.ModernVersion)
		r := d.Do(t, "POST", "/mcp", servetest.LegacyBody("tools/call", params), servetest.ModernHeader("tools/call", fmt.Sprintf(`"name":%q`, name))...)
		if events := eventsOf(r.Body); len(events) != most+1 || !strings.Contains(events[most], `"done"`) {
			t.Errorf("%s: %d events", name, len(events))
		}
	}
	if log := d.Log.String(); strings.Count(log, "more notifications in one call than are relayed") != 2 || !strings.Contains(log, "dropped=99000") {
		t.Error(log)
	}
}

// A client that stops reading its stream holds its own call at most, and that for the time of one write.
func TestNotificationsToNobody(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	d := servetest.Start(t, servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil}, Tools: []servetest.Fixture{
		servetest.Tool("talks", "", speaker(func(ctx context.Context, _ contract.Args, to registry.Listener) (*registry.Result, error) {
			for to.Progress(json.RawMessage(`{"progress":1}`)); ctx.Err() == nil; {
				select {
				case <-ctx.Done():
				case <-time.After(time.Millisecond):
					to.Progress(json.RawMessage(`{"progress":1}`))
				}
			}
			ended <- ctx.Err()
			return nil, ctx.Err()
		})),
	}}, func(b *servetest.Backend) { b.Limits.WriteTime = time.Second })
	body := strings.Replace(servetest.ModernBody("tools/call", `"name":"talks"`), `"_meta":{`, `"_meta":{"progressToken":1,`, 1)
	r, err := http.NewRequest("POST", d.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	header := servetest.ModernHeader("tools/call", `"name":"talks"`)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	<-ended
}
