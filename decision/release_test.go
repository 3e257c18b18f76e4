package decision_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// whole compares decisions with what And keeps in them.
var whole = cmp.AllowUnexported(decision.Decision{})

// releasing is a policy that releases every intent for which the conditions hold.
func releasing(conditions string) fstest.MapFS {
	return with(minimal(), "policy/release.rego", "package catalogd.release\n\nimport future.keywords.not\n\ndefault allow := false\n\nallow if {\n"+conditions+"\n}\n")
}

// A rule can look at who approved what, how old an intent is, and which attempt it would be.
func TestReleaseSeesTheIntent(t *testing.T) {
	t.Parallel()
	first := releaseInput()
	first.Intent.Attempt, first.Intent.Approval = 1, nil
	for condition, want := range map[string]struct{ approved, first bool }{
		"input.intent.attempt <= 2":                                {true, true},
		"input.intent.attempt == 1":                                {false, true},
		"input.intent.attempt == 1\ninput.intent.keyed":            {false, true},
		"input.intent.age < 60":                                    {false, false},
		"input.intent.age <= 60":                                   {true, true},
		`input.intent.approval.by.name == "ann"`:                   {true, false},
		`input.intent.approval.by.name != input.principal.name`:    {true, false},
		`"ops" in input.intent.approval.by.groups`:                 {true, false},
		`"ops" in input.intent.approval.asked.groups`:              {true, false},
		"input.intent.approval.asked.self":                         {false, false},
		"not input.intent.approval":                                {false, true},
		"input.intent.repeatable\nnot input.intent.policy_changed": {true, true},
		"time.parse_rfc3339_ns(input.time) - time.parse_rfc3339_ns(input.intent.approval.at) <= 1000000000": {true, false},
		"time.parse_rfc3339_ns(input.time) - time.parse_rfc3339_ns(input.intent.staged) == 60000000000":     {true, true},
		"input.arguments.big == 9007199254740993":                                                           {true, true},
	} {
		engine := load(t, releasing(condition))
		for range 2 { // what is remembered of one is no answer to the other
			if d := engine.Release(t.Context(), releaseInput()); d.Allow != want.approved {
				t.Errorf("%s: %v of an approved one, want allow %t", condition, d, want.approved)
			}
			if d := engine.Release(t.Context(), first); d.Allow != want.first {
				t.Errorf("%s: %v of the first attempt, want allow %t", condition, d, want.first)
			}
		}
	}
}

// A misspelt part of an intent refuses the policy, with its line.
func TestReleaseInputIsTyped(t *testing.T) {
	t.Parallel()
	for _, misspelt := range []string{
		"input.intent.atempt == 1", "input.intents.attempt == 1", "input.intent.approval.who == `ann`", "input.intent.approval.by.group", "input.intent.approval.asked.reasons", "input.rate.minute == 0",
	} {
		engine, problems := decision.Load(t.Context(), releasing(misspelt), patient)
		if engine != nil || len(problems) != 1 || problems[0].Position.File != "policy/release.rego" || problems[0].Line != 8 {
			t.Errorf("%s: %v", misspelt, problems)
		}
	}
}

// A policy without the package refuses every intent, and check says so where there is a tool that it concerns.
func TestReleaseMayBeMissing(t *testing.T) {
	t.Parallel()
	fsys := minimal()
	delete(fsys, "policy/release.rego")
	engine := load(t, fsys)
	d := engine.Release(t.Context(), releaseInput())
	if d.Allow || d.Code != decision.Undefined || len(d.Reasons) != 1 || !strings.Contains(d.Reasons[0], "no package catalogd.release") {
		t.Errorf("%+v", d)
	}
	if foreseen, known := engine.ConstantRelease(t.Context(), releaseInput()); !known || cmp.Diff(d, foreseen, whole) != "" {
		t.Errorf("foreseen: %t %+v", known, foreseen)
	}
	if x, err := engine.Explain(t.Context(), decision.Release, releaseInput()); err != nil || cmp.Diff(d, x.Decision, whole) != "" {
		t.Errorf("explained: %v %+v", err, x.Decision)
	}
	if rules := engine.Responsible(t.Context(), decision.Release, releaseInput()); rules != nil {
		t.Errorf("rules %v", rules)
	}
	warned := func(fsys fstest.MapFS, effect string) (found problem.List) {
		c := decision.Catalog{Branches: []decision.Branch{{Name: "default"}}, Tools: []decision.Tool{{Name: "t", Effect: effect, Binding: "jq"}}}
		for _, p := range load(t, fsys).CheckCatalog(t.Context(), c) {
			if strings.HasPrefix(p.Message, "the package is missing") {
				found = append(found, p)
			}
		}
		return found
	}
	if found := warned(fsys, "write"); len(found) != 1 || found[0].Code != problem.PolicyPoint || found[0].Severity != problem.Warning || !strings.Contains(found[0].Message, `"t"`) {
		t.Errorf("check: %v", found)
	}
	if found := append(warned(fsys, "read"), warned(minimal(), "write")...); len(found) > 0 {
		t.Errorf("nothing is missing: %v", found)
	}
}

