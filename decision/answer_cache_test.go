package decision_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/decision"
)

// reading is the shipped policy with a further condition of `deny` at the call point.
func reading(condition string) fstest.MapFS {
	policy := fstest.MapFS{}
	err := fs.WalkDir(os.DirFS(".."), "policy", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(os.DirFS(".."), name)
		policy[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		panic(err)
	}
	if rules, ok := strings.CutPrefix(condition, "rules: "); ok {
		policy["policy/more.rego"] = &fstest.MapFile{Data: []byte("package catalogd.call\n\n" + rules + "\n")}
		policy["policy/lib/more.rego"] = &fstest.MapFile{Data: []byte("package catalogd.lib.more\n\nbad(q) if {\n\tinput.tool.name == `u`\n\tq == `no`\n}\n\nhas(a) if q := a.q\n")}
	} else if condition != "" {
		policy["policy/more.rego"] = &fstest.MapFile{Data: []byte("package catalogd.call\n\nimport data.catalogd.lib.more\n\ndeny contains \"more\" if not more.fine\n")}
		policy["policy/lib/more.rego"] = &fstest.MapFile{Data: []byte("package catalogd.lib.more\n\ndefault fine := false\n\nfine if {\n" + condition + "\n}\n")}
	}
	return policy
}

// TestCachedIsEvaluated asks engines that remember their answers the same questions, in any order and often, as ones that
// are asked once each: nothing that is remembered differs from what is evaluated, whatever a policy looks at.
func TestCachedIsEvaluated(t *testing.T) {
	t.Parallel()
	for _, condition := range []string{
		"", // the shipped policy
		`input.principal.name != "eve"`,
		`not "staff" in input.principal.groups`,
		`not input.principal.admin`,
		"someone := input.principal\nsomeone.name != `eve`",
		"some what in [`name`, `groups`]\ninput.principal[what] != `eve`",
		`input.tool.deprecated == false`,
		`input.tool.discovered == false`,
		`input.branch.labels[input.tool.name] != "no"`,
		`input.arguments.q != "no"`,
		`input.arguments[input.tool.name] != "no"`,
		`object.get(input, "arguments", {}).q != "no"`,
		"some key, part in input\nkey == `arguments`\npart.q != `no`",
		`input[concat("", ["argu", "ments"])].q != "no"`,
		"walk(input, [[`arguments`, `q`], value])\nvalue != `no`",
		`not startswith(input.time, "2026-11-30T05:00:01")`,
		`[a | a := input.arguments.q; a == "no"] == []`,
		`rules: deny contains "t only" if { input.tool.name == "t"; input.arguments.q == "no" }`,
		`rules: deny contains input.arguments.q if input.tool.name == "t"`,
		`rules: deny contains "unused" if { q := input.arguments.q; input.tool.name == "t" }`,
		`rules: deny contains "unused" if { input.tool.name == "t"; q := input.arguments.q; r := q }`,
		`rules: deny contains "underscore" if { _ = input.arguments.q; input.tool.name == "t" }`,
		`rules: deny contains "some" if { some q in input.arguments; input.tool.name == "t" }`,
		`rules: deny contains "equal" if { q := input.arguments.q; q == input.arguments.q }`,
		`rules: deny contains "known" if { input.principal.name == "eve" }`,
		"rules: timeout := `5s` if { q := input.arguments.q; input.tool.name == `t` }",
		"rules: timeout := `5s` if { x := {q | q := input.arguments.q}; input.tool.name == `t` }",
		"rules: deny contains `f` if { q := input.arguments.q; not data.catalogd.lib.more.bad(q) }",
		"rules: default timeout := `7s`\ntimeout := `5s` if { q := input.arguments.q; not data.catalogd.lib.more.bad(q) }",
		"rules: deny contains `f` if { data.catalogd.lib.more.has(input.arguments) }",
		"rules: deny contains `f` if { not data.catalogd.lib.more.has(input.arguments) }",
		`rules: deny contains sprintf("%v", [input.arguments[k]]) if { some k; input.branch.labels[k] == "no" }`,
		`rules: deny contains "late" if { input.tool.effect == "write"; endswith(input.time, "2Z") }`,
		`rules: deny contains "none" if { input.tool.name == "t"; not input.arguments.q }`,
		`rules: deny contains "all" if { input.tool.name == "t"; every a in input.arguments { a == "no" } }`,
		`rules: deny contains "count" if { input.tool.name == "t"; count(object.keys(input.arguments)) == 2 }`,
		`rules: deny contains "with" if { data.catalogd.lib.access.granted with input.tool.name as input.arguments.q }`,
		"rules: timeout := `5s` if input.arguments.q == `no`\ntimeout := `6s` if input.arguments.t == `no`",
		"rules: timeout := `5s` if input.arguments.q\ntimeout := `6s` if input.arguments.t == `no`",
		"rules: timeout := `5s` if input.tool.name == `t`\nelse := `6s` if input.arguments.q == `no`",
		"rules: timeout := input.arguments.q if input.tool.name == `t`",
		"rules: default timeout := `9s`\ntimeout := `5s` if { input.tool.name == `t`; input.arguments.q == `no` }",
		`rules: rate_limit.calls := count(input.arguments.q) if input.tool.name == "t"`,
		`rules: rate_limit[input.arguments.q] := 4 if input.tool.name == "t"`,
		`rules: rate_limit := 1 if { input.tool.name == "t"; input.arguments.q == "no" }`,
		"rules: require_approval if { input.tool.name == `t`; input.arguments.q == `no` }",
		"rules: require_approval := {`groups`: [input.arguments.q]} if input.tool.name == `t`",
		"rules: require_approval := {`self`: input.arguments.q == `no`} if input.arguments.q",
		`rules: relay contains input.arguments.q if input.tool.name == "t"`,
		`rules: relay contains "logging" if input.arguments.q == "no"`,
		`rules: deny contains 1 / input.arguments.n if input.tool.name == "t"`,
		`rules: deny contains "n" if { input.tool.name == "t"; 1 / count(input.arguments.q) > 0 }`,
		// What is left of these by a partial evaluation forgets that there must be a q at all.
		"q := input.arguments.q\nnot q == `no`",
		`rules: deny contains "no q" if { q := input.arguments.q; not q == "no" }`,
		`rules: relay contains "logging" if not data.access[input.arguments.q]`,
		`rules: deny contains "no q" if { some q in [input.arguments.q, "z"]; not q == "no" }`,
		`rules: deny contains "no q" if { q := [input.arguments.q]; not q[0] == "no" }`,
		"rules: elicitation_hosts contains `a.example` if not {`no`, `yes`}[input.arguments.q]",
		// A negation that includes what it is made of.
		"rules: import future.keywords.not\n\ndeny contains `no q` if not data.access[input.arguments.q]",
		"rules: import future.keywords.not\n\ndeny contains `no q` if { input.tool.name == `t`; not startswith(input.arguments.q, `n`) }",
		"rules: import future.keywords.not\n\ntimeout := `5s` if not { input.tool.name == `t`; input.arguments.q == `no` }",
		// An element that is false is one.
		`rules: deny contains [input.arguments.q, "x"][_]`,
		`rules: elicitation_hosts contains input.arguments.q if input.tool.name == "t"`,
	} {
		t.Run(condition, func(t *testing.T) {
			t.Parallel()
			policy := reading(condition)
			remembering := load(t, policy)
			rapid.Check(t, func(t *rapid.T) {
				in := decision.CallInput{
					Branch: decision.Branch{
						Name:   rapid.SampledFrom([]string{"default", "research", "other", ""}).Draw(t, "branch"),
						Labels: rapid.MapOf(rapid.SampledFrom([]string{"t", "u", ""}), rapid.SampledFrom([]string{"no", "yes"})).Draw(t, "labels"),
					},
					Tool: decision.Tool{
						Name:       rapid.SampledFrom([]string{"t", "u"}).Draw(t, "tool"),
						Effect:     rapid.SampledFrom([]string{"read", "write"}).Draw(t, "effect"),
						Tags:       rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2).Draw(t, "tags"),
						Deprecated: rapid.Bool().Draw(t, "deprecated"), Discovered: rapid.Bool().Draw(t, "discovered"),
					},
					Principal: decision.Principal{
						Name:   rapid.SampledFrom([]string{"local", "eve"}).Draw(t, "principal"),
						Groups: rapid.SliceOfN(rapid.SampledFrom([]string{"staff", "guests"}), 0, 2).Draw(t, "groups"),
						Admin:  rapid.Bool().Draw(t, "admin"),
					},
					Arguments: json.RawMessage(rapid.SampledFrom([]string{``, `{}`, `{"q":"no"}`, `{"q":"yes","t":"no"}`, `{"q":"no","t":"no"}`, `{"q":"logging","n":0}`, `{"n":2,"q":""}`, `{"q":1e9}`, `{"q":false}`, `{"q":1e99999}`, `{"q"`}).Draw(t, "arguments")),
					Time:      time.Date(2026, 11, 30, 5, 0, rapid.IntRange(0, 2).Draw(t, "second"), 0, time.UTC),
				}
				// An explanation is always evaluated.
				evaluated, err := remembering.Explain(context.Background(), decision.Call, in)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if diff := cmp.Diff(evaluated.Decision, remembering.Call(context.Background(), in), whole); diff != "" {
						t.Fatalf("remembered and evaluated differ for %+v:\n%s", in, diff)
					}
				}
			})
		})
	}
}

