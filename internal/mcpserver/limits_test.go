package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/registry"
)

// busy is a daemon whose tools run until release is closed.
type busy struct {
	*servetest.Server
	people  *servetest.Holders
	running atomic.Int32
	release chan struct{}
	calls   sync.WaitGroup
}

func startBusy(t *testing.T, limits mcpserver.Limits, tokens bool) *busy {
	t.Helper()
	b := &busy{release: make(chan struct{})}
	invoke := servetest.Invoker(func(ctx context.Context, _ contract.Args) (*registry.Result, error) {
		b.running.Add(1)
		defer b.running.Add(-1)
		select {
		case <-b.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return &registry.Result{Content: []json.RawMessage{registry.Text("done")}}, nil
	})
	c := servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil, "other": nil}}
	for _, name := range []string{"slow", "dull", "lazy"} {
		c.Tools = append(c.Tools, servetest.Tool(name, "", invoke))
	}
	var all []token.Token
	for _, name := range []string{"ann", "bob", "cat"} {
		all = append(all, token.Token{Name: name, Branches: []string{"*"}})
	}
	b.people = servetest.Issue(t, slog.New(slog.DiscardHandler), all...)
	b.Server = servetest.Start(t, c, func(x *servetest.Backend) {
		x.Limits = limits
		if tokens {
			x.Tokens = b.people.Store
		}
	})
	return b
}

// call is one call; who is empty without tokens.
type call struct{ path, who, tool string }

func (b *busy) post(t *testing.T, c call, header ...string) servetest.Response {
	return b.Modern(t, c.path, "tools/call", fmt.Sprintf(`"name":%q`, c.tool), append(header, b.people.Header[c.who]...)...)
}

// fill begins calls, and returns when all of them run.
func (b *busy) fill(t *testing.T, calls ...call) {
	t.Helper()
	before := b.running.Load()
	for _, c := range calls {
		b.calls.Go(func() {
			if r := b.post(t, c); !strings.Contains(r.Body, "done") {
				t.Errorf("%+v: %+v", c, r)
			}
		})
	}
	servetest.Until(t, "all calls run", func() bool { return b.running.Load() == before+int32(len(calls)) })
}

