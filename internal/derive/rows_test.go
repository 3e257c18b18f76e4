package derive_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// row is one test under the number that the lists of bad inputs and threats give to what it holds against
// (docs/robustness.md).
type row struct {
	name string
	test func(*testing.T)
}

// TestBadInput has the rows of what args may say.
func TestBadInput(t *testing.T) {
	t.Parallel()
	schemas(t, true)
	leaves(t, true)
	refusals(t, true)
	losses(t, true)
	for _, r := range []row{
		{"A39/recursion", recursion},
		{"A41/optional arguments of an exact tool", exactRefusesOptionalArguments},
		{"A42/limits", limits},
	} {
		t.Run(r.name, r.test)
	}
}

// TestThreat has the threats that derived schemas hold against.
func TestThreat(t *testing.T) {
	t.Parallel()
	for _, r := range []row{
		{"T15/hostile args", hostile},
		{"T15/args that compute", decidedByCUE},
	} {
		t.Run(r.name, r.test)
	}
}

// What is just inside a limit is a schema, and what is just outside is refused in words, quickly.
func limits(t *testing.T) {
	t.Parallel()
	fields := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "f%d?: int\n", i)
		}
		return b.String()
	}
	long := func(n int) string { return "// " + strings.Repeat("d", n) + "\na?: int" }
	for _, test := range []struct {
		name, args string
		refused    string // the value and the limit
	}{
		{"enum of 1,000", "a?: " + enum(1000), ""},
		{"enum of 5,000", "a?: " + enum(5000), "5000 alternatives, more than 1000"},
		{"1,900 arguments", fields(1900), ""},
		{"5,000 arguments", fields(5000), "5001 parts, more than 2000"},
		{"a description of 100 KB", long(100 << 10), "102400 bytes, more than 16384"},
		{"a constant of 1 MB", fmt.Sprintf("a?: %q", strings.Repeat("x", 1<<20)), "bytes, more than 262144"},
		{"depth 30", "a?: " + strings.Repeat("{a?: ", 28) + "int" + strings.Repeat("}", 28), ""},
		{"depth 40, beyond which CUE decides", "a?: " + strings.Repeat("{a?: ", 40) + "int" + strings.Repeat("}", 40), ""},
		{"lists 40 deep", "a?: " + strings.Repeat("[...", 40) + "int" + strings.Repeat("]", 40), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, problems := args(t, "", test.args, contract.Closed)
			if problems.HasErrors() != (test.refused != "") {
				t.Fatalf("%v", problems)
			}
			for _, p := range problems {
				if p.Line == 0 || len(p.Message) > 1000 || p.Code != problem.UnsupportedConstr || !strings.Contains(p.Message, test.refused) {
					t.Errorf("%.200s", p)
				}
			}
		})
	}
}

// Each of these would be a schema that a client reads differently, that can't be checked, or that never ends.
func hostile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ definitions, args string }{
		"look-ahead":             {"", `x!: =~"^(?!rm)"`},
		"look-behind":            {"", `x!: =~"(?<=a)b"`},
		"back-reference":         {"", `x!: =~"(a)\\1"`},
		"possessive":             {"", `x!: =~"a++"`},
		"a counted repeat":       {"", `x!: =~"(a{1000}){1000}"`},
		"a pattern that is none": {"", `x!: =~"["`},
		"a pattern of a key":     {"", `x?: {[=~"(?=a)"]: int}`},
		"a pattern, negated":     {"", `x!: string & !~"(?!a)"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, problems := args(t, test.definitions, test.args, contract.Closed)
			if !problems.HasErrors() || problems[0].Line == 0 {
				t.Errorf("%v", problems)
			}
		})
	}
}

// Each of these lets a call decide how much CUE has to compute. They are losses, so CUE runs them where it can be killed.
func decidedByCUE(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ definitions, args string }{
		"a size from an argument":  {"", `x!: list.Range(0, a, 1), a!: int`},
		"a repeat by an argument":  {"", `x!: strings.Repeat("a", a), a!: int`},
		"a product of a text":      {"", `x: a * "x", a!: int`},
		"a loop over an argument":  {"", "for k in l {(k)?: int}\nl!: [...string]"},
		"a loop through a let":     {"", "let L = l\nx: [for k in L {k}]\nl!: [...string]"},
		"a loop in a hidden field": {"", "_x: [for k in l {k}]\nl!: [...string]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, _, problems := args(t, test.definitions, test.args, contract.Closed)
			if problems.HasErrors() || len(spec.Losses) == 0 || spec.Losses[0].Line == 0 || spec.Remainder == nil {
				t.Errorf("got %v %v, want a contract that CUE decides", problems, spec.Losses)
			}
		})
	}
}
