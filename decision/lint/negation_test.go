package lint_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// negated are the helpers of the forms in TestNegations.
const negated = `package catalogd.lib.n

partial(x) := {"host": x} if is_string(x)

total(x) := {"host": x} if is_string(x) else := {}

complete(x) := {"host": x} if is_string(x) else := {"host": ""}

default defaulted(_) := false

defaulted(x) if x == "good"

yes(x) if x == "good"

flag if input.arguments.x == "good"

default known := false

known if input.arguments.x == "good"

text := input.arguments.x

names contains x if x := input.arguments.x

constant := {"a": "b"}
`

// forms are conditions, each with what comes before it in the rule's body. v is a variable whose value is what
// input.arguments.x is, {} where that is missing; w is the name of the tool.
var forms = []struct{ before, form string }{
	{"", `input.arguments.x`},
	{"", `input.arguments.x == "good"`},
	{"", `"good" == input.arguments.x`},
	{"", `input.arguments.x = "good"`},
	{"", `input.arguments.x != "other"`},
	{"", `input.arguments.x == input.arguments.y`},
	{"", `input.arguments.x > 3`},
	{"", `input.arguments.x.y == "good"`},
	{"", `input.arguments.x[0] == "good"`},
	{"", `(input.arguments.x == "good")`},
	{"", `[input.arguments.x] == ["good"]`},
	{"", `({"k": input.arguments.x} == {"k": "good"})`},
	{"", `({input.arguments.x} == {"good"})`},
	{"", `[w, "good"] == [w, input.arguments.x]`},
	{"", `startswith(input.arguments.x, "good")`},
	{"", `startswith(w, "good")`},
	{"", `lower(input.arguments.x) == "good"`},
	{"", `lower(w) == "w"`},
	{"", `contains(lower(input.arguments.x), "oo")`},
	{"", `input.arguments.x in {"good"}`},
	{"", `"good" in input.arguments.x`},
	{"", `w in {"good"}`},
	{"", `"good" in n.names`},
	{"", `input.arguments.x in n.names`},
	{"", `"b" in n.constant`},
	{"", `"b" in n.constant.a`},
	{"", `count(input.arguments.x) == 4`},
	{"", `count([y | y := input.arguments.x]) == 1`},
	{"", `count({y | some y in input.arguments.x; y == "good"}) > 0`},
	{"", `[y | y := input.arguments.x] == ["good"]`},
	{"", `n.yes(input.arguments.x)`},
	{"", `n.yes(v)`},
	{"", `n.defaulted(v) == true`},
	{"", `n.defaulted(v) != true`},
	{"", `n.defaulted(input.arguments.x)`},
	{"", `n.partial(v)`},
	{"", `n.partial(v).host`},
	{"", `n.partial(v).host == "good"`},
	{"", `n.partial(input.arguments.x).host == "good"`},
	{"", `n.total(v).host == "good"`},
	{"", `n.total(v).host in {"good"}`},
	{"", `n.total(input.arguments.x).host == "good"`},
	{"", `n.complete(v).host in {"good"}`},
	{"", `n.complete(input.arguments.x).host == "good"`},
	{"", `startswith(n.complete(v).host, "good")`},
	{"", `n.flag`},
	{"", `n.flag == true`},
	{"", `n.flag != true`},
	{"", `n.known`},
	{"", `n.known != true`},
	{"", `n.text == "good"`},
	{"", `n.text != "other"`},
	{"", `startswith(n.text, "go")`},
	{"", `n.names[input.arguments.x]`},
	{"", `n.names["good"]`},
	{"", `n.constant[input.arguments.x]`},
	{"", `data.d[input.arguments.x]`},
	{"", `data.d.good`},
	{"", `data.d.nope`},
	{"", `"good" in data.d.good`},
	{"", `"good" in data.d.nope`},
	{"", `startswith(data.d.nope, "x")`},
	{"", `data.d[w]`},
	{"", `"good" in data.d[w]`},
	{"some e in data.e", `e.a in {"x"}`},
	{"some e in data.e", `e.b in {"y"}`},
	{"", `object.get(input.arguments, "x", "") == "good"`},
	{"", `object.get(input.arguments, "x", null) in {"good", "x"}`},
	{"", `object.get(input.arguments.x, "y", null) == "good"`},
	{"", `startswith(input.branch.labels.x, "good")`},
	{"", `input.branch.labels.x == "good"`},
	{"", `startswith(input.branch.name, "good")`},
	{"", `input.resource.uri == "good"`},
	{"", `startswith(input.resource.uri, "good")`},
	{"", `regex.match("^good$", input.arguments.x)`},
	{"", `to_number(input.arguments.x) == 7`},
	{"", `max([]) == 1`},
	{"", `min({w}) == w`},
	{"", `max([y | y := input.arguments.z]) == 1`},
	{"", `input.arguments[lower(w)]`},
	{"", `input.arguments[lower(input.arguments.x)]`},
	{"", `is_string(input.arguments.x)`},
	{"", `is_string(v)`},
	{"", `input.arguments.x + 1 == 8`},
	{"", `[1, 2, 3][input.arguments.x] == 2`},
	{"", `sprintf("%s", [input.arguments.x]) == "good"`},
	{"", `$"{input.arguments.x}" == "good"`},
	{"", `startswith($"{input.arguments.x}", "good")`},
	{"", `walk(input.arguments.x, [["y"], "good"])`},
	{"", `graph.reachable({"a": ["b"]}, {"a"})[input.arguments.x]`},
	{"", `n.flag with input.arguments.x as "good"`},
	{"", `n.flag with input.arguments.x as input.arguments.z`},
	{"", `n.flag with input.arguments.x as lower(input.arguments.x)`},
	// What the rule needs anyway is there.
	{"input.arguments.x", `startswith(input.arguments.x, "good")`},
	{"is_string(input.arguments.x)", `startswith(input.arguments.x, "good")`},
	{"lower(input.arguments.x)", `startswith(lower(input.arguments.x), "good")`},
	{"x := input.arguments.x", `startswith(x, "good")`},
	{"x := input.arguments.x", `x.y in {"good"}`},
	{"input.arguments.x.y", `startswith(input.arguments.x.y, "good")`},
	{"input.arguments.x.y", `input.arguments.x in {"good"}`},
	{"input.arguments.x", `startswith(input.arguments.x.y, "good")`},
	{"some y in input.arguments.x", `count(input.arguments.x) == 1`},
	{"h := n.partial(v)", `h.host in {"good"}`},
	{"h := n.total(v)", `h.host in {"good"}`},
	{"not input.arguments.x", `startswith(input.arguments.x, "good")`},
	{"input.resource.uri", `startswith(input.resource.name, "good")`},
	{"n.text", `startswith(n.text, "good")`},
}

