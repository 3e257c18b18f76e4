package upstream_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

// logged is a log whose lines can be looked at while it is written.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

type record struct {
	Level, Msg, Server, Branch, Line string
	Missed                           int
}

func (l *logged) records(t *testing.T) (all []record) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(bytes.Clone(l.buf.Bytes())) {
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}

func (l *logged) lines(t *testing.T) (lines []string) {
	for _, r := range l.records(t) {
		if r.Msg == "upstream stderr" {
			lines = append(lines, r.Line)
		}
	}
	return lines
}

// stderrOf calls a server that writes text to standard error, and returns the log once that text's end is in it.
func stderrOf(t *testing.T, env map[string]registry.Value, text, end string) *logged {
	t.Helper()
	s := stdioServer(t, "good")
	s.Stdio.Env = env
	log := &logged{}
	_, set := openWith(t, upstream.Config{Logger: slog.New(slog.NewJSONHandler(log, nil))}, s, trust.Terms{})
	args, err := json.Marshal(map[string]string{"Text": text})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, set, "write_stderr", string(args)); err != nil {
		t.Fatal(err)
	}
	if end == "" { // all of it is there when the child has ended
		set.Close()
		return log
	}
	eventually(t, end+" in the log", func() bool {
		lines := log.lines(t)
		return len(lines) > 0 && strings.Contains(lines[len(lines)-1], end)
	})
	return log
}

// TestStderr: what a child writes to standard error is logged while it runs, under the server's name, and is harmless.
func TestStderr(t *testing.T) {
	const secret = "hunter2hunter2"
	t.Setenv("STDERR_SECRET", secret)
	env := map[string]registry.Value{"TOKEN": {Secret: "env:STDERR_SECRET"}}
	log := stderrOf(t, env, "listening on 8080\n\n  \ntoken="+secret+"\r\n\x1b[31mred\x1b[0m\tx \u202eevil \xff\n"+strings.Repeat("long ", 9000)+"\nthe end\n", "the end")
	lines := log.lines(t)
	for i, want := range []string{"listening on 8080", "token=***", `\x1b[31mred\x1b[0m x \u202eevil` + " \uFFFD", "long long", "the end"} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("line %d of %q is not %q", i, lines, want)
		}
	}
	if n := len(lines[3]); n > 1100 || !strings.HasSuffix(lines[3], "...") {
		t.Errorf("a long line is logged with %d bytes", n)
	}
	for _, r := range log.records(t) {
		if r.Server != "fake" {
			t.Errorf("a line without the server's name: %+v", r)
		}
	}
	// A line without end is logged when the child has ended, and a secret at a place where the line is cut is not begun.
	for _, before := range []int{0, 1000, 1020, 16<<10 - 5, 16<<10 - 1} {
		log := stderrOf(t, env, strings.Repeat("x", before)+strings.Repeat(secret, 2000), "")
		if raw := log.buf.String(); strings.Contains(raw, secret[:4]) || len(log.lines(t)) != 1 {
			t.Errorf("behind %d bytes: %s", before, raw)
		}
	}
}

// TestStderrIsBounded: a child that floods its standard error fills nobody's log, and is not held up.
func TestStderrIsBounded(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&many, "line %d\n", i)
	}
	log := stderrOf(t, nil, many.String(), "")
	missed, lines := 0, len(log.lines(t))
	for _, r := range log.records(t) {
		missed += r.Missed
	}
	if lines < 200 || lines > 10_000 || missed+lines != 20_000 {
		t.Errorf("of 20,000 lines %d are logged and %d are counted", lines, missed)
	}
}

func writeStderr(args json.RawMessage) {
	var a struct{ Text string }
	if err := json.Unmarshal(args, &a); err != nil {
		panic(err)
	}
	fmt.Fprint(os.Stderr, a.Text)
}
