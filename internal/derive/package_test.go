package derive_test

import (
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
)

// A comprehension at the top of a package that makes tools says nothing of the package's definitions; one that may declare
// a definition does.
func TestComprehensionBesideDefinitions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		beside   string
		followed bool
	}{
		{`for n in ["p", "q"] {tools: (n): args: {}}`, true},
		{`for n in ["p"] {for m in ["q"] {tools: "\(n)\(m)": args: {}}}`, true},
		{`if true {#Mail: =~"^a"}`, false},
		{`if true {_x}, _x: {}`, false},
	} {
		d := newDeclared(t, "#Mail: string\n"+c.beside, "to!: #Mail", contract.Closed)
		if d.problems.HasErrors() {
			t.Fatalf("%s: %v", c.beside, d.problems)
		}
		if got := strings.Contains(string(d.spec.Schema), `"to":{"type":"string"}`) && len(d.spec.Losses) == 0; got != c.followed {
			t.Errorf("%s: got %s with %d losses, want followed %v", c.beside, d.spec.Schema, len(d.spec.Losses), c.followed)
		}
		d.agrees(t, `{"to":"a"}`, `{"to":"b"}`, `{"to":5}`, `{}`)
	}
}
