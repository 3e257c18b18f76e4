package lint_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/lint"
)

// shippedWith is the shipped policy with files replaced or added; an empty one is removed.
func shippedWith(t *testing.T, files map[string]string) *decision.Engine {
	t.Helper()
	fsys := fstest.MapFS{}
	if err := fillFrom(fsys, "../../policy"); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		fsys[name] = file(text)
	}
	return load(t, fsys)
}

// A change of a policy is said by what it means, with the effect that its form shows.
func TestPolicyChanges(t *testing.T) {
	t.Parallel()
	const base = `package catalogd.call

import data.catalogd.lib.access
import data.catalogd.lib.house

deny contains "hidden" if not access.granted

allow if not endswith(input.branch.labels.team, "-guests")

deny contains "no" if {
	some tag in input.tool.tags
	tag in house.internal
	not house.spared
}
===
package catalogd.lib.house

spared if input.principal.admin

internal := {"a", "b"}
`
	policy := func(t *testing.T, text string) *decision.Engine {
		call, lib, _ := strings.Cut(text, "===\n")
		return shippedWith(t, map[string]string{"policy/house.rego": call, "policy/lib/house.rego": lib})
	}
	effects := map[lint.Effect]string{
		lint.Undecided: "undecided", lint.Neutral: "neutral", lint.Narrowing: "narrowing", lint.Widening: "widening",
	}
	for _, test := range []struct{ name, old, new, want string }{
		{"a comment, layout and names of variables", `some tag in input.tool.tags
	tag in house.internal`, `# here
	some  t in input.tool.tags

	t in house.internal`, ``},
		{"the name of an import", `access
import data.catalogd.lib.house

deny contains "hidden" if not access.granted`, `access as a
import data.catalogd.lib.house

deny contains "hidden" if not a.granted`, ``},
		{"negations that include what they are made of", `import data.catalogd.lib.access
`, `import data.catalogd.lib.access
import future.keywords.not
`, `catalogd.call.allow changed: undecided`},
		{"a deny that goes", `deny contains "hidden" if not access.granted`, ``, `catalogd.call.deny removed: widening`},
		{"a deny that asks for more", `not house.spared`, `not house.spared
	input.tool.effect == "write"`, `catalogd.call.deny changed: widening`},
		{"a deny that asks for less", `	not house.spared
`, ``, `catalogd.call.deny changed: narrowing`},
		{"what spares asks for less", `if input.principal.admin`, `if true`, `catalogd.lib.house.spared changed: undecided`},
		{"one more who is spared", `internal :=`, `spared if input.principal.name == "ann"

internal :=`, `catalogd.lib.house.spared added: widening`},
		{"one member more", `{"a", "b"}`, `{"a", "b", "c"}`, `catalogd.lib.house.internal changed: narrowing`},
		{"one member fewer", `{"a", "b"}`, `{"a"}`, `catalogd.lib.house.internal changed: widening`},
		{"another member", `{"a", "b"}`, `{"a", "c"}`, `catalogd.lib.house.internal changed: undecided`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(base, test.old) {
				t.Fatalf("the policy has no %q", test.old)
			}
			before, after := policy(t, base), policy(t, strings.Replace(base, test.old, test.new, 1))
			var got []string
			for _, c := range lint.Changes(before.Policy(), after.Policy()) {
				did := "changed"
				if c.Old == "" {
					did = "added"
				} else if c.New == "" {
					did = "removed"
				}
				got = append(got, fmt.Sprintf("%s.%s %s: %s", c.Package, c.Name, did, effects[c.Effect]))
			}
			if s := strings.Join(got, "; "); s != test.want {
				t.Errorf("got %s, want %s", s, test.want)
			}
		})
	}
}
