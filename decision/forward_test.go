package decision_test

import (
	"fmt"
	"testing"

	"github.com/catalogd/catalogd/decision"
)

// What says yes to tools says it to nothing else, however little the policy looks at, and whatever it was asked before.
func TestAllowIsOfToolsAlone(t *testing.T) {
	t.Parallel()
	for rules, want := range map[string]string{
		"allow if true": "true false false",
		"allow if true\n\nallow_resource if input.resource.server == \"s\"": "true true false",
		"allow_prompt if true": "false false true",
		"allow if true\n\nallow_prompt if true\n\ndeny contains \"no\" if input.prompt": "true false false",
		"allow if true\n\nallow_resource if true\n\ndeny contains \"no\" if true":       "false false false",
		"allow if input.arguments.x == 1\n\nallow_resource if input.arguments.x == 1":   "true true false",
	} {
		policy := minimal()
		for _, point := range []string{"list", "call"} {
			if point == "list" && rules[len(rules)-4:] == "== 1" {
				continue // it has no arguments
			}
			policy = with(policy, "policy/"+point+".rego", "package catalogd."+point+"\n\ndefault allow := false\n\n"+rules+"\n")
		}
		engine := load(t, policy)
		for range 2 { // the second time from what is remembered
			var listed, called [3]bool
			for n := range 3 {
				list, call := decision.ListInput{Tool: decision.Tool{Tags: []string{}}}, callInput()
				call.Tool, call.Arguments = list.Tool, []byte(`{"x":1}`)
				switch n {
				case 1:
					list.Resource = &decision.Resource{Name: "r", URI: "x:r", Server: "s", Action: "list"}
				case 2:
					list.Prompt = &decision.Prompt{Name: "p", Server: "s", Action: "list"}
				}
				call.Resource, call.Prompt = list.Resource, list.Prompt
				listed[n], called[n] = engine.List(t.Context(), list).Allow, engine.Call(t.Context(), call).Allow
			}
			if got := fmt.Sprint(called[0], called[1], called[2]); got != want {
				t.Errorf("call, %q: %s, want %s", rules, got, want)
			}
			if got := fmt.Sprint(listed[0], listed[1], listed[2]); got != want && rules[len(rules)-4:] != "== 1" {
				t.Errorf("list, %q: %s, want %s", rules, got, want)
			}
		}
	}
	engine := load(t, minimal())
	in := decision.ListInput{Resource: &decision.Resource{Server: "s"}}
	if d := engine.List(t.Context(), in); d.Allow || d.Code != decision.Undefined && d.Code != decision.Denied {
		t.Error(d)
	}
}

// A default of yes is refused, as that of allow is.
func TestForwardDefaults(t *testing.T) {
	t.Parallel()
	for _, output := range []string{"allow_resource", "allow_prompt"} {
		policy := with(minimal(), "policy/list.rego", "package catalogd.list\n\ndefault allow := false\n\ndefault "+output+" := true\n")
		if e, problems := decision.Load(t.Context(), policy, decision.Config{}); e != nil || !problems.HasErrors() {
			t.Errorf("%s: %v", output, problems)
		}
	}
}
