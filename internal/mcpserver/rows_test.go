package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/registry"
)

// TestThreat finds the tests of the threats that the front must hold against by their number (facts, threats).
func TestThreat(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		test func(*testing.T)
	}{
		{"T1/before everything", guardComesFirst},
		{"T2/sessions", sessions},
		{"T2/interleavings", interleavings},
		{"T2/tokens", tokensOpen},
		{"T2/closed branches", closedIsMissing},
		{"T2/sessions have owners", sessionsHaveOwners},
		{"T2/revoked tokens", revokedIsOut},
		{"T2/standard input and output", stdioBearer},
		{"T24/admins", adminsOnly},
		{"T2/guessing", guessingIsBounded},
		{"T1/named hosts", guardKnowsNames},
		{"T3/listed is callable", listedIsCallable},
		{"T17/swaps under callers", swapWhileCalling},
		{"T3/hidden is missing", hiddenIsMissing},
		{"T6/what is scanned is what runs", oneReading},
		{"T19/logs", logsAreTame},
		{"T20/overload", badOverload},
	} {
		t.Run(row.name, row.test)
	}
}

// typed is a catalog with a tool of many kinds of argument, which echoes them.
func typed() servetest.Catalog {
	const schema = `{"type":"object","properties":{"i":{"type":"integer"},"n":{"type":"number"},"s":{"type":"string","pattern":"^[a-z]+$"},` +
		`"e":{"enum":["a","b"]}},"required":["i"],"additionalProperties":false}`
	return servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil}, Tools: []servetest.Fixture{servetest.Tool("typed", schema, servetest.Invoker(echo), func(t *registry.Tool) {
		t.Args.Fields = []contract.Field{
			{Name: "i", Types: []string{"integer"}, Required: true}, {Name: "n", Types: []string{"number"}},
			{Name: "s", Types: []string{"string"}}, {Name: "e", Types: []string{"string"}},
		}
	})}}
}

func values(t *testing.T) {
	d := servetest.Start(t, typed())
	for value, want := range map[string]string{
		`5`: `5`, `5.0`: `5`, `1e2`: `100`, `-0`: `0`, `9007199254740993`: `9007199254740993`, `-9223372036854775809`: `-9223372036854775809`,
		`"5"`: "", `5.5`: "", `1e400`: "", `true`: "", `null`: "", `[5]`: "",
	} {
		r := d.Modern(t, "/mcp", "tools/call", `"name":"typed","arguments":{"i":`+value+`}`)
		ran := strings.Contains(r.Body, `"structuredContent":{"i":`+want+`}`)
		if refused := strings.Contains(r.Body, `"invalid_arguments"`); ran == refused || ran != (want != "") {
			t.Errorf("%s: %s", value, r.Body)
		}
	}
}

func violations(t *testing.T) {
	d := servetest.Start(t, typed())
	r := d.Modern(t, "/mcp", "tools/call", `"name":"typed","arguments":{"n":"1","s":"A","e":"c","x":1}`)
	result, _ := r.Result(t)
	found := result["_meta"].(map[string]any)["catalogd/error"].(map[string]any)["violations"].([]any)
	if result["isError"] != true || len(found) != 5 {
		t.Errorf("%s", r.Body)
	}
}

// A call that hangs doesn't keep the process when its client has gone.
func stdinEndsBounded(t *testing.T) {
	started, ended := make(chan struct{}, 1), make(chan error, 1)
	d := servetest.Open(t, waiting(started, ended), func(b *servetest.Backend) { b.Limits.Drain = 20 * time.Millisecond })
	p := servetest.Attach(t, d, "default")
	p.Send(t, servetest.ModernBody("tools/call", `"name":"wait"`))
	<-started
	p.In.Close()
	<-ended
	if err := <-p.Ended; err != nil {
		t.Error(err)
	}
}

