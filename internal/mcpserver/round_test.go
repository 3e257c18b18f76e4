package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/registry"
)

// upstreamState has what an encoder that escapes would change.
const upstreamState = `"its <&> state \u00e9"`

// asker is an upstream of 2026-07-28 whose tool asks by results.
type asker struct {
	// requests is its inputRequests, and state its requestState; empty for none.
	requests, state string
	// rounds is how often it asks; after that it answers with what it was given, as text.
	rounds int
	// ran counts the calls that it got.
	ran atomic.Int32
}

func (a *asker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	var req struct {
		ID     json.RawMessage
		Method string
		Params struct {
			InputResponses json.RawMessage
			RequestState   json.RawMessage
			Meta           map[string]json.RawMessage `json:"_meta"`
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	result := `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}`
	if req.Method == "tools/call" {
		p := req.Params
		if n := a.ran.Add(1); int(n) > a.rounds {
			text, err := json.Marshal(fmt.Sprintf("responses=%s state=%s able=%s", p.InputResponses, p.RequestState, p.Meta["io.modelcontextprotocol/clientCapabilities"]))
			if err != nil {
				panic(err)
			}
			result = `{"resultType":"complete","content":[{"type":"text","text":` + string(text) + `}]}`
		} else {
			result = `{"resultType":"input_required","_meta":{"x/y":9007199254740993}`
			if a.requests != "" {
				result += `,"inputRequests":` + a.requests
			}
			if a.state != "" {
				result += `,"requestState":` + a.state
			}
			result += "}"
		}
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result)
}

func elicitation(params string) string {
	return `{"q 1":{"method":"elicitation/create","params":` + params + `}}`
}

// turn is a call of a client of 2026-07-28 that declares able; more is what else stands in its params.
func turn(id int, able, arguments, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"says","arguments":%s,%s"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":%s}}}`,
		id, arguments, more, servetest.ModernVersion, able)
}

// turned is how a call of 2026-07-28 was answered.
type turned struct {
	ID     int
	Result struct {
		ResultType    string
		InputRequests json.RawMessage
		RequestState  *string
		Content       []struct{ Text string }
		IsError       bool
		Meta          map[string]json.RawMessage `json:"_meta"`
	}
	Error *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

func readTurn(t *testing.T, body string) (got turned) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return got
}

func (got turned) text() string {
	if len(got.Result.Content) == 0 {
		return ""
	}
	return got.Result.Content[0].Text
}

// again is what stands in the params of the next round.
func (got turned) again(responses string) string {
	more := ""
	if responses != "" {
		more = `"inputResponses":` + responses + ","
	}
	if got.Result.RequestState != nil {
		state, err := json.Marshal(*got.Result.RequestState)
		if err != nil {
			panic(err)
		}
		more += `"requestState":` + string(state) + ","
	}
	return more
}

// overBoth runs a test of rounds whose client sends one call at a time, over HTTP and on stdio.
func overBoth(t *testing.T, up func() *asker, relay []string, test func(t *testing.T, up *asker, speak func(body string) turned)) {
	for _, transport := range []string{"http", "stdio"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			a := up()
			d := servetest.Start(t, upstreamOf(t, a.ServeHTTP, relay))
			if transport == "http" {
				test(t, a, func(body string) turned {
					t.Helper()
					return readTurn(t, d.Do(t, "POST", "/mcp", body, servetest.ModernHeader("tools/call", `"name":"says"`)...).Body)
				})
				return
			}
			p := servetest.Attach(t, d, "default")
			test(t, a, func(body string) turned {
				t.Helper()
				p.Send(t, body)
				return readTurn(t, p.Next(t))
			})
		})
	}
}

const (
	ableToElicit = `{"elicitation":{}}`
	oneNote      = `{"note":"n"}`
)

// What an upstream asks by a result reaches the client as it came, but for the state; what the client answers reaches the
// upstream as it came, with the upstream's own state, and each round once.
func TestRounds(t *testing.T) {
	t.Parallel()
	requests := elicitation(askedParams)
	asks := func() *asker { return &asker{requests: requests, state: upstreamState, rounds: 2} }
	overBoth(t, asks, []string{"elicitation"}, func(t *testing.T, up *asker, speak func(string) turned) {
		first := speak(turn(1, ableToElicit, oneNote, ""))
		if first.Result.ResultType != "input_required" || string(first.Result.InputRequests) != requests || first.Result.RequestState == nil {
			t.Fatalf("the first round: %+v", first)
		}
		if strings.Contains(*first.Result.RequestState, "state") || string(first.Result.Meta["x/y"]) != "9007199254740993" || first.Result.Meta["catalogd/call"] == nil {
			t.Errorf("the first round: %+v", first)
		}
		responses := `{"q 1":` + answered + `,"never asked":{"a":[1e400]}}`
		second := speak(turn(2, ableToElicit, `{ "note":"\u006e" }`, first.again(responses)))
		if second.ID != 2 || second.Result.ResultType != "input_required" || second.Result.RequestState == nil || *second.Result.RequestState == *first.Result.RequestState {
			t.Fatalf("the second round: %+v", second)
		}
		last := speak(turn(3, ableToElicit, oneNote, second.again(responses)))
		got := last.text()
		if want := "responses=" + responses + " state=" + upstreamState + ` able={"elicitation":{}}`; last.Result.ResultType != "complete" || got != want {
			t.Errorf("the upstream got\n%s\nnot\n%s", got, want)
		}
		if n := up.ran.Load(); n != 3 {
			t.Errorf("the upstream was called %d times", n)
		}
	})
}

// What an upstream asks without leave, or of a client that can't answer, never reaches the client; the upstream is notified
// beforehand what can be asked.
func TestRoundsWithoutLeave(t *testing.T) {
	t.Parallel()
	sampling := `{"s":{"method":"sampling/createMessage","params":{}}}`
	page := elicitation(`{"mode":"url","elicitationId":"1","message":"m","url":"https://login.example.com/x"}`)
	for _, row := range []struct {
		name, able, requests string
		relay                []string
		code                 int
		says                 string
	}{
		{"allowed", `{"sampling":{"tools":{}},"roots":{}}`, sampling, []string{"sampling"}, 0, ""},
		{"nothing is relayed", ableToElicit, elicitation("{}"), nil, 0, "does not relay"},
		{"another kind is relayed", `{"elicitation":{},"sampling":{}}`, sampling, []string{"elicitation", "logging", "roots"}, 0, "does not relay"},
		{"one of two", `{"elicitation":{},"sampling":{}}`, `{"s":{"method":"sampling/createMessage"},"e":{"method":"elicitation/create"}}`, []string{"elicitation"}, 0, "does not relay"},
		{"not declared", ableToElicit, sampling, []string{"elicitation", "sampling"}, -32021, `"requiredCapabilities":{"sampling":{}}}`},
		{"nothing declared", "{}", elicitation("{}"), []string{"elicitation"}, -32021, `"requiredCapabilities":{"elicitation":{}}}`},
		{"a page, not declared", ableToElicit, page, []string{"elicitation"}, 0, "does not relay"},
		{"a page of no host that is allowed", `{"elicitation":{"form":{},"url":{}}}`, page, []string{"elicitation"}, 0, "does not relay"},
		{"no form", `{"elicitation":{"url":{}}}`, elicitation("{}"), []string{"elicitation"}, -32021, "requiredCapabilities"},
		{"unknown method", ableToElicit, `{"x":{"method":"tools/call","params":{}}}`, []string{"elicitation"}, 0, "unknown method"},
		{"a key twice", `{"elicitation":{},"sampling":{}}`, `{"s":{"method":"elicitation/create","method":"sampling/createMessage"}}`, []string{"elicitation", "sampling"}, 0, "duplicate"},
		{"a key in another case", ableToElicit, `{"s":{"method":"elicitation/create","Method":"sampling/createMessage"}}`, []string{"elicitation"}, 0, "only in case"},
		{"a name twice", ableToElicit, `{"s":{"method":"elicitation/create"},"s":{"method":"elicitation/create"}}`, []string{"elicitation"}, 0, "duplicate"},
		{"no object", ableToElicit, `[]`, []string{"elicitation"}, 0, "not an object"},
		{"neither requests nor state", ableToElicit, "", []string{"elicitation"}, 0, "neither"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			up := &asker{requests: row.requests, rounds: 1}
			d := servetest.Start(t, upstreamOf(t, up.ServeHTTP, row.relay))
			r := d.Do(t, "POST", "/mcp", turn(1, row.able, oneNote, ""), servetest.ModernHeader("tools/call", `"name":"says"`)...)
			got := readTurn(t, r.Body)
			switch {
			case row.says == "":
				if got.Result.ResultType != "input_required" || string(got.Result.InputRequests) != row.requests {
					t.Errorf("%s", r.Body)
				}
			case row.code != 0:
				if r.Status != 400 || got.Error == nil || got.Error.Code != row.code || !strings.Contains(string(got.Error.Data), row.says) {
					t.Errorf("%d %s", r.Status, r.Body)
				}
			case !got.Result.IsError || got.Result.ResultType != "complete" || !strings.Contains(got.text(), row.says):
				t.Errorf("%s", r.Body)
			}
		})
	}
}

// TestThreatRounds has T14 through the daemon: a state that isn't of this very call is answered -32602, and nothing runs.
func TestThreatRounds(t *testing.T) {
	t.Parallel()
	up := &asker{requests: elicitation("{}"), state: `"s"`, rounds: 1 << 30}
	c := upstreamOf(t, up.ServeHTTP, []string{"elicitation"})
	c.Branches["other"] = nil
	twin := c.Tools[0]
	twin.Tool.Name = "twin"
	c.Tools = append(c.Tools, twin)
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
	const yes = `{"q 1":{"action":"accept"}}`
	refused := func(t *testing.T, r servetest.Response) {
		t.Helper()
		if got := readTurn(t, r.Body); r.Status != 400 || got.Error == nil || got.Error.Code != -32602 {
			t.Errorf("%d %s", r.Status, r.Body)
		}
	}
	used := ask()
	if got := readTurn(t, d.Do(t, "POST", "/mcp", turn(2, ableToElicit, oneNote, used.again(yes)), header...).Body); got.Error != nil {
		t.Fatalf("%+v", got)
	}
	fresh := ask()
	ran := up.ran.Load()
	for name, send := range map[string]func() servetest.Response{
		"T14/replay": func() servetest.Response {
			return d.Do(t, "POST", "/mcp", turn(3, ableToElicit, oneNote, used.again(yes)), header...)
		},
		"T14/other branch": func() servetest.Response {
			return d.Do(t, "POST", "/branches/other/mcp", turn(3, ableToElicit, oneNote, fresh.again(yes)), header...)
		},
		"T14/changed args": func() servetest.Response {
			return d.Do(t, "POST", "/mcp", turn(3, ableToElicit, `{"note":"m"}`, fresh.again(yes)), header...)
		},
		"T14/no string": func() servetest.Response {
			return d.Do(t, "POST", "/mcp", turn(3, ableToElicit, oneNote, `"requestState":null,`), header...)
		},
		"T14/empty": func() servetest.Response {
			return d.Do(t, "POST", "/mcp", turn(3, ableToElicit, oneNote, `"requestState":"",`), header...)
		},
		"T14/made up": func() servetest.Response {
			return d.Do(t, "POST", "/mcp", turn(3, ableToElicit, oneNote, `"requestState":"s",`), header...)
		},
		"T14/no answers": func() servetest.Response {
			return d.Do(t, "POST", "/mcp", turn(3, ableToElicit, oneNote, `"inputResponses":null,`), header...)
		},
		"T14/answers, a key": func() servetest.Response {
			return d.Do(t, "POST", "/mcp", turn(3, ableToElicit, oneNote, `"inputResponses":{"q 1":5},`), header...)
		},
		"T14/other tool": func() servetest.Response {
			body := strings.Replace(turn(3, ableToElicit, oneNote, fresh.again(yes)), `"says"`, `"twin"`, 1)
			return d.Do(t, "POST", "/mcp", body, servetest.ModernHeader("tools/call", `"name":"twin"`)...)
		},
	} {
		t.Run(name, func(t *testing.T) { refused(t, send()) })
	}
	t.Run("T14/each character", func(t *testing.T) {
		state := *fresh.Result.RequestState
		for i := range len(state) {
			flipped := []byte(state)
			flipped[i] ^= 1
			if flipped[i] < '-' || flipped[i] > 'z' || flipped[i] == '\\' {
				flipped[i] = 'A'
			}
			refused(t, d.Do(t, "POST", "/mcp", turn(3, ableToElicit, oneNote, `"requestState":"`+string(flipped)+`",`), header...))
		}
	})
	if n := up.ran.Load(); n != ran {
		t.Errorf("the upstream was called %d times by what was refused", n-ran)
	}
	if got := readTurn(t, d.Do(t, "POST", "/mcp", turn(4, ableToElicit, oneNote, fresh.again(yes)), header...).Body); got.Error != nil || up.ran.Load() != ran+1 {
		t.Errorf("its own call: %+v", got)
	}
	// A round is decided like a first call.
	fresh = ask()
	c.Relay = nil
	d.Served.Store(c.Generation(t, d.Logger))
	ran = up.ran.Load()
	if got := readTurn(t, d.Do(t, "POST", "/mcp", turn(5, ableToElicit, oneNote, fresh.again(yes)), header...).Body); !got.Result.IsError || up.ran.Load() != ran {
		t.Errorf("without leave any more: %+v", got)
	}
	c.Deny = "says"
	d.Served.Store(c.Generation(t, d.Logger))
	if got := readTurn(t, d.Do(t, "POST", "/mcp", turn(6, ableToElicit, oneNote, `"inputResponses":`+yes+","), header...).Body); !got.Result.IsError || up.ran.Load() != ran {
		t.Errorf("denied: %+v", got)
	}
}

// A client of an older era is asked by requests, and catalogd runs the rounds: answers under the upstream's names, as they
// came, with the upstream's state; a server that never has enough is given up.
func TestRoundsForOlderClients(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"http", "stdio"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			up := &asker{requests: elicitation(askedParams), state: upstreamState, rounds: 2}
			d := servetest.Start(t, upstreamOf(t, up.ServeHTTP, []string{"elicitation"}))
			next, send := older(t, d, transport)
			for range 2 {
				line := next()
				var q struct{ ID json.RawMessage }
				if err := json.Unmarshal([]byte(line), &q); err != nil {
					t.Fatalf("%v: %s", err, line)
				}
				if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":%s}`, q.ID, askedParams); line != want {
					t.Fatalf("the client was asked\n%s\nnot\n%s", line, want)
				}
				send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, answered))
			}
			var last struct {
				ID     string
				Result struct{ Content []struct{ Text string } }
			}
			if line := next(); json.Unmarshal([]byte(line), &last) != nil || last.ID != "c" || len(last.Result.Content) != 1 {
				t.Fatalf("the call was answered %s", line)
			}
			got := last.Result.Content[0].Text
			if want := `responses={"q 1":` + answered + `} state=` + upstreamState + ` able={"elicitation":{}}`; got != want {
				t.Errorf("the upstream got\n%s\nnot\n%s", got, want)
			}
		})
	}
}

