package registry_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// TestBranchStrictness: a branch may ask for stricter keys and for nothing else; it lists what it checks, and other
// branches are as they were.
func TestBranchStrictness(t *testing.T) {
	t.Parallel()
	loose := tool("loose", func(t *registry.Tool) {
		t.Args = contract.Spec{Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`), Strictness: contract.Open,
			Fields: []contract.Field{{Name: "a", Required: true}}}
	})
	optional := tool("optional", func(t *registry.Tool) {
		t.Args = contract.Spec{Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}`), Strictness: contract.Closed,
			Fields: []contract.Field{{Name: "a"}}}
	})
	branch := func(name, tool string, to contract.Strictness) registry.Branch {
		return registry.Branch{Name: name, Strictness: map[string]contract.Strictness{tool: to},
			Source: registry.Source{Fields: map[string]problem.Position{"strictness." + tool: {File: "catalog/b.cue", Line: 4, Col: 2}}}}
	}
	build := func(b registry.Branch) *registry.Build {
		return &registry.Build{Tools: []registry.Tool{loose, optional}, Branches: []registry.Branch{b}}
	}
	for _, to := range []contract.Strictness{contract.Closed, contract.Exact} {
		b := branch("b", "loose", to)
		r, problems := registry.New(build(b), bindEcho, nil, nil)
		if problems.HasErrors() {
			t.Fatal(problems.Err())
		}
		strict, plain := registry.NewView(r, b, everything), registry.NewView(r, registry.Branch{Name: "c"}, everything)
		e, unknown := strict.Lookup("loose")
		if unknown != nil {
			t.Fatal(unknown)
		}
		if e.Declared().Args.Strictness != to || !strings.Contains(string(e.Declared().Args.Schema), `"additionalProperties":false`) || string(e.Contract().Spec().Schema) != string(e.Declared().Args.Schema) {
			t.Errorf("%s: lists %s", to, e.Declared().Args.Schema)
		}
		if _, found, err := e.Contract().Check(t.Context(), json.RawMessage(`{"a":1,"b":2}`)); err != nil || len(found) != 1 {
			t.Errorf("%s: %v %v", to, found, err)
		}
		if strict.Digest() == plain.Digest() {
			t.Errorf("%s: a stricter list has the digest of the other", to)
		}
		if other, _ := plain.Lookup("loose"); other.Declared().Args.Strictness != contract.Open {
			t.Errorf("%s: another branch is strict as well", to)
		}
		if strict.Branch().Strictness["loose"] = "changed"; strict.Declared().Strictness["loose"] != to {
			t.Error("what a view hands out is no copy")
		}
	}
	for _, tc := range []struct {
		tool string
		to   contract.Strictness
		want string
	}{
		{"optional", contract.Closed, "catalog/b.cue:4:2: contradictory_field: branches.b.strictness.optional: strictness closed is not stricter than closed; a branch can only ask for more than tool \"optional\" does: leave it out, or change the tool (see catalog/"},
		{"optional", contract.Exact, "catalog/b.cue:4:2: contradictory_field: branches.b.strictness.optional: strictness exact with an argument that is not required: \"a\""},
		{"loos", contract.Exact, "catalog/b.cue:4:2: unknown_tool: branches.b.strictness.loos: there is no tool loos; did you mean loose?"},
	} {
		b := branch("b", tc.tool, tc.to)
		_, problems := registry.New(build(b), bindEcho, nil, nil)
		if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), tc.want) {
			t.Errorf("%s %s: %v", tc.tool, tc.to, problems)
		}
	}
}
