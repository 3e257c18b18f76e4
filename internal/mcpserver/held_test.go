package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/registry"
)

// What an upstream of an older era asks by a request during a call reaches a client of 2026-07-28 as a result, as it came,
// and the answer of the next round the upstream, as it came.
func TestHeldCalls(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"http", "stdio"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			d := servetest.Start(t, upstreamOf(t, asking(t, "elicitation/create"), []string{"elicitation"}))
			speak := func(body string) turned {
				return readTurn(t, d.Do(t, "POST", "/mcp", body, servetest.ModernHeader("tools/call", `"name":"says"`)...).Body)
			}
			if transport == "stdio" {
				p := servetest.Attach(t, d, "default")
				speak = func(body string) turned {
					p.Send(t, body)
					return readTurn(t, p.Next(t))
				}
			}
			first := speak(turn(1, ableToElicit, oneNote, ""))
			want := `{"question-1":{"method":"elicitation/create","params":` + askedParams + `}}`
			if first.ID != 1 || first.Result.ResultType != "input_required" || string(first.Result.InputRequests) != want || first.Result.RequestState == nil {
				t.Fatalf("%+v\n%s", first, first.Result.InputRequests)
			}
			again := speak(turn(2, ableToElicit, oneNote, first.again(`{"other":{}}`)))
			if again.ID != 2 || string(again.Result.InputRequests) != want {
				t.Fatalf("without the answer: %+v", again)
			}
			last := speak(turn(3, ableToElicit, oneNote, again.again(`{"question-1":`+answered+`}`)))
			got := last.text()
			if last.ID != 3 || last.Result.ResultType != "complete" || !strings.Contains(got, `"result":`+answered) {
				t.Errorf("%+v", last)
			}
			if first.Result.Meta["catalogd/call"] == nil || string(first.Result.Meta["catalogd/call"]) != string(last.Result.Meta["catalogd/call"]) {
				t.Errorf("one call has the ids %s and %s", first.Result.Meta["catalogd/call"], last.Result.Meta["catalogd/call"])
			}
		})
	}
}

// inquirer is a tool that asks its caller by a request and answers with what it got; ran counts how often it began, and
// ended learns how each call ended.
func inquirer(ran *atomic.Int32, ended chan<- string) speaker {
	return func(ctx context.Context, args contract.Args, to registry.Listener) (*registry.Result, error) {
		ran.Add(1)
		q := registry.Question{Method: "elicitation/create", Params: json.RawMessage(`{"message":"m"}`)}
		if !to.Takes(q) {
			return &registry.Result{Content: []json.RawMessage{registry.Text("not asked")}}, nil
		}
		reply := to.Ask(ctx, q)
		if to.Progress != nil {
			to.Progress(json.RawMessage(`{"progress":1}`))
		}
		ended <- string(reply.Result) + string(reply.Error)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return &registry.Result{Content: []json.RawMessage{registry.Text(string(reply.Result) + string(reply.Error))}}, nil
	}
}

func inquiring(timeout time.Duration) (c servetest.Catalog, ran *atomic.Int32, ended chan string) {
	ran, ended = &atomic.Int32{}, make(chan string, 1000)
	limited := func(t *registry.Tool) { t.Timeout = timeout }
	says := servetest.Tool("says", noteSchema, inquirer(ran, ended), noteFields, limited)
	twin := servetest.Tool("twin", noteSchema, inquirer(ran, ended), noteFields, limited)
	return servetest.Catalog{ID: "g1", Relay: []string{"elicitation"}, Branches: map[string][]string{"default": nil, "other": nil}, Tools: []servetest.Fixture{says, twin}}, ran, ended
}

// TestThreatHeldCalls has T14 for calls that wait: only the round that belongs to a call goes on with it, once.
func TestThreatHeldCalls(t *testing.T) {
	t.Parallel()
	c, ran, ended := inquiring(time.Minute)
	d := servetest.Start(t, c)
	header := servetest.ModernHeader("tools/call", `"name":"says"`)
	ask := func() turned {
		t.Helper()
		got := readTurn(t, d.Do(t, "POST", "/mcp", turn(1, ableToElicit, oneNote, ""), header...).Body)
		if got.Result.RequestState == nil {
			t.Fatalf("%+v", got)
		}
		return got
	}
	const yes = `{"question-1":{"action":"accept"}}`
	held := ask()
	state := *held.Result.RequestState
	for name, send := range map[string]func() servetest.Response{
		"T14/other branch": func() servetest.Response {
			return d.Do(t, "POST", "/branches/other/mcp", turn(2, ableToElicit, oneNote, held.again(yes)), header...)
		},
		"T14/other args": func() servetest.Response {
			return d.Do(t, "POST", "/mcp", turn(2, ableToElicit, `{"note":"m"}`, held.again(yes)), header...)
		},
		"T14/other tool": func() servetest.Response {
			return d.Do(t, "POST", "/mcp", strings.Replace(turn(2, ableToElicit, oneNote, held.again(yes)), `"says"`, `"twin"`, 1), servetest.ModernHeader("tools/call", `"name":"twin"`)...)
		},
		"T14/changed": func() servetest.Response {
			flipped := []byte(state)
			flipped[len(flipped)/2] ^= 1
			return d.Do(t, "POST", "/mcp", turn(2, ableToElicit, oneNote, `"inputResponses":`+yes+`,"requestState":"`+string(flipped)+`",`), header...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if r := send(); r.Status != 400 || readTurn(t, r.Body).Error.Code != -32602 {
				t.Errorf("%d %s", r.Status, r.Body)
			}
		})
	}
	if n := ran.Load(); n != 1 || len(ended) != 0 {
		t.Errorf("it ran %d times, and %d ended", n, len(ended))
	}
	if got := readTurn(t, d.Do(t, "POST", "/mcp", turn(3, ableToElicit, oneNote, held.again(yes)), header...).Body); got.text() != `{"action":"accept"}` || <-ended != got.text() {
		t.Errorf("its own round: %+v", got)
	}
	t.Run("T14/replay", func(t *testing.T) {
		if r := d.Do(t, "POST", "/mcp", turn(4, ableToElicit, oneNote, held.again(yes)), header...); r.Status != 400 || ran.Load() != 1 {
			t.Errorf("%d %s", r.Status, r.Body)
		}
	})
	// A round is decided like a first call, and a call that may not go on is given up.
	held = ask()
	c.Relay = nil
	d.Served.Store(c.Generation(t, d.Logger))
	got := readTurn(t, d.Do(t, "POST", "/mcp", turn(5, ableToElicit, oneNote, held.again(yes)), header...).Body)
	if !got.Result.IsError || !strings.Contains(got.text(), "no longer relays") || !strings.Contains(<-ended, "did not answer") {
		t.Errorf("without leave any more: %+v", got)
	}
	c.Relay = []string{"elicitation"}
	d.Served.Store(c.Generation(t, d.Logger))
	held = ask()
	c.Deny = "says"
	d.Served.Store(c.Generation(t, d.Logger))
	got = readTurn(t, d.Do(t, "POST", "/mcp", turn(6, ableToElicit, oneNote, held.again(yes)), header...).Body)
	if !got.Result.IsError || !strings.Contains(got.text(), "not on Sundays") || !strings.Contains(<-ended, "did not answer") {
		t.Errorf("denied: %+v", got)
	}
}