// older makes the call of a client of 2025-06-18 that answers elicitations, and returns what it reads and how it answers.
func older(t *testing.T, d *servetest.Server, transport string) (next func() string, send func(string)) {
	t.Helper()
	if transport == "http" {
		begun := d.Do(t, "POST", "/mcp", capable)
		header := []string{"Mcp-Session-Id", begun.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-06-18"}
		return streamed(t, d, callBody(false, "c", "n", ""), header), func(answer string) {
			if r := d.Do(t, "POST", "/mcp", answer, header...); r.Status != 202 {
				t.Errorf("the client's answer was answered %+v", r)
			}
		}
	}
	p := servetest.Attach(t, d, "default")
	p.Send(t, capable)
	p.Next(t)
	p.Send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, callBody(false, "c", "n", ""))
	return func() string { return p.Next(t) }, func(answer string) { p.Send(t, answer) }
}

// What ends the rounds of an older client's call other than an answer of the upstream's.
func TestRoundsForOlderClientsEnd(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, answer string
		rounds       int
		asked        int
		says         string
	}{
		{"never enough", `"result":` + answered, 1 << 30, 9, "10 times in one call"},
		{"the client refuses", `"error":{"code":-1,"message":"not now"}`, 5, 1, "the error -1: not now"},
		{"no object", `"result":[]`, 5, 1, "not an object"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			up := &asker{requests: elicitation("{}"), rounds: row.rounds}
			d := servetest.Start(t, upstreamOf(t, up.ServeHTTP, []string{"elicitation"}))
			next, send := older(t, d, "stdio")
			for range row.asked {
				var q struct{ ID json.RawMessage }
				if line := next(); json.Unmarshal([]byte(line), &q) != nil || !strings.Contains(line, "elicitation/create") {
					t.Fatal(line)
				}
				send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, q.ID, row.answer))
			}
			if line := next(); !strings.Contains(line, row.says) || !strings.Contains(line, `"isError":true`) {
				t.Error(line)
			}
		})
	}
}

