package loader_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/loader"
)

// manyTools is a catalog of n tools in packages of 100, each with a few arguments as real tools have them.
func manyTools(n int) map[string]string {
	files := map[string]string{}
	for p := range (n + 99) / 100 {
		var b strings.Builder
		b.WriteString("package catalog\n\nimport \"strings\"\n\n_units: *\"celsius\" | \"fahrenheit\"\n\n")
		for i := range min(100, n-100*p) {
			b.WriteString(oneTool(fmt.Sprintf("tool_%03d_%02d", p, i), "Look something up."))
		}
		files[fmt.Sprintf("catalog/p%03d/tools.cue", p)] = b.String()
	}
	return files
}

func oneTool(name, description string) string {
	return fmt.Sprintf(`tools: %s: {
	description: %q
	args: {
		// The city name to look up.
		city!: string & strings.MinRunes(1)
		// The units of the answer.
		units: _units
		// How many at most.
		limit?: int & >=1 & <=100
		deep?: {a!: int, tags?: [...string]}
		verbose: *false | bool
	}
	effect: "read"
	tags: ["weather"]
	binding: http: {url: "https://api.example.com/weather/{city}{?units,limit}", headers: "X-Name": %[1]q}
}
`, name, description)
}

func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ctx := context.Background()
			snap, problems := loader.Tree{FS: tree(b, manyTools(n))}.Snapshot(ctx)
			if len(problems) > 0 {
				b.Fatal(problems.Err())
			}
			b.ReportAllocs()
			for b.Loop() {
				build, problems := loader.NewCompiler(loader.Config{Schema: schema(b)}).Compile(ctx, snap)
				if len(problems) > 0 || len(build.Tools) != n {
					b.Fatal(len(build.Tools), problems.Err())
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "us/tool")
		})
	}
}

// BenchmarkRecompileOne is one edit among 10,000 tools: snapshot and compile, with everything else kept.
func BenchmarkRecompileOne(b *testing.B) {
	ctx := context.Background()
	files := manyTools(10_000)
	c := loader.NewCompiler(loader.Config{Schema: schema(b)})
	edit := func(i int) {
		files["catalog/p050/tools.cue"] = strings.Replace(manyTools(100)["catalog/p000/tools.cue"], "tool_000", "tool_050", -1) +
			fmt.Sprintf("// edit %d\n", i)
		snap, problems := loader.Tree{FS: tree(b, files)}.Snapshot(ctx)
		if len(problems) > 0 {
			b.Fatal(problems.Err())
		}
		build, problems := c.Compile(ctx, snap)
		if len(problems) > 0 || len(build.Tools) != 10_000 {
			b.Fatal(problems.Err())
		}
	}
	edit(0)
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		edit(i)
	}
}