// TestNegations holds suspect_negation to what OPA does: it reports a form where some value makes the rule
// with `not` differ from one that says `not` of a rule with that form, and no other.
func TestNegations(t *testing.T) {
	t.Parallel()
	inputs := negationInputs()
	for _, f := range forms {
		before, params := "some v in input.arguments; w := input.tool.name", "v, w"
		if f.before != "" {
			before += "; " + f.before
			if name, _, ok := strings.Cut(strings.TrimPrefix(f.before, "some "), " "); ok && len(name) == 1 {
				params += ", " + name
			}
		}
		for _, imported := range []string{"", "import future.keywords.not\n"} {
			header := "import data.catalogd.lib.n\n" + imported
			reported := reportsNegation(t, header+"\ndefault allow := false\n\ndeny contains \"x\" if { "+before+"; not "+f.form+" }\n")
			before := strings.Replace(before, "input.arguments;", "[input.v];", 1)
			differs := differ(t, inputs, fmt.Sprintf("package p\n\n%s\nrule if { %s; not %s }\n\nmeant if { %s; not form(%s) }\n\nform(%s) if %s\n",
				header, before, f.form, before, params, params, f.form))
			if reported != differs {
				t.Errorf("%s; not %s (%q): reported is %v, and that OPA makes it differ is %v", f.before, f.form, imported, reported, differs)
			}
		}
	}
}