// What is foreseen of a release holds for every intent, and a rule about intents makes nothing else unknown.
func TestForeseenRelease(t *testing.T) {
	t.Parallel()
	for condition, known := range map[string]bool{
		"input.tool.name == `t`":                               true,
		"input.tool.name == `u`\ninput.intent.attempt == 1":    true,
		"input.intent.attempt == 1":                            false,
		"input.tool.name == `t`\ninput.intent.approval":        false,
		"input.tool.name == `t`\nstartswith(input.time, `20`)": false,
		"input.arguments.q == 1":                               false,
	} {
		in := releaseInput()
		in.Intent, in.Arguments, in.Time = decision.Intent{}, nil, time.Time{}
		if d, ok := load(t, releasing(condition)).ConstantRelease(t.Context(), in); ok != known || !ok && d.Code != "" {
			t.Errorf("%s: known %t, want %t: %v", condition, ok, known, d)
		}
	}
}

// asking is a policy that allows every call and asks for an approval.
func asking(approval string) fstest.MapFS {
	return with(minimal(), "policy/call.rego", "package catalogd.call\n\ndefault allow := false\n\nallow if true\n\nrequire_approval := "+approval+"\n")
}

func TestApproval(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for value, want := range map[string]*decision.Approval{
		`{"groups": ["ops"]}`:                  {Groups: []string{"ops"}, Expires: day},
		`{"groups": {"ops", "admins", "ops"}}`: {Groups: []string{"admins", "ops"}, Expires: day},
		`{"groups": ["ops"], "reason": "it deletes", "self": true, "expires": "1h30m"}`: {Groups: []string{"ops"}, Reason: "it deletes", Self: true, Expires: 90 * time.Minute},
		`{"self": true}`:                                {Groups: []string{}, Self: true, Expires: day},
		`{"groups": [], "self": true}`:                  {Groups: []string{}, Self: true, Expires: day},
		`{"groups": ["ops"], "expires": "720h"}`:        {Groups: []string{"ops"}, Expires: 30 * day},
		`{"groups": [input.tool.name]} if input`:        {Groups: []string{"t"}, Expires: day},
		`{"groups": ["ops"]} if input.tool.name == "u"`: nil,
	} {
		in := callInput()
		in.Tool.Effect = "write"
		d := load(t, asking(value)).Call(t.Context(), in)
		if diff := cmp.Diff(want, d.RequireApproval); !d.Allow || diff != "" {
			t.Errorf("%s: %v\n%s", value, d, diff)
		}
	}
}