// TestListClaims holds what tells principals apart at the list decision: what its policy reads of them, and no more.
func TestListClaims(t *testing.T) {
	t.Parallel()
	ann := decision.Principal{Name: "ann", Groups: []string{"staff"}}
	others := map[string]decision.Principal{
		"local": {Name: "ann", Groups: []string{"staff"}, Local: true},
		"name":  {Name: "bob", Groups: []string{"staff"}}, "groups": {Name: "ann", Groups: []string{"guests"}},
		"admin": {Name: "ann", Groups: []string{"staff"}, Admin: true},
	}
	for condition, reads := range map[string][]string{
		"":                                  nil,
		`input.branch.name != "x"`:          nil,
		`input.principal.name != "eve"`:     {"name"},
		`"staff" in input.principal.groups`: {"groups"},
		`input.principal.groups[0] != "x"`:  {"groups"},
		`input.principal.admin`:             {"admin"},
		"input.principal.admin\ninput.principal.name != `eve`": {"admin", "name"},
		"p := input.principal\np.name != `eve`":                {"name", "groups", "admin"},
		"some part in input\npart != `eve`":                    {"name", "groups", "admin"},
	} {
		policy := reading("")
		if condition != "" {
			policy["policy/more.rego"] = &fstest.MapFile{Data: []byte("package catalogd.list\n\ndeny contains \"more\" if {\n" + condition + "\n}\n")}
		}
		engine := load(t, policy)
		for what, other := range others {
			want := slices.Contains(reads, what) || what == "local" // which the shipped call policy reads for approvals
			if differ := engine.ListClaims(ann) != engine.ListClaims(other); differ != want {
				t.Errorf("%q: another %s makes other claims: %v", condition, what, differ)
			}
		}
	}
}

