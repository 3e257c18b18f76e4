package upstream_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/decision/trusttest"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

// stdioServer is the fake server in one of its modes.
func stdioServer(t *testing.T, mode string) registry.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return registry.Server{
		Name:           "fake",
		Stdio:          &registry.Stdio{Command: self, Args: []string{"-fake", mode}},
		MaxConnections: 4,
		ConnectTimeout: time.Minute,
		CallTimeout:    time.Minute,
		Source:         registry.Source{Digest: "sha256:" + mode},
	}
}

// trusted is s with these terms of trust, which name what it declares of its environment, and its secrets.
func trusted(t *testing.T, s registry.Server, root string, terms trust.Terms) upstream.Upstream {
	t.Helper()
	target, problems := upstream.Target(s, root)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	if target.Command != nil {
		terms.Env = slices.Concat(terms.Env, target.Command.Env)
	}
	terms.Headers, terms.Secrets = target.Headers, target.Secrets
	return upstream.Upstream{Server: s, Trust: trusttest.New(target, terms)}
}

// open is a pool with one set of one server.
func open(t *testing.T, s registry.Server, terms trust.Terms) (*upstream.Pool, *upstream.Set) {
	t.Helper()
	root := t.TempDir()
	pool := upstream.NewPool(upstream.Config{Logger: slog.New(slog.DiscardHandler), Backoff: time.Hour, MaxBackoff: time.Hour})
	t.Cleanup(pool.Close)
	return pool, pool.Open(root, []upstream.Upstream{trusted(t, s, root, terms)})
}

func call(t *testing.T, set *upstream.Set, tool, args string) (*registry.Result, error) {
	t.Helper()
	return set.Call(t.Context(), "fake", tool, json.RawMessage(args), registry.Listener{})
}

// text is the text of a call that must succeed.
func text(t *testing.T, set *upstream.Set, tool, args string) string {
	t.Helper()
	r, err := call(t, set, tool, args)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	if len(r.Content) != 1 {
		t.Fatalf("%s: content %s", tool, r.Content)
	}
	var block struct{ Text string }
	if err := json.Unmarshal(r.Content[0], &block); err != nil {
		t.Fatal(err)
	}
	return block.Text
}

// fails asserts a *registry.Error of a code whose text holds all parts.
func fails(t *testing.T, err error, code registry.ErrorCode, parts ...string) {
	t.Helper()
	var e *registry.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v is no *registry.Error", err)
	}
	if e.Code != code {
		t.Errorf("code %s, want %s: %v", e.Code, code, err)
	}
	for _, part := range parts {
		if !strings.Contains(e.Msg, part) {
			t.Errorf("%q is not in %q", part, e.Msg)
		}
	}
}

