package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/registry"
)

// witness is what was decided, executed and logged in the time of one request: tools, and arguments where they are known.
type witness struct {
	mu                        sync.Mutex
	decided, executed, logged []string
}

func (w *witness) note(into *[]string, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*into = append(*into, what)
}

// Enabled, Handle, WithAttrs and WithGroup are slog.Handler's.
func (w *witness) Enabled(context.Context, slog.Level) bool { return true }

func (w *witness) WithAttrs([]slog.Attr) slog.Handler { return w }

func (w *witness) WithGroup(string) slog.Handler { return w }

func (w *witness) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "call" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "tool" {
				w.note(&w.logged, a.Value.String())
			}
			return true
		})
	}
	return nil
}

// FuzzFront sends a body in both eras through the whole front: at most one tool runs, with the arguments that were decided
// on, and it is the tool that the log names and that any other parser reads in the body.
func FuzzFront(f *testing.F) {
	for _, params := range []string{
		`"name":"alpha","arguments":{"a":1}`, `"n\u0061me":"beta","arguments":{}`, `"name":"alpha","NAME":"beta"`, `"name":"alpha","name":"beta"`,
		`"name":"beta","arguments":{"a":1e400,"A":"\ud83d\ude00"},"_meta":{"progressToken":1}`, `"name":"alpha","arguments":{"name":"beta"}`, `"name":"x","arguments":[]`,
	} {
		f.Add([]byte(servetest.LegacyBody("tools/call", params)), false)
		f.Add([]byte(servetest.ModernBody("tools/call", params)), true)
	}
	f.Add([]byte(servetest.LegacyBody("tools/list", "")), false)
	w := &witness{}
	c := servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil}}
	for _, name := range []string{"alpha", "beta"} {
		run := func(_ context.Context, a contract.Args) (*registry.Result, error) {
			w.note(&w.executed, name+" "+string(a.JSON()))
			return servetest.Text("ran")(context.Background(), a)
		}
		c.Tools = append(c.Tools, servetest.Tool(name, `{"type":"object","properties":{}}`, servetest.Invoker(run), func(t *registry.Tool) { t.Args.Strictness = contract.Open }))
	}
	d := servetest.Open(f, c)
	d.Server.Log = slog.New(w)
	path, _ := d.Served.Load().Path("default")
	path.Log = d.Server.Log
	path.Decide = func(_ context.Context, in decision.CallInput) decision.Decision {
		w.note(&w.decided, in.Tool.Name+" "+string(in.Arguments))
		return decision.Decision{Point: decision.Call, Allow: true, Code: "allowed"}
	}
	h := d.Handler()
	send := func(body []byte, header ...string) *httptest.ResponseRecorder {
		r := servetest.Request("POST", "/mcp", string(body), "localhost:8420")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		got := httptest.NewRecorder()
		h.ServeHTTP(got, r)
		return got
	}
	session := send([]byte(initializeLine)).Header().Get("Mcp-Session-Id")
	f.Fuzz(func(t *testing.T, body []byte, modern bool) {
		var lenient struct {
			Method string
			Params struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		readable := json.Unmarshal(body, &lenient) == nil
		header := []string{"Mcp-Session-Id", session}
		if modern {
			header = []string{"Mcp-Protocol-Version", servetest.ModernVersion, "Mcp-Method", lenient.Method}
			if lenient.Params.Name != "" {
				header = append(header, "Mcp-Name", lenient.Params.Name)
			}
		}
		if strings.Contains(lenient.Method, "subscri") || strings.Contains(lenient.Method, "listen") {
			t.Skip("its stream stays open")
		}
		*w = witness{}
		got := send(body, header...)
		if got.Code >= http.StatusInternalServerError {
			t.Errorf("%q: %d %s", body, got.Code, got.Body)
		}
		if len(w.executed) == 0 {
			return
		}
		if len(w.executed) != 1 || len(w.decided) != 1 || len(w.logged) != 1 || !readable {
			t.Fatalf("%q: decided %q, executed %q, logged %q", body, w.decided, w.executed, w.logged)
		}
		name, arguments, _ := strings.Cut(w.executed[0], " ")
		if w.decided[0] != w.executed[0] || w.logged[0] != name || lenient.Params.Name != name || lenient.Method != "tools/call" {
			t.Errorf("%q: decided %q, executed %q, logged %q", body, w.decided, w.executed, w.logged)
		}
		var sent, ran any
		if len(lenient.Params.Arguments) == 0 {
			lenient.Params.Arguments = json.RawMessage("{}")
		}
		if err := exact(lenient.Params.Arguments, &sent); err != nil {
			t.Fatal(err)
		}
		if err := exact([]byte(arguments), &ran); err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(sent) // what was decoded encodes
		b, _ := json.Marshal(ran)
		if !bytes.Equal(a, b) {
			t.Errorf("%q: %s was sent and %s ran", body, a, b)
		}
	})
}

// exact keeps numbers as they are written.
func exact(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}
