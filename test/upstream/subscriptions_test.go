package upstream

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// updatesServer has one resource that tells of its updates, in one era, and writes down who subscribes.
type updatesServer struct {
	modern bool
	mu     sync.Mutex
	seen   []string
	subs   map[chan string]bool // the open streams
}

func (s *updatesServer) saw(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, what)
}

// count is how often something was seen.
func (s *updatesServer) count(what string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.seen {
		if w == what {
			n++
		}
	}
	return n
}

// tell sends an event on every open stream.
func (s *updatesServer) tell(event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.subs {
		c <- event
	}
}

// stream serves events until the client goes.
func (s *updatesServer) stream(w http.ResponseWriter, r *http.Request, first string) {
	events := make(chan string, 100)
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if first != "" {
		fmt.Fprintf(w, "data: %s\n\n", first)
	}
	if err := http.NewResponseController(w).Flush(); err != nil {
		return
	}
	s.mu.Lock()
	s.subs[events] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.subs, events)
		s.mu.Unlock()
		s.saw("stream ended")
	}()
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-events:
			fmt.Fprintf(w, "data: %s\n\n", e)
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
		}
	}
}

func (s *updatesServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.stream(w, r, "")
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			URI           string
			Notifications struct{ ResourceSubscriptions []string }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	const has = `"capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"news","version":"1"}`
	answer := `"error":{"code":-32601,"message":"no such method"}`
	switch {
	case m.Method == "initialize" && !s.modern:
		answer = `"result":{"protocolVersion":"2025-11-25",` + has + `}`
		w.Header().Set("Mcp-Session-Id", "one")
	case m.Method == "server/discover" && s.modern:
		answer = `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],` + has + `}`
	case m.Method == "resources/list":
		answer = `"result":{"resources":[{"name":"news","uri":"news:today"},{"name":"hidden","uri":"news:hidden"}]}`
	case m.Method == "subscriptions/listen" && s.modern:
		if slices.Contains(m.Params.Notifications.ResourceSubscriptions, "news:today") {
			s.saw("subscribed")
			s.stream(w, r, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["news:today"]},"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, m.ID))
			return
		}
	case m.Method == "resources/subscribe" && !s.modern && m.Params.URI == "news:today":
		s.saw("subscribed")
		answer = `"result":{}`
	case m.Method == "resources/unsubscribe" && !s.modern:
		s.saw("unsubscribed")
		answer = `"result":{}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)
}

// subscriber is a client of an older revision.
type subscriber struct {
	t       *testing.T
	url, id string
	events  chan string
}

func newSubscriber(t *testing.T, url string) *subscriber {
	t.Helper()
	c := &subscriber{t: t, url: url, events: make(chan string, 100)}
	resp := c.send(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(body), `"subscribe":true`) {
		t.Fatalf("%v: subscriptions are not declared: %s", err, body)
	}
	c.id = resp.Header.Get("Mcp-Session-Id")
	stream := c.send(http.MethodGet, "")
	t.Cleanup(func() { stream.Body.Close() })
	go func() {
		lines := bufio.NewScanner(stream.Body)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				c.events <- data
			}
		}
	}()
	return c
}

// newListener is a client of 2026-07-28 that listens to resources; acknowledged is the first thing that it hears.
func newListener(t *testing.T, url, uris string) (c *subscriber, acknowledged string, leave func()) {
	t.Helper()
	c = &subscriber{t: t, url: url, events: make(chan string, 100)}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"l 1","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":%s},"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`, uris, harness.Modern)
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": harness.Modern, "Mcp-Method": "subscriptions/listen",
	} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	leave = func() { resp.Body.Close() }
	t.Cleanup(leave)
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			acknowledged = data
			break
		}
	}
	go func() {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				c.events <- data
			}
		}
	}()
	return c, acknowledged, leave
}

