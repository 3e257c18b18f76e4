package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/problem"
)

func TestTextLog(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for name, c := range map[string]struct {
		log  func(*slog.Logger)
		want string
	}{
		"message":          {func(l *slog.Logger) { l.Info("stopped", "calls_cut", 0) }, "INFO  stopped calls_cut=0"},
		"digest":           {func(l *slog.Logger) { l.Warn("of "+digest, "id", digest) }, "WARN  of sha256:0123456789ab id=sha256:0123456789ab"},
		"empty attributes": {func(l *slog.Logger) { l.Error("x", "a", "", "b", []string{}, "c", []string(nil), "d", "e") }, "ERROR x d=e"},
		"for programs":     {func(l *slog.Logger) { l.Info("call", "id", "1", "arguments", digest, "tool", "t") }, "INFO  call id=1 tool=t"},
		"others' level":    {func(l *slog.Logger) { l.Info("x", "level", "high", "time", "now") }, "INFO  x level=high time=now"},
		"groups":           {func(l *slog.Logger) { l.With("a", 1).WithGroup("g").With("b", 2).Info("x", "msg", 3) }, "INFO  x a=1 g.b=2 g.msg=3"},
		"escape sequences": {
			func(l *slog.Logger) {
				l.Info("a\x1b[31m\nb", "e", errors.New("c\x1b[0m d"), "f", `\x1b[31m g`, "\x1b", "\u202e\u3164")
			},
			`INFO  a\x1b[31m\nb e="c\x1b[0m d" f="\\x1b[31m g" "\x1b"="\u202e\u3164"`,
		},
		"debug": {func(l *slog.Logger) { l.Debug("x") }, ""},
	} {
		var plain, coloured bytes.Buffer
		c.log(slog.New(newTextLog(&plain, slog.LevelInfo, false)))
		c.log(slog.New(newTextLog(&coloured, slog.LevelInfo, true)))
		got := regexp.MustCompile(`^\d\d:\d\d:\d\d |\n$`).ReplaceAllString(plain.String(), "")
		if got != c.want {
			t.Errorf("%s: got\n%q, want\n%q", name, got, c.want)
		}
		if got := regexp.MustCompile(`\x1b\[(3\d|0)m`).ReplaceAllString(coloured.String(), ""); got[min(len(got), 9):] != plain.String()[min(plain.Len(), 9):] {
			t.Errorf("%s: got %q, want %q and colours", name, coloured.String(), plain.String())
		}
		if n := strings.Count(coloured.String(), "\x1b"); c.want != "" && n != 2 {
			t.Errorf("%s: got %d escape sequences, want 2: %q", name, n, coloured.String())
		}
	}
}

// TestStartReport: however much there is to say, the report has at most ten lines.
func TestStartReport(t *testing.T) {
	t.Parallel()
	r := startReport{version: "v1", served: ".", url: "http://127.0.0.1:8420", tokens: "tokens", state: "/state"}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		r.branches = append(r.branches, startedBranch{name, 12, r.url + "/branches/" + name + "/mcp"})
	}
	r.status = daemon.Status{
		Generation: daemon.GenerationStatus{Policy: "sha256:0123456789abcdef", Adopted: "resumed", Tools: 49, Hidden: 4, Unseen: 40, HiddenTools: []generation.HiddenTools{
			{Reason: `its server "up" is not trusted`, Tools: 2, Example: "up_ask"}, {Reason: "b", Tools: 1, Example: "x"}, {Reason: "c\x1b", Tools: 1, Example: "y"}, {Reason: "d", Tools: 1, Example: "z"},
		}},
		Failed: &daemon.FailedStatus{Reason: "problems", Problems: problem.List{{Code: problem.NotLocked, Severity: problem.Warning}, {Code: problem.CUESyntax, Severity: problem.Error, Position: problem.Position{File: "a.cue", Line: 3, Col: 1}, Message: "m"}}}, Warnings: problem.List{{Code: problem.NotLocked, Path: "servers.wiki.discover"}, {Code: problem.UntrustedServer, Position: problem.Position{File: "b.cue", Line: 4, Col: 1}}, {Code: problem.NotLocked}},
		MissingSecrets: []generation.Secret{{Reference: "env:KEY", Users: []generation.SecretUser{{Kind: "tool", Name: "k"}}}},
		Intents:        &daemon.EffectsStatus{Paused: true}, Tokens: &daemon.TokensStatus{Good: 3},
	}
	for i := range 20 {
		s := daemon.ServerStatus{Name: fmt.Sprintf("s%d", i), Trusted: i >= 5}
		r.status.Servers = append(r.status.Servers, s)
	}
	const want = `catalogd v1 serves ., policy sha256:0123456789ab, resumed: http://127.0.0.1:8420/status
  12 tools  http://127.0.0.1:8420/branches/a/mcp
  and 4 more branches: http://127.0.0.1:8420/branches
DEGRADED: the newest files are refused (problems), and what was adopted before this start is served in their place: a.cue:3:1: cue_syntax: m; more: catalogd status --server http://127.0.0.1:8420
hidden: 40 tools that no branch shows, 2 tools such as up_ask (its server "up" is not trusted), x (b), y (c\x1b), and for 1 reason more; more: catalogd check, catalogd explain BRANCH TOOL
not trusted: s0, s1, s2 and 2 servers more; more: catalogd trust
missing secrets: KEY (k); more: catalogd doctor
warnings: 2 not_locked (first servers.wiki), 1 untrusted_server (b.cue:4:1); more: catalogd check
intents: none; paused: none begins before catalogd intents resume
tokens: 3 good, of tokens; state: /state
`
	var b strings.Builder
	r.print(&b)
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
