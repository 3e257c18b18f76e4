package binding_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/internal/httpstatus"
	"github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/internal/intent/attempttest"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// write runs a write tool for an attempt with this key, and says what is known of it.
func write(ctx context.Context, t *testing.T, tool registry.Tool, terms trust.Terms, key string) (registry.Outcome, *registry.Result, error) {
	t.Helper()
	tool.Effect = registry.Write
	r, err := bind(t, tool, terms, binding.Deps{}).Invoke(ctx, registry.Invocation{Args: checked(t, tool, "{}"), Attempt: attempttest.New(key)})
	return registry.OutcomeOf(r, err), r, err
}

func outcomesOfCommands(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		how, stdout string
		// change makes the tool another one; late ends the call's time when the effect is there.
		change func(*registry.Exec)
		late   bool
		want   registry.Outcome
		says   string
		runs   int
	}{
		"it ends well":                       {how: "fine", stdout: "text", want: registry.OutcomeSucceeded, says: "fine", runs: 1},
		"its output is no JSON":              {how: "fine", stdout: "json", want: registry.OutcomeSucceeded, says: "the tool has run", runs: 1},
		"it writes too much":                 {how: "floods", stdout: "text", want: registry.OutcomeSucceeded, says: "larger than 1048576 bytes", runs: 1},
		"it writes too much and fails":       {how: "floods and fails", stdout: "text", want: registry.OutcomeFailed, says: "exit status 7, in a private directory (its binding has no cwd):\nat last it failed", runs: 1},
		"a child of it holds the streams":    {how: "leaves a child", stdout: "json", want: registry.OutcomeSucceeded, says: "done", runs: 1},
		"it is killed":                       {how: "killed", stdout: "text", want: registry.OutcomeUnclear, says: "signal SIGKILL", runs: 1},
		"its time is up":                     {how: "hangs", stdout: "text", late: true, want: registry.OutcomeUnclear, says: "deadline", runs: 1},
		"its variable has no value":          {how: "fine", stdout: "text", change: func(e *registry.Exec) { e.Env = map[string]registry.Value{"A": {Secret: "env:NO_SUCH_VARIABLE"}} }, want: registry.OutcomeUnsent, says: "could not be run"},
		"its program is gone when it starts": {how: "gone", stdout: "text", want: registry.OutcomeUnsent, says: "could not be run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			marks := filepath.Join(t.TempDir(), "marks")
			tool := command(t, args(t), "effect", marks, tt.how)
			tool.Binding.Exec.Stdout = tt.stdout
			terms := trust.Terms{Env: []string{"A"}}
			if tt.change != nil {
				tt.change(tool.Binding.Exec)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.late {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, 2*time.Minute) // for the effect
				defer stop()
				ctx = until(ctx, func() bool { made, _ := os.ReadFile(marks); return len(made) > 0 }) // created is not written yet
			}
			var outcome registry.Outcome
			var r *registry.Result
			var err error
			if tt.how == "gone" {
				outcome, r, err = goneProgram(t)
			} else {
				begun := time.Now()
				outcome, r, err = write(ctx, t, tool, terms, "key-1")
				if d := time.Since(begun); tt.how == "leaves a child" && d > 2*time.Minute {
					t.Errorf("output was awaited for %s after the exit", d)
				}
			}
			said := ""
			if err != nil {
				said = err.Error()
			} else {
				said = content(t, r)
			}
			if outcome != tt.want || !strings.Contains(said, tt.says) {
				t.Errorf("got %s, want %s: %s", outcome, tt.want, said)
			}
			found, _ := os.ReadFile(marks) // which nothing made where nothing ran
			if string(found) != strings.Repeat("key-1\n", tt.runs) {
				t.Errorf("the effects: %q, want %d", found, tt.runs)
			}
			if pid, err := os.ReadFile(marks + ".pid"); err == nil {
				n, err := strconv.Atoi(string(pid))
				if err != nil {
					t.Fatal(err)
				}
				syscall.Kill(n, syscall.SIGKILL) // the child that left
			}
		})
	}
}

// until is a context whose time is up soon after ok is true.
func until(ctx context.Context, ok func() bool) context.Context {
	late, stop := context.WithCancelCause(ctx)
	go func() {
		for ctx.Err() == nil && !ok() {
			time.Sleep(time.Millisecond)
		}
		stop(context.DeadlineExceeded)
	}()
	return expired{late}
}