// Whichever limit is met, the answer says at once which, and when to try again, in every era and form; what is within
// the limits runs beside it, and once calls have ended, so does the one that was refused.
func TestLimitsAreTold(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, limit, says string
		limits            mcpserver.Limits
		tokens            bool
		run               []call
		over, within      call
	}{
		{"branch", "branch", "this branch runs as many calls at once as it may (2)", mcpserver.Limits{Calls: 2, CallsPerTool: 9}, false,
			[]call{{"/mcp", "", "slow"}, {"/mcp", "", "slow"}}, call{"/mcp", "", "dull"}, call{"/branches/other/mcp", "", "slow"}},
		{"tool", "tool", "this tool has as many calls running on this branch as it may (2)", mcpserver.Limits{Calls: 4}, false,
			[]call{{"/mcp", "", "slow"}, {"/mcp", "", "slow"}}, call{"/mcp", "", "slow"}, call{"/mcp", "", "dull"}},
		{"principal", "principal", "on this branch you have as many calls running as you may (2)", mcpserver.Limits{Calls: 4, CallsPerTool: 9}, true,
			[]call{{"/mcp", "ann", "slow"}, {"/mcp", "ann", "slow"}}, call{"/mcp", "ann", "dull"}, call{"/mcp", "bob", "dull"}},
		{"principal on all branches", "principal_total", "on all branches together you have as many calls running as you may (2)", mcpserver.Limits{AllCalls: 4}, true,
			[]call{{"/mcp", "ann", "slow"}, {"/branches/other/mcp", "ann", "slow"}}, call{"/mcp", "ann", "dull"}, call{"/mcp", "bob", "dull"}},
		{"total", "total", "all branches together run as many calls at once as they may (3)", mcpserver.Limits{AllCalls: 3}, false,
			[]call{{"/mcp", "", "slow"}, {"/mcp", "", "dull"}, {"/branches/other/mcp", "", "slow"}}, call{"/branches/other/mcp", "", "dull"}, call{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.limits.Queue = -1
			d := startBusy(t, test.limits, test.tokens)
			who := d.people.Header[test.over.who]
			session := d.SessionAs(t, test.over.path, who)
			d.fill(t, test.run...)
			told := func(form string, status int, header http.Header, body string) {
				t.Helper()
				for _, want := range []string{test.says, "nothing was run", "Try again in 1 s"} {
					if !strings.Contains(body, want) {
						t.Errorf("%s: %s lacks %q", form, body, want)
					}
				}
				if status != http.StatusTooManyRequests || header.Get("Retry-After") != "1" {
					t.Errorf("%s: status %d, Retry-After %q", form, status, header.Get("Retry-After"))
				}
			}
			machine := fmt.Sprintf(`{"catalogd/error":{"code":"overloaded","limit":%q,"retryAfter":1}}`, test.limit)
			params := fmt.Sprintf(`"name":%q`, test.over.tool)
			r := d.post(t, test.over)
			told("2026-07-28", r.Status, r.Header, r.Body)
			if _, e := r.Result(t); e == nil || !strings.Contains(r.Body, machine) {
				t.Errorf("%s lacks %s", r.Body, machine)
			}
			r = d.Do(t, "POST", test.over.path, servetest.LegacyBody("tools/call", params), session...)
			told("2025-11-25", r.Status, r.Header, r.Body)
			if _, e := r.Result(t); e == nil || !strings.Contains(r.Body, machine) {
				t.Errorf("%s lacks %s", r.Body, machine)
			}
			calls := strings.TrimSuffix("/branches/default"+strings.TrimPrefix(test.over.path, "/branches/default"), "/mcp") + "/calls"
			if strings.HasPrefix(test.over.path, "/branches/") {
				calls = strings.TrimSuffix(test.over.path, "/mcp") + "/calls"
			}
			r = d.Do(t, "POST", calls, fmt.Sprintf(`{"function":%q}`, test.over.tool), who...)
			told("plain envelope", r.Status, r.Header, r.Body)
			if want := fmt.Sprintf(`"limit":%q,"retryAfter":1`, test.limit); !strings.Contains(r.Body, want) {
				t.Errorf("%s lacks %s", r.Body, want)
			}
			r = d.Do(t, "POST", calls, fmt.Sprintf(`{"type":"tool_use","id":"t1","name":%q,"input":{}}`, test.over.tool), who...)
			told("Anthropic's envelope", r.Status, r.Header, r.Body)
			if test.within.path != "" {
				d.fill(t, test.within)
			}
			close(d.release)
			d.calls.Wait()
			if r := d.post(t, test.over); r.Status != 200 || !strings.Contains(r.Body, "done") {
				t.Errorf("afterwards: %+v", r)
			}
		})
	}
}

// On stdio a call over a limit is an error with the same data, at once.
func TestLimitsOnStdio(t *testing.T) {
	t.Parallel()
	d := startBusy(t, mcpserver.Limits{Calls: 1}, false)
	d.fill(t, call{"/mcp", "", "slow"})
	p := servetest.Attach(t, d.Server, "default")
	p.Send(t, servetest.ModernBody("tools/call", `"name":"dull"`))
	line := p.Next(t)
	for _, want := range []string{`"code":-32603`, "this branch runs as many calls", `{"catalogd/error":{"code":"overloaded","limit":"branch","retryAfter":1}}`} {
		if !strings.Contains(line, want) {
			t.Errorf("%s lacks %s", line, want)
		}
	}
	close(d.release)
	d.calls.Wait()
	p.Send(t, servetest.ModernBody("tools/call", `"name":"dull"`))
	if line := p.Next(t); !strings.Contains(line, "done") {
		t.Errorf("afterwards: %s", line)
	}
}