func TestArgumentsAndResultsPassUnchanged(t *testing.T) {
	t.Parallel()
	_, set := open(t, stdioServer(t, "good"), trust.Terms{})
	const args = `{"n":9007199254740993,"x":1e400,"z":"<&>\u2028é","b":1,"a":{"b":[1.0,-0]},"b":2}`
	if got := text(t, set, "echo", args); got != args {
		t.Errorf("the server got\n%s, want\n%s", got, args)
	}
	if got := text(t, set, "echo", ""); got != "{}" {
		t.Errorf("without arguments the server got %s", got)
	}
	const (
		block      = `{"type":"hologram", "data":9007199254740993,"annotations":{"x":"\u003c"} , "_meta":{"k":[1.0]}}`
		structured = `{"id":9007199254740993,"b":1e2 ,"a":"\u00e9"}`
		meta       = `{"progressToken":12345678901234567890 }`
	)
	r, err := call(t, set, "result", `{"content":[`+block+`],"structuredContent":`+structured+`,"isError":true,"_meta":`+meta+`,"Content":[],"extra":1}`)
	if err != nil {
		t.Fatal(err)
	}
	// The fake writes its arguments back as they came, which is without the white space between tokens.
	compact := func(s string) string {
		var b bytes.Buffer
		if err := json.Compact(&b, []byte(s)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if !r.IsError || len(r.Content) != 1 ||
		string(r.Content[0]) != compact(block) || string(r.Structured) != compact(structured) || string(r.Meta) != compact(meta) {
		t.Errorf("got %s %s %s %v", r.Content, r.Structured, r.Meta, r.IsError)
	}
	// White space inside a result survives too: this line is the server's own.
	r, err = call(t, set, "line", `{"line":"{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[ {\"type\": \"text\",  \"text\":\"\"} ]}}"}`)
	if err != nil || string(r.Content[0]) != `{"type": "text",  "text":""}` {
		t.Errorf("got %s, %v", r.Content, err)
	}
}

func TestResultsThatAreNone(t *testing.T) {
	t.Parallel()
	_, set := open(t, stdioServer(t, "good"), trust.Terms{})
	for _, c := range []struct{ result, says string }{
		{`[]`, "not a JSON object"},
		{`null`, "not a JSON object"},
		{`{"task":{"taskId":"1"}}`, "a task"},
		{`{"content":{}}`, "not a list"},
		{`{"content":["a"]}`, "block 0"},
		{`{"content":[{},null]}`, "block 1"},
		{`{"content":[],"isError":"yes"}`, "isError"},
		{`{"content":[],"_meta":1}`, "_meta"},
		{`{"content":[],"resultType":"later"}`, "unknown type"},
	} {
		_, err := call(t, set, "result", c.result)
		fails(t, err, registry.ResultInvalid, `server "fake"`, c.says)
	}
	// What servers answer that have nothing to say: a client of theirs takes it, too.
	for _, empty := range []string{`{}`, `{"content":null}`, `{"structuredContent":null,"isError":null,"_meta":null}`} {
		if r, err := call(t, set, "result", empty); err != nil || len(r.Content) != 0 || r.Structured != nil || r.IsError {
			t.Errorf("%s: got %+v, %v", empty, r, err)
		}
	}
	_, err := call(t, set, "latin1", `{}`)
	fails(t, err, registry.ResultInvalid, "UTF-8")
	_, err = call(t, set, "result", `{"resultType":"input_required","inputRequests":{}}`)
	fails(t, err, registry.BindingFailed, "input")
	_, err = call(t, set, "refuse", `{}`)
	fails(t, err, registry.BindingFailed, "-32602", "Tool refuse not found")
	if got := text(t, set, "echo", `{"still":"there"}`); got != `{"still":"there"}` {
		t.Errorf("afterwards: %s", got)
	}
}

func TestServersThatDoNotStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode string
		says []string
	}{
		{"usage", []string{"exit status 2", "the flag -x is unknown"}},
		{"usage-stdout", []string{"exit status 0"}},
		{"mute", []string{"initializeTimeout"}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			s := stdioServer(t, c.mode)
			if c.mode == "mute" {
				s.InitializeTimeout = 100 * time.Millisecond
			}
			pool, set := open(t, s, trust.Terms{})
			_, err := call(t, set, "echo", `{}`)
			fails(t, err, registry.Unavailable, append(c.says, `server "fake" is unavailable`)...)
			// The second attempt comes at once, the third only after a pause.
			_, err = call(t, set, "echo", `{}`)
			fails(t, err, registry.Unavailable, c.says...)
			_, err = call(t, set, "echo", `{}`)
			fails(t, err, registry.Unavailable, append(c.says, "next attempt in")...)
			st := pool.Status()[0]
			if st.State != upstream.Failed || st.Trust != "test" || st.Transport != "stdio" || st.Pid != 0 || !strings.Contains(st.LastError, c.says[0]) {
				t.Errorf("status %+v", st)
			}
		})
	}
}

// Some older servers end at any message before initialize; others let it lie.
func TestOlderServersThatDoNotKnowDiscover(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"initialize-first", "ignores-discover"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			pool, set := open(t, stdioServer(t, mode), trust.Terms{})
			first := text(t, set, "pid", `{}`)
			if st := pool.Status()[0]; st.Protocol != "2025-06-18" || strconv.Itoa(st.Pid) != first {
				t.Errorf("status %+v", st)
			}
			// The detour is taken once.
			_, err := call(t, set, "crash", `{}`)
			fails(t, err, registry.Unavailable)
			if text(t, set, "pid", `{}`) == first {
				t.Error("the same process answers")
			}
		})
	}
}

// A server of 2026-07-28 alone that is slow to start is asked for the older handshake, which it refuses; and is spoken to
// when it answers.
func TestServerThatStartsSlowly(t *testing.T) {
	t.Parallel()
	pool, set := open(t, stdioServer(t, "starts-slowly"), trust.Terms{})
	text(t, set, "echo", `{}`)
	if got := pool.Status()[0].Protocol; got != "2026-07-28" {
		t.Errorf("got the protocol %s, want 2026-07-28", got)
	}
}

