package generation_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// TestBrief holds that five lines say of each outcome what, why, where, what to change and what to run next.
func TestBrief(t *testing.T) {
	t.Parallel()
	h := conversing(t)
	h.Set("catalog/more.cue", `package catalog

branches: picky: {select: {names: ["secret"], tags: ["loud"]}, hide: names: ["sec*"]}
branches: unnamed: {}

tools: {
	untrusted: {description: "Not trusted.", effect: "read", binding: exec: {command: "uname", argv: []}}
	missing: {description: "Of no command.", effect: "read", binding: mcp: server: "absent"}
	often: {description: "Rate limited.", effect: "read", binding: jq: program: "1"}
	own: {
		description: "Denied by a rule of the house."
		args: n!: int
		effect: "read"
		binding: jq: program: "1"
		examples: [{args: n: 1}]
	}
}
servers: absent: transport: stdio: command: "no-such-command-here"
servers: closed: {prefix: "closed_", discover: {}, transport: http: url: "http://127.0.0.1:1/mcp"}
`)
	h.Set("catalog/writes.cue", writesCUE)
	h.Set("policy/writes.rego", writesRego)
	h.Set("policy/house.rego", `package catalogd.list

import future.keywords.not

deny contains "only for the staff" if {
	input.tool.name == "own"
	not "staff" in input.principal.groups
}
`)
	h.Set("policy/house_call.rego", `package catalogd.call

deny contains "too much" if input.arguments.n >= 100

rate_limit := {"calls": 2, "per": "1m"} if input.tool.name == "often"
`)
	h.Set("policy/access/data.yaml", strings.Replace(servetest.HomeAccess, `default: {tools: ["*"]}`,
		"default: {tools: [\"*\"], approve: {erase: {groups: [ops]}}}\n  picky: {tools: [secret]}", 1))
	h.MustReload(t, "adopted")
	ann := decision.Principal{Name: "ann", Groups: []string{"staff"}}
	above := fork(t, h, "default", ann, conversation.Terms{Hide: &registry.Selector{Names: []string{"secret"}}},
		map[string]string{"session/mode": "quiet"})
	below := fork(t, h, above.Name, ann, conversation.Terms{}, nil)
	h.Set("policy/house_session.rego", fmt.Sprintf(
		"package catalogd.call\n\ndeny contains \"not in this conversation\" if {\n\tinput.branch.session == %q\n\tinput.arguments.text == \"a\"\n}\n", above.Name))
	h.MustReload(t, "adopted")
	names := strings.NewReplacer(above.Name, "ABOVE", below.Name, "BELOW")
	branches := strings.NewReplacer("ABOVE", above.Name, "BELOW", below.Name)
	g, release := h.Pin()
	defer release()
	for _, test := range []struct {
		branch, tool, args string
		who                string // the local operator if empty, else ann
		answer, why        string // parts of these lines
		change, next       string
	}{
		{"default", "upper", `{"text":"a"}`, "", "default: callable: listed", "list by policy/list.rego:9:1, call by policy/call.rego:",
			"nothing; `deny: [upper]` in the entry of branch default in policy/access/data.yaml", "explain default upper -v"},
		{"default", "upper", "", "", "default: listed: a call runs if", "list by policy/list.rego:",
			"nothing; give the arguments", "schema default upper"},
		{"default", "own", "", "ann", "for ann (groups: staff): listed: a call runs if", "list by policy/list.rego:",
			"nothing; give the arguments", "explain default own"}, // with those of its example
		{"small", "upper", `{"txt":"a"}`, "", "small: invalid_arguments: listed, but",
			"/text: got nothing, expected a string (required) (declared at catalog/home.cue:9:8), and 1 more",
			"the arguments of the call", "schema small upper"},
		{"default", "own", "", "", "default: hidden: not listed",
			"list: denied: only for the staff (policy/house.rego:5:1)",
			"at policy/house.rego:5:1, or what it looks at: input.principal.groups", "explain default own -v"},
		{"default", "own", `{"n":100}`, "ann", "denied: listed, but this call is denied",
			"call: denied: too much (policy/house_call.rego:3:1)",
			"the rule `deny contains \"too much\" if input.arguments.n >= 100` at policy/house_call.rego:3:1, " +
				"or what it looks at: input.arguments.n", "explain default own -v"},
		{"default", "often", "", "", "callable: listed, and a call runs, at most 2 times in 1m0s",
			"limited by policy/house_call.rego:5:1", "nothing; `deny: [often]`", "explain default often -v"},
		{"default", "erase", "", "", "approval: listed, and a call waits", "by a member of ops or by the caller",
			"approve: of branch default in policy/access/data.yaml asks for it", "explain default erase -v"},
		{"default", "burn", "", "", "refused: listed, but",
			"release: denied: nothing is burnt (policy/writes.rego:5:1)",
			"the rule `deny contains \"nothing is burnt\"", "explain default burn -v"},
		{"default", "untrusted", "", "", "hidden: not listed", `no trust entry covers the command ["uname"] (policy/`,
			"below entries: in policy/trust/data.yaml", "trust --propose untrusted"},
		{"default", "missing", "", "", "hidden: not listed", `command "no-such-command-here" is not on PATH`,
			"install the command on the machine that serves", "doctor"},
		{"picky", "untrusted", "", "", "hidden: not listed", "connect: denied: what it reaches is not trusted",
			"or the tag \"loud\" to the tool; and then: add untrusted to tools: of branch picky", "trust --propose untrusted"},
		{"small", "secret", "", "", "hidden: not listed", "select or hide leaves it out (catalog/home.cue:5:11)",
			"add \"secret\" to `select: names: [...]` at catalog/home.cue:5:18", "explain small secret -v"},
		{"picky", "upper", `{"txt":"a"}`, "", "hidden: not listed", "select or hide leaves it out (catalog/more.cue:3:11)",
			"at catalog/more.cue:3:19, or the tag \"loud\" to the tool; and then: " +
				"add upper to tools: of branch picky in policy/access/data.yaml", "explain picky upper -v"},
		{"picky", "secret", "", "", "hidden: not listed", "select or hide leaves it out (catalog/more.cue:3:11)",
			"hide at catalog/more.cue:3:64: take out the name \"sec*\"", "explain picky secret -v"},
		{"unnamed", "upper", "", "", "hidden: not listed", "branch unnamed is not named in policy/access/data.yaml",
			"put `unnamed: {tools: [upper]}` below branches: in policy/access/data.yaml", "explain unnamed upper -v"},
		{"public", "remote_echo", "", "", "hidden: not listed", "list: denied: policy/access/data.yaml denies branch public",
			"take what fits remote_echo out of deny: of branch public", "explain public remote_echo -v"},
		{"public", "secret", "", "", "hidden: not listed", "list: denied: not for the public (policy/list.rego:",
			"the rule below hide: in policy/access/data.yaml that fits the branch's labels and a tag of the tool (internal)",
			"explain public secret -v"},
		{"BELOW", "secret", "", "ann", "hidden: not listed", "branch ABOVE: the branch's select or hide leaves it out",
			"the conversation branch ABOVE, by its owner (PATCH /branches/ABOVE)", "explain BELOW secret -v"},
		{"BELOW", "upper", `{"text":"a"}`, "ann", "denied: listed, but",
			"not in this conversation (policy/house_session.rego:3:1), asked of branch ABOVE",
			"or what it looks at: input.arguments.text", "explain BELOW upper -v"},
	} {
		who := decision.Local()
		if test.who != "" {
			who = ann
		}
		x, err := g.Explain(t.Context(), generation.ExplainRequest{Branch: branches.Replace(test.branch), Request: invoke.Request{
			Tool: test.tool, Arguments: json.RawMessage(test.args), Principal: who,
		}})
		if err != nil {
			t.Fatal(err)
		}
		b := x.Brief()
		lines := strings.Split(names.Replace(b.String()), "\n")
		if len(lines) != 5 {
			t.Fatalf("%s %s: %d lines:\n%s", test.branch, test.tool, len(lines), b)
		}
		declared := fmt.Sprintf("tool: declared at %s, effect %s, ", x.Declared, x.Effect)
		for i, want := range []string{test.answer, test.why, declared, test.change} {
			if !strings.Contains(lines[i], want) {
				t.Errorf("%s %s %s: line %d is\n%s\nwant\n%s", test.branch, test.tool, test.args, i+1, lines[i], want)
			}
		}
		if want := "next: catalogd " + test.next; lines[4] != want {
			t.Errorf("%s %s: %s, want %s", test.branch, test.tool, lines[4], want)
		}
		if want := test.tool == "own" && test.args == "" && test.who != ""; (string(b.Arguments) == `{"n":1}`) != want {
			t.Errorf("%s %s: the next arguments are %s", test.branch, test.tool, b.Arguments)
		}
	}
	for tool, want := range map[string]string{
		"uper":     `the catalog has no tool "uper"; did you mean upper?`,
		"closed_x": "the catalog has no tool \"closed_x\": nothing of server \"closed\" is locked; run `catalogd lock`",
	} {
		_, err := g.Explain(t.Context(), generation.ExplainRequest{
			Branch: "default", Request: invoke.Request{Tool: tool, Principal: decision.Local()},
		})
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", tool, err, want)
		}
	}
}
