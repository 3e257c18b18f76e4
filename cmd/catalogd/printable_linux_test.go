package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\tb\n\nc":            "a\tb\n\nc",
		"\x1b[2Ja\n\x07b\x9b":  "\\x1b[2Ja\n\\ab\\x9b",
		"\u202ea\u2028\r\n\tb": "\\u202ea\\u2028\\r\n\tb",
	} {
		var b bytes.Buffer
		if n, err := (printable{&b}).Write([]byte(text)); b.String() != want || n != len(text) || err != nil {
			t.Errorf("%q became %q (%d, %v), want %q", text, b.String(), n, err, want)
		}
	}
}

// pseudoTerminal returns both sides of a pseudo-terminal: what is written to screen can be read from tty.
func pseudoTerminal(t *testing.T) (tty, screen *os.File) {
	t.Helper()
	tty = terminal(t)
	n, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	return tty, screen
}

// TestOthersWords has a daemon answer with terminal sequences: none reaches a terminal or standard error, and a pipe
// gets what was answered.
func TestOthersWords(t *testing.T) {
	const sequence, escaped = "\x1b]0;kestrel\x07\x1b[2J", `\x1b]0;kestrel\a\x1b[2J`
	answer := func(w io.Writer, v any) {
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/status" {
			answer(w, map[string]any{"version": sequence, "healthy": true, "restricted": true})
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
		answer(w, map[string]any{"error": "broken " + sequence})
	}))
	defer daemon.Close()
	tty, screen := pseudoTerminal(t)
	defer screen.Close()
	if code := run(t.Context(), []string{"status", "--server", daemon.URL}, strings.NewReader(""), screen, io.Discard); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if line, err := bufio.NewReader(tty).ReadString('\n'); err != nil || !strings.Contains(line, escaped) {
		t.Errorf("the terminal got %q, %v, want %q in it", line, err, escaped)
	}
	var piped, stderr bytes.Buffer
	if code := run(t.Context(), []string{"status", "--server", daemon.URL}, strings.NewReader(""), &piped, &stderr); code != 0 || !strings.Contains(piped.String(), sequence) {
		t.Errorf("exit code %d, and a pipe got %q", code, piped.String())
	}
	run(t.Context(), []string{"list", "--server", daemon.URL}, strings.NewReader(""), &piped, &stderr)
	if said := stderr.String(); !strings.Contains(said, "broken "+escaped) || strings.Contains(said, sequence) {
		t.Errorf("standard error got %q", said)
	}
}

// TestLogOnATerminal: the colours of the log reach a terminal as they are, before and after a start.
func TestLogOnATerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	tty, screen := pseudoTerminal(t)
	defer screen.Close()
	e := &env{stderr: printable{screen}}
	e.logs.LogLevel, e.logs.LogFormat = "auto", "auto"
	starting, started := e.startingLogger()
	starting.Info("left to the report")
	starting.Warn("one")
	started()
	starting.Info("two")
	e.logger(slog.LevelInfo).Info("three")
	r := bufio.NewReader(tty)
	for _, want := range []string{"\x1b[33mWARN \x1b[0m one", "\x1b[32mINFO \x1b[0m two", "\x1b[32mINFO \x1b[0m three"} {
		if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, want) {
			t.Errorf("the terminal got %q, %v, want %q in it", line, err, want)
		}
	}
}
