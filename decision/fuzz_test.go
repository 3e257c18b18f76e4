package decision_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/problem"
)

// FuzzData puts anything into the data of the shipped policy: it loads or is refused with documented problems, and a
// policy that loads never lets a command be reached that isn't named in it.
func FuzzData(f *testing.F) {
	files := fstest.MapFS{}
	for _, pattern := range []string{"policy/*.rego", "policy/*/*.rego", "policy/*/data.yaml"} {
		names, err := filepath.Glob("../" + pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range names {
			content, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			files[name[len("../"):]] = &fstest.MapFile{Data: content}
		}
	}
	const data = "policy/trust/data.yaml"
	f.Add(string(files[data].Data), "date", "-u")
	f.Add("entries: {a: {command: [date]}}", "date", "")
	f.Add("entries: {a: {command: [\"\"]}, b: {host: \"*\", scheme: ftp}}", "", "")
	f.Add("entries: &x {a: {command: [d], dir: *x}}", "d", "")
	documented := map[problem.Code]bool{}
	for _, d := range problem.Docs() {
		documented[d.Code] = true
	}
	f.Fuzz(func(t *testing.T, entries, declared, arg string) {
		if len(entries) > 4096 {
			t.Skip("too long to load often")
		}
		fsys := fstest.MapFS{}
		for name, file := range files {
			fsys[name] = file
		}
		fsys[data] = &fstest.MapFile{Data: []byte(entries)}
		engine, problems := decision.Load(t.Context(), fsys, patient)
		for _, p := range problems {
			if !documented[p.Code] {
				t.Errorf("%s has a code that is not documented", p)
			}
		}
		if (engine == nil) != problems.HasErrors() {
			t.Fatalf("an engine %v, with %v", engine != nil, problems)
		}
		if engine == nil {
			return
		}
		in := connectInput()
		in.Target.Command = &trust.Command{Declared: declared, Path: "/nowhere/that/is/named", Args: []string{arg}}
		granted, d := engine.Connect(t.Context(), in)
		if d.Allow && (granted.Name() == "" || !strings.Contains(entries, declared)) {
			t.Errorf("%q is reached through %q of %q", declared, granted.Name(), entries)
		}
	})
}

// FuzzCall asks the shipped policy about any branch, tool and arguments: only the branches that its data name may call.
func FuzzCall(f *testing.F) {
	f.Add("default", "slugify", `{"title":"x"}`)
	f.Add("", "", `[`)
	f.Add("research\x00", "*", `{"a":1e400}`)
	engine := shipped(f)
	f.Fuzz(func(t *testing.T, branch, tool, arguments string) {
		in := callInput()
		in.Branch.Name, in.Tool.Name, in.Arguments = branch, tool, []byte(arguments)
		d := engine.Call(t.Context(), in)
		if d.Allow != (d.Code == decision.Allowed) || !d.Allow && len(d.Reasons) == 0 {
			t.Errorf("%+v", d)
		}
		if d.Allow && branch != "default" && branch != "research" {
			t.Errorf("branch %q may call %q", branch, tool)
		}
	})
}

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
		engine, problems := decision.Load(t.Context(), fsys, patient)
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
