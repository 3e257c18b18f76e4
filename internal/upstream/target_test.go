package upstream_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

func TestTarget(t *testing.T) {
	t.Parallel()
	s := stdioServer(t, "good")
	s.Stdio.Env = map[string]registry.Value{"B": {Literal: "never shown"}, "A": {Secret: "env:NEVER_SHOWN"}}
	s.Stdio.Cwd = "sub"
	real, err := filepath.EvalSymlinks(s.Stdio.Command)
	if err != nil {
		t.Fatal(err)
	}
	web := declared("https://Example.COM/mcp?team=a")
	web.HTTP.Headers = map[string]registry.Value{"x-team": {Literal: "never shown"}, "authorization": {Secret: "env:NEVER_SHOWN"}}
	for _, c := range []struct {
		server registry.Server
		want   trust.Target
	}{
		{s, trust.Target{Kind: trust.Stdio, Command: &trust.Command{
			Declared: s.Stdio.Command, Path: real, Args: []string{"-fake", "good"}, Dir: "sub", Env: []string{"A", "B"},
		}, Secrets: []string{"env:NEVER_SHOWN"}}},
		{web, trust.Target{Kind: trust.HTTP, Headers: []string{"Authorization", "X-Team"}, Secrets: []string{"env:NEVER_SHOWN"}, URL: &trust.URL{
			Scheme: "https", Host: "example.com", Port: 443, Path: "/mcp", Segments: []string{"mcp"},
			TLS: &trust.TLS{MinVersion: "1.2", ServerName: "example.com", Verified: true},
		}}},
	} {
		got, problems := upstream.Target(c.server, t.TempDir())
		if diff := cmp.Diff(c.want, got); diff != "" || len(problems) > 0 {
			t.Errorf("%v\n%s", problems, diff)
		}
	}
}

func TestTargetProblems(t *testing.T) {
	t.Parallel()
	stdio := func(change func(*registry.Stdio)) registry.Server {
		s := stdioServer(t, "good")
		change(s.Stdio)
		return s
	}
	web := func(url string, headers map[string]registry.Value) registry.Server {
		s := declared(url)
		s.HTTP.Headers = headers
		return s
	}
	header := func(name, value string) map[string]registry.Value {
		return map[string]registry.Value{name: {Literal: value}}
	}
	const fine = "http://127.0.0.1/mcp"
	for _, c := range []struct {
		server registry.Server
		code   problem.Code
		field  string
		says   string
	}{
		{registry.Server{Name: "fake"}, problem.MissingField, "transport", "stdio or http"},
		{stdio(func(s *registry.Stdio) { s.Command = "no-such-program" }), problem.MissingCommand, "transport.stdio.command", "not on PATH"},
		{stdio(func(s *registry.Stdio) { s.Command = "/dev/null" }), problem.MissingCommand, "transport.stdio.command", "can't be run on this machine: command \"/dev/null\": /dev/null is not a regular file"},
		{stdio(func(s *registry.Stdio) { s.Env = map[string]registry.Value{"A=B": {}} }), problem.BadBinding, "transport.stdio.env.A=B", "="},
		{stdio(func(s *registry.Stdio) { s.Env = map[string]registry.Value{"A": {Secret: "hunter2"}} }), problem.BadSecret, "transport.stdio.env.A", "reference"},
		{web("ftp://127.0.0.1/", nil), problem.BadBinding, "transport.http.url", "ftp"},
		{web("http://user:pw@127.0.0.1/", nil), problem.BadBinding, "transport.http.url", "user information"},
		{web("http://127.0.0.1/{x}", nil), problem.BadBinding, "transport.http.url", "fixed"},
		{web(fine, header("Bad Name", "")), problem.BadBinding, "transport.http.headers.Bad Name", "header name"},
		{web(fine, header("host", "example.com")), problem.BadBinding, "transport.http.headers.host", "Host is set by the transport"},
		{web(fine, header("mcp-session-id", "1")), problem.BadBinding, "transport.http.headers.mcp-session-id", "set by the transport"},
		{web(fine, header("X-A", "a\r\nX-B: b")), problem.BadBinding, "transport.http.headers.X-A", "line end"},
		{web(fine, map[string]registry.Value{"X-A": {}, "x-a": {}}), problem.BadBinding, "transport.http.headers.x-a", "twice"},
		{web(fine, map[string]registry.Value{"X-A": {Secret: "hunter2"}}), problem.BadSecret, "transport.http.headers.X-A", "reference"},
	} {
		c.server.Fields = map[string]problem.Position{c.field: {File: "a.cue", Line: 7, Col: 3}}
		_, problems := upstream.Target(c.server, t.TempDir())
		if len(problems) != 1 {
			t.Errorf("%s: %v", c.field, problems)
			continue
		}
		p := problems[0]
		if p.Code != c.code || p.Line != 7 || p.Path != "servers.fake."+c.field || !strings.Contains(p.Message, c.says) || strings.Contains(p.Message, "hunter2") {
			t.Errorf("%s: %v", c.field, p)
		}
	}
}
