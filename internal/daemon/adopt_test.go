package daemon_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/servetest"
)

// frozen is an adopt policy that refuses every change of the policy but at a start.
const frozen = `package catalogd.adopt

default allow := false

allow if input.bootstrap

allow if input.serving

deny contains "the policy is frozen" if {
	not input.bootstrap
	input.changes.policy_changed
}
`

// free is an adopt policy that lets everything through.
const free = `package catalogd.adopt

default allow := false

allow if input.candidate
`

// gateStays: a change that takes the gate away is decided by the gate.
func gateStays(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	h.SetAdopt(frozen)
	// The first generation is decided by its own policy, which counts as a bootstrap.
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	if got := h.Status().Generation.Adopted; got != "bootstrap" {
		t.Errorf("adopted by %s", got)
	}
	for name, edit := range map[string]func(){
		"the gate alone": func() { h.SetAdopt(free) },
		"the gate and what it would have refused": func() {
			h.SetAdopt(free)
			h.Set("policy/access/data.yaml", "branches: {}\nhide: []\n")
		},
		"data alone": func() { h.Replace(t, "policy/access/data.yaml", `small: {tools: ["*"]}`, "small: {tools: [upper]}") },
	} {
		edit()
		o := h.MustReload(t, "refused")
		s := h.Status()
		if s.Failed.Reason != "adoption_denied" || !strings.Contains(o.Problems.Err().Error(), "the policy is frozen") {
			t.Errorf("%s: %+v %v", name, s.Failed, o.Problems)
		}
		h.SetAdopt(frozen)
		h.Set("policy/access/data.yaml", servetest.HomeAccess)
		h.MustReload(t, "unchanged")
	}
	// The catalog may still change.
	h.Set("catalog/home.cue", "// New.\n"+servetest.HomeCUE)
	h.MustReload(t, "adopted")
	if got := h.Status().Generation.Adopted; got != "adopted" {
		t.Errorf("adopted by %s", got)
	}
	// A new start is asked of what lies there then.
	h.SetAdopt(free)
	h.Close()
	if err := h.Open(t); err != nil {
		t.Error(err)
	}
}

// closed is an adopt policy that lets nothing through, a start neither.
const closed = `package catalogd.adopt

default allow := false

deny contains "we are closed" if input.candidate
`

// TestClosedGate: a policy that would refuse its own start is not adopted, or nothing but a restart, which it refuses,
// would get rid of it.
func TestClosedGate(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	h.SetAdopt(free)
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	h.SetAdopt(closed)
	o := h.MustReload(t, "refused")
	if got := o.Problems.Err().Error(); h.Status().Failed.Reason != "adoption_denied" || !strings.Contains(got, "would not let it start") || !strings.Contains(got, "we are closed") {
		t.Errorf("%s: %v", h.Status().Failed.Reason, got)
	}
	h.SetAdopt(free)
	h.MustReload(t, "unchanged")
}

