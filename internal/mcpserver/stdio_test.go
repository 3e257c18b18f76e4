package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/registry"
)

const initializeLine = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"

func TestStdioUnknownBranch(t *testing.T) {
	t.Parallel()
	d := servetest.Open(t, servetest.Weather())
	err := d.Stdio(context.Background(), "nosuch", strings.NewReader(""), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "default") {
		t.Errorf("%v", err)
	}
}

// Requests that are written at once are answered in order, and the last answers come after the end of stdin.
func stdioPiped(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	d := servetest.Open(t, servetest.Catalog{ID: "g1", Branches: map[string][]string{"default": nil}, Tools: []servetest.Fixture{
		servetest.Tool("slow", "", servetest.Invoker(func(context.Context, contract.Args) (*registry.Result, error) {
			<-release
			return servetest.Text("at last")(context.Background(), contract.Args{})
		})),
	}})
	p := servetest.Attach(t, d, "default")
	p.Send(t, initializeLine, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "", servetest.LegacyBody("tools/list", ""),
		`{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"slow"}}`)
	p.In.Close()
	if line := p.Next(t); !strings.Contains(line, `"protocolVersion":"2025-11-25"`) {
		t.Errorf("first: %s", line)
	}
	if line := p.Next(t); !strings.Contains(line, `"tools":[`) {
		t.Errorf("second: %s", line)
	}
	close(release)
	if line := p.Next(t); !strings.Contains(line, "at last") || !strings.Contains(line, `"id":"c"`) {
		t.Errorf("third: %s", line)
	}
	if err := <-p.Ended; err != nil {
		t.Error(err)
	}
}

func stdioErrors(t *testing.T) {
	t.Parallel()
	d := servetest.Open(t, servetest.Weather())
	p := servetest.Attach(t, d, "default")
	long := `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"weather","arguments":{"city":"` + strings.Repeat("x", 5<<20) + `"}}}`
	for _, test := range []struct {
		line string
		code float64
		id   any
	}{
		{"{", -32700, nil},
		{"[]", -32600, nil},
		{servetest.LegacyBody("tools/list", ""), -32600, 1.0}, // before initialize (E20)
		{`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"a","name":"b"}}`, -32600, nil},
		{`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"a","Name":"b"}}`, -32600, "x"},
		{long, -32600, nil}, // E19
		{strings.Replace(servetest.ModernBody("tools/list", ""), `,"io.modelcontextprotocol/clientCapabilities":{}`, "", 1), -32602, 1.0},
		{servetest.ModernBody("tools/call", `"name":"private"`), -32602, 1.0},
	} {
		p.Send(t, test.line)
		var m struct {
			ID    any
			Error struct{ Code float64 }
		}
		if err := json.Unmarshal([]byte(p.Next(t)), &m); err != nil {
			t.Fatal(err)
		}
		if m.Error.Code != test.code || m.ID != test.id {
			t.Errorf("%.80s: %+v", test.line, m)
		}
	}
	p.Send(t, servetest.ModernBody("tools/list", ""))
	if line := p.Next(t); !strings.Contains(line, `"resultType":"complete"`) {
		t.Errorf("after all that: %s", line)
	}
}

func stdioCancel(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}, 1), make(chan error, 1)
	d := servetest.Open(t, waiting(started, ended))
	p := servetest.Attach(t, d, "default")
	p.Send(t, servetest.ModernBody("tools/call", `"name":"wait"`))
	<-started
	p.Send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	select {
	case <-ended:
		t.Fatal("another id ended the call")
	case <-time.After(50 * time.Millisecond):
	}
	p.Send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-ended
	p.Send(t, servetest.ModernBody("tools/list", ""))
	if line := p.Next(t); !strings.Contains(line, `"tools":[`) {
		t.Errorf("a cancelled call was answered: %s", line)
	}
}

