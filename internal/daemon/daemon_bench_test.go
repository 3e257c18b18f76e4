package daemon_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/loader"
)

// bigCatalog writes n tools in packages of 100 to a folder, with the shipped policy. Half of them are jq programs, half
// call one HTTP service.
func bigCatalog(b *testing.B, n int) string {
	b.Helper()
	h, dir := servetest.NewHouse(b), b.TempDir()
	delete(h.Files, "catalog/home.cue")
	h.Set("policy/access/data.yaml", "branches:\n  default: {tools: [\"*\"]}\n  half: {tools: [\"*\"], deny: [\"*5\"]}\nhide: []\n")
	h.Set("policy/trust/data.yaml", "entries:\n  api: {host: api.example.com}\n")
	h.Set("catalog/branches.cue", "package catalog\n\nbranches: default: {}\nbranches: half: labels: team: \"half\"\n")
	for p := range (n + 99) / 100 {
		h.Set(fmt.Sprintf("catalog/p%03d/tools.cue", p), bigPackage(p, min(100, n-100*p), "Look something up."))
	}
	if err := os.CopyFS(dir, h.Files); err != nil {
		b.Fatal(err)
	}
	return dir
}

func bigPackage(p, n int, first string) string {
	var text strings.Builder
	text.WriteString("package catalog\n\nimport \"strings\"\n\n_units: *\"celsius\" | \"fahrenheit\"\n")
	for i := range n {
		name, description, binding := fmt.Sprintf("tool_%03d_%02d", p, i), "Look something up.", `jq: program: "{city, units}"`
		if i == 0 {
			description = first
		}
		if i%2 == 1 {
			binding = `http: url: "https://api.example.com/weather/{city}{?units,limit,verbose}"`
		}
		fmt.Fprintf(&text, `
tools: %s: {
	description: %q
	args: {
		// The city name to look up.
		city!: string & strings.MinRunes(1)
		// The units of the answer.
		units: _units
		// How many at most.
		limit?: int & >=1 & <=100
		verbose: *false | bool
	}
	effect: "read"
	tags: ["weather"]
	binding: %s
}
`, name, description, binding)
	}
	return text.String()
}

// openBig opens a daemon and its front on a folder, with a client of each branch: what has changed is encoded for it.
func openBig(b *testing.B, dir string) (*daemon.Daemon, func()) {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
	pool := upstream.NewPool(upstream.Config{})
	var d *daemon.Daemon
	f := servetest.Backend{
		Pin: func() (*generation.Generation, func()) { return d.Pin() }, Status: func() daemon.Status { return d.Status() },
		Reload: func(ctx context.Context) daemon.Outcome { return d.Reload(ctx) }, Log: log,
	}.Daemon()
	d, err := daemon.Open(b.Context(), daemon.Config{
		Source: loader.Dir{Root: dir}, Log: log, Changed: f.Changed, Ended: f.Metrics.Reloaded,
		Builder: &generation.Builder{
			Root: dir, Pool: pool, Log: log, Compiler: loader.NewCompiler(loader.Config{Schema: servetest.ReadSchema(b)}), Policy: decision.Config{},
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, branch := range []string{"default", "half"} {
		go f.Stdio(b.Context(), branch, servetest.Blocked{}, io.Discard)
	}
	return d, func() {
		f.Close()
		d.Close()
		pool.Close()
	}
}

// BenchmarkStart is Open of a catalog that nothing is known of: read, compile, decide everything.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{100, 1_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := bigCatalog(b, n)
			b.ReportAllocs()
			for b.Loop() {
				d, end := openBig(b, dir)
				if got := d.Status().Generation; got.Tools != n || got.Hidden != 0 {
					b.Fatalf("%+v", got)
				}
				end()
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/op")
		})
	}
}

// BenchmarkView is what a branch of 10,000 tools shows to whom the policy has not met: every list decision is asked. Then it is
// the same for someone of whom the policy reads nothing else.
func BenchmarkView(b *testing.B) {
	dir := bigCatalog(b, 10_000)
	if err := os.WriteFile(filepath.Join(dir, "policy", "staff.rego"), []byte(servetest.StaffOnly), 0o600); err != nil {
		b.Fatal(err)
	}
	d, end := openBig(b, dir)
	defer end()
	g, release := d.Pin()
	defer release()
	view := func(b *testing.B, p decision.Principal) {
		path, ok := g.PathFor("default", p)
		if !ok || path.View.Len() != 10_000 {
			b.Fatal("not every tool is seen")
		}
	}
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			n++
			view(b, servetest.Person("ann", fmt.Sprintf("group-%d-of-%d", n, b.N)))
		}
	})
	b.Run("cached", func(b *testing.B) {
		view(b, servetest.Person("ann", "staff"))
		b.ReportAllocs()
		for b.Loop() {
			view(b, servetest.Person("bob", "staff"))
		}
	})
}

// BenchmarkEditToListChanged is one edit of a description among 10,000 tools in packages of 100 and two branches, from
// the saved file until list_changed has been sent: everything but the quiet period of the watch.
func BenchmarkEditToListChanged(b *testing.B) {
	dir := bigCatalog(b, 10_000)
	d, end := openBig(b, dir)
	defer end()
	if got := d.Status().Generation; got.Tools != 10_000 || got.Hidden != 0 {
		b.Fatalf("%+v", got)
	}
	file := filepath.Join(dir, "catalog/p050/tools.cue")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := os.WriteFile(file, []byte(bigPackage(50, 100, fmt.Sprintf("Edit %d.", i))), 0o600); err != nil {
			b.Fatal(err)
		}
		o := d.Reload(b.Context())
		if o.Result != "adopted" || len(o.Changed) != 2 {
			b.Fatalf("%+v", o)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/op")
}
