package daemon

import (
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// BenchmarkWarmStart10000 opens a catalog of 10,000 tools that was open before: all that `catalogd serve` does between its
// first line and /readyz but the start of the process. cold is a start without a cache.
func BenchmarkWarmStart10000(b *testing.B) {
	for _, kind := range []struct{ name, binding string }{
		{"jq", `jq: program: ".city + \" \" + .units"`},
		{"http", `http: url: "https://api.example.com/weather/{city}{?units,limit}"`},
		{"http-paths", `http: url: "https://api.example.com/NAME/{city}{?units,limit}"`},
	} {
		cfg := catalogd.Config{
			Dir: harness.Starter(b), State: filepath.Join(b.TempDir(), "state"),
			Limits: loader.Limits{Tools: 20_000}, PolicyDeadline: 10 * time.Second,
		}
		harness.ManyTools(b, cfg.Dir, 10_000, kind.binding)
		start := func(b *testing.B, cfg catalogd.Config) {
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
			cold := cfg
			cold.State = ""
			for b.Loop() {
				start(b, cold)
			}
		})
		b.Run(kind.name+"/warm", func(b *testing.B) {
			start(b, cfg) // leaves the cache behind
			b.ReportAllocs()
			for b.Loop() {
				start(b, cfg)
			}
		})
	}
}

// TestWarmStart opens a catalog three times over one state directory: what a branch lists and how the generation is
// called never differs, and neither an edit of a tool nor one of the policy is answered from what was kept.
func TestWarmStart(t *testing.T) {
	t.Parallel()
	dir, state := harness.Starter(t), filepath.Join(t.TempDir(), "state")
	open := func(state string) (names []string, generation, log string) {
		t.Helper()
		var j harness.Log
		c, err := catalogd.New(t.Context(), catalogd.Config{
			Dir: dir, State: state, PolicyDeadline: 10 * time.Second,
			Log: slog.New(slog.NewTextHandler(&j, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, branch := range c.Branches() {
			tools, err := c.Branch(branch).Tools()
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range tools {
				names = append(names, branch+"/"+tool.Name)
			}
		}
		return names, c.Status().Generation.ID, j.String()
	}
	same := func(step string) (log string) {
		t.Helper()
		want, generation, _ := open("")
		got, kept, log := open(state)
		if !slices.Equal(want, got) || generation != kept {
			t.Errorf("%s: with state %s %v\nwithout    %s %v", step, kept, got, generation, want)
		}
		return log
	}
	asked := regexp.MustCompile(`msg="list decisions" branch=\w+ asked=[1-9]`)
	if log := same("first start"); !asked.MatchString(log) {
		t.Errorf("the first start asked no list decision:\n%s", log)
	}
	if log := same("second start"); asked.MatchString(log) {
		t.Errorf("the second start asked again:\n%s", log)
	}
	harness.Edit(t, dir, "policy/access/data.yaml", "hide: []", "hide: [{labels: {}, tags: [numbers]}]")
	if log := same("edited policy"); !asked.MatchString(log) {
		t.Errorf("another policy was answered from the cache:\n%s", log)
	}
	harness.Edit(t, dir, "policy/access/data.yaml", "hide: [{labels: {}, tags: [numbers]}]", "hide: []")
	if log := same("policy taken back"); asked.MatchString(log) {
		t.Errorf("the first policy's answers are gone:\n%s", log)
	}
	harness.Edit(t, dir, "catalog/text.cue", "slugify", "slug")
	if log := same("renamed tool"); !asked.MatchString(log) {
		t.Errorf("a tool of another name was answered from the cache:\n%s", log)
	}
}