// expired says of a context that was cancelled that its time was up.
type expired struct{ context.Context }

func (e expired) Err() error {
	if e.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// goneProgram runs a tool whose program was there when it was bound.
func goneProgram(t *testing.T) (registry.Outcome, *registry.Result, error) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/true\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tool := registry.Tool{Name: "tool", Effect: registry.Write, Args: args(t), Binding: registry.Binding{Exec: &registry.Exec{Command: program, Stdin: "none", Stdout: "text"}}}
	invoker := bind(t, tool, trust.Terms{}, binding.Deps{})
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	r, err := invoker.Invoke(t.Context(), registry.Invocation{Args: checked(t, tool, "{}"), Attempt: attempttest.New("k")})
	return registry.OutcomeOf(r, err), r, err
}

// serviceOf is an http tool of a server.
func serviceOf(t *testing.T, url, method, output string) registry.Tool {
	t.Helper()
	return registry.Tool{Name: "tool", Args: args(t), Binding: registry.Binding{HTTP: &registry.HTTP{Method: method, URL: url + "/effect", Output: output}}}
}

// Each status that answers does, and any other is unclear, but the words of the service reach the caller all the same.
func TestOutcomesOfStatuses(t *testing.T) {
	t.Parallel()
	var seen atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		status, err := strconv.Atoi(r.Header.Get("X-Status"))
		if err != nil {
			t.Error(err)
		}
		if status < 400 {
			w.Header().Set("Location", "/effect")
		}
		w.WriteHeader(status)
		if status != 204 && status != 304 {
			fmt.Fprint(w, "the words")
		}
	}))
	defer server.Close()
	var all []int
	for status := 200; status < 600; status++ {
		all = append(all, status)
	}
	tool := serviceOf(t, server.URL, "POST", "text")
	for _, status := range all {
		tool.Binding.HTTP.Headers = map[string]registry.Value{"X-Status": {Literal: strconv.Itoa(status)}}
		before := seen.Load()
		outcome, r, err := write(t.Context(), t, tool, loopback, "k")
		if err != nil || outcome != httpstatus.Of(status) || seen.Load() != before+1 || r.IsError != (status >= 300) {
			t.Errorf("%d: got %s, want %s: %+v, %v; seen %d times", status, outcome, httpstatus.Of(status), r, err, seen.Load()-before)
			continue
		}
		if said := content(t, r); status != 204 && status != 304 && !strings.Contains(said, "the words") {
			t.Errorf("%d: %s", status, said)
		}
	}
	for status, want := range map[int]registry.Outcome{
		200: registry.OutcomeSucceeded, 202: registry.OutcomeSucceeded, 299: registry.OutcomeUnclear, 303: registry.OutcomeUnclear,
		307: registry.OutcomeFailed, 400: registry.OutcomeFailed, 408: registry.OutcomeUnclear, 409: registry.OutcomeFailed,
		500: registry.OutcomeFailed, 502: registry.OutcomeUnclear, 503: registry.OutcomeFailed, 504: registry.OutcomeUnclear, 999: registry.OutcomeUnclear,
	} {
		if got := httpstatus.Of(status); got != want {
			t.Errorf("%d: got %s, want %s", status, got, want)
		}
	}
}

// rawServer does on each connection what handle says when it has read a request, and counts these.
func rawServer(t *testing.T, handle func(c net.Conn, req *http.Request)) (url string, seen *atomic.Int32) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	seen = new(atomic.Int32)
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer c.Close()
				req, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				seen.Add(1)
				handle(c, req)
			})
		}
	})
	t.Cleanup(func() { ln.Close(); open.Wait() })
	return "http://" + ln.Addr().String(), seen
}

