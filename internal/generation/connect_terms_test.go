package generation_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/servetest"
)

// A policy that says yes to everything and names nothing grants no variable, nothing of a call on a command line or on
// standard input, and nothing that lies in the catalog's own tree.
func yesGrantsNothing(t *testing.T) {
	t.Setenv("APP_TOKEN", "leaks")
	h := servetest.NewHouse(t)
	h.Root = t.TempDir()
	if err := os.WriteFile(filepath.Join(h.Root, "tool"), []byte("#!/bin/sh\necho from the tree\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	h.Set("catalog/home.cue", strings.Replace(environmentCUE, ", env: DECLARED: \"declared\"", "", 1)+`
tools: declares: {
	description: "Print the environment."
	effect:      "read"
	binding: exec: {command: "date", argv: [], env: HOME: "/"}
}
tools: writes: {
	description: "Print a text."
	args: text!: string
	effect: "read"
	binding: exec: {command: "printf", argv: ["%s", "{text}"]}
}
tools: reads: {
	description: "Print a text."
	args: text!: string
	effect: "read"
	binding: exec: {command: "cat", argv: [], stdin: "json"}
}
tools: command: {description: "A command of the tree.", effect: "read", binding: exec: {command: "./tool", argv: []}}
tools: script: {description: "A script of the tree.", effect: "read", binding: exec: {command: "sh", argv: ["tool"]}}
tools: works: {description: "Works in the tree.", effect: "read", binding: exec: {command: "date", argv: [], cwd: "."}}
servers: declares: transport: stdio: {command: "cat", env: HOME: "/"}
tools: sends: {description: "Sends.", effect: "read", binding: http: {url: "https://a.example/", headers: {Accept: "text/plain", "x-team": "a"}}}
servers: sends: transport: http: {url: "https://b.example/", headers: {"User-Agent": "me", "X-Team": "a"}}
servers: tree: transport: stdio: {command: "./tool"}
`)
	h.Set("policy/connect.rego", `package catalogd.connect

default allow := false

allow if input.target.kind

trust := "everything"

interpreter := true
`)
	delete(h.Files, "policy/connect_test.rego")
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	given := h.Variables(t)
	if given["APP_TOKEN"] != "" || given["PATH"] == "" {
		t.Errorf("given %v", given)
	}
	if got := h.Call(t, "default", "declares", `{}`); got != "unknown_tool" {
		t.Errorf("what the declaration sets: %s", got)
	}
	for _, tool := range []string{"writes", "reads"} {
		if got := h.Call(t, "default", tool, `{"text":"x"}`); got != "unknown_tool" {
			t.Errorf("what a call writes, by %s: %s", tool, got)
		}
	}
	for _, tool := range []string{"command", "script", "works"} {
		if got := h.Call(t, "default", tool, `{}`); got != "unknown_tool" {
			t.Errorf("in the tree, %s: %s", tool, got)
		}
	}
	g, release := h.Pin()
	defer release()
	warned := fmt.Sprint(g.Warnings)
	for text, times := range map[string]int{
		`a call puts text on the command line; trust entry "everything" would have to name it in from_call`:            1,
		`calls write to the command's standard input; trust entry "everything" would have to say stdin: true`:          1,
		`lies in the catalog's own tree; trust entry "everything" would have to say in_tree: true`:                     4,
		`server "tree" is not trusted, so its tools are hidden: what ./tool runs, or the directory that it works in, `: 1,
		`the declaration sets HOME; trust entry "everything" would have to name it in env`:                             2,
	} {
		if strings.Count(warned, text) != times {
			t.Errorf("not %d times %s: %s", times, text, warned)
		}
	}
	proposals, _, err := g.Proposals(t.Context(), "command")
	if err != nil || len(proposals) != 1 || !strings.Contains(fmt.Sprint(proposals[0].Denied), "in_tree: true") {
		t.Errorf("proposed: %v, %v", proposals, err)
	}
	if warned := fmt.Sprint(g.Warnings); strings.Count(warned, `the declaration sends the headers X-Team; trust entry "everything" would have to name them in headers`) != 2 {
		t.Errorf("warnings: %s", warned)
	}
}