// A line of 100 MB costs a buffer and an answer; a carriage return alone ends no line.
func stdioLines(t *testing.T) {
	d := servetest.Open(t, servetest.Weather())
	p := servetest.Attach(t, d, "default")
	chunk := strings.Repeat("x", 1<<20)
	for range 100 {
		if _, err := io.WriteString(p.In, chunk); err != nil {
			t.Fatal(err)
		}
	}
	p.Send(t, "")
	if line := p.Next(t); !strings.Contains(line, "4 MiB") {
		t.Errorf("%s", line)
	}
	p.Send(t, servetest.ModernBody("tools/list", "")+"\r")
	if line := p.Next(t); !strings.Contains(line, `"tools":[`) {
		t.Errorf("CR LF: %s", line)
	}
	p.Send(t, servetest.ModernBody("tools/list", "")+"\r"+servetest.ModernBody("tools/list", ""))
	if line := p.Next(t); !strings.Contains(line, "-32700") {
		t.Errorf("CR alone: %s", line)
	}
}

// A reader of stdout that goes away is an end like any other, and the calls in flight end with it.
func TestStdoutBrokenPipe(t *testing.T) {
	t.Parallel()
	started, cancelled := make(chan struct{}, 1), make(chan error, 1)
	d := servetest.Open(t, waiting(started, cancelled))
	reader, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, client := io.Pipe()
	defer client.Close()
	ended := make(chan error, 1)
	go func() { ended <- d.Stdio(context.Background(), "default", in, out) }()
	fmt.Fprintln(client, servetest.ModernBody("tools/call", `"name":"wait"`))
	<-started
	reader.Close()
	fmt.Fprintln(client, servetest.ModernBody("tools/list", ""))
	<-cancelled
	if err := <-ended; err != nil {
		t.Errorf("%v", err)
	}
}

// The tool that is logged, decided on and executed is the one that was scanned, whatever stands around it.
func oneReading(t *testing.T) {
	var ran []string
	c := servetest.Weather()
	for i := range c.Tools {
		name := c.Tools[i].Tool.Name
		c.Tools[i].Run = servetest.Invoker(func(context.Context, contract.Args) (*registry.Result, error) {
			ran = append(ran, name)
			return &registry.Result{Content: []json.RawMessage{registry.Text("ran " + name)}}, nil
		})
	}
	d := servetest.Start(t, c)
	session := d.Session(t, "/mcp")
	for body, want := range map[string]string{
		`"name":"old","_meta":{"name":"complains"}`:                                "old",
		`"name":"old","arguments":{},"x":{"name":"complains","arguments":{"a":1}}`: "old",
		`"n\u0061me":"\u006fld"`:                                                   "old",
		`"name":"old","Name":"complains"`:                                          "",
		`"name":"old","nam\u0435":"complains"`:                                     "old", // a Cyrillic letter is no spelling of ours
		`"name":"old","argument\u017f":{}`:                                         "",
		`"name":"old\u0000"`:                                                       "",
		`"name":"OLD"`:                                                             "",
		`"name":" old"`:                                                            "",
	} {
		ran = nil
		r := d.Do(t, "POST", "/mcp", servetest.LegacyBody("tools/call", body), session...)
		if got := strings.Join(ran, ","); got != want {
			t.Errorf("%s ran %q: %s", body, got, r.Body)
		}
	}
}

