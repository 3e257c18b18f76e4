package generation_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// What a matrix says to be visible is what is listed, and what it says to be callable or denied is what calls are answered.
func TestStandingsAreWhatIsServed(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	h.Set("policy/staff.rego", servetest.StaffOnly)
	h.Set("policy/eve.rego", "package catalogd.call\n\ndeny contains \"not eve\" if {\n\tinput.tool.name == \"clock\"\n\tinput.principal.name == \"eve\"\n}\n\ndeny contains \"short\" if {\n\tinput.tool.name == \"upper\"\n\tcount(input.arguments.text) > 100\n}\n")
	h.Set("catalog/writes.cue", writesCUE)
	h.Set("policy/access/data.yaml", strings.Replace(servetest.HomeAccess, `default: {tools: ["*"]}`, `default: {tools: ["*"], approve: {erase: {groups: [ops], reason: "no way back"}}}`, 1))
	h.Set("policy/writes.rego", writesRego)
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	people := []decision.Principal{decision.Local(), servetest.Person("ann", "staff"), servetest.Person("bob"), servetest.Person("eve")}
	g, release := h.Pin()
	defer release()
	all, err := g.AccessMatrix(t.Context(), people)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(people) * len(g.Branches()) * (g.Registry().Len() + len(invoke.Builtins())); len(all) != want {
		t.Errorf("%d standings, want %d", len(all), want)
	}
	kinds := map[generation.Access]bool{}
	for _, s := range all {
		kinds[s.Access] = true
		p := people[slices.IndexFunc(people, func(p decision.Principal) bool { return p.Name == s.Principal })]
		if listed := slices.Contains(h.Sees(t, s.Branch, p), s.Tool); listed != s.Visible() {
			t.Errorf("%+v, listed: %t", s, listed)
		}
	}
	for _, kind := range []generation.Access{generation.Callable, generation.Depends, generation.Approval, generation.Refused, generation.Hidden} {
		if !kinds[kind] {
			t.Errorf("nothing is %s", kind)
		}
	}
	eve := slices.IndexFunc(all, func(s generation.AccessCell) bool {
		return s.Principal == "eve" && s.Tool == "clock" && s.Branch == "default"
	})
	if s := all[eve]; s.Access != generation.Hidden || s.Why != "every call is denied: not eve" {
		t.Errorf("%+v", s)
	}
	for _, want := range []generation.AccessCell{
		{Branch: "default", Tool: "wipe", Principal: "bob", Access: generation.Callable},
		{Branch: "default", Tool: "erase", Principal: "bob", Access: generation.Approval, Why: "it waits for an approval by a member of ops, within 24h0m0s: no way back"},
		{Branch: "default", Tool: "erase", Principal: "local", Access: generation.Approval, Why: "it waits for an approval by a member of ops or by the caller, within 24h0m0s: no way back"},
		{Branch: "default", Tool: "burn", Principal: "bob", Access: generation.Refused, Why: "no intent is released: nothing is burnt"},
		{Branch: "default", Tool: "slow", Principal: "bob", Access: generation.Depends, Why: "the release decision looks at the arguments, the intent or the time"},
	} {
		if !slices.Contains(all, want) {
			t.Errorf("there is no %+v", want)
		}
	}
	for s, rule := range map[generation.AccessCell]string{
		{Branch: "default", Tool: "burn", Access: generation.Refused}:   "policy/writes.rego",
		{Branch: "default", Tool: "erase", Access: generation.Approval}: "policy/call.rego",
	} {
		rules, err := g.Responsible(t.Context(), s, servetest.Person("bob"))
		if err != nil || len(rules) == 0 || rules[len(rules)-1].File != rule {
			t.Errorf("%+v: %v %v", s, rules, err)
		}
	}
}

// writesCUE are tools with a side effect, writesRego what is released of them.
const (
	writesCUE = `package catalog

tools: {
	erase: {description: "Delete one.", args: force: *false | bool, effect: "write", binding: jq: program: "1"}
	burn: {description: "Delete more.", effect: "write", binding: jq: program: "1"}
	slow: {description: "Delete late.", args: {}, effect: "write", binding: jq: program: "1"}
}
`
	writesRego = `package catalogd.release

import future.keywords.not

deny contains "nothing is burnt" if input.tool.name == "burn"

deny contains "too late" if {
	input.tool.name == "slow"
	input.intent.age > 60
}

deny contains "four eyes" if {
	input.tool.name == "erase"
	input.arguments.force
	not "admins" in input.intent.approval.by.groups
}
`
)

// A write tool of a policy without the release package is refused to everybody, and listed all the same.
func TestNothingIsReleasedWithoutThePackage(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	delete(h.Files, "policy/release.rego")
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	g, release := h.Pin()
	defer release()
	all, err := g.AccessMatrix(t.Context(), []decision.Principal{decision.Local()})
	if err != nil {
		t.Fatal(err)
	}
	want := generation.AccessCell{
		Branch: "default", Tool: "wipe", Principal: "local", Access: generation.Refused,
		Why: "no intent is released: the policy has no package catalogd.release (`catalogd init` writes one)",
	}
	if !slices.Contains(all, want) || !slices.Contains(h.Sees(t, "default", decision.Local()), "wipe") {
		t.Errorf("%+v", all)
	}
}

// A tool whose every call is denied to somebody is answered to that one as a tool that there is not, and
// shown to the others, however they came to share what is decided.
func TestDeniedCallsAreNotListed(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	h.Set("policy/eve.rego", "package catalogd.call\n\ndeny contains \"not eve\" if {\n\tinput.tool.name == \"clock\"\n\tinput.principal.name == \"eve\"\n}\n\ndeny contains json.unmarshal(input.tool.name) if {\n\tinput.tool.name == \"upper\"\n\t\"broken\" in input.principal.groups\n}\n")
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		who   decision.Principal
		tool  string
		shown bool
	}{
		{decision.Local(), "clock", true}, {servetest.Person("eve"), "clock", false}, {servetest.Person("ann"), "clock", true}, {servetest.Person("eve", "staff"), "clock", false},
		{servetest.Person("ann"), "upper", true}, {servetest.Person("bob", "broken"), "upper", false},
	} {
		if shown := slices.Contains(h.Sees(t, "default", c.who), c.tool); shown != c.shown {
			t.Errorf("%s is shown %s: %t", c.who.Name, c.tool, shown)
		}
		g, release := h.Pin()
		path, _ := g.PathFor("default", c.who)
		call := path.Call(t.Context(), invoke.Request{Tool: c.tool, Arguments: json.RawMessage("{}"), Principal: c.who})
		gone := path.Call(t.Context(), invoke.Request{Tool: c.tool[:1] + "-gone", Principal: c.who})
		release()
		if (call.Err != nil && call.Err.Code == registry.UnknownTool) == c.shown || gone.Err.Code != registry.UnknownTool {
			t.Errorf("%s calls %s: %v", c.who.Name, c.tool, call.Err)
		}
	}
}