// TestRandomNegations makes up forms: none that OPA makes differ goes unreported.
func TestRandomNegations(t *testing.T) {
	t.Parallel()
	inputs := negationInputs()
	leaves := []string{
		"input.arguments.x", "input.arguments.x.y", "input.arguments.x[0]", "input.tool.name", "input.branch.labels.x", "input.resource.uri", "n.text", "n.known", "n.flag",
		"n.constant.a", "n.names", "data.d.good", "data.d.nope", "v", "v.y", "w", `"good"`, "7", "null",
	}
	made := []string{
		"lower(T)", "count(T)", "n.partial(T)", "n.partial(T).host", "n.total(T).host", "n.complete(T)", "n.complete(T).host", "n.defaulted(T)", "n.yes(T)",
		`object.get(T, "y", T)`, "[T, T]", `[T][0]`, "{T}", `{"a": T}`, `{"a": T}.a`, "[e | e := T]", "{e | some e in T}", "is_string(T)", "data.d[T]", "n.constant[T]", "n.names[T]",
		`sprintf("%v", [T])`, "max([T])", "max({e | some e in T})", "(T == T)", "(T != T)", "(T in T)", `startswith(T, T)`, `$"{T}"`,
	}
	whole := []string{"T", "T == T", "T = T", "T != T", "T > T", "T in T", "startswith(T, T)", "n.yes(T)", "n.partial(T)", "n.total(T)", "n.defaulted(T)", "is_string(T)"}
	rapid.Check(t, func(rt *rapid.T) {
		var term func(depth int) string
		term = func(depth int) string {
			if depth == 0 || rapid.Bool().Draw(rt, "leaf") {
				return rapid.SampledFrom(leaves).Draw(rt, "leaf")
			}
			return filled(rapid.SampledFrom(made).Draw(rt, "term"), func() string { return term(depth - 1) })
		}
		form := "(" + filled(rapid.SampledFrom(whole).Draw(rt, "form"), func() string { return term(2) }) + ")"
		before := filled(rapid.SampledFrom([]string{"true", "true", "T", "lower(T)", "some _ in T"}).Draw(rt, "before"), func() string { return term(1) })
		header := "import data.catalogd.lib.n\n"
		call := header + "\ndefault allow := false\n\ndeny contains \"x\" if { some v in input.arguments; w := input.tool.name; " + before + "; not " + form + " }\n"
		fsys := with(with(minimal(), "policy/lib/n.rego", negated), "policy/data.json", negationData)
		_, problems := decision.Load(t.Context(), with(fsys, "policy/call.rego", "package catalogd.call\n\n"+call), relaxed)
		for _, p := range problems {
			if p.Code == problem.SuspectNegation {
				return
			}
			if p.Severity == problem.Error {
				rt.Skip(p) // no Rego
			}
		}
		before = "some v in [input.v]; w := input.tool.name; " + before
		if differ(t, inputs, fmt.Sprintf("package p\n\n%s\nrule if { %s; not %s }\n\nmeant if { %s; not form(v, w) }\n\nform(v, w) if %s\n", header, before, form, before, form)) {
			rt.Fatalf("%s; not %s: not reported, and OPA makes it differ", before, form)
		}
	})
}

// filled puts a text of its own in the place of each T.
func filled(text string, of func() string) string {
	parts := strings.Split(text, "T")
	out := parts[0]
	for _, part := range parts[1:] {
		out += of() + part
	}
	return out
}

const negationData = `{"d": {"good": ["good"]}, "e": [{"a": "x"}, {"a": "x", "b": "y"}]}`

func reportsNegation(t *testing.T, call string) bool {
	t.Helper()
	fsys := with(with(minimal(), "policy/lib/n.rego", negated), "policy/data.json", negationData)
	engine, problems := decision.Load(t.Context(), with(fsys, "policy/call.rego", "package catalogd.call\n\n"+call), relaxed)
	reported := slices.ContainsFunc(problems, func(p problem.Problem) bool {
		return p.Code == problem.SuspectNegation && p.Severity == problem.Error
	})
	if reported != (engine == nil) {
		t.Errorf("%s: %v", call, problems)
	}
	return reported
}

// negationInputs are inputs with each kind of value as the argument x and as v.
func negationInputs() (inputs []any) {
	for _, x := range []any{nil, false, json.Number("7"), "good", "other", "w", map[string]any{"y": "good"}, []any{"good"}, "missing"} {
		arguments, v := map[string]any{"x": x}, x
		if x == "missing" {
			arguments, v = map[string]any{}, map[string]any{}
		}
		for _, labels := range []map[string]any{{}, {"x": "good"}} {
			inputs = append(inputs, map[string]any{
				"arguments": arguments, "v": v, "tool": map[string]any{"name": "w"}, "branch": map[string]any{"name": "b", "labels": labels},
			})
		}
	}
	return inputs
}