// One principal's flood fills neither a branch nor its queue: another's call waits for its turn, and gets the next place.
func TestFloodOfOnePrincipal(t *testing.T) {
	t.Parallel()
	d := startBusy(t, mcpserver.Limits{Calls: 4, CallsPerTool: 9, Queue: 3, QueueWait: time.Hour}, true)
	d.fill(t, call{"/mcp", "ann", "slow"}, call{"/mcp", "ann", "slow"}, call{"/mcp", "cat", "slow"}, call{"/mcp", "cat", "slow"})
	var refused, done atomic.Int32
	flood := func(who string, n int) {
		for range n {
			d.calls.Go(func() {
				switch r := d.post(t, call{"/mcp", who, "slow"}); r.Status {
				case http.StatusTooManyRequests:
					refused.Add(1)
				default:
					if !strings.Contains(r.Body, "done") {
						t.Errorf("%s: %+v", who, r)
					}
					done.Add(1)
				}
			})
		}
	}
	flood("ann", 50)
	servetest.Until(t, "the flood fills the queue", func() bool { return refused.Load() == 47 })
	flood("bob", 1)
	servetest.Until(t, "the flood makes room", func() bool { return refused.Load() == 48 })
	close(d.release)
	d.calls.Wait()
	if done.Load() != 3 || refused.Load() != 48 {
		t.Errorf("%d were run and %d refused, want 3 and 48", done.Load(), refused.Load())
	}
}

// Too many sessions and streams are refused with 503, and which limit it was.
func TestLimitsOfSessionsAndStreams(t *testing.T) {
	t.Parallel()
	begin := `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"` + servetest.LegacyVersion + `","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	for _, test := range []struct {
		name, want string
		limits     mcpserver.Limits
		ask        func(*testing.T, *servetest.Server, []string) servetest.Response
	}{
		{"sessions", `"id":7,"error":{"code":-32603,"message":"as many sessions are open here as may be (1); nothing was opened. Close one that is not needed, or try again in 1 s","data":{"catalogd/error":{"code":"overloaded","limit":"sessions","retryAfter":1}}}`,
			mcpserver.Limits{Sessions: 1}, func(t *testing.T, d *servetest.Server, _ []string) servetest.Response {
				return d.Do(t, "POST", "/mcp", begin)
			}},
		{"sessions of all branches", `"limit":"sessions_total","retryAfter":1`, mcpserver.Limits{AllSessions: 1},
			func(t *testing.T, d *servetest.Server, _ []string) servetest.Response {
				return d.Do(t, "POST", "/branches/research/mcp", begin)
			}},
		{"streams", `{"error":"as many streams are open here as may be (1); nothing was opened.`, mcpserver.Limits{Streams: 1},
			func(t *testing.T, d *servetest.Server, session []string) servetest.Response {
				d.Stream(t, "/mcp", session)
				return d.Do(t, "GET", "/mcp", "", append([]string{"Accept", "text/event-stream"}, d.Session(t, "/mcp")...)...)
			}},
		{"streams of 2026-07-28", `"limit":"streams","retryAfter":1`, mcpserver.Limits{Streams: 1},
			func(t *testing.T, d *servetest.Server, session []string) servetest.Response {
				d.Stream(t, "/mcp", session)
				return d.Modern(t, "/mcp", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := servetest.Start(t, servetest.Weather(), func(b *servetest.Backend) { b.Limits = test.limits })
			r := test.ask(t, d, d.Session(t, "/mcp"))
			if r.Status != http.StatusServiceUnavailable || r.Header.Get("Retry-After") != "1" || !strings.Contains(r.Body, test.want) {
				t.Errorf("got %+v, want 503 with %s", r, test.want)
			}
		})
	}
}
