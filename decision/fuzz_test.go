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
