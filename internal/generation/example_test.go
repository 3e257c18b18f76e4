package generation_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/servetest"
)

// TestExamples runs examples of every outcome.
func TestExamples(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	h.Set("catalog/examples.cue", `package catalog

tools: pass: {
	description: "Its examples hold."
	args: {n!: number, deep?: {...}}
	effect: "read"
	binding: jq: program: "{n: .n, deep: .deep}"
	examples: [
		{args: n: 1, result: {n: 1, deep: null}},
		{args: n: 1, result: {deep: null, n: 1.0}},
		{args: n: 1e3, result: {n: 1000, deep: null}},
		{args: {n: 1, deep: a: [1]}, result: {n: 1, deep: a: [1]}},
		{args: {n: 1}},
		{args: {}, rejected: "/n"},
		{args: {n: "x"}, rejected: "invalid_arguments"},
	]
}
tools: text: {
	description: "Answers text."
	effect:      "read"
	binding: jq: program: "\"a\\nb\""
	examples: [{args: {}, result: "a\nb"}, {args: {}, result: "a"}]
}
tools: fail: {
	description: "Its examples don't hold."
	args: n!: int
	effect: "read"
	binding: jq: program: "{n: .n}"
	examples: [
		{args: n: 1, result: {n: 2}},
		{args: n: 9007199254740993, result: {n: 9007199254740992}},
		{args: n: 1, rejected: "/n"},
		{args: {}, result: {n: 1}},
		{args: {}, rejected: "/m"},
	]
}
tools: delete_all: {
	description: "Has a side effect."
	args: n!: int
	effect: "write"
	binding: jq: program: "1"
	examples: [{args: n: 1, result: 1}, {args: {}, rejected: "/n"}, {args: n: 1, rejected: "/n"}]
}
tools: untrusted: {
	description: "Not trusted."
	effect:      "read"
	binding: exec: {command: "uname", argv: []}
	examples: [{args: {}, result: "x"}]
}
`)
	// A policy that denies every call is no matter of the examples.
	h.Set("policy/call.rego", h.Get("policy/call.rego")+"\ndeny contains \"never\" if input.tool.name\n")
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	g, release := h.Pin()
	defer release()
	got := map[string]string{}
	for _, r := range g.TestExamples(t.Context(), regexp.MustCompile(`^(pass|text|fail|delete_all|untrusted)$`)) {
		how := "fail: " + r.Message
		switch {
		case r.Pass:
			how = "pass"
		case r.Skipped != "":
			how = "skip: " + r.Skipped
		}
		got[fmt.Sprintf("%s %d", r.Tool, r.Index)] = how
		if r.Pos.File != "catalog/examples.cue" || r.Pos.Line == 0 {
			t.Errorf("%s %d is at %s", r.Tool, r.Index, r.Pos)
		}
	}
	want := map[string]string{
		"pass 0": "pass", "pass 1": "pass", "pass 2": "pass", "pass 3": "pass", "pass 4": "pass", "pass 5": "pass", "pass 6": "pass",
		"text 0": "pass", "text 1": `fail: want "a", got "a\nb"`,
		"fail 0": `fail: want {"n":2}, got {"n":1}`,
		"fail 1": `fail: want {"n":9007199254740992}, got {"n":9007199254740993}`,
		"fail 2": "fail: want a rejection", "fail 3": "fail: want a result, got: invalid_arguments", "fail 4": "fail: want a rejection with \"/m\", got",
		"delete_all 0": "skip: the arguments were accepted", "delete_all 1": "pass", "delete_all 2": "fail: want a rejection",
		"untrusted 0": "skip: what it reaches is not trusted",
	}
	for example, how := range want {
		if !strings.HasPrefix(got[example], how) {
			t.Errorf("%s: %s, want %s", example, got[example], how)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d examples ran, want %d: %v", len(got), len(want), got)
	}
	if some := g.TestExamples(t.Context(), regexp.MustCompile(`^te`)); len(some) != 2 {
		t.Errorf("the filter left %d", len(some))
	}
}