// TestThreatPages has T14 for addresses: a page that the person is asked to open is https, at a host that the decision names, and written in one way.
func TestThreatPages(t *testing.T) {
	t.Parallel()
	to := registry.Listener{Relay: []string{"elicitation"}, Hosts: []string{"login.example.com", "pages.example.com:8443"}}
	for params, want := range map[string]bool{
		`{"mode":"url","url":"https://login.example.com/a?b#c"}`:                                 true,
		`{"mode":"url","url":"https://LOGIN.example.com:443/"}`:                                  true,
		`{"mode":"url","url":"https://pages.example.com:8443/x"}`:                                true,
		`{"mode":"form","message":"m"}`:                                                          true,
		`{"message":"m"}`:                                                                        true,
		``:                                                                                       true,
		`{"mode":"url","url":"http://login.example.com/"}`:                                       false,
		`{"mode":"url","url":"https://login.example.com:8443/"}`:                                 false,
		`{"mode":"url","url":"https://pages.example.com/"}`:                                      false,
		`{"mode":"url","url":"https://evil.example/login.example.com"}`:                          false,
		`{"mode":"url","url":"https://login.example.com@evil.example/"}`:                         false,
		`{"mode":"url","url":"https://user:pw@login.example.com/"}`:                              false,
		`{"mode":"url","url":"https://login.example.com.evil.example/"}`:                         false,
		`{"mode":"url","url":"https://evil.example\\@login.example.com/"}`:                       false,
		`{"mode":"url","url":"https://evil.example\t@login.example.com/"}`:                       false,
		`{"mode":"url","url":" https://login.example.com/"}`:                                     false,
		`{"mode":"url","url":"https://login.example.com./"}`:                                     false,
		`{"mode":"url","url":"https:login.example.com"}`:                                         false,
		`{"mode":"url","url":"//login.example.com/"}`:                                            false,
		`{"mode":"url","url":"javascript:alert(1)"}`:                                             false,
		`{"mode":"url","url":"file:///etc/passwd"}`:                                              false,
		`{"mode":"url","url":"https://l\u043egin.example.com/"}`:                                 false,
		`{"mode":"url","url":""}`:                                                                false,
		`{"mode":"url"}`:                                                                         false,
		`{"mode":"url","url":["https://login.example.com/"]}`:                                    false,
		`{"mode":"URL","url":"https://login.example.com/"}`:                                      false,
		`{"mode":["url"],"url":"https://login.example.com/"}`:                                    false,
		`{"url":"https://login.example.com/"}`:                                                   false,
		`{"mode":"form","Mode":"url","url":"https://login.example.com/"}`:                        false,
		`{"mode":"url","url":"https://login.example.com/","URL":"https://evil.example/"}`:        false,
		`{"mode":"url","url":"https://login.example.com/","url":"https://evil.example/"}`:        false,
		`{"mode":"url","mode":"form","url":"https://evil.example/"}`:                             false,
		`{"mode":"url","u\u0072l":"https://evil.example/","url":"https://login.example.com/ok"}`: false,
	} {
		t.Run("T14/"+params, func(t *testing.T) {
			q := registry.Question{Method: "elicitation/create", Params: json.RawMessage(params)}
			if to.Permits(q) != want {
				t.Errorf("%s: %v", params, !want)
			}
			if none := (registry.Listener{Relay: to.Relay}); strings.Contains(params, `"url":`) && none.Permits(q) {
				t.Errorf("%s: asked without a host that is allowed", params)
			}
		})
	}
}