func (c *subscriber) send(method, body string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequest(method, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.id != "" {
		req.Header.Set("Mcp-Session-Id", c.id)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

func (c *subscriber) ask(method, uri string) string {
	c.t.Helper()
	resp := c.send(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%q,"params":{"uri":%q}}`, method, uri))
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(body)
}

// hears waits for an event, telling the server's news again and again: a stream may not be open yet.
func (c *subscriber) hears(s *updatesServer) bool {
	for range 1800 {
		s.tell(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"news:today"}}`)
		select {
		case e := <-c.events:
			if !strings.Contains(e, `"notifications/resources/updated"`) || !strings.Contains(e, `"uri":"news:today"`) {
				c.t.Errorf("heard %s", e)
			}
			return true
		case <-time.After(100 * time.Millisecond):
		}
	}
	return false
}

// TestSubscribe: who subscribes to a resource hears of its updates, from servers of both eras, and nobody else does. The
// server is asked once however many subscribe, and told when the last one has gone. What may not be seen is not there.
func TestSubscribe(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprintf("modern=%t", modern), func(t *testing.T) {
			t.Parallel()
			news := &updatesServer{modern: modern, subs: map[chan string]bool{}}
			server := httptest.NewServer(news)
			t.Cleanup(func() {
				server.CloseClientConnections()
				server.Close()
			})
			port := server.URL[strings.LastIndexByte(server.URL, ':')+1:]
			r := servePassthrough(t, fmt.Sprintf(`
servers: news: {
	transport: http: url: "http://127.0.0.1:%s/mcp"
	initializeTimeout: "60s"
	forward: ["resources"]
}
branches: {default: {}, none: {}}
`, port), fmt.Sprintf(`  news: {scheme: http, host: 127.0.0.1, port: %s, path: /mcp, addresses: [127.0.0.0/8]}
`, port), `  default: {resources: {news: ["news:today"]}}
  none: {}
`)
			ann, bob, eve := newSubscriber(t, r.URL+"/branches/default/mcp"), newSubscriber(t, r.URL+"/branches/default/mcp"), newSubscriber(t, r.URL+"/branches/default/mcp")
			hidden, never := eve.ask("resources/subscribe", "news:hidden"), eve.ask("resources/subscribe", "news:never")
			if strings.ReplaceAll(hidden, "hidden", "never") != never || !strings.Contains(never, `"code":-32002`) {
				t.Errorf("hidden: %s, missing: %s", hidden, never)
			}
			for _, c := range []*subscriber{ann, bob} {
				if got := c.ask("resources/subscribe", "news:today"); !strings.Contains(got, `"result":{}`) {
					t.Fatalf("subscribe: %s", got)
				}
			}
			cy, acknowledged, leave := newListener(t, r.URL+"/branches/default/mcp", `["news:hidden","news:today","news:never","news:today"]`)
			const tag = `"_meta":{"io.modelcontextprotocol/subscriptionId":"l 1"}`
			if want := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["news:today"]},` + tag + `}}`; acknowledged != want {
				t.Errorf("acknowledged is\n%s\nnot\n%s", acknowledged, want)
			}
			if n := news.count("subscribed"); n != 1 {
				t.Errorf("the server was asked %d times", n)
			}
			if !ann.hears(news) || !bob.hears(news) || !cy.hears(news) {
				t.Fatal("nothing is heard of the update")
			}
			news.tell(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"news:today"}}`)
			if e := <-cy.events; e != `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"news:today",`+tag+`}}` {
				t.Errorf("a listener of 2026-07-28 hears %s", e)
			}
			if _, nothing, _ := newListener(t, r.URL+"/branches/none/mcp", `["news:today"]`); !strings.Contains(nothing, `"notifications":{},`) {
				t.Errorf("a branch that is shown nothing is acknowledged %s", nothing)
			}
			if got := ann.ask("resources/unsubscribe", "news:today"); !strings.Contains(got, `"result":{}`) {
				t.Errorf("unsubscribe: %s", got)
			}
			for len(bob.events) > 0 {
				<-bob.events
			}
			if !bob.hears(news) {
				t.Error("another's end ended this subscription")
			}
			bob.send(http.MethodDelete, "").Body.Close()
			for len(cy.events) > 0 {
				<-cy.events
			}
			if !cy.hears(news) {
				t.Error("the end of the last session ended this subscription")
			}
			leave()
			told := "unsubscribed"
			if modern {
				told = "stream ended"
			}
			for range 1800 {
				if news.count(told) > 0 {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			if news.count(told) == 0 {
				t.Error("the server was not told that nobody wants to hear of it")
			}
			if len(eve.events) > 0 {
				t.Errorf("eve hears %s", <-eve.events)
			}
		})
	}
}