// A call waits for its client no longer than its own time, and is then told to have ended.
func TestHeldCallsEnd(t *testing.T) {
	t.Parallel()
	c, ran, ended := inquiring(time.Second)
	d := servetest.Start(t, c)
	header := servetest.ModernHeader("tools/call", `"name":"says"`)
	held := readTurn(t, d.Do(t, "POST", "/mcp", turn(1, ableToElicit, oneNote, ""), header...).Body)
	if got := <-ended; !strings.Contains(got, "did not answer in time") {
		t.Errorf("the tool got %s", got)
	}
	servetest.Eventually(t, "the call is recorded", func() bool { return strings.Contains(d.Log.String(), "code=timeout") })
	if held.Result.RequestState == nil { // the time was up before the question was out, on a busy machine
		return
	}
	r := d.Do(t, "POST", "/mcp", turn(2, ableToElicit, oneNote, held.again(`{"question-1":{}}`)), header...)
	if got := readTurn(t, r.Body); r.Status != 400 || got.Error.Code != -32602 || !strings.Contains(got.Error.Message, "has ended") || ran.Load() != 1 {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}

// So many calls wait at most; the question of a further one is refused, and its tool goes on. All of them end with the
// daemon.
func TestHeldCallsAreBounded(t *testing.T) {
	t.Parallel()
	c, ran, ended := inquiring(time.Minute)
	d := servetest.Start(t, c)
	header := servetest.ModernHeader("tools/call", `"name":"says"`)
	for i := range 64 {
		if got := readTurn(t, d.Do(t, "POST", "/mcp", turn(i, ableToElicit, oneNote, ""), header...).Body); got.Result.ResultType != "input_required" {
			t.Fatalf("call %d: %+v", i, got)
		}
	}
	if got := readTurn(t, d.Do(t, "POST", "/mcp", turn(64, ableToElicit, oneNote, ""), header...).Body); !strings.Contains(got.text(), "too many calls wait") {
		t.Errorf("one too many: %+v", got)
	}
	if n := ran.Load(); n != 65 || len(ended) != 1 {
		t.Errorf("%d ran, %d ended", n, len(ended))
	}
	// Calls that ask nothing, and another branch, have room.
	if got := readTurn(t, d.Do(t, "POST", "/mcp", turn(65, `{"roots":{}}`, oneNote, ""), header...).Body); !strings.Contains(got.text(), "has not declared") {
		t.Errorf("a client that answers nothing of the kind: %+v", got)
	}
	if got := readTurn(t, d.Do(t, "POST", "/branches/other/mcp", turn(66, ableToElicit, oneNote, ""), header...).Body); got.Result.ResultType != "input_required" {
		t.Errorf("another branch: %+v", got)
	}
}

// Progress goes to the round that is being answered, under that round's token.
func TestHeldCallsHearTheirRound(t *testing.T) {
	t.Parallel()
	c, _, ended := inquiring(time.Minute)
	d := servetest.Start(t, c)
	header := servetest.ModernHeader("tools/call", `"name":"says"`)
	withToken := func(body string, n int) string {
		return strings.Replace(body, `"_meta":{`, fmt.Sprintf(`"_meta":{"progressToken":%d,`, n), 1)
	}
	held := readTurn(t, d.Do(t, "POST", "/mcp", withToken(turn(1, ableToElicit, oneNote, ""), 1), header...).Body)
	r := d.Do(t, "POST", "/mcp", withToken(turn(2, ableToElicit, oneNote, held.again(`{"question-1":{}}`)), 2), header...)
	events := eventsOf(r.Body)
	if len(events) != 2 || !strings.Contains(events[0], `"progressToken":2,"progress":1`) || readTurn(t, events[1]).text() != "{}" || <-ended != "{}" {
		t.Errorf("%s", r.Body)
	}
}