func TestMisbehaviourCostsItsOwnCalls(t *testing.T) {
	t.Parallel()
	t.Run("crash", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "token"), []byte("hunter2hunter2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := stdioServer(t, "good")
		s.Stdio.Env = map[string]registry.Value{"TOKEN": {Secret: "file:" + filepath.Join(dir, "token"), Prefix: "Bearer "}}
		_, set := open(t, s, trust.Terms{})
		_, err := call(t, set, "crash", `{}`)
		fails(t, err, registry.Unavailable, "exit status 3", "last output", "fake: panic with Bearer ***", "outcome of the call is unknown")
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the secret is in %q", err)
		}
		if got := text(t, set, "echo", `{"a":1}`); got != `{"a":1}` {
			t.Errorf("after the crash: %s", got)
		}
	})
	t.Run("stray", func(t *testing.T) {
		t.Parallel()
		_, set := open(t, stdioServer(t, "good"), trust.Terms{})
		pid := text(t, set, "pid", `{}`)
		if got := text(t, set, "stray", `{}`); got != "at last" {
			t.Errorf("got %q", got)
		}
		if text(t, set, "pid", `{}`) != pid {
			t.Error("the connection was lost")
		}
	})
	t.Run("flood", func(t *testing.T) {
		t.Parallel()
		_, set := open(t, stdioServer(t, "good"), trust.Terms{})
		_, err := call(t, set, "flood", `{}`)
		fails(t, err, registry.OutputTooLarge, "16777216 bytes")
		if got := text(t, set, "echo", `{"a":1}`); got != `{"a":1}` {
			t.Errorf("after the flood: %s", got)
		}
	})
	t.Run("stderr", func(t *testing.T) {
		t.Parallel()
		_, set := open(t, stdioServer(t, "good"), trust.Terms{})
		if got := text(t, set, "stderr", `{}`); got != "still here" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("ask", func(t *testing.T) {
		t.Parallel()
		_, set := open(t, stdioServer(t, "good"), trust.Terms{})
		if got := text(t, set, "ask", `{}`); !strings.Contains(got, `"code":-32601`) || !strings.Contains(got, `"id":"q"`) {
			t.Errorf("the server was answered %s", got)
		}
	})
	t.Run("hang", func(t *testing.T) {
		t.Parallel()
		s := stdioServer(t, "good")
		s.CallTimeout = 100 * time.Millisecond
		_, hasty := open(t, s, trust.Terms{})
		_, err := call(t, hasty, "hang", `{}`)
		fails(t, err, registry.Timeout, "did not answer in time")

		_, set := open(t, stdioServer(t, "good"), trust.Terms{})
		pid := text(t, set, "pid", `{}`)
		for i := range 2 {
			file := filepath.Join(t.TempDir(), strconv.Itoa(i))
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer cancel()
				eventually(t, "the call's arrival", func() bool { _, err := os.Stat(file); return err == nil })
			}()
			_, err = set.Call(ctx, "fake", "hang", json.RawMessage(fmt.Sprintf(`{"File":%q}`, file)), registry.Listener{})
			fails(t, err, registry.Cancelled, "may still run")
			_, err = set.Call(ctx, "fake", "hang", nil, registry.Listener{})
			fails(t, err, registry.Cancelled, "nothing was sent")
		}
		// Both calls were cancelled there by their ids, and the connection stands.
		eventually(t, "the cancellations' arrival", func() bool {
			return text(t, set, "cancelled", `{}`) == "2 true"
		})
		if text(t, set, "pid", `{}`) != pid {
			t.Error("the connection was lost")
		}
	})
	t.Run("deaf", func(t *testing.T) {
		t.Parallel()
		// With a breaker that no call finds open which begins after others have ended.
		pool, set := openWith(t, upstream.Config{BreakAfter: 1000}, stdioServer(t, "good"), trust.Terms{})
		text(t, set, "deaf", `{}`)
		ctx := overdue(t, func() bool { return pool.Status()[0].Calls == 80 })
		// More than a pipe and the queue hold; no call waits beyond its time.
		big := `{"x":"` + strings.Repeat("x", 1<<20) + `"}`
		var calls sync.WaitGroup
		for range 80 {
			calls.Go(func() {
				_, err := set.Call(ctx, "fake", "echo", json.RawMessage(big), registry.Listener{})
				var e *registry.Error
				if !errors.As(err, &e) || e.Code != registry.Timeout {
					t.Errorf("a deaf server: %v", err)
				}
			})
		}
		calls.Wait()
		pool.Close()
	})
	t.Run("others", func(t *testing.T) {
		t.Parallel()
		bad, good := stdioServer(t, "usage"), stdioServer(t, "good")
		bad.Name = "bad"
		root := t.TempDir()
		pool := upstream.NewPool(upstream.Config{})
		defer pool.Close()
		set := pool.Open(root, []upstream.Upstream{trusted(t, bad, root, trust.Terms{}), trusted(t, good, root, trust.Terms{})})
		_, err := set.Call(t.Context(), "bad", "echo", nil, registry.Listener{})
		fails(t, err, registry.Unavailable, `server "bad"`)
		_, err = set.Call(t.Context(), "none", "echo", nil, registry.Listener{})
		fails(t, err, registry.Unavailable, `server "none"`, "no trusted server")
		if got := text(t, set, "echo", `{}`); got != `{}` {
			t.Errorf("got %s", got)
		}
	})
}