// TestGateIsAskedWithWhatChanges: what differs reaches the policy, by name.
func TestGateIsAskedWithWhatChanges(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	// The gate tells what it was asked, as the reason of a denial.
	h.SetAdopt(frozen + `
deny contains sprintf("%v", [object.union(input.changes, {"visible": input.candidate.visible, "was": input.serving.visible, "trusted": input.candidate.trusted})]) if {
	not input.bootstrap
	not input.changes.policy_changed
}
`)
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(servetest.HomeCUE, "tools: secret:", "tools: hidden:", 1)
	text = strings.Replace(text, "Upper-case a text.", "Upper-case.", 1)
	text = strings.Replace(text, "branches: small: select: names: [\"upper\"]\n", "branches: tiny: select: names: [\"upper\"]\n", 1)
	text = strings.Replace(text, "/mcp\"", "/mcp\"\n\tmaxConnections: 2", 1)
	h.Set("catalog/home.cue", text)
	o := h.MustReload(t, "refused")
	got := o.Problems.Err().Error()
	for _, want := range []string{
		`"tools_added": ["hidden"]`, `"tools_removed": ["secret"]`, `"tools_changed": ["upper"]`,
		`"servers_added": []`, `"servers_removed": []`, `"servers_changed": ["remote"]`,
		`"branches_added": ["tiny"]`, `"branches_removed": ["small"]`, `"policy_changed": false`,
		`"trusted": {"remote": "remote"}`,
		`"visible": {"default": ["clock", "hidden", "intent_cancel", "intent_get", "intent_list", "remote_echo", "upper", "wipe"], "public": ["clock", "intent_cancel", "intent_get", "intent_list", "upper", "wipe"], "tiny": []}`,
		`"was": {"default": ["clock", "intent_cancel", "intent_get", "intent_list", "remote_echo", "secret", "upper", "wipe"], "public": ["clock", "intent_cancel", "intent_get", "intent_list", "upper", "wipe"], "small": ["upper"]}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

// TestShippedGate: a branch doesn't lose all of its tools by accident, and does when that is meant.
func TestShippedGate(t *testing.T) {
	t.Parallel()
	h := servetest.OpenHouse(t)
	h.Replace(t, "catalog/home.cue", `small: select: names: ["upper"]`, `small: {select: names: ["upper"], hide: names: ["*"]}`)
	o := h.MustReload(t, "refused")
	if got := o.Problems.Err().Error(); !strings.Contains(got, "branch small would lose all of its tools") || !strings.Contains(got, "may_empty") {
		t.Errorf("%s", got)
	}
	// Naming the branch and taking its tools away in one save is what the serving policy refuses.
	h.Set("policy/adopt/data.yaml", "may_empty: [small]\n")
	h.MustReload(t, "refused")
	good := h.Get("catalog/home.cue")
	h.Set("catalog/home.cue", servetest.HomeCUE)
	h.MustReload(t, "adopted")
	h.Set("catalog/home.cue", good)
	o = h.MustReload(t, "adopted")
	if got := h.Names(t, "small"); len(got) != 0 || !slices.Contains(o.Changed, "small") {
		t.Errorf("small lists %v; changed %v", got, o.Changed)
	}
}

// brokenGate: a serving gate that gives no answer keeps everything out, and says why.
func brokenGate(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	h.SetAdopt(`package catalogd.adopt

default allow := false

allow if input.bootstrap

allow if {
	some name in input.candidate.tools
	to_number(name) > 0
}
`)
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	h.Set("catalog/home.cue", "// New.\n"+servetest.HomeCUE)
	o := h.MustReload(t, "refused")
	if got := o.Problems.Err().Error(); !strings.Contains(got, "policy_error") || !strings.Contains(got, "policy/adopt.rego") {
		t.Errorf("%s", got)
	}
}

// TestFailingTests: the shipped gate lets no policy in whose tests fail, whatever else is edited, and lets it in once they
// are fixed. What was refused can be looked at.
func TestFailingTests(t *testing.T) {
	t.Parallel()
	h := servetest.OpenHouse(t)
	h.Set("policy/house_test.rego", "package catalogd.house_test\n\ntest_two if 1 + 1 == 3\n\ntest_one if true\n")
	h.Set("catalog/more.cue", "package catalog\n\ntools: more: {description: \"More.\", effect: \"write\", binding: jq: program: \"1\"}\n")
	o := h.MustReload(t, "refused")
	if got := o.Problems.Err().Error(); !strings.Contains(got, "1 tests of the policy fail, such as data.catalogd.house_test.test_two") {
		t.Errorf("%s", got)
	}
	c := h.Status().Failed.Candidate
	if c == nil || c.Tests.Failed != 1 || c.Tests.Passed != 1 || !slices.Equal(c.Tests.Failures, []string{"data.catalogd.house_test.test_two"}) ||
		!slices.Equal(c.Changes.ToolsAdded, []string{"more"}) || c.Tools != len(h.Status().Failed.Candidate.Changes.ToolsAdded)+h.Status().Generation.Tools {
		t.Fatalf("%+v", c)
	}
	if slices.Contains(h.Names(t, "default"), "more") {
		t.Error("a refused tool is listed")
	}
	h.Set("policy/house_test.rego", "package catalogd.house_test\n\ntest_two if 1 + 1 == 2\n")
	h.MustReload(t, "adopted")
	if h.Status().Failed != nil {
		t.Errorf("%+v", h.Status().Failed)
	}
}

// TestOwnGates: what a team may want to know before it lets a change in.
func TestOwnGates(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	h.SetAdopt(`package catalogd.adopt

default allow := false

allow if input.candidate

deny contains sprintf("%s would show the write tool %s", [v.branch, v.tool]) if {
	some v in input.changes.visibility_gained
	v.effect == "write"
	not input.bootstrap
}

deny contains sprintf("server %s has no owner", [s.name]) if {
	some s in input.changes.trust_gained
	not s.labels.owner
	not input.bootstrap
}

deny contains "what is not committed is not served" if {
	not input.bootstrap
	not input.candidate.commit.clean
}
`)
	h.Commit = func(_ context.Context, digest string) decision.Commit {
		return decision.Commit{Hash: "0123456789abcdef0123456789abcdef01234567", Clean: strings.Contains(h.Get("catalog/home.cue"), "// Committed.")}
	}
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	h.Set("catalog/more.cue", "package catalog\n\ntools: more: {description: \"More.\", effect: \"write\", binding: jq: program: \"1\"}\n")
	h.Set("catalog/server.cue", "package catalog\n\nservers: second: transport: http: url: \"http://127.0.0.1:9/second\"\n")
	h.Replace(t, "policy/trust/data.yaml", "entries:\n", "entries:\n  second: {host: 127.0.0.1, scheme: http, port: 9, path: /second, addresses: [127.0.0.0/8]}\n")
	o := h.MustReload(t, "refused")
	got := o.Problems.Err().Error()
	for _, want := range []string{"default would show the write tool more", "server second has no owner", "what is not committed is not served"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	if c := h.Status().Failed.Candidate; c == nil || c.Commit.Hash == "" || c.Commit.Clean {
		t.Errorf("%+v", c)
	}
	h.Replace(t, "catalog/more.cue", `"write"`, `"read"`)
	h.Replace(t, "catalog/server.cue", "servers: second:", "servers: second: labels: owner: \"ann\"\nservers: second:")
	h.Set("catalog/home.cue", "// Committed.\n"+h.Get("catalog/home.cue"))
	h.MustReload(t, "adopted")
}