// An approval that nobody could give, or that is misspelt, is no approval: the call is denied.
func TestBadApprovalDenies(t *testing.T) {
	t.Parallel()
	for value, part := range map[string]string{
		`true`:           "require_approval is boolean",
		`false`:          "require_approval is boolean",
		`null`:           "require_approval is null",
		`"ops"`:          "require_approval is string",
		`["ops"]`:        "require_approval is array",
		`{"ops"}`:        "require_approval is set",
		`{}`:             "nobody could approve",
		`{"groups": []}`: "nobody could approve",
		`{"groups": [], "self": false, "reason": "x"}`:   "nobody could approve",
		`{"groups": "ops"}`:                              "groups is string",
		`{"groups": ["ops", 1]}`:                         "groups holds number",
		`{"groups": [""], "self": true}`:                 "groups holds an empty name",
		`{"groups": ["ops"], "self": "true"}`:            "self is string",
		`{"groups": ["ops"], "reason": ["x"]}`:           "reason is array",
		`{"group": ["ops"], "self": true}`:               `"group" is not a field of it`,
		`{"groups": ["ops"], "expires": 60}`:             "expires is number",
		`{"groups": ["ops"], "expires": null}`:           "expires is null",
		`{"groups": ["ops"], "expires": "soon"}`:         `expires is "soon"`,
		`{"groups": ["ops"], "expires": "0s"}`:           `expires is "0s"`,
		`{"groups": ["ops"], "expires": "-1h"}`:          `expires is "-1h"`,
		`{"groups": ["ops"], "expires": "720h0m0.001s"}`: "it must be at most 720h0m0s",
	} {
		for _, effect := range []string{"write", "read"} {
			in := callInput()
			in.Tool.Effect = effect
			d := load(t, asking(value)).Call(t.Context(), in)
			if d.Allow || d.Code != decision.BadDecisionType || d.RequireApproval != nil || !strings.Contains(strings.Join(d.Reasons, "; "), part) {
				t.Errorf("%s of a %s tool: %+v, want %q", value, effect, d, part)
			}
			if d.At.File != "policy/call.rego" || d.At.Line != 7 {
				t.Errorf("%s: at %v", value, d.At)
			}
		}
	}
}

// Only a call of a tool with a side effect can wait for an approval. The same engine is asked about each in turn, by a policy
// that doesn't look at the effect, so that the answer to one must not be remembered as the other's.
func TestApprovalOfReadsDenies(t *testing.T) {
	t.Parallel()
	policy := asking(`{"groups": ["ops"]}`)
	policy["policy/call.rego"].Data = append(policy["policy/call.rego"].Data, "\ndefault allow_resource := false\n\nallow_resource if true\n"...)
	engine := load(t, policy)
	write, read, resource := callInput(), callInput(), callInput()
	write.Tool.Effect = "write"
	resource.Tool, resource.Resource = decision.Tool{Effect: "write"}, &decision.Resource{Name: "r", URI: "r://r", Action: "read"}
	for range 2 {
		for name, in := range map[string]decision.CallInput{"write": write, "read": read, "resource": resource} {
			foreseen, known := engine.ConstantCall(t.Context(), in)
			d := engine.Call(t.Context(), in)
			if diff := cmp.Diff(d, foreseen, whole); !known || diff != "" {
				t.Errorf("%s: foreseen %t\n%s", name, known, diff)
			}
			if name == "write" && (!d.Allow || d.RequireApproval == nil) || name != "write" && (d.Code != decision.UnsupportedObligation || d.RequireApproval != nil) {
				t.Errorf("%s: %+v", name, d)
			}
		}
	}
}

// An approval that hangs on an argument is foreseen of no call, and one that doesn't of all.
func TestForeseenApproval(t *testing.T) {
	t.Parallel()
	in := callInput()
	in.Tool.Effect = "write"
	if d, known := load(t, asking(`{"groups": ["ops"]} if input.arguments.amount > 100`)).ConstantCall(t.Context(), in); known {
		t.Errorf("it hangs on an argument: %+v", d)
	}
	if d, known := load(t, asking(`{"groups": ["ops"]} if input.tool.name == "t"`)).ConstantCall(t.Context(), in); !known || d.RequireApproval == nil {
		t.Errorf("%t %+v", known, d)
	}
}

// An approval is written as policies write it, and for people in a line.
func TestApprovalInWords(t *testing.T) {
	t.Parallel()
	in := callInput()
	in.Tool.Effect = "write"
	d := load(t, asking(`{"groups": ["ops", "admins"], "reason": "it deletes", "self": true, "expires": "4h"}`)).Call(t.Context(), in)
	text, err := json.Marshal(d)
	const want = `{"point":"call","allow":true,"code":"allowed","require_approval":{"groups":["admins","ops"],"reason":"it deletes","self":true,"expires":"4h0m0s"}}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
	if got, want := d.RequireApproval.String(), "by a member of admins or ops or by the caller, within 4h0m0s: it deletes"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
