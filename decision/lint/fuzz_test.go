package lint_test

import (
	"testing"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// FuzzPolicy puts anything into the call policy and a helper: it is refused or loads, and what a check then says of it has a
// documented code and stands in one of the files. Nothing of that panics or goes on for ever.
func FuzzPolicy(f *testing.F) {
	f.Add(`allow if own.x[input.tool.name]`, `x := {"greet": 1, "wave": {"a": input.branch.labels[_]}}`)
	f.Add("deny contains name if {\n\tsome k, name in input.tool.tags\n\tname == k\n\tnot own.is(name, [1, {name}])\n}", "is(a, b) if a in b\n\nis(a, b) := x if x := own[a][b]")
	f.Add(`allow if every t in own.all { startswith(t, "https://"); regex.match("^a|b$", t) == false }`, "all contains t if some t in input.tool.tags\n\nall contains x if x := all_of[_]\n\nall_of := [y | y := data.x.y[_]]")
	f.Add(`timeout := own.f(input.tool) if object.get(input.branch.labels, own.k, "z") != "z" else := "1s"`, "k := k2\n\nk2 := input.branch.name\n\nf(t) := f2(t)\n\nf2({\"name\": n}) := n\n\nf2([a, _]) := a if object.subset(input.branch.labels, a)")
	f.Add("allow if {\n\ta := [input.tool, input.branch]\n\tsome [x, y] in [a]\n\tx.name == y.name\n\t{z: 1 | z := x.name}[\"q\"]\n}", "default g(_) := false\n\ng(x) if x.y[_][_] == \"z\"")
	documented := map[problem.Code]bool{}
	for _, d := range problem.Docs() {
		documented[d.Code] = true
	}
	f.Fuzz(func(t *testing.T, rule, helper string) {
		if len(rule)+len(helper) > 4096 {
			t.Skip("too long to load often")
		}
		fsys := with(minimal(), "policy/call.rego", callHead+"import data.catalogd.lib.own\n\n"+rule+"\n")
		with(fsys, "policy/lib/own.rego", "package catalogd.lib.own\n\n"+helper+"\n")
		with(fsys, "policy/data.json", `{"x": {"y": ["a", {"b": "c"}]}, "q": {"greet": "me"}}`)
		engine, problems := decision.Load(t.Context(), fsys, relaxed)
		if engine != nil {
			problems = append(problems, engine.CheckCatalog(t.Context(), small())...)
		}
		for _, p := range problems {
			if !documented[p.Code] || p.Message == "" {
				t.Errorf("%+v", p)
			}
			if _, ok := fsys[p.File]; !ok && p.File != "policy" {
				t.Errorf("%v is no file of the policy", p)
			}
		}
	})
}
