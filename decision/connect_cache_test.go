package decision_test

import (
	"maps"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/problem"
)

// TestConnectIsEvaluated: whatever was asked before, an engine answers a connect question as if it were never
// asked anything, whichever parts of the question the policy reads; and a Trust covers the target of its own
// question and no other.
func TestConnectIsEvaluated(t *testing.T) {
	t.Parallel()
	shipped := fstest.MapFS{}
	if err := fillFrom(shipped, "../policy"); err != nil {
		t.Fatal(err)
	}
	shipped["policy/trust/data.yaml"] = file("entries:\n  api: {host: api.example.com, path: /v1, headers: [X-A]}\n  all: {host: all.example.com}\n  date: {command: [date], env: [TOKEN, HOME=/h]}\n")
	house := func(rules string) fstest.MapFS {
		fsys := maps.Clone(shipped)
		fsys["policy/connect.rego"] = file("package catalogd.connect\n\ndefault allow := false\n\n" + rules + "\n")
		return fsys
	}
	for name, fsys := range map[string]fstest.MapFS{
		"shipped":         shipped,
		"subject":         house("allow if input.subject.name == \"a\"\n\ntrust := concat(\"\", [\"entry-\", input.subject.kind])"),
		"position":        house("allow if input.subject.pos.line > 1\n\ntrust := input.subject.pos.file"),
		"effect":          house("allow if not input.subject.effect == \"write\"\n\ntrust := \"x\""),
		"headers":         house("allow if count(input.target.headers) == 1\n\ntrust := \"x\""),
		"one part of URL": house("allow if input.target.url.template\n\ntrust := input.target.url.host"),
		"observed":        house("allow if \"10.0.0.1\" in input.observed.addresses\n\ntrust := \"x\""),
		"variables":       house("allow if true\n\ntrust := \"x\"\n\nenv := [concat(\"=\", [name, \"fixed\"]) | some name in input.target.command.env]"),
		"a computed name": house("allow if { some key in [\"url\", \"command\"]; input.target[key] }\n\ntrust := input.target.kind"),
		"all of it":       house("allow if true\n\ntrust := json.marshal(input)"),
		"nothing":         house("allow if true\n\ntrust := \"x\"\n\naddresses := [\"10.0.0.0/8\"]"),
		"a helper":        house("import data.catalogd.lib.entries\n\nallow if entries.name\n\ntrust := entries.name"),
		"an error":        house("allow if to_number(input.subject.name) > 0\n\ntrust := \"x\""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := load(t, fsys)
			rapid.Check(t, func(rt *rapid.T) {
				var before decision.ConnectInput
				for range rapid.IntRange(2, 12).Draw(rt, "questions") {
					in := connectQuestion(rt)
					granted, got := engine.Connect(t.Context(), in)
					anew, want := engine.ConnectAnew(t.Context(), in)
					if diff := cmp.Diff(want, got, whole) + cmp.Diff(anew, granted, cmp.AllowUnexported(trust.Trust{})); diff != "" {
						rt.Fatalf("%+v\n%s", in, diff)
					}
					if err := granted.Covers(in.Target); (err == nil) != got.Allow {
						rt.Fatalf("%+v: %v", got, err)
					}
					if before.Target.Digest() != in.Target.Digest() && granted.Covers(before.Target) == nil {
						rt.Fatalf("trust in %v covers %v", in.Target, before.Target)
					}
					before = in
				}
			})
		})
	}
}

// connectQuestion draws a question of few parts, so that they come again.
func connectQuestion(t *rapid.T) decision.ConnectInput {
	of := func(name string, values ...string) string { return rapid.SampledFrom(values).Draw(t, name) }
	some := func(name string, values ...string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(values), 0, len(values), rapid.ID[string]).Draw(t, name)
	}
	in := decision.ConnectInput{
		Subject: decision.Subject{
			Kind: of("kind", "tool", "server"), Name: of("name", "a", "b", "1"), Effect: of("effect", "", "read", "write"),
			Pos: problem.Position{File: of("file", "f", "g"), Line: rapid.IntRange(0, 2).Draw(t, "line")},
		},
		Observed: trust.Observed{InTree: rapid.Bool().Draw(t, "in tree"), Addresses: some("addresses", "10.0.0.1", "192.0.2.1")},
	}
	if rapid.Bool().Draw(t, "command") {
		in.Target = trust.Target{Kind: trust.Exec, Command: &trust.Command{
			Declared: "date", Path: "/usr/bin/date", Args: some("args", "-u", "{x}"), Dir: of("dir", "", "/d"), Env: some("env", "TOKEN", "HOME"),
		}}
		return in
	}
	p := of("path", "/v1", "/v1/a", "/v2", "/")
	segments := map[string][]string{"/v1": {"v1"}, "/v1/a": {"v1", "a"}, "/v2": {"v2"}, "/": nil}[p]
	in.Target = trust.Target{Kind: trust.HTTP, Headers: some("headers", "X-A", "X-B"), URL: &trust.URL{
		Scheme: of("scheme", "https", "http"), Host: of("host", "api.example.com", "all.example.com"), Port: rapid.SampledFrom([]int{443, 80}).Draw(t, "port"),
		Path: p, Segments: segments, Template: rapid.Bool().Draw(t, "template"),
	}}
	return in
}
