package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/catalogd/catalogd/problem"
)

// terminal is the controlling side of a pseudo-terminal, which counts as a terminal itself.
func terminal(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	if !isTerminal(f) {
		t.Skip("the controlling side of a pseudo-terminal is no terminal here")
	}
	return f
}

func TestColourOnlyOnATerminal(t *testing.T) {
	tty := terminal(t)
	t.Setenv("NO_COLOR", "")
	if !coloured(tty) {
		t.Error("a terminal gets no colour")
	}
	if coloured(&bytes.Buffer{}) {
		t.Error("what is no file gets colour")
	}
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if coloured(file) {
		t.Error("a file gets colour")
	}
	t.Setenv("NO_COLOR", "1")
	if coloured(tty) {
		t.Error("NO_COLOR is not respected")
	}
}

func TestColumns(t *testing.T) {
	tty := terminal(t)
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 91}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		set            string
		terminal, pipe int
	}{{"", 91, 0}, {"60", 60, 60}, {"0", 91, 0}, {"-1", 91, 0}, {"wide", 91, 0}} {
		t.Setenv("COLUMNS", test.set)
		if got := columns(tty); got != test.terminal {
			t.Errorf("COLUMNS=%q: a terminal has %d columns, want %d", test.set, got, test.terminal)
		}
		if got := columns(&bytes.Buffer{}); got != test.pipe {
			t.Errorf("COLUMNS=%q: a pipe has %d columns, want %d", test.set, got, test.pipe)
		}
	}
}

func TestPaint(t *testing.T) {
	var l problem.List
	at := problem.Position{File: "a.cue", Line: 1, Col: 2}
	l.Errorf(problem.CUESyntax, at, "tools.x", "expected %s", "}")
	l.Warnf(problem.SuspectEffect, at, "", "a POST")
	for i, want := range []string{
		"\x1b[1ma.cue:1:2: \x1b[31mcue_syntax\x1b[0m: tools.x: expected }",
		"\x1b[1ma.cue:1:2: \x1b[33msuspect_effect\x1b[0m: warning: a POST",
	} {
		if got := paint(l[i], l[i].String()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTableHasNoTrailingSpace(t *testing.T) {
	var stdout bytes.Buffer
	e := &env{stdout: &stdout}
	if err := e.table([][]string{{"NAME", "REASON"}, {"a", ""}, {"long-name", "why"}}); err != nil {
		t.Fatal(err)
	}
	const want = "NAME       REASON\na\nlong-name  why\n"
	if stdout.String() != want {
		t.Errorf("got %q, want %q", stdout.String(), want)
	}
}

func TestLines(t *testing.T) {
	for _, test := range []struct {
		numbers []int
		want    string
	}{
		{nil, ""}, {[]int{3}, "3"}, {[]int{3, 4}, "3-4"}, {[]int{1, 3, 4, 5, 9}, "1, 3-5, 9"},
	} {
		if got := lines(test.numbers); got != test.want {
			t.Errorf("%v: got %q, want %q", test.numbers, got, test.want)
		}
	}
}

func TestInterruptedIsNoProblemOfTheCatalog(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, command := range []string{"check", "list", "trust", "serve", "stdio", "test"} {
		var stdout, stderr bytes.Buffer
		args := []string{command, "../.."}
		switch command {
		case "list", "trust", "stdio":
			args = []string{command, "-C", "../.."}
		case "serve":
			args = append(args, "--addr", "127.0.0.1:0")
		}
		if code := run(ctx, args, strings.NewReader(""), &stdout, &stderr); code != 2 {
			t.Errorf("%s: exit code %d, want 2", command, code)
		}
		if stdout.Len() > 0 || stderr.String() != "catalogd: interrupted\n" {
			t.Errorf("%s: stdout %q, stderr %q", command, stdout.String(), stderr.String())
		}
	}
}

// failing fails every write, as a full disk does.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"version", "--format", "json"}, {"check", "--format", "json", "../.."}} {
		var stderr bytes.Buffer
		if code := run(t.Context(), args, strings.NewReader(""), failing{}, &stderr); code != 2 {
			t.Errorf("%v: exit code %d, want 2; stderr: %s", args, code, stderr.String())
		}
	}
}