// Two subscriptions of one client are told apart, and end apart.
func TestStdioSubscriptions(t *testing.T) {
	t.Parallel()
	d := servetest.Open(t, servetest.Weather())
	p := servetest.Attach(t, d, "default")
	listen := func(id string) {
		t.Helper()
		body := servetest.ModernBody("subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
		p.Send(t, strings.Replace(body, `"id":1`, `"id":`+id, 1))
		if line := p.Next(t); !strings.Contains(line, "acknowledged") || !strings.Contains(line, `"io.modelcontextprotocol/subscriptionId":`+id) {
			t.Fatalf("%s", line)
		}
	}
	listen(`"one"`)
	listen(`2`)
	d.Changed([]string{"research"})
	d.Changed([]string{"default"})
	heard := p.Next(t) + p.Next(t)
	for _, id := range []string{`"one"`, `2`} {
		if !strings.Contains(heard, `"io.modelcontextprotocol/subscriptionId":`+id) {
			t.Errorf("%s did not hear: %s", id, heard)
		}
	}
	p.Send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, servetest.ModernBody("tools/list", ""))
	p.Next(t)
	servetest.Until(t, "the second subscription ends", func() bool {
		d.Changed([]string{"default"})
		time.Sleep(20 * time.Millisecond)
		last := ""
		for len(p.Lines) > 0 {
			last += p.Next(t)
		}
		return strings.Contains(last, `"one"`) && !strings.Contains(last, `:2}`)
	})
	p.In.Close()
	if err := <-p.Ended; err != nil {
		t.Error(err)
	}
}

// A branch that goes away takes its tools with it, and comes back with them.
func TestStdioBranchReturns(t *testing.T) {
	t.Parallel()
	c := servetest.Weather()
	d := servetest.Open(t, c)
	p := servetest.Attach(t, d, "research")
	list := func() string {
		p.Send(t, servetest.ModernBody("tools/list", ""))
		return p.Next(t)
	}
	list()
	gone := servetest.Weather()
	delete(gone.Branches, "research")
	d.Swap(t, gone, "research")
	if line := list(); !strings.Contains(line, "not served any more") {
		t.Errorf("%s", line)
	}
	d.Swap(t, c, "research")
	if line := list(); !strings.Contains(line, "private") {
		t.Errorf("%s", line)
	}
}

func stdoutCloses(t *testing.T) {
	t.Parallel()
	d := servetest.Open(t, servetest.Weather())
	in, client := io.Pipe()
	defer client.Close()
	ended := make(chan error, 1)
	broken := errors.New("broken pipe")
	go func() { ended <- d.Stdio(context.Background(), "default", in, failing{broken}) }()
	if _, err := fmt.Fprintln(client, servetest.ModernBody("tools/list", "")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// A client that reads nothing is waited for at the end, but not for ever.
func stdoutNotRead(t *testing.T) {
	t.Parallel()
	d := servetest.Open(t, servetest.Weather(), func(b *servetest.Backend) {
		b.Limits.Drain, b.Limits.WriteTime = 20*time.Millisecond, 20*time.Millisecond
	})
	for name, line := range map[string]string{"list": servetest.ModernBody("tools/list", ""), "call": servetest.ModernBody("tools/call", `"name":"nosuch"`)} {
		for _, signal := range []bool{false, true} {
			in, client := io.Pipe()
			unread, out := io.Pipe()
			writing := make(chan struct{})
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- d.Stdio(ctx, "default", in, announced{out, writing}) }()
			if _, err := fmt.Fprintln(client, line); err != nil {
				t.Fatal(err)
			}
			<-writing
			if signal {
				cancel()
			} else {
				client.Close()
			}
			if err := <-ended; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "does not read") {
				t.Errorf("%s, signal %v: %v", name, signal, err)
			}
			cancel()
			unread.Close()
			client.Close()
		}
	}
}

// announced says when a write begins.
type announced struct {
	w     io.Writer
	begun chan struct{}
}

func (a announced) Write(p []byte) (int, error) {
	close(a.begun)
	return a.w.Write(p)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestStdioEndsWithContext(t *testing.T) {
	t.Parallel()
	started, cancelled := make(chan struct{}, 1), make(chan error, 1)
	d := servetest.Open(t, waiting(started, cancelled))
	in, client := io.Pipe()
	defer client.Close()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Stdio(ctx, "default", in, io.Discard) }()
	if _, err := fmt.Fprintln(client, servetest.ModernBody("tools/call", `"name":"wait"`)); err != nil {
		t.Fatal(err)
	}
	<-started
	cancel()
	<-cancelled
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A response that nobody waits for gets no answer, on stdio either.
func TestStdioStrayResponses(t *testing.T) {
	t.Parallel()
	p := servetest.Attach(t, servetest.Start(t, servetest.Weather()), "default")
	p.Send(t, initializeLine)
	p.Next(t)
	p.Send(t, `{"jsonrpc":"2.0","id":"catalogd-1","result":{}}`)
	p.Send(t, `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}`)
	p.Send(t, `{"jsonrpc":"2.0","id":8,"method":"ping"}`)
	if got := p.Next(t); !strings.Contains(got, `"id":8`) || !strings.Contains(got, `"result":{}`) {
		t.Errorf("got %s", got)
	}
}
