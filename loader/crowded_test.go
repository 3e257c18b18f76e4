package loader_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/loader"
)

// crowded has files that are refused before anything is evaluated.
func crowded(t *testing.T) {
	flat := func(n int) string {
		var b strings.Builder
		b.WriteString("package catalog\n\n_x: {\n")
		for i := range n {
			fmt.Fprintf(&b, "a%d: 1\n", i)
		}
		return b.String() + "}\n"
	}
	nested := func(open, shut string, n int) string {
		return "package catalog\n\n_x: " + strings.Repeat(open, n) + "1" + strings.Repeat(shut, n) + "\n"
	}
	for name, test := range map[string]struct{ src, want string }{
		"A13/braces":     {nested("{a: ", "}", 20_000), "catalog/a.cue:3:40002: cue_syntax\n"},
		"A13/parens":     {nested("(", ")", 200_000), "catalog/a.cue:3:10005: cue_syntax\n"},
		"A13/just below": {nested("{a: ", "}", 9_900), ""},
		"A14/fields":     {flat(100_000), "catalog/a.cue:3:5: too_many_fields\n"},
		"A14/just below": {flat(20_000), ""},
		"A14/the file's": {"package catalog\n" + strings.Repeat("_x: 1\n", 20_001), "catalog/a.cue:1:1: too_many_fields\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := load(t, compiler(t), loader.Tree{FS: tree(t, map[string]string{"catalog/a.cue": test.src})})
			if got := summary(problems); got != test.want {
				t.Errorf("got  %swant %s", got, test.want)
			}
		})
	}
}

// TestSources holds that a snapshot compiles alike when it has gone through plain data.
func TestSources(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"catalog/a.cue":    "package catalog\n" + plainTool("a", "a"),
		"catalog/b/b.cue":  "package catalog\n" + plainTool("b", "b") + "_x: string @tag(x)\n",
		"catalog/bad.cue":  "package catalog\n\xff",
		"policy/call.rego": "package catalogd.call\n",
	}
	snap, _ := loader.Tree{FS: tree(t, files), Tags: []string{"x=y"}}.Snapshot(t.Context())
	src := snap.Sources()
	for _, f := range src.Files {
		if strings.HasPrefix(f.Name, "policy/") {
			t.Errorf("%s is no CUE", f.Name)
		}
	}
	build, problems := compiler(t).Compile(t.Context(), snap)
	again, same := compiler(t).Compile(t.Context(), loader.FromSources(src))
	if full(problems) != full(same) || listing(build) != listing(again) || len(again.Tools) != 2 {
		t.Errorf("got\n%s%s\nwant\n%s%s", listing(again), full(same), listing(build), full(problems))
	}
}
