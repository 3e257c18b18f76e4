package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/catalogd/catalogd/registry"
)

// sides is an older server over HTTP that says everything on its GET stream but results.
type sides struct {
	script
	mu      sync.Mutex
	opened  []string // the Last-Event-ID of each GET
	says    chan string
	replies chan string
}

func newSides(call func(s *sides, w http.ResponseWriter, id string)) *sides {
	s := &sides{says: make(chan string, 100), replies: make(chan string, 100)}
	s.script.call = func(w http.ResponseWriter, _ *http.Request, id string) { call(s, w, id) }
	s.script.posted = func(body string) {
		if !strings.Contains(body, `"method"`) {
			s.replies <- body
		}
	}
	return s
}

func (s *sides) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		s.script.ServeHTTP(w, r)
		return
	}
	s.mu.Lock()
	s.opened = append(s.opened, r.Header.Get("Last-Event-ID"))
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		select {
		case said := <-s.says:
			if said == "end" {
				return
			}
			io.WriteString(w, said+"\n\n")
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (s *sides) openings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.opened)
}

const askOnStream = `data: {"jsonrpc":"2.0","id":"q-9007199254740993","method":"elicitation/create","params":{"message":"sure?"}}`

// asks is a listener that answers every question.
func asks(messages *[]string) registry.Listener {
	return registry.Listener{
		Relay: []string{"elicitation", "logging"}, Able: registry.Abilities{"elicitation": json.RawMessage(`{}`)}, Level: "debug",
		Message: func(p json.RawMessage) { *messages = append(*messages, string(p)) },
		Ask: func(_ context.Context, q registry.Question) registry.Reply {
			return registry.Reply{Result: json.RawMessage(`{"action":"accept","content":` + string(q.Params) + `}`)}
		},
	}
}

// What an older server asks and logs on the GET stream belongs to the call that runs alone.
func TestGETStreamIsHeard(t *testing.T) {
	t.Parallel()
	s := newSides(func(s *sides, w http.ResponseWriter, id string) {
		s.says <- `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"begun"}}`
		s.says <- askOnStream
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":%s}}`, id, <-s.replies)
	})
	_, set := open(t, serve(t, s), loopback)
	for range 2 {
		var messages []string
		r, err := set.Call(t.Context(), "fake", "ask", nil, asks(&messages))
		if err != nil {
			t.Fatal(err)
		}
		var reply struct {
			ID     string
			Result struct{ Content struct{ Message string } }
		}
		if err := json.Unmarshal(r.Structured, &reply); err != nil || reply.ID != "q-9007199254740993" || reply.Result.Content.Message != "sure?" {
			t.Errorf("the server was answered %s, %v", r.Structured, err)
		}
		if want := []string{`{"level":"info","data":"begun"}`}; !slices.Equal(messages, want) {
			t.Errorf("the call heard %q, want %q", messages, want)
		}
	}
	if got := s.openings(); len(got) != 1 {
		t.Errorf("the stream was opened %d times, want once", len(got))
	}
}

// While several calls run, what comes on the GET stream could be anyone's: it is refused.
func TestGETStreamOfSeveralCalls(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 2)
	release := make(chan struct{})
	s := newSides(func(s *sides, w http.ResponseWriter, id string) {
		arrived <- struct{}{}
		<-release
		ok(w, id)
	})
	_, set := open(t, serve(t, s), loopback)
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			var messages []string
			if _, err := set.Call(t.Context(), "fake", "ask", nil, asks(&messages)); err != nil || len(messages) > 0 {
				t.Errorf("got %v, heard %q", err, messages)
			}
		})
	}
	<-arrived
	<-arrived
	s.says <- `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"whose?"}}`
	s.says <- askOnStream
	if got := <-s.replies; !strings.Contains(got, "-32601") || !strings.Contains(got, `"q-9007199254740993"`) {
		t.Errorf("the server was answered %s, want -32601", got)
	}
	close(release)
	calls.Wait()
}

// A stream that ends is opened again, and goes on from the last event that had an id; pings on it are
// answered.
func TestGETStreamIsOpenedAgain(t *testing.T) {
	t.Parallel()
	s := newSides(func(_ *sides, w http.ResponseWriter, id string) { ok(w, id) })
	_, set := open(t, serve(t, s), loopback)
	text(t, set, "echo", `{}`)
	s.says <- "id: 7\nretry: 20\ndata:\n\nid: 8\ndata: " + `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`
	if got := <-s.replies; got != `{"jsonrpc":"2.0","id":9007199254740993,"result":{}}` {
		t.Errorf("the server was answered %s", got)
	}
	s.says <- "id: 9" // without data
	s.says <- "end"
	eventually(t, "the stream to be opened again", func() bool { return len(s.openings()) == 2 })
	if got := s.openings(); !slices.Equal(got, []string{"", "9"}) {
		t.Errorf("the streams went on from %q, want \"\" and 9", got)
	}
}

// A server that offers no such stream is asked for it once.
func TestNoGETStream(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusMethodNotAllowed, http.StatusNotFound, http.StatusNotImplemented, http.StatusOK} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			asked := 0
			var mu sync.Mutex
			s := &script{call: func(w http.ResponseWriter, _ *http.Request, id string) { ok(w, id) }}
			_, set := open(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					mu.Lock()
					asked++
					mu.Unlock()
					status(code, "Content-Type", "text/html")(w, r)
					return
				}
				s.ServeHTTP(w, r)
			})), loopback)
			for range 5 {
				text(t, set, "echo", `{}`)
			}
			set.Close() // waits for whatever listens
			mu.Lock()
			defer mu.Unlock()
			if asked != 1 || s.sessions.Load() != 1 {
				t.Errorf("asked for the stream %d times in %d sessions, want 1 and 1", asked, s.sessions.Load())
			}
		})
	}
}

// A server that forgets the session answers the stream with 404, and the next call begins a new session.
func TestGETStreamOfAForgottenSession(t *testing.T) {
	t.Parallel()
	s := newSides(func(_ *sides, w http.ResponseWriter, id string) { ok(w, id) })
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && len(s.openings()) == 1 && r.Header.Get("Mcp-Session-Id") == "session-1" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		s.ServeHTTP(w, r)
	})
	pool, set := open(t, serve(t, handler), loopback)
	text(t, set, "echo", `{}`)
	s.says <- "retry: 10\ndata: {}"
	s.says <- "end"
	eventually(t, "the session to be given up", func() bool { return pool.Status()[0].State == "idle" })
	text(t, set, "echo", `{}`)
	if n := s.sessions.Load(); n != 2 {
		t.Errorf("%d sessions, want 2", n)
	}
}
