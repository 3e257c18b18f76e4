package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/problem"
)

// logFlags say what every command logs on stderr, and how.
type logFlags struct {
	LogLevel  string `enum:"auto,debug,info,warn,error" default:"auto" env:"CATALOGD_LOG_LEVEL" help:"Log this and what is more severe: debug, info, warn or error. By default info with serve, warn with stdio, and error else."`
	LogFormat string `enum:"auto,text,json" default:"auto" env:"CATALOGD_LOG_FORMAT" help:"How to log: text or json. By default text on a terminal, and json elsewhere and with --format json."`
}

// startingLogger returns the log of serve. Until started is called, the text form leaves out what is not a warning,
// because the report at the end of a start says it, unless the command line asks for debug.
func (e *env) startingLogger() (starting *slog.Logger, started func()) {
	begun := e.level(slog.LevelInfo)
	if e.logsJSON() || e.logs.LogLevel == "debug" {
		return e.logAt(begun), func() {}
	}
	var level slog.LevelVar
	level.Set(max(begun, slog.LevelWarn))
	log := &unreported{Handler: e.logAt(&level).Handler(), started: new(atomic.Bool)}
	return slog.New(log), func() { level.Set(begun); log.started.Store(true) }
}

// unreported leaves out what the report at the end of a start says in its own lines, until then.
type unreported struct {
	slog.Handler
	started *atomic.Bool
}

func (h *unreported) Handle(ctx context.Context, r slog.Record) error {
	if !h.started.Load() && (r.Message == daemon.SecretsMissing || r.Message == daemon.RefusedAtStart) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h *unreported) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &unreported{h.Handler.WithAttrs(attrs), h.started}
}

func (h *unreported) WithGroup(name string) slog.Handler {
	return &unreported{h.Handler.WithGroup(name), h.started}
}

// logger returns the log of a command; level applies where the command line names none.
func (e *env) logger(level slog.Level) *slog.Logger { return e.logAt(e.level(level)) }

// logAt returns the log in the form that the command line and standard error ask for. Both forms escape what could
// affect a terminal themselves.
func (e *env) logAt(level slog.Leveler) *slog.Logger {
	w := unwrapped(e.stderr)
	if e.logsJSON() {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
	}
	return slog.New(newTextLog(w, level, coloured(w)))
}

// level returns the level that the command line names, or else this one.
func (e *env) level(level slog.Level) slog.Level {
	switch e.logs.LogLevel {
	case "debug":
		return slog.LevelDebug
	case "info":
		return slog.LevelInfo
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return level
}

func (e *env) logsJSON() bool {
	if e.logs.LogFormat == "auto" {
		return e.json || !isTerminal(e.stderr)
	}
	return e.logs.LogFormat == "json"
}

// textLog is a slog.Handler for people: a line has the time, the level, the message, and the attributes as
// slog.TextHandler writes them, without those that are empty and those that only serve programs. Digests are
// shortened. What could affect a terminal is escaped.
//
// The slog handlers that colour what they write (tint) were not taken: they let escape sequences of attributes
// through to the terminal.
type textLog struct {
	*textWriter
	attrs slog.Handler // writes into textWriter.line
	level slog.Leveler
}

type textWriter struct {
	mu      sync.Mutex
	w       io.Writer
	colour  bool
	line    bytes.Buffer
	message string // of the record that is being written
}

func newTextLog(w io.Writer, level slog.Leveler, colour bool) *textLog {
	t := &textWriter{w: w, colour: colour}
	attrs := slog.NewTextHandler(&t.line, &slog.HandlerOptions{Level: level, ReplaceAttr: t.keep})
	return &textLog{t, attrs, level}
}

// forPrograms are attributes of some messages that people can look up elsewhere, as with the id of a call.
var forPrograms = map[string][]string{
	"call":             {"generation", "arguments"},
	"connect decision": {"generation", "declared"},
}

// keep drops the attributes that Handle writes itself, the empty ones, and those for programs.
func (t *textWriter) keep(groups []string, a slog.Attr) slog.Attr {
	_, level := a.Value.Any().(slog.Level)
	own := len(groups) == 0 && (a.Key == slog.LevelKey && level || a.Key == slog.MessageKey && a.Value.String() == "")
	empty := a.Value.String() == "" || a.Value.String() == "[]"
	if own || empty || slices.Contains(forPrograms[t.message], a.Key) {
		return slog.Attr{}
	}
	return a
}

func (h *textLog) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level.Level() }

func (h *textLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.message = ""
	return &textLog{h.textWriter, h.attrs.WithAttrs(attrs), h.level}
}

func (h *textLog) WithGroup(name string) slog.Handler {
	return &textLog{h.textWriter, h.attrs.WithGroup(name), h.level}
}

func (h *textLog) Handle(ctx context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.line.Reset()
	h.message = r.Message
	bare := slog.NewRecord(time.Time{}, r.Level, "", r.PC)
	r.Attrs(func(a slog.Attr) bool { bare.AddAttrs(a); return true })
	if err := h.attrs.Handle(ctx, bare); err != nil {
		return err
	}
	line := r.Message
	if attrs := bytes.TrimSpace(h.line.Bytes()); len(attrs) > 0 {
		line += " " + string(attrs)
	}
	line = digests.ReplaceAllString(problem.Printable(line), "$1")
	_, err := fmt.Fprintf(h.w, "%s %s %s\n",
		r.Time.Local().Format(time.TimeOnly), h.painted(r.Level), line)
	return err
}

var digests = regexp.MustCompile(`\b(sha256:[0-9a-f]{12})[0-9a-f]{52}\b`)

func (t *textWriter) painted(level slog.Level) string {
	name := fmt.Sprintf("%-5s", level)
	if !t.colour {
		return name
	}
	const dim, green, yellow, red = "2", "32", "33", "31"
	colour := dim
	switch {
	case level >= slog.LevelError:
		colour = red
	case level >= slog.LevelWarn:
		colour = yellow
	case level >= slog.LevelInfo:
		colour = green
	}
	return "\x1b[" + colour + "m" + name + "\x1b[0m"
}