func TestConcurrentCallsShareOneProcess(t *testing.T) {
	t.Parallel()
	_, set := open(t, stdioServer(t, "good"), trust.Terms{})
	pids := make([]string, 50)
	var calls sync.WaitGroup
	for i := range pids {
		calls.Go(func() {
			arg := `{"i":` + strconv.Itoa(i) + `}`
			if r, err := set.Call(t.Context(), "fake", "echo", json.RawMessage(arg), registry.Listener{}); err != nil || !strings.Contains(string(r.Content[0]), strconv.Itoa(i)) {
				t.Errorf("call %d: %v, %v", i, r, err)
			}
			r, err := set.Call(t.Context(), "fake", "pid", nil, registry.Listener{})
			if err != nil {
				t.Error(err)
				return
			}
			pids[i] = string(r.Content[0])
		})
	}
	calls.Wait()
	if len(slices.Compact(pids)) != 1 {
		t.Errorf("processes %v", pids)
	}
}

func childGetsExactlyItsEnvironment(t *testing.T) {
	t.Setenv("UPSTREAM_PASSED", "passed")
	t.Setenv("UPSTREAM_KEPT", "kept")
	t.Setenv("UPSTREAM_SECRET", "s3cret")
	s := stdioServer(t, "good")
	s.Stdio.Env = map[string]registry.Value{"A": {Literal: "1"}, "B": {Secret: "env:UPSTREAM_SECRET", Prefix: "t="}}
	_, set := open(t, s, trust.Terms{Env: []string{"UPSTREAM_PASSED"}})
	// The child hides what it says, because its secrets are masked where they can be recognised (break_test.go).
	env, err := hex.DecodeString(text(t, set, "env-hidden", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	for i := range env {
		env[i] ^= 0x80
	}
	got := slices.DeleteFunc(strings.Split(string(env), "\n"), func(variable string) bool { // what is documented as the base
		return strings.HasPrefix(variable, "HOME=") || strings.HasPrefix(variable, "LANG=") || strings.HasPrefix(variable, "LC_") ||
			strings.HasPrefix(variable, "PATH=") || strings.HasPrefix(variable, "TMPDIR=") || strings.HasPrefix(variable, "TZ=")
	})
	slices.Sort(got)
	if want := []string{"A=1", "B=t=s3cret", "UPSTREAM_PASSED=passed"}; !slices.Equal(got, want) {
		t.Errorf("environment %q, want %q", got, want)
	}
}

func noTrustNoProcess(t *testing.T) {
	t.Parallel()
	s := stdioServer(t, "good")
	root := t.TempDir()
	pool := upstream.NewPool(upstream.Config{})
	defer pool.Close()
	for _, up := range []upstream.Upstream{
		{Server: s},
		{Server: s, Trust: trusted(t, stdioServer(t, "usage"), root, trust.Terms{Entry: "other"}).Trust},
	} {
		set := pool.Open(root, []upstream.Upstream{up})
		_, err := call(t, set, "echo", `{}`)
		fails(t, err, registry.Unavailable, "trust")
	}
	missing := s
	missing.Stdio = &registry.Stdio{Command: "no-such-program-anywhere"}
	missing.Digest = "sha256:missing"
	set := pool.Open(root, []upstream.Upstream{{Server: missing}})
	_, err := call(t, set, "echo", `{}`)
	fails(t, err, registry.Unavailable, "no-such-program-anywhere", "not on PATH")
}
