package mcpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/decision/trusttest"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

// What an upstream answers in exactCall: every kind of content, and what a parser that decodes and encodes would change.
var exactBlocks = []string{
	`{"type":"text","text":"é <&> \u2028 \"q\" \\ \/ \ud83d\ude00","annotations":{"audience":["user","assistant"],"priority":0.10,"lastModified":"2025-01-12T15:00:58Z","x":1e400},"_meta":{"n":9007199254740993}}`,
	`{ "mimeType":"image/png", "type":"image","data":"iVBORw0=","extra":{"z":1,"a":2.50} }`,
	`{"type":"audio","data":"UklGRg==","mimeType":"audio/wav","annotations":{"priority":1}}`,
	`{"type":"resource","resource":{"uri":"test://a b/é","mimeType":"text/plain","text":"t\u0000t","_meta":{"k":null}},"annotations":{}}`,
	`{"type":"resource","resource":{"uri":"test://blob","mimeType":"application/octet-stream","blob":"AAH/"}}`,
	`{"type":"resource_link","uri":"file:///x","name":"n","title":"T","description":"d","mimeType":"text/x","size":9007199254740993,"icons":[{"src":"https://e.example/x.png","mimeType":"image/png","sizes":["48x48","any"]}]}`,
	`{"type":"hologram","depth":1.50,"frames":[[],{},null,true]}`,
	`{"Type":"text","text":"the kind of this one is unknown"}`,
}

const (
	exactStructured = `{"z":1,"a":1.0,"big":123456789012345678901234567890,"neg":-0,"exp":1E+2,"u":"\u0041","deep":[[[{"é":"<&>"}]]]}`
	exactMeta       = `"a/first":{"z":1.50,"a":9007199254740993},"z/last":"<&>"`
	exactFields     = `"aFieldOfTomorrow":{"n":9007199254740993},"warnings":["<&>"]`
	exactArguments  = `{"note":"<é> \" \\ 😀","big":9007199254740993,"exact":1.50,"list":[null,true,{"z":1,"a":2}]}`
)

// exactCall are the messages of an upstream about one call; the last is its answer. A call that waits has none.
func exactCall(request []byte, modern bool) (messages []string) {
	var req struct {
		ID     json.RawMessage
		Params struct {
			Arguments json.RawMessage
			Meta      struct {
				Token json.RawMessage `json:"progressToken"`
			} `json:"_meta"`
		}
	}
	if err := json.Unmarshal(request, &req); err != nil {
		panic(err)
	}
	if req.Params.Meta.Token != nil {
		messages = append(messages, fmt.Sprintf(
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":0.10,"total":1e3,"message":"<&> \u00e9","_meta":{"x/y":9007199254740993}}}`, req.Params.Meta.Token))
	}
	messages = append(messages, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"l","data":{"z":9007199254740993,"a":"<&>"},"_meta":{"x/y":1.50}}}`)
	var args struct{ Note string }
	_ = json.Unmarshal(req.Params.Arguments, &args) // what is no object has no note
	if args.Note == "wait" {
		return messages
	}
	kind := ""
	if modern {
		kind = `"resultType":"complete",`
	}
	got, err := json.Marshal(string(req.Params.Arguments))
	if err != nil {
		panic(err)
	}
	return append(messages, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{%s"content":[%s,{"type":"text","text":%s}],"structuredContent":%s,"isError":%t,%s,"_meta":{%s}}}`,
		req.ID, kind, strings.Join(exactBlocks, ","), got, exactStructured, args.Note == "fail", exactFields, exactMeta))
}

