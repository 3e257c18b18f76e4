package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/catalogd/catalogd/internal/progress"
)

// onScreen is what a terminal shows of a text: a line ends with a line feed, and a carriage return goes back
// to its beginning.
func onScreen(t *testing.T, text string) (lines []string) {
	t.Helper()
	line, at := []rune{}, 0
	for _, r := range text {
		switch r {
		case '\r':
			at = 0
		case '\n':
			lines = append(lines, strings.TrimRight(string(line), " "))
			line, at = nil, 0
		case '\x1b':
			t.Errorf("an escape sequence in %q", text)
		default:
			line = append(line[:at], append([]rune{r}, line[min(at+1, len(line)):]...)...)
			at++
		}
	}
	return append(lines, strings.TrimRight(string(line), " "))
}

// TestProgressLine runs on a clock of its own.
func TestProgressLine(t *testing.T) {
	for _, tt := range []struct {
		columns, want string
		takes         time.Duration
	}{
		{"", "", 0},
		{"", "", 499 * time.Millisecond},
		{"", "waking", 600 * time.Millisecond},
		{"", "checking: 1 of 3 tools (1 s)", 1600 * time.Millisecond},
		{"16", "checking: 1 o", 1600 * time.Millisecond},
		{"2", "", 1600 * time.Millisecond},
	} {
		t.Setenv("COLUMNS", tt.columns)
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			s := &screen{w: &out, fd: func() uintptr { return ^uintptr(0) }}
			ctx, m := progress.With(t.Context())
			done := s.follow(m, "waking")
			go func() {
				time.Sleep(time.Second)
				step := progress.Begin(ctx, "checking", "tools")
				step.Of(3)
				step.Done()
			}()
			time.Sleep(tt.takes)
			synctest.Wait()
			if shown := onScreen(t, out.String()); shown[len(shown)-1] != tt.want {
				t.Errorf("after %s: %q, want %q", tt.takes, shown, tt.want)
			}
			if _, err := fmt.Fprintln(s, "a log line"); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			done()
			if shown := onScreen(t, out.String()); len(shown) != 2 || shown[0] != "a log line" || shown[1] != "" {
				t.Errorf("in the end %q", shown)
			}
		})
	}
}

// TestNoProgress holds that there is no line of progress in a log, in JSON and on a terminal that can't go back
// to the beginning of a line.
func TestNoProgress(t *testing.T) {
	for _, tt := range []struct{ name, term, format string }{
		{"a pipe", "xterm", "auto"}, {"dumb", "dumb", "text"}, {"JSON", "xterm", "json"},
	} {
		t.Setenv("TERM", tt.term)
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			e := &env{stderr: &out, logs: logFlags{LogFormat: tt.format}, meter: new(progress.Meter)}
			if tt.name != "a pipe" {
				e.stderr = printable{&screen{w: &out, fd: func() uintptr { return ^uintptr(0) }}}
			}
			done := e.progress("waking")
			time.Sleep(time.Minute)
			done()
			if out.Len() > 0 {
				t.Errorf("%s: %q", tt.name, out.String())
			}
		})
	}
}

// TestStartIsLogged holds that a daemon whose first build takes long says in its log how far it is.
func TestStartIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		ctx, m := progress.With(t.Context())
		e := &env{ctx: ctx, stderr: &out, meter: m}
		done := e.starting(slog.New(slog.NewTextHandler(&out, nil)))
		progress.Begin(ctx, "compiling the catalog", "tools").Of(7)
		time.Sleep(progressLog - time.Second)
		synctest.Wait()
		if out.Len() > 0 {
			t.Errorf("it logs at once: %q", out.String())
		}
		time.Sleep(2 * time.Second)
		done()
		if want := `msg=starting step="compiling the catalog" done=0 of=7 duration=10s` + "\n"; !strings.HasSuffix(out.String(), want) {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	})
}
