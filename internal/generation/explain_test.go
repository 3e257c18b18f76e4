package generation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/invoke"
)

// TestExplain holds that the explanation is what a call meets, and names the places.
func TestExplain(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	h.Set("catalog/more.cue", `package catalog

branches: narrow: hide: names: ["up*"]

tools: untrusted: {
	description: "Not trusted."
	effect:      "read"
	binding: exec: {command: "uname", argv: []}
}
tools: counted: {
	description: "Pre adds what the policy looks at."
	args: n!: int
	effect: "read"
	pre:    "{n: (.n * 10)}"
	binding: jq: program: ".n"
}
`)
	h.Set("catalog/writes.cue", writesCUE)
	h.Set("policy/writes.rego", writesRego)
	h.Set("policy/access/data.yaml", strings.NewReplacer("  small:", "  narrow: {tools: [\"*\"]}\n  small:", `default: {tools: ["*"]}`, `default: {tools: ["*"], approve: {erase: {groups: [ops]}}}`).Replace(servetest.HomeAccess))
	h.Set("policy/call.rego", h.Get("policy/call.rego")+`
deny contains "too much" if input.arguments.n >= 100
`)
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	g, release := h.Pin()
	defer release()
	for _, test := range []struct {
		branch, tool, args string
		outcome, why       string
		steps              []decision.Point
		call               string // what a call comes to; empty: it succeeds
	}{
		{"default", "upper", `{"text":"a"}`, "callable", "", []decision.Point{decision.List, decision.Call}, ""},
		{"default", "secret", ``, "callable", "", []decision.Point{decision.List, decision.Call}, ""},
		{"default", "clock", ``, "callable", "", []decision.Point{decision.Connect, decision.List, decision.Call}, ""},
		{"default", "upper", `{"txt":"a"}`, "invalid_arguments", "/txt", []decision.Point{decision.List}, "invalid_arguments"},
		{"default", "wipe", ``, "callable", "", []decision.Point{decision.List, decision.Call, decision.Release}, "effector_required"},
		{"default", "erase", ``, "approval", "by a member of ops or by the caller", []decision.Point{decision.List, decision.Call, decision.Release}, "effector_required"},
		{"default", "erase", `{"force":true}`, "refused", "four eyes", []decision.Point{decision.List, decision.Call, decision.Release}, "effector_required"},
		{"default", "burn", ``, "refused", "nothing is burnt", []decision.Point{decision.List, decision.Call, decision.Release}, "effector_required"},
		{"default", "slow", ``, "callable", "", []decision.Point{decision.List, decision.Call, decision.Release}, "effector_required"},
		{"default", "slow", `{"x":1}`, "invalid_arguments", "/x", []decision.Point{decision.List}, "invalid_arguments"},
		{"public", "secret", ``, "hidden", "not for the public", []decision.Point{decision.List, decision.Call}, "unknown_tool"},
		{"narrow", "upper", `{"text":"a"}`, "hidden", "catalog/more.cue:3:11", []decision.Point{decision.List, decision.Call}, "unknown_tool"},
		{"default", "untrusted", ``, "hidden", "no trust entry covers", []decision.Point{decision.Connect, decision.List, decision.Call}, "unknown_tool"},
		{"default", "remote_echo", ``, "callable", "", []decision.Point{decision.Connect, decision.List, decision.Call}, "unavailable"},
		{"default", "counted", `{"n":9}`, "callable", "", []decision.Point{decision.List, decision.Call}, ""},
		// The policy sees what pre made of the arguments.
		{"default", "counted", `{"n":10}`, "denied", "too much", []decision.Point{decision.List, decision.Call}, "denied"},
	} {
		t.Run(test.branch+" "+test.tool+test.args, func(t *testing.T) {
			x, err := g.Explain(t.Context(), generation.ExplainRequest{Branch: test.branch, Request: invoke.Request{Tool: test.tool, Arguments: json.RawMessage(test.args), Principal: decision.Local()}})
			if err != nil {
				t.Fatal(err)
			}
			if x.Outcome != test.outcome || !strings.Contains(x.Why, test.why) || (x.Why == "") != (test.outcome == "callable") {
				t.Errorf("%s: %s; want %s: %s", x.Outcome, x.Why, test.outcome, test.why)
			}
			var steps []decision.Point
			for _, s := range x.Steps {
				steps = append(steps, s.Decision.Point)
				if len(s.Rules)+len(s.Unmet) == 0 {
					t.Errorf("%s names no rule", s.Decision.Point)
				}
				for _, r := range s.Rules {
					if !strings.HasPrefix(r.File, "policy/") || r.Line == 0 {
						t.Errorf("rule %s has no place", r)
					}
				}
			}
			if !slices.Equal(steps, test.steps) {
				t.Errorf("steps %v, want %v", steps, test.steps)
			}
			if x.Declared.Line == 0 || !strings.Contains(x.String(), fmt.Sprintf("tool declared at %s", x.Declared)) || x.BranchAt.Line == 0 {
				t.Errorf("%s", x)
			}
			call := servetest.CallOn(t, g, test.branch, test.tool, test.args)
			got := ""
			if call.Err != nil {
				got = string(call.Err.Code)
			}
			if got != test.call {
				t.Errorf("a call comes to %q, want %q", got, test.call)
			}
		})
	}

	var unknown *generation.UnknownBranchError
	if _, err := g.Explain(t.Context(), generation.ExplainRequest{Branch: "defalt", Request: invoke.Request{Tool: "upper", Principal: decision.Local()}}); !errors.As(err, &unknown) || !slices.Contains(unknown.Nearest, "default") {
		t.Errorf("%v", err)
	}
	if _, err := g.Explain(t.Context(), generation.ExplainRequest{Branch: "default", Request: invoke.Request{Tool: "uper", Principal: decision.Local()}}); err == nil || !strings.Contains(err.Error(), "upper") {
		t.Errorf("%v", err)
	}
}

// TestExplainReach: why a server and a binding may be reached is reported by name, with the rules, the facts and the entry.
func TestExplainReach(t *testing.T) {
	t.Parallel()
	h := servetest.OpenHouse(t)
	g, release := h.Pin()
	defer release()
	for _, r := range g.Reaches() {
		found, err := g.ExplainReach(t.Context(), r.Name)
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %d answers, %v", r.Name, len(found), err)
		}
		x := found[0]
		logged := 0
		for line := range strings.Lines(h.Log.String()) {
			if strings.Contains(line, `msg="connect decision" generation=`+g.ID+` kind=`+r.Kind+` name=`+r.Name+` `) && strings.Contains(line, "written="+r.Written.String()+" ") {
				logged++
			}
		}
		if logged != 1 {
			t.Errorf("%s: the decision was logged %d times:\n%s", r.Name, logged, h.Log.String())
		}
		if x.Kind != r.Kind || x.Target.Digest() != r.Target.Digest() || !x.Explanation.Decision.Allow || x.Explanation.Decision.Trust != r.Trust {
			t.Errorf("%s: %+v is not what was decided", r.Name, x)
		}
		if x.Explanation.Entry != r.Written || !strings.Contains(x.Explanation.String(), "policy/connect.rego:") {
			t.Errorf("%s: written at %s, want %s:\n%s", r.Name, x.Explanation.Entry, r.Written, x.Explanation)
		}
	}
	if _, err := g.ExplainReach(t.Context(), "remoet"); err == nil || !strings.Contains(err.Error(), "did you mean remote?") {
		t.Errorf("%v", err)
	}
}
