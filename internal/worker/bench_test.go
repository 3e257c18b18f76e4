package worker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/worker"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// many is a catalog of n tools in packages of 100.
func many(n int) map[string]string {
	files := map[string]string{}
	for p := range (n + 99) / 100 {
		b := "package catalog\n"
		for i := range min(100, n-100*p) {
			b += tool(fmt.Sprintf("tool_%03d_%02d", p, i), "Look something up.")
		}
		files[fmt.Sprintf("catalog/p%03d/tools.cue", p)] = b
	}
	return files
}

// BenchmarkStart starts a child and compiles a catalog of two tools.
func BenchmarkStart(b *testing.B) {
	s, _ := snapshot(b, good())
	for b.Loop() {
		c := compiler(b, worker.Config{})
		if build, problems := c.Compile(b.Context(), s); build == nil || len(problems) > 0 {
			b.Fatal(problems.Err())
		}
		c.Close()
	}
}

// BenchmarkEdit edits one tool among 10,000, in a child and in this process.
func BenchmarkEdit(b *testing.B) {
	files := many(10_000)
	for name, c := range map[string]interface {
		Compile(context.Context, *loader.Snapshot) (*registry.Build, problem.List)
	}{
		"worker": compiler(b, worker.Config{Keep: 1 << 30}), "in-process": loader.NewCompiler(loader.Config{Schema: schema(b)}),
	} {
		b.Run(name, func(b *testing.B) {
			edit := func(i int) {
				s, _ := snapshot(b, with(files, "catalog/p050/tools.cue", strings.Replace(files["catalog/p050/tools.cue"], "Look", fmt.Sprintf("Look %d", i), 1)))
				b.StartTimer()
				build, problems := c.Compile(b.Context(), s)
				b.StopTimer()
				if build == nil || len(problems) > 0 || len(build.Tools) != 10_000 {
					b.Fatal(problems.Err())
				}
			}
			edit(0)
			b.ResetTimer()
			for i := range b.N {
				edit(i + 1)
			}
		})
	}
}
