package catalogd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/loader"
)

// manyTools adds n tools in packages of 100 to a starter catalog, each with a few arguments as real tools have them.
func manyTools(t testing.TB, dir string, n int, binding string) {
	t.Helper()
	for p := range (n + 99) / 100 {
		var b strings.Builder
		b.WriteString("package catalog\n\nimport \"strings\"\n\n_units: *\"celsius\" | \"fahrenheit\"\n\n")
		for i := range min(100, n-100*p) {
			fmt.Fprintf(&b, `tools: tool_%03d_%02d: {
	description: "Look something up."
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
	tags: ["everyday"]
	binding: %s
}
`, p, i, binding)
		}
		name := filepath.Join(dir, "catalog", fmt.Sprintf("p%03d", p), "tools.cue")
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkWarmStart10000 opens a catalog of 10,000 tools that was open before: all that `catalogd serve` does between its
// first line and /readyz but the start of the process. cold is the first time, without a cache.
func BenchmarkWarmStart10000(b *testing.B) {
	for _, kind := range []struct{ name, binding string }{
		{"jq", `jq: program: ".city + \" \" + .units"`},
		{"http", `http: url: "https://api.example.com/weather/{city}{?units,limit}"`},
	} {
		cfg := catalogd.Config{
			Dir: starterDir(b), State: filepath.Join(b.TempDir(), "state"),
			Limits: loader.Limits{Tools: 20_000}, PolicyDeadline: 10 * time.Second,
		}
		manyTools(b, cfg.Dir, 10_000, kind.binding)
		start := func(b *testing.B) {
			c, err := catalogd.New(b.Context(), cfg)
			if err != nil {
				b.Fatal(err)
			}
			if n := c.Status().Generation.Tools; n < 10_000 {
				b.Fatal(n)
			}
			b.StopTimer()
			c.Close()
			b.StartTimer()
		}
		b.Run(kind.name+"/cold", func(b *testing.B) {
			if b.N > 1 {
				b.Skip()
			}
			start(b)
		})
		start(b)
		b.Run(kind.name+"/warm", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				start(b)
			}
		})
	}
}
