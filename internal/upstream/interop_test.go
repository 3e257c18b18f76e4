package upstream_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/registry"
)

// What servers write that is unusual and means what it means: each is the answer to one call.
func TestHTTPAnswersAsServersWriteThem(t *testing.T) {
	t.Parallel()
	const fine = `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"fine"}]}}`
	const noise = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`
	for _, c := range []struct{ name, media, body string }{
		{"an event", "text/event-stream", "data: " + fine + "\n\n"},
		{"no space behind the colon", "text/event-stream", "data:" + fine + "\n\n"},
		{"CR LF", "text/event-stream", "event: message\r\ndata: " + fine + "\r\n\r\n"},
		{"CR", "text/event-stream", ": hi\rdata: " + fine + "\r\r"},
		{"CR and LF mixed", "text/event-stream", ": hi\r\n\r\ndata: " + noise + "\n\r\ndata: " + fine + "\r\n\n"},
		{"a byte order mark", "text/event-stream", "\xef\xbb\xbfdata: " + fine + "\n\n"},
		{"comments and other fields", "text/event-stream", ": ping\n\n:\nevent\nretry: soon\nunknown: x\ndata: " + fine + "\n\n"},
		{"several lines of data", "text/event-stream", "data: " + strings.ReplaceAll(fine, ",", ",\ndata: ") + "\n\n"},
		{"an empty line of data", "text/event-stream", "data\ndata: " + fine + "\ndata:\n\n"},
		{"another name of the event", "text/event-stream; charset=utf-8", "event: result\nid: 0\ndata: " + fine + "\n\n"},
		{"events that are no messages", "text/event-stream", "event: ping\ndata: {}\n\nevent: endpoint\ndata: /messages\n\ndata: 5\n\ndata: " + fine + "\n\n"},
		{"a stream without its last line ends", "text/event-stream", "data: " + fine},
		{"a notification with an id of null", "text/event-stream", `data: {"jsonrpc":"2.0","id":null,"method":"notifications/progress","params":{}}` + "\n\ndata: " + fine + "\n\n"},
		{"a request with the id 0", "text/event-stream", `data: {"jsonrpc":"2.0","id":0,"method":"ping"}` + "\n\ndata: " + fine + "\n\n"},
		{"a batch of one in a stream", "text/event-stream", "data: [" + fine + "]\n\n"},
		{"a batch of one", "application/json", "[" + fine + "]"},
		{"a batch with a notification", "application/json", "[" + noise + ",\n" + fine + "]"},
		{"a byte order mark before JSON", "application/json", "\xef\xbb\xbf" + fine},
		{"white space around JSON", "application/json", "\r\n " + strings.ReplaceAll(fine, ",", ",\r\n\t") + "\n"},
		{"upper case", "Application/JSON; Charset=UTF-8", fine},
		{"no media type", "", fine},
		{"text", "text/plain; charset=utf-8", fine},
		{"an error of null", "application/json", strings.Replace(fine, `"result"`, `"error":null,"result"`, 1)},
		{"an id with a decimal point", "application/json", strings.Replace(fine, "ID", "ID.0", 1)},
		{"no jsonrpc", "application/json", strings.Replace(fine, `"jsonrpc":"2.0",`, "", 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &script{call: func(w http.ResponseWriter, _ *http.Request, id string) {
				w.Header()["Content-Type"] = []string{c.media}
				if c.media == "" {
					w.Header()["Content-Type"] = nil // none, rather than a guess
				}
				io.WriteString(w, strings.ReplaceAll(c.body, "ID", id))
			}}
			_, set := open(t, serve(t, s), loopback)
			if got := text(t, set, "echo", `{}`); got != "fine" {
				t.Errorf("got %s, want fine", got)
			}
		})
	}
}

// An error of a server fails the call at once, however it is written.
func TestErrorsAsServersWriteThem(t *testing.T) {
	t.Parallel()
	_, set := open(t, stdioServer(t, "good"), trust.Terms{})
	for _, c := range []struct{ failure, says string }{
		{`{"code":-32602,"message":"no such city"}`, "-32602: no such city"},
		{`{"code":-32602.0,"message":"no such city","data":{"a":1}}`, "-32602: no such city"},
		{`{"code":"-32602","message":"no such city"}`, "-32602: no such city"},
		{`{"code":"ENOENT","message":"no such city"}`, "-32603: no such city"},
		{`{"code":null,"message":null,"data":null}`, "-32603"},
		{`{"message":{"text":"no such city"}}`, `-32603: {"text":"no such city"}`},
		{`{}`, "-32603"},
		{`"no such city"`, "-32603: no such city"},
		{`[1]`, "-32603: [1]"},
	} {
		line := `{"jsonrpc":"2.0","id":ID,"result":null,"error":` + c.failure + `}`
		_, err := call(t, set, "line", fmt.Sprintf(`{"Line":%q}`, line))
		fails(t, err, registry.BindingFailed, c.says)
	}
}

// The same over standard output.
func TestLinesAsServersWriteThem(t *testing.T) {
	t.Parallel()
	const fine = `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"fine"}]}}`
	_, set := open(t, stdioServer(t, "good"), trust.Terms{})
	for _, line := range []string{
		fine, fine + "\r", "\xef\xbb\xbf" + fine, "[" + fine + "]",
		`[{"jsonrpc":"2.0","method":"notifications/message","params":{}},` + fine + `,7]`,
		strings.Replace(fine, `"result"`, `"error":null,"result"`, 1),
		strings.Replace(fine, "ID", "ID.0", 1),
	} {
		if got := text(t, set, "line", fmt.Sprintf(`{"Line":%q}`, line)); got != "fine" {
			t.Errorf("%s: got %s, want fine", line, got)
		}
	}
}

// A server over HTTP without sessions, and one that takes none of what is a courtesy.
func TestHTTPServersWithLess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(w http.ResponseWriter, r *http.Request) (answered bool)
	}{
		{"no session", func(w http.ResponseWriter, r *http.Request) bool {
			w.Header()["Mcp-Session-Id"] = nil
			return false
		}},
		{"no GET and no DELETE", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost {
				w.WriteHeader(http.StatusMethodNotAllowed)
			}
			return r.Method != http.MethodPost
		}},
		{"an error for each notification", func(w http.ResponseWriter, r *http.Request) bool {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return true // the client has gone
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			refused := bytes.Contains(body, []byte("notifications/"))
			if refused {
				status(400)(w, r)
			}
			return refused
		}},
		{"a page on GET", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet {
				status(200, "Content-Type", "text/html")(w, r)
			}
			return r.Method == http.MethodGet
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &script{call: func(w http.ResponseWriter, _ *http.Request, id string) { ok(w, id) }}
			_, set := open(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !c.change(w, r) {
					s.ServeHTTP(&withoutSession{w, c.name == "no session"}, r)
				}
			})), loopback)
			for range 2 {
				if got := text(t, set, "echo", `{}`); got != "ok" {
					t.Errorf("got %s, want ok", got)
				}
			}
			if n := s.sessions.Load(); n != 1 {
				t.Errorf("%d handshakes, want 1", n)
			}
			set.Close()
		})
	}
}

// withoutSession takes the session id out of an answer, where it is to.
type withoutSession struct {
	http.ResponseWriter
	takes bool
}

func (w *withoutSession) Write(b []byte) (int, error) {
	if w.takes {
		w.Header().Del("Mcp-Session-Id")
	}
	return w.ResponseWriter.Write(b)
}

// A response to what was not asked is nobody's answer, whenever it comes: it is dropped and counted.
func TestUnaskedResponsesAreDropped(t *testing.T) {
	t.Parallel()
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		pool, set := open(t, stdioServer(t, "answers-first"), trust.Terms{})
		for range 20 {
			if got := text(t, set, "echo", `{"a":1}`); got != `{"a":1}` {
				t.Fatalf("got %s", got)
			}
		}
		st := pool.Status()[0]
		if st.Protocol != "2025-06-18" || st.Tally().Ignored != 1200 {
			t.Errorf("got the protocol %s and %d messages ignored, want 2025-06-18 and 1200", st.Protocol, st.Tally().Ignored)
		}
	})
	const result = `{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"content":[{"type":"text","text":"nobody's"}]}}`
	t.Run("http, on a stream", func(t *testing.T) {
		t.Parallel()
		s := &script{}
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return // the client has gone
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			if r.Method == http.MethodPost {
				w.Header().Set("Content-Type", "text/event-stream")
				for id := range 1200 {
					fmt.Fprintf(w, "data: "+result+"\n\n", id)
				}
			}
			s.ServeHTTP(&asEvent{ResponseWriter: w}, r)
		})
		s.call = func(w http.ResponseWriter, _ *http.Request, id string) { ok(w, id) }
		pool, set := open(t, serve(t, handler), loopback)
		if got := text(t, set, "echo", `{}`); got != "ok" {
			t.Errorf("got %s, want ok", got)
		}
		if st := pool.Status()[0]; st.Protocol != "2025-06-18" || st.Tally().Ignored < 3*1200 {
			t.Errorf("got the protocol %s and %d messages ignored, want 2025-06-18 and 3600", st.Protocol, st.Tally().Ignored)
		}
	})
	t.Run("http, as JSON", func(t *testing.T) {
		t.Parallel()
		s := &script{call: func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, result, 1)
		}}
		pool, set := open(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Method") == "server/discover" {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, result, 1)
				return
			}
			s.ServeHTTP(w, r)
		})), loopback)
		_, err := call(t, set, "echo", `{}`)
		fails(t, err, registry.ResultInvalid, "another request")
		if got := pool.Status()[0].Protocol; got != "2025-06-18" {
			t.Errorf("got the protocol %s, want 2025-06-18", got)
		}
	})
}

// asEvent writes a whole answer as one event.
type asEvent struct{ http.ResponseWriter }

func (w *asEvent) WriteHeader(int) {}

func (w *asEvent) Write(b []byte) (int, error) {
	_, err := fmt.Fprintf(w.ResponseWriter, "data: %s\n\n", b)
	return len(b), err
}