// Servers, commands and addresses of tools are asked about at one decision, with their declaration's place,
// and each answer is logged once, with the generation, the entry and where that is written, until the
// question is another.
func oneEngineDecides(t *testing.T) {
	h := servetest.NewHouse(t)
	h.Set("catalog/home.cue", `package catalog

branches: default: {}
tools: clock: {description: "The time.", effect: "read", binding: exec: {command: "date", argv: ["-u"]}}
tools: page: {description: "A page.", effect: "read", binding: http: url: "https://127.0.0.1:9/page"}
servers: child: transport: stdio: command: "date"
servers: far: transport: http: url: "http://127.0.0.1:9/mcp"
`)
	h.Set("policy/trust/data.yaml", `entries:
  clock: {command: [date, -u]}
  page: {host: 127.0.0.1, port: 9, path: /page, addresses: [127.0.0.0/8]}
  far: {scheme: http, host: 127.0.0.1, port: 9, path: /mcp, addresses: [127.0.0.0/8]}
`)
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	g, release := h.Pin()
	first := g.ID
	release()
	found := h.Reaches()
	if len(found) != 4 {
		t.Errorf("%v", found)
	}
	for name, want := range map[string]string{
		"tool clock": "clock policy/trust/data.yaml:2:3 catalog/home.cue:4:8", "tool page": "page policy/trust/data.yaml:3:3 catalog/home.cue:5:8",
		"server far": "far policy/trust/data.yaml:4:3 catalog/home.cue:7:10", "server child": " - catalog/home.cue:6:10",
	} {
		r := found[name]
		written := "-"
		if r.Written.Line > 0 {
			written = r.Written.String()
		}
		if got := fmt.Sprintf("%s %s %s", r.Trust, written, r.Pos); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := found["tool page"].Observed.Addresses; !slices.Equal(got, []string{"127.0.0.1"}) {
		t.Errorf("addresses %v", got)
	}
	if got := found["tool clock"].Observed.SHA256; len(got) != 64 {
		t.Errorf("digest %q", got)
	}
	if tls := found["tool page"].Target.URL.TLS; tls == nil || tls.MinVersion != "1.2" || tls.ServerName != "127.0.0.1" || !tls.Verified {
		t.Errorf("TLS %+v", tls)
	}
	if tls := found["server far"].Target.URL.TLS; tls != nil {
		t.Errorf("TLS %+v", tls)
	}

	logged := func() (lines []string) {
		for line := range strings.Lines(h.Log.String()) {
			if strings.Contains(line, `msg="connect decision"`) {
				lines = append(lines, line)
			}
		}
		return lines
	}
	// A change of another tool asks nothing again; one of the policy asks all.
	h.Set("catalog/home.cue", h.Get("catalog/home.cue")+stays)
	h.MustReload(t, "adopted")
	if lines := logged(); len(lines) != 4 {
		t.Fatalf("%d lines: %s", len(lines), lines)
	}
	for _, line := range logged() {
		if !strings.Contains(line, "generation="+first) {
			t.Errorf("no generation: %s", line)
		}
	}
	h.Set("policy/trust/data.yaml", h.Get("policy/trust/data.yaml")+"  child: {command: [date]}\n")
	before := len(logged())
	h.MustReload(t, "adopted")
	lines := logged()[before:]
	if len(lines) != 4 || !slices.ContainsFunc(lines, func(l string) bool {
		return strings.Contains(l, "name=child allow=true trust=child written=policy/trust/data.yaml:5:3")
	}) {
		t.Errorf("after the policy: %s", lines)
	}
	for _, line := range lines { // what the new policy confirms is not shown to people again
		if shown := strings.Contains(line, "level=INFO"); shown != strings.Contains(line, "name=child") {
			t.Errorf("level: %s", line)
		}
	}

	x, err := json.Marshal(h.Reaches()["server child"])
	if err != nil || !strings.Contains(string(x), `"sha256":"`) {
		t.Errorf("as JSON: %s, %v", x, err)
	}
}

// http goes to this machine only, whatever a trust entry says.
func httpReachesLoopbackOnly(t *testing.T) {
	h := servetest.NewHouse(t)
	h.Set("catalog/home.cue", `package catalog

branches: default: {}
tools: far: {description: "Far.", effect: "read", binding: http: url: "http://service.invalid/x"}
tools: near: {description: "Near.", effect: "read", binding: http: url: "http://localhost:9/x"}
tools: sure: {description: "Sure.", effect: "read", binding: http: url: "https://service.invalid/x"}
servers: private: transport: http: url: "http://10.0.0.1/mcp"
`)
	h.Set("policy/trust/data.yaml", `entries:
  far: {scheme: http, host: service.invalid}
  near: {scheme: http, host: localhost, port: 9, addresses: ["127.0.0.0/8", "::1/128"]}
  sure: {host: service.invalid}
  private: {scheme: http, host: 10.0.0.1, addresses: [10.0.0.0/8]}
`)
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"tool far": false, "tool near": true, "tool sure": true, "server private": false} {
		d := h.Reaches()[name].Decision
		if d.Allow != want || !want && !strings.Contains(strings.Join(d.Reasons, "; "), "in the clear") {
			t.Errorf("%s: %s", name, d)
		}
	}
}
