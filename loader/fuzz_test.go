package loader_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
)

// FuzzCompile compiles any file: it never panics, every problem has a documented code and a place that exists, and the
// same file has the same problems again.
//
// What makes CUE itself run for ever is left out, because nothing can stop it in a test: a file that generates or doubles
// (comprehensions, interpolations, multiplied or recursive values) is for the process that a daemon compiles in.
func FuzzCompile(f *testing.F) {
	cases, err := filepath.Glob("../testdata/load/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range cases {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if strings.HasPrefix(file.Name, "catalog/") && len(file.Data) < 2048 {
				f.Add(string(file.Data))
			}
		}
	}
	codes := map[problem.Code]bool{}
	for _, d := range problem.Docs() {
		codes[d.Code] = true
	}
	c := compiler(f)
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > 2048 || strings.Count(src, "#") > 4 || strings.Count(src, "|") > 8 ||
			slices.ContainsFunc([]string{"for", "if", `\(`, `#(`, "list", "strings", "import", "*", "..."}, func(s string) bool { return strings.Contains(src, s) }) {
			t.Skip("it may grow")
		}
		files := map[string]string{"catalog/a.cue": src, "catalog/b/b.cue": "package catalog\n" + plainTool("b", "b")}
		b, problems := load(t, c, loader.Tree{FS: tree(t, files)})
		lines := strings.Split(src, "\n")
		for _, p := range problems {
			if !codes[p.Code] {
				t.Errorf("%s has a code that is not documented", p)
			}
			if p.File == "" {
				t.Errorf("%s has no place", p)
			}
			if p.File == "catalog/a.cue" && (p.Line > len(lines)+1 || p.Line > 0 && p.Line <= len(lines) && p.Col > len(lines[p.Line-1])+2) {
				t.Errorf("%s is at a place that the file does not have", p)
			}
			if strings.ContainsAny(p.String(), "\n\x00\x1b") {
				t.Errorf("%q would break a terminal or a line", p)
			}
		}
		if b == nil {
			t.Fatal("there is no build")
		}
		_, again := load(t, compiler(t), loader.Tree{FS: tree(t, files)})
		if diff := cmp.Diff(problems, again); diff != "" {
			t.Errorf("the second time (-first +second):\n%s", diff)
		}
	})
}