// exactHandshake is what an upstream of a revision answers to all but calls; empty for nothing.
func exactHandshake(id json.RawMessage, method string, modern bool) string {
	switch {
	case method == "server/discover" && modern:
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"logging":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}`, id)
	case method == "initialize" && !modern:
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"s","version":"1"}}}`, id)
	case id != nil:
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`, id)
	}
	return ""
}

// exactOverStdio is the upstream on stdio. It makes a file when a call is cancelled.
func exactOverStdio(version, cancelled string) {
	modern := version == servetest.ModernVersion
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var req struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal(line, &req); err != nil {
			panic(err)
		}
		switch req.Method {
		case "tools/call":
			fmt.Println(strings.Join(exactCall(line, modern), "\n"))
		case "notifications/cancelled":
			if err := os.WriteFile(cancelled, nil, 0o600); err != nil {
				panic(err)
			}
		default:
			if said := exactHandshake(req.ID, req.Method, modern); said != "" {
				fmt.Println(said)
			}
		}
	}
}

// exactOverHTTP is the upstream over HTTP. It makes a file when a call that waits is given up.
func exactOverHTTP(t *testing.T, modern bool, cancelled string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		var req struct {
			ID     json.RawMessage
			Method string
		}
		switch {
		case json.Unmarshal(body, &req) != nil:
			w.WriteHeader(http.StatusBadRequest)
		case req.Method == "tools/call":
			w.Header().Set("Content-Type", "text/event-stream")
			messages := exactCall(body, modern)
			for _, m := range messages {
				fmt.Fprintf(w, "data: %s\n\n", m)
			}
			w.(http.Flusher).Flush()
			if !strings.Contains(messages[len(messages)-1], `"result"`) {
				<-r.Context().Done()
				if err := os.WriteFile(cancelled, nil, 0o600); err != nil {
					t.Error(err)
				}
			}
		default:
			said := exactHandshake(req.ID, req.Method, modern)
			switch {
			case said == "":
				w.WriteHeader(http.StatusAccepted)
				return
			case strings.Contains(said, `"error"`) && req.Method == "server/discover":
				w.WriteHeader(http.StatusBadRequest)
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, said)
		}
	}
}

// exactly is a catalog with one tool of an upstream that speaks a revision over a transport, and that makes the file
// cancelled when a call is given up.
func exactly(t *testing.T, transport, version, cancelled string) servetest.Catalog {
	t.Helper()
	s := registry.Server{Name: "s", MaxConnections: 8, ConnectTimeout: time.Minute, CallTimeout: time.Minute, Source: registry.Source{Digest: t.Name()}}
	if transport == "http" {
		ts := httptest.NewServer(exactOverHTTP(t, version == servetest.ModernVersion, cancelled))
		t.Cleanup(ts.Close)
		s.HTTP = &registry.HTTPAddress{URL: ts.URL}
	} else {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		s.Stdio = &registry.Stdio{Command: self, Args: []string{"-upstream", version, cancelled}}
	}
	root := t.TempDir()
	target, problems := upstream.Target(s, root)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	pool := upstream.NewPool(upstream.Config{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(pool.Close)
	set := pool.Open(root, []upstream.Upstream{{Server: s, Trust: trusttest.New(target, trust.Terms{Addresses: []string{"127.0.0.0/8", "::1/128"}})}})
	says := servetest.Tool("says", `{"type":"object","properties":{"note":{"type":"string"}}}`, speaker(func(ctx context.Context, args contract.Args, to registry.Listener) (*registry.Result, error) {
		return set.Call(ctx, "s", "says", args.JSON(), to)
	}), func(t *registry.Tool) {
		t.Args.Fields = []contract.Field{{Name: "note", Types: []string{"string"}}}
		t.Args.Strictness, t.Binding = contract.Open, registry.Binding{MCP: &registry.MCP{Server: "s", Tool: "says"}}
	})
	return servetest.Catalog{ID: "g1", Relay: []string{"logging"}, Branches: map[string][]string{"default": nil}, Tools: []servetest.Fixture{says}}
}

// eachWay runs a test for every transport and era of an upstream, and of a client.
func eachWay(t *testing.T, test func(t *testing.T, d *servetest.Server, cancelled string, send func(id int, arguments string), next func() string, cancel func(id int))) {
	for _, upstream := range []struct{ transport, version string }{
		{"http", servetest.ModernVersion}, {"http", "2025-06-18"}, {"stdio", servetest.ModernVersion}, {"stdio", "2025-06-18"},
	} {
		for _, client := range []struct {
			transport string
			modern    bool
		}{{"http", true}, {"http", false}, {"stdio", true}, {"stdio", false}} {
			name := fmt.Sprintf("%s %s to %s modern=%t", upstream.transport, upstream.version, client.transport, client.modern)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				cancelled := filepath.Join(t.TempDir(), "cancelled")
				d := servetest.Start(t, exactly(t, upstream.transport, upstream.version, cancelled))
				body := func(id int, arguments string) string {
					meta := `"progressToken":"the <token>"`
					if client.modern {
						able := "{}"
						if id%2 == 1 { // then the call runs by itself
							able = `{"elicitation":{}}`
						}
						meta += fmt.Sprintf(`,"io.modelcontextprotocol/logLevel":"info","io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":%s`, servetest.ModernVersion, able)
					}
					return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"says","arguments":%s,"_meta":{%s}}}`, id, arguments, meta)
				}
				cancel := func(id int) string {
					return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id)
				}
				if client.transport == "stdio" {
					p := servetest.Attach(t, d, "default")
					if !client.modern {
						p.Send(t, initializeLine)
						p.Next(t)
						p.Send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
					}
					test(t, d, cancelled, func(id int, arguments string) { p.Send(t, body(id, arguments)) },
						func() string { return p.Next(t) }, func(id int) { p.Send(t, cancel(id)) })
					return
				}
				header := servetest.ModernHeader("tools/call", `"name":"says"`)
				if !client.modern {
					header = d.Session(t, "/mcp")
				}
				var next func() string
				var hangUp func()
				test(t, d, cancelled, func(id int, arguments string) { next, hangUp = streamedUntil(t, d, body(id, arguments), header) },
					func() string { return next() }, func(id int) {
						if client.modern {
							hangUp() // which is how a client of 2026-07-28 cancels
							return
						}
						d.Do(t, "POST", "/mcp", cancel(id), header...)
					})
			})
		}
	}
}