func TestOutcomesOfRequests(t *testing.T) {
	t.Parallel()
	says := func(text string) func(net.Conn, *http.Request) {
		return func(c net.Conn, _ *http.Request) { io.WriteString(c, text) }
	}
	large := strings.Repeat("x", 2<<20)
	for name, tt := range map[string]struct {
		handle func(net.Conn, *http.Request)
		output string
		late   bool
		change func(*registry.Tool)
		terms  trust.Terms
		want   registry.Outcome
		says   string
		seen   int32
	}{
		"an answer":                           {handle: says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), terms: loopback, want: registry.OutcomeSucceeded, says: "ok", seen: 1},
		"an answer that is no JSON":           {handle: says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), output: "json", terms: loopback, want: registry.OutcomeSucceeded, says: "the tool has run", seen: 1},
		"a refusal that breaks off":           {handle: says("HTTP/1.1 422 No\r\nContent-Length: 20\r\n\r\nbecause"), terms: loopback, want: registry.OutcomeFailed, says: "because", seen: 1},
		"too large an answer":                 {handle: says("HTTP/1.1 200 OK\r\nContent-Length: 2097152\r\n\r\n" + large), terms: loopback, want: registry.OutcomeSucceeded, says: "larger than", seen: 1},
		"too large an answer that breaks off": {handle: says("HTTP/1.1 200 OK\r\nContent-Length: 2097153\r\n\r\n" + large), terms: loopback, want: registry.OutcomeUnclear, says: "does not answer", seen: 1},
		"half an answer":                      {handle: says("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf"), terms: loopback, want: registry.OutcomeUnclear, says: "does not answer", seen: 1},
		"half a head":                         {handle: says("HTTP/1.1 200 OK\r\nContent-"), terms: loopback, want: registry.OutcomeUnclear, says: "does not answer", seen: 1},
		"no answer":                           {handle: says(""), terms: loopback, want: registry.OutcomeUnclear, says: "does not answer", seen: 1},
		"another protocol":                    {handle: says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), terms: loopback, want: registry.OutcomeUnclear, says: "101", seen: 1},
		"what is no HTTP":                     {handle: says("220 mail.example ESMTP\r\n"), terms: loopback, want: registry.OutcomeUnclear, says: "does not answer", seen: 1},
		"no answer in time":                   {handle: func(c net.Conn, _ *http.Request) { c.Read(make([]byte, 1)) }, late: true, terms: loopback, want: registry.OutcomeUnclear, says: "deadline", seen: 1},
		"an address that may not be reached":  {handle: says(""), want: registry.OutcomeUnsent, says: "may not be reached"},
		"a secret that is missing": {
			handle: says(""), terms: loopback, want: registry.OutcomeUnsent, says: "could not be made",
			change: func(tool *registry.Tool) {
				tool.Binding.HTTP.Headers = map[string]registry.Value{"Authorization": {Secret: "env:NO_SUCH_VARIABLE"}}
			},
		},
		"nobody listens": {handle: says(""), terms: loopback, want: registry.OutcomeUnsent, says: "does not answer", change: func(tool *registry.Tool) {
			tool.Binding.HTTP.URL = "http://127.0.0.1:1/effect"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, seen := rawServer(t, tt.handle)
			tool := serviceOf(t, url, "DELETE", "text")
			if tt.output != "" {
				tool.Binding.HTTP.Output = tt.output
			}
			if tt.change != nil {
				tt.change(&tool)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.late {
				ctx = until(ctx, func() bool { return seen.Load() > 0 })
			}
			outcome, r, err := write(ctx, t, tool, tt.terms, "k")
			said := ""
			if err != nil {
				said = err.Error()
			} else {
				said = content(t, r)
			}
			if outcome != tt.want || !strings.Contains(said, tt.says) || seen.Load() != tt.seen {
				t.Errorf("got %s, want %s: %s; seen %d times", outcome, tt.want, said, seen.Load())
			}
			if tt.want == registry.OutcomeSucceeded && strings.Contains(said, "ask for less") {
				t.Errorf("it is told to call again: %s", said)
			}
		})
	}
}

// What ends before anything is sent is unsent, for each kind.
func TestUnsentOfEachBinding(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for kind, p := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			tool, terms, deps := p.echo(t)
			tool.Effect = registry.Write
			invoker := bind(t, tool, terms, deps)
			in := registry.Invocation{Args: checked(t, tool, some), Attempt: attempttest.New("k")}
			if kind == "mcp" { // its own answer is the upstream's
				r, err := invoker.Invoke(t.Context(), in)
				if registry.OutcomeOf(r, err) != registry.OutcomeUnsent {
					t.Errorf("without upstreams: %+v, %v", r, err)
				}
			} else if r, err := invoker.Invoke(cancelled, in); registry.OutcomeOf(r, err) != registry.OutcomeUnsent || code(err) != registry.Cancelled {
				t.Errorf("cancelled before: %+v, %v", r, err)
			}
			for name, key := range map[string]string{"empty": "", "too long": strings.Repeat("k", 257), "not UTF-8": "\xff", "NUL": "a\x00"} {
				in.Attempt = attempttest.New(key)
				r, err := invoker.Invoke(t.Context(), in)
				if registry.OutcomeOf(r, err) != registry.OutcomeUnsent || code(err) != registry.Internal {
					t.Errorf("a key that is %s: %+v, %v", name, r, err)
				}
			}
		})
	}
}