// TestForeseen asks which answers hold for every call: a rule on one tool's arguments leaves those of the others alone.
func TestForeseen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule string
		// foreseen are the tools whose answer is known, and what it is.
		foreseen map[string]bool
	}{
		{"", map[string]bool{"t": true, "u": true}},
		{`deny contains "no" if { input.tool.name == "t"; input.arguments.q == "no" }`, map[string]bool{"u": true}},
		{`deny contains "no" if { input.tool.name == "t" }`, map[string]bool{"t": false, "u": true}},
		{`deny contains "no" if { input.tool.name == "t"; "x" != input.tool.effect }` + "\n\n" + `deny contains "q" if { input.tool.name == "t"; input.principal.name == "eve"; input.arguments.q }`, map[string]bool{"t": false, "u": true}},
		{`deny contains "no" if { input.tool.name == "t"; startswith(input.time, "2026") }`, map[string]bool{"u": true}},
		{`deny contains "no" if { input.tool.name == "t"; input.principal.name == "local"; input.arguments.q }`, map[string]bool{"u": true}},
		{`deny contains "no" if input.arguments.q == "no"`, map[string]bool{}},
		{`rate_limit.calls := input.arguments.q`, map[string]bool{}},
	} {
		engine := load(t, reading("rules: "+c.rule))
		for _, tool := range []string{"t", "u"} {
			d, ok := engine.ConstantCall(t.Context(), decision.CallInput{
				Branch: decision.Branch{Name: "default"}, Tool: decision.Tool{Name: tool, Effect: "read"}, Principal: decision.Local(),
			})
			allowed, want := c.foreseen[tool]
			if ok != want || d.Allow != allowed {
				t.Errorf("%s: tool %s: %v, known %t; want %t, known %t", c.rule, tool, d, ok, allowed, want)
			}
		}
	}
}

// The rules of a remembered answer are found once: a log asks for them with every call.
func TestResponsibleIsRemembered(t *testing.T) { // not in parallel: it counts allocations
	fsys := fstest.MapFS{}
	if err := fillFrom(fsys, "../policy"); err != nil {
		t.Fatal(err)
	}
	engine := load(t, fsys)
	in := decision.CallInput{Branch: decision.Branch{Name: "default"}, Tool: decision.Tool{Name: "t", Effect: "read"}, Principal: decision.Local()}
	engine.Call(t.Context(), in)
	first := engine.Responsible(t.Context(), decision.Call, in)
	if n := testing.AllocsPerRun(10, func() { engine.Responsible(t.Context(), decision.Call, in) }); n > 20 || len(first) == 0 {
		t.Errorf("%v allocations, rules %v", n, first)
	}
}