// streamedUntil is streamed for a client that can hang up.
func streamedUntil(t *testing.T, d *servetest.Server, body string, header []string) (next func() string, hangUp func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return streamedIn(ctx, t, d, body, header), cancel
}

// What an upstream answers and says meanwhile reaches the client as it came, and the client's arguments reach the
// upstream, whatever the transports and the revisions on either side.
func TestFidelity(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, d *servetest.Server, _ string, send func(int, string), next func() string, _ func(int)) {
		for id, arguments := range []string{exactArguments, `{"note":"fail"}`} {
			send(id, arguments)
			for _, want := range []string{
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"the <token>","progress":0.10,"total":1e3,"message":"<&> é","_meta":{"x/y":9007199254740993}}}`,
				`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"l","data":{"z":9007199254740993,"a":"<&>"},"_meta":{"x/y":1.50}}}`,
			} {
				if got := next(); got != want {
					t.Errorf("the client heard\n%s\nnot\n%s", got, want)
				}
			}
			answer := next()
			for _, part := range []string{
				`"content":[` + strings.Join(exactBlocks, ",") + `,{`, `"structuredContent":` + exactStructured, exactFields, `"_meta":{` + exactMeta + `,"catalogd/call"`,
			} {
				if !strings.Contains(answer, part) {
					t.Errorf("the answer lacks\n%s\n%s", part, answer)
				}
			}
			var got struct {
				ID     int
				Result struct {
					Content []json.RawMessage
					IsError bool
				}
			}
			var last struct{ Text string }
			if err := json.Unmarshal([]byte(answer), &got); err != nil || got.ID != id || got.Result.IsError != (arguments != exactArguments) || len(got.Result.Content) != len(exactBlocks)+1 {
				t.Fatalf("%v: %s", err, answer)
			}
			if err := json.Unmarshal(got.Result.Content[len(exactBlocks)], &last); err != nil || !sameJSON(last.Text, arguments) {
				t.Errorf("the upstream got\n%s\nnot\n%s", last.Text, arguments)
			}
		}
	})
}

// sameJSON reports whether two texts have the same members with the same numbers; the order of members and the spelling of
// strings may differ.
func sameJSON(a, b string) bool {
	decode := func(s string) string {
		dec := json.NewDecoder(strings.NewReader(s))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			return err.Error() + s
		}
		out, err := json.Marshal(v)
		if err != nil {
			return err.Error()
		}
		return string(out)
	}
	return bytes.Equal([]byte(decode(a)), []byte(decode(b)))
}

// A client that cancels a call has it cancelled at the upstream, whatever the transports and the revisions on either side,
// and gets no answer.
func TestCancellationPasses(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, d *servetest.Server, cancelled string, send func(int, string), next func() string, cancel func(int)) {
		send(7, `{"note":"wait"}`)
		next()
		next() // so it has begun there
		cancel(7)
		servetest.Eventually(t, "the upstream hears that the call is cancelled", func() bool {
			_, err := os.Stat(cancelled)
			return err == nil
		})
		servetest.Eventually(t, "the call has ended", func() bool { return strings.Contains(d.Log.String(), "code=cancelled") })
	})
}