// A write tool of an upstream server is called by the way that sends once, and no other tool is.
func TestUpstreamWrite(t *testing.T) {
	t.Parallel()
	var got []string
	deps := binding.Deps{
		Upstream: func(context.Context, string, string, json.RawMessage, registry.Listener) (*registry.Result, error) {
			got = append(got, "read")
			return &registry.Result{}, nil
		},
		UpstreamWrite: func(_ context.Context, server, tool string, args json.RawMessage, a attempt.Attempt, _ registry.Listener) (*registry.Result, error) {
			of, ok := a.Of()
			got = append(got, fmt.Sprintf("%s %s %s %s %t", server, tool, args, of.Key, ok))
			return &registry.Result{}, nil
		},
	}
	tool := registry.Tool{Name: "tool", Effect: registry.Write, Args: args(t), Binding: registry.Binding{MCP: &registry.MCP{Server: "s", Tool: "remote"}}}
	invoker := bind(t, tool, trust.Terms{}, deps)
	for _, in := range []registry.Invocation{{Args: checked(t, tool, "{}")}, {Args: checked(t, tool, "{}"), Attempt: attempttest.New("k")}} {
		if _, err := invoker.Invoke(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Join(got, "; ") != "read; s remote {} k true" {
		t.Errorf("%q", got)
	}
}

// The header of a key is a string of RFC 9651, and different keys have different headers.
func TestKeyHeader(t *testing.T) {
	t.Parallel()
	var got atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got.Store(r.Header.Values("Idempotency-Key")) }))
	defer server.Close()
	tool := serviceOf(t, server.URL, "POST", "text")
	for key, want := range map[string]string{
		"order-7":                    `"order-7"`,
		"a b":                        `"a b"`,
		`say "hi" \o/`:               `"say \"hi\" \\o/"`,
		"é":                          `"%C3%A9"`,
		"%C3%A9":                     `"%25C3%25A9"`,
		"line\r\nInjected: yes":      `"line%0D%0AInjected: yes"`,
		strings.Repeat("\u2028", 85): `"` + strings.Repeat("%E2%80%A8", 85) + `"`,
	} {
		if outcome, _, err := write(t.Context(), t, tool, loopback, key); outcome != registry.OutcomeSucceeded {
			t.Fatal(err)
		}
		if values := got.Load().([]string); len(values) != 1 || values[0] != want {
			t.Errorf("%q: got %q, want %s", key, values, want)
		}
	}
	if _, err := bind(t, tool, loopback, binding.Deps{}).Invoke(t.Context(), registry.Invocation{Args: checked(t, tool, "{}")}); err != nil || len(got.Load().([]string)) != 0 {
		t.Errorf("a call without an attempt has %q, %v", got.Load(), err)
	}
}

// The key's header and variable are catalogd's own in the declaration of a write tool.
func TestKeyIsNotDeclared(t *testing.T) {
	t.Parallel()
	http := func() registry.Tool {
		tool := serviceOf(t, "https://x.example", "POST", "text")
		tool.Effect = registry.Write
		return tool
	}
	testBad(t, http, []bad{{
		"the header", func(tool *registry.Tool) {
			tool.Binding.HTTP.Headers = map[string]registry.Value{"idempotency-key": {Literal: "mine"}}
		}, problem.BadBinding, "binding.http.headers.idempotency-key", "carries the idempotency key",
	}})
	testBad(t, func() registry.Tool { return command(t, args(t), "print") }, []bad{{
		"the variable", func(tool *registry.Tool) {
			tool.Binding.Exec.Env = map[string]registry.Value{trust.KeyVariable: {Literal: "mine"}}
		}, problem.BadBinding, "binding.exec.env." + trust.KeyVariable, "catalogd's own",
	}})
	tool := http()
	tool.Effect = registry.Read
	tool.Binding.HTTP.Headers = map[string]registry.Value{"Idempotency-Key": {Literal: "mine"}}
	if _, problems := binding.Compile(tool, t.TempDir()); problems.HasErrors() {
		t.Errorf("a read tool: %v", problems.Err())
	}
}
