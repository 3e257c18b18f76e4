package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/catalogd/catalogd/test/internal/harness"
)

const (
	// watched is the resource that test_touch says was updated.
	watched = "test://watched-resource"
	// waitingTool reports progress, and then runs until its call is cancelled.
	waitingTool = "test_waits"
)

// clientFixture is the server of the conformance suite for TestClients: it also has a tool that waits to be cancelled, and
// tells of the updates of a resource.
type clientFixture struct {
	*httptest.Server
	next http.Handler

	mu        sync.Mutex
	cancelled int // calls of waitingTool that have ended
	listeners map[chan struct{}]bool
}

func newClientFixture(t *testing.T) *clientFixture {
	t.Helper()
	base, err := url.Parse(mcpGoServer(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	f := &clientFixture{next: httputil.NewSingleHostReverseProxy(base), listeners: map[chan struct{}]bool{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

// ended is the number of calls of waitingTool that have been cancelled.
func (f *clientFixture) ended() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cancelled
}

// touch tells who listens that the resource was updated.
func (f *clientFixture) touch() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for l := range f.listeners {
		select {
		case l <- struct{}{}:
		default: // it will be told already
		}
	}
}

func (f *clientFixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name          string
			Notifications struct{ ResourceSubscriptions []string }
			Meta          struct{ ProgressToken json.RawMessage } `json:"_meta"`
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	_ = json.Unmarshal(body, &m) // the server itself answers what is no message
	event := func(format string, args ...any) {
		fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\","+format+"}\n\n", args...)
		w.(http.Flusher).Flush()
	}
	modern := r.Header.Get("Mcp-Protocol-Version") == harness.Modern
	switch {
	case modern && m.Method == "tools/call" && m.Params.Name == waitingTool:
		w.Header().Set("Content-Type", "text/event-stream")
		event(`"method":"notifications/progress","params":{"progressToken":%s,"progress":1}`, m.Params.Meta.ProgressToken)
		<-r.Context().Done()
		f.mu.Lock()
		f.cancelled++
		f.mu.Unlock()
	case modern && m.Method == "subscriptions/listen" && len(m.Params.Notifications.ResourceSubscriptions) > 0:
		w.Header().Set("Content-Type", "text/event-stream")
		of := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/subscriptionId":%s}`, m.ID)
		l := make(chan struct{}, 1)
		f.mu.Lock()
		f.listeners[l] = true
		f.mu.Unlock()
		event(`"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":[%q]},%s}`, watched, of)
		for {
			select {
			case <-l:
				event(`"method":"notifications/resources/updated","params":{"uri":%q,%s}`, watched, of)
			case <-r.Context().Done():
				f.mu.Lock()
				delete(f.listeners, l)
				f.mu.Unlock()
				return
			}
		}
	default:
		if m.Method == "tools/call" && m.Params.Name == "test_touch" {
			f.touch()
		}
		f.next.ServeHTTP(w, r)
	}
}
