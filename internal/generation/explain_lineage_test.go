package generation_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// TestExplainForks holds that explanations and inputs of a fork name every branch that a call through it asks, in
// that order, and come to what the call does. The branch in the middle denies something at each point.
func TestExplainForks(t *testing.T) {
	t.Parallel()
	h := conversing(t)
	ann := servetest.Person("ann")
	middle := fork(t, h, "default", ann, conversation.Terms{
		Hide:   &registry.Selector{Names: []string{"secret"}},
		Narrow: map[string]registry.Narrowing{"upper": {Name: "loud"}},
	}, map[string]string{"session/mode": "quiet"})
	below := fork(t, h, middle.Name, ann, conversation.Terms{Tools: map[string]bool{"remote_echo": false}}, nil)
	for point, when := range map[string]string{
		"list": `input.tool.name == "clock"`, "call": `input.arguments.text == "a"`,
		"result": `input.result.text[0] == "B"`, "release": `input.tool.name == "wipe"`,
	} {
		h.Set("policy/middle_"+point+".rego", fmt.Sprintf(
			"package catalogd.%s\n\ndeny contains \"not through this one\" if {\n\tinput.branch.session == %q\n\t%s\n}\n",
			point, middle.Name, when))
	}
	h.MustReload(t, "adopted")
	g, release := h.Pin()
	defer release()
	names := strings.NewReplacer(middle.Name, "middle", below.Name, "below")
	for _, test := range []struct{ tool, args, result, outcome, why, steps, lineage string }{
		{"loud", `{"text":"c"}`, `["C"]`, "callable", "", "list default middle below call default middle below result default middle below",
			"default:upper middle:loud below:loud"},
		{"loud", `{"text":"a"}`, "", "denied", "not through this one", "list default middle below call default middle below",
			"default:upper middle:loud below:loud"},
		{"upper", `{"text":"b"}`, `["B"]`, "result_denied", "not through this one",
			"list default middle below call default middle below result default middle below", "default:upper middle:loud below:loud"},
		{"wipe", "", "", "refused", "not through this one",
			"list default middle below call default middle below release default middle below", "default:wipe middle:wipe below:wipe"},
		{"clock", "", "", "hidden", "not through this one", "connect list default middle below call default middle below",
			"default:clock middle:"},
		{"secret", "", "", "hidden", "select or hide", "list default middle below call default middle below", "default:secret middle:"},
		{"remote_echo", "", "", "hidden", "removed", "connect list default middle below call default middle below",
			"default:remote_echo middle:remote_echo below:"},
	} {
		q := generation.ExplainRequest{Branch: below.Name, Request: invoke.Request{
			Tool: test.tool, Arguments: json.RawMessage(test.args), Principal: ann,
		}}
		if test.result != "" {
			q.Result = &decision.ToolResult{Types: []string{"text"}}
			if err := json.Unmarshal([]byte(test.result), &q.Result.Text); err != nil {
				t.Fatal(err)
			}
		}
		x, err := g.Explain(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if x.Outcome != test.outcome || !strings.Contains(x.Why, test.why) {
			t.Errorf("%s: %s: %s, want %s: %s", test.tool, x.Outcome, x.Why, test.outcome, test.why)
		}
		var steps, lineage []string
		last := decision.Point("")
		for _, s := range x.Steps {
			if s.Decision.Point != last {
				steps = append(steps, string(s.Decision.Point))
			}
			last = s.Decision.Point
			if s.Branch != "" {
				steps = append(steps, names.Replace(s.Branch))
				if !strings.Contains(x.String(), "asked of "+s.Branch) {
					t.Errorf("%s: the text does not say that %s is asked:\n%s", test.tool, s.Branch, x)
				}
			}
		}
		for _, b := range x.Lineage {
			lineage = append(lineage, names.Replace(b.Branch)+":"+b.Shows)
		}
		if got := strings.Join(steps, " "); got != test.steps {
			t.Errorf("%s: steps %s, want %s", test.tool, got, test.steps)
		}
		if got := strings.Join(lineage, " "); got != test.lineage {
			t.Errorf("%s: lineage %s, want %s", test.tool, got, test.lineage)
		}
		if hidden := callAs(t, h, below.Name, ann, test.tool, `{}`); (hidden.Err != nil && hidden.Err.Code == registry.UnknownTool) !=
			(test.outcome == "hidden" || test.tool == "upper") {
			t.Errorf("%s: a call comes to %v, and is explained as %s", test.tool, hidden.Err, x.Outcome)
		}
	}
	inputs, err := g.Inputs(t.Context(), generation.InputRequest{Point: decision.Result, Branch: below.Name, Request: invoke.Request{
		Tool: "loud", Arguments: json.RawMessage(`{"text":"b"}`), Principal: ann,
	}})
	if err != nil || len(inputs) != 3 {
		t.Fatalf("%d inputs: %v", len(inputs), err)
	}
	for i, want := range []string{"default", "middle", "below"} {
		in := inputs[i].Input.(decision.ResultInput)
		if got := names.Replace(inputs[i].Branch); got != want || in.Branch.Labels["session/mode"] != []string{"", "quiet", "quiet"}[i] {
			t.Errorf("input %d is of %s with the labels %v, want %s", i, got, in.Branch.Labels, want)
		}
	}
	_, err = g.Inputs(t.Context(), generation.InputRequest{Point: decision.Release, Branch: below.Name, Request: invoke.Request{
		Tool: "loud", Arguments: json.RawMessage(`{"text":"b"}`), Principal: ann,
	}})
	if err == nil || !strings.Contains(err.Error(), "no side effect") {
		t.Errorf("release of a tool that reads: %v", err)
	}
}

// TestExplainForkPolicyCantTell holds that a branch which the policy can't tell from the one below it is named with
// that, and is asked no more than at a call.
func TestExplainForkPolicyCantTell(t *testing.T) {
	t.Parallel()
	h := conversing(t)
	one := fork(t, h, "default", decision.Local(), conversation.Terms{}, nil)
	two := fork(t, h, one.Name, decision.Local(), hide("secret"), nil)
	g, release := h.Pin()
	defer release()
	x, err := g.Explain(t.Context(), generation.ExplainRequest{Branch: two.Name, Request: invoke.Request{
		Tool: "upper", Arguments: json.RawMessage(`{"text":"a"}`), Principal: decision.Local(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range x.Steps {
		if s.Branch != two.Name || !slices.Equal(s.For, []string{"default", one.Name}) {
			t.Errorf("%s is asked of %s and for %v, want %s for the two above it", s.Decision.Point, s.Branch, s.For, two.Name)
		}
	}
	if len(x.Steps) != 2 || x.Outcome != "callable" {
		t.Errorf("%d steps: %s", len(x.Steps), x)
	}
}