// differ reports whether for one of the inputs data.p.rule has no value where data.p.meant has one or fails,
// by stock OPA.
func differ(t *testing.T, inputs []any, module string) bool {
	t.Helper()
	var data map[string]any
	if err := json.Unmarshal([]byte(negationData), &data); err != nil {
		t.Fatal(err)
	}
	ask := func(query string) rego.PreparedEvalQuery {
		q, err := rego.New(rego.Query(query), rego.Module("p.rego", module), rego.Module("n.rego", negated),
			rego.Store(inmem.NewFromObject(data)), rego.StrictBuiltinErrors(true)).PrepareForEval(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", module, err)
		}
		return q
	}
	rule, meant := ask("data.p.rule"), ask("data.p.meant")
	silent := func(q rego.PreparedEvalQuery, input any) bool {
		found, err := q.Eval(t.Context(), rego.EvalInput(input))
		return err == nil && len(found) == 0
	}
	return slices.ContainsFunc(inputs, func(input any) bool { return silent(rule, input) && !silent(meant, input) })
}

// TestPolarities says where a negation that may have no value is reported, and where a match by a part of a text is: where a
// rule's absence lets something through, and where its truth does.
func TestPolarities(t *testing.T) {
	t.Parallel()
	const negation, match = `not startswith(input.arguments.x, "https:")`, `contains(input.arguments.x, "a")`
	for _, test := range []struct {
		note, call      string
		negation, match string // the severity of what is reported
	}{
		{"deny", `deny contains "x" if COND`, "error", ""},
		{"allow", `allow if COND`, "", "warning"},
		{"a limit", `rate_limit := {"calls": 1, "per": "1m"} if COND`, "error", ""},
		{"what may be sent", `relay contains "logging" if COND`, "", "warning"},
		{"a helper of deny", "deny contains \"x\" if h.bad", "error", ""},
		{"a helper that is negated in deny", "deny contains \"x\" if not h.bad", "", "warning"},
		{"a helper that is negated in allow", "allow if not h.bad", "error", ""},
		{"a helper of a helper", "allow if not h.worse", "error", ""},
		{"a helper of both", "allow if h.bad\n\ndeny contains \"x\" if h.bad", "error", "warning"},
		{"a helper that nothing asks", "", "", ""},
		{"a function", "deny contains \"x\" if h.f(1)", "error", ""},
		{"a function that is negated", "deny contains \"x\" if not h.f(1)", "", "warning"},
		{"a rule that is compared with false", "deny contains \"x\" if h.known == false", "error", "warning"},
		{"a rule with a value", `allow if h.level == "high"`, "warning", "warning"},
		{"the members of a set", "deny contains \"x\" if some _ in h.set", "error", ""},
		{"a set that is counted", "deny contains \"x\" if count(h.set) > 0", "error", ""},
		{"a set that must be empty", "deny contains \"x\" if count(h.set) == 0", "", "warning"},
		{"a set that must be empty to allow", "allow if count(h.set) == 0", "error", ""},
		{"a set that is handed on", "deny contains \"x\" if h.set == {1}", "error", "warning"},
		{"in a comprehension", "deny contains \"x\" if count([1 | COND]) > 0", "error", ""},
		{"in a comprehension that must be empty", "allow if count([1 | COND]) == 0", "error", ""},
		{"in a comprehension that is kept", "allow if {\n\tlist := [1 | COND]\n\tsum(list) < 3\n}", "warning", "warning"},
		{"in every", "allow if {\n\tevery _ in input.tool.tags {\n\t\tCOND\n\t}\n}", "", "warning"},
		{"in every of deny", "deny contains \"x\" if {\n\tevery _ in input.tool.tags {\n\t\tCOND\n\t}\n}", "error", ""},
		{"else", "allow if h.other", "warning", "warning"},
	} {
		for _, cond := range []string{negation, match} {
			want := test.negation
			if cond == match {
				want = test.match
			}
			helpers := strings.ReplaceAll("package catalogd.lib.h\n\nbad if COND\n\nworse if bad\n\nf(_) if COND\n\ndefault known := false\n\nknown if COND\n\nset contains 1 if COND\n\n"+
				"default level := \"low\"\n\nlevel := \"high\" if COND\n\nother := false if COND\n\nelse := true\n", "COND", cond)
			call := "package catalogd.call\n\nimport data.catalogd.lib.h\n\ndefault allow := false\n\n" + strings.ReplaceAll(test.call, "COND", cond) + "\n"
			_, problems := decision.Load(t.Context(), with(with(minimal(), "policy/lib/h.rego", helpers), "policy/call.rego", call), relaxed)
			got := ""
			for _, p := range problems {
				switch p.Code {
				case problem.SuspectNegation, problem.SuspectMatch:
					got = string(p.Severity)
				default:
					t.Errorf("%s: %v", test.note, p)
				}
			}
			if got != want {
				t.Errorf("%s, %s: %q, want %q: %v", test.note, cond, got, want, problems)
			}
		}
	}
}