// Nothing that comes from outside reaches a terminal through the log, nor begins a line of its own there.
func logsAreTame(t *testing.T) {
	d := servetest.Start(t, servetest.Weather())
	const evil = `\u001b[2J\u0007\u009b31m\u202e\r\nlevel=ERROR msg=forged`
	const bytes = "\x1b]52;c;eA==\x07\u009b31m\u202e\u2028"
	d.Do(t, "POST", "/mcp", servetest.LegacyBody("tools/call", `"name":"`+evil+`"`), d.Session(t, "/mcp")...)
	d.Do(t, "POST", "/mcp", servetest.LegacyBody("tools/call", `"name":"weather","arguments":{"`+evil+`":1}`), d.Session(t, "/mcp")...)
	d.Dial(t, "POST /mcp HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nMcp-Session-ID: "+bytes+"\r\nContent-Length: 0\r\n\r\n")
	d.Dial(t, bytes+" /mcp HTTP/1.1\r\nHost: "+bytes+"\r\n\r\n")
	d.Do(t, "POST", "/branches/"+"%1b%5b2J"+"/mcp", servetest.ModernBody("tools/list", ""), servetest.ModernHeader("tools/list", "")...)
	boom := servetest.Weather()
	boom.Tools[0].Run = servetest.Invoker(func(context.Context, contract.Args) (*registry.Result, error) {
		panic(bytes + "\nlevel=ERROR msg=forged")
	})
	boom.Tools[1].Run = servetest.Invoker(func(context.Context, contract.Args) (*registry.Result, error) {
		return nil, fmt.Errorf("exit status 1: %s\nlevel=ERROR msg=forged", bytes)
	})
	d.Swap(t, boom, "default")
	d.Modern(t, "/mcp", "tools/call", `"name":"weather","arguments":{"city":"Bern"}`)
	d.Modern(t, "/mcp", "tools/call", `"name":"broken"`)
	log := d.Log.String()
	if !strings.Contains(log, "panic: ") || !strings.Contains(log, "exit status 1") {
		t.Error("the log lacks what should be in it")
	}
	for _, bad := range []string{"\x1b", "\x07", "\u009b", "\u202e", "\u2028", "\r", "\nlevel=ERROR msg=forged"} {
		if strings.Contains(log, bad) {
			t.Errorf("the log has %q:\n%q", bad, log)
		}
	}
}

// A call that is running when the daemon is asked to end finishes; one that doesn't is cut off at the limit.
func TestDrain(t *testing.T) {
	t.Parallel()
	t.Run("finishes", func(t *testing.T) {
		t.Parallel()
		started, release := make(chan struct{}), make(chan struct{})
		d, end := servetest.StartEnded(t, servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil}, Tools: []servetest.Fixture{
			servetest.Tool("slow", "", speaker(func(ctx context.Context, _ contract.Args, to registry.Listener) (*registry.Result, error) {
				close(started)
				<-release
				if to.Progress != nil {
					to.Progress(json.RawMessage(`{"progress":1}`))
				}
				return &registry.Result{Content: []json.RawMessage{registry.Text("done")}}, ctx.Err()
			})),
		}})
		answer := make(chan servetest.Response, 1)
		body := strings.Replace(servetest.ModernBody("tools/call", `"name":"slow"`), `"_meta":{`, `"_meta":{"progressToken":1,`, 1)
		go func() {
			answer <- d.Do(t, "POST", "/mcp", body, servetest.ModernHeader("tools/call", `"name":"slow"`)...)
		}()
		<-started
		ended := end()
		select {
		case err := <-ended:
			t.Fatalf("it ended before its call: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		close(release)
		if r := <-answer; len(eventsOf(r.Body)) != 2 || !strings.Contains(r.Body, "done") {
			t.Errorf("%+v", r)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if !strings.Contains(d.Log.String(), "level=INFO msg=stopped calls_cut=0\n") {
			t.Error(d.Log.String())
		}
	})
	t.Run("is cut off", func(t *testing.T) {
		t.Parallel()
		started, cancelled := make(chan struct{}, 1), make(chan error, 1)
		d, end := servetest.StartEnded(t, waiting(started, cancelled), func(b *servetest.Backend) { b.Limits.Drain = 20 * time.Millisecond })
		go d.Post(context.Background(), servetest.ModernBody("tools/call", `"name":"wait"`), servetest.ModernHeader("tools/call", `"name":"wait"`)...)
		<-started
		if err := <-end(); err != nil {
			t.Error(err)
		}
		<-cancelled
		if !strings.Contains(d.Log.String(), `level=WARN msg="stopped; what was still running was cut off" calls_cut=1 `) {
			t.Error(d.Log.String())
		}
	})
}
