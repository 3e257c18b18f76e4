package buildcache_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// countingCompiler counts its compilations.
type countingCompiler struct {
	*loader.Compiler
	n int
}

func (c *countingCompiler) Compile(ctx context.Context, s *loader.Snapshot) (*registry.Build, problem.List) {
	c.n++
	return c.Compiler.Compile(ctx, s)
}

func newCompiler(t testing.TB) *loader.Compiler {
	return loader.NewCompiler(loader.Config{Schema: schema(t)})
}

// stateDir is a state directory that is opened again and again, as starts of the daemon do.
type stateDir struct {
	t    testing.TB
	path string
	log  bytes.Buffer
}

func newStateDir(t testing.TB) *stateDir {
	return &stateDir{t: t, path: filepath.Join(t.TempDir(), "state")}
}

// start opens the cache for f, and returns when everything is written.
func (d *stateDir) start(f func(*buildcache.Cache)) {
	d.t.Helper()
	d.log.Reset()
	c, err := buildcache.OpenCache(d.path, "/srv/catalog", slog.New(slog.NewTextHandler(&d.log, nil)))
	if err != nil {
		d.t.Fatal(err)
	}
	defer c.Close()
	f(c)
}

// compile compiles as one start of the daemon does. compiled is how often the compiler behind the cache ran.
func (d *stateDir) compile(snap *loader.Snapshot) (build *registry.Build, problems problem.List, compiled int) {
	d.t.Helper()
	next := &countingCompiler{Compiler: newCompiler(d.t)}
	d.start(func(c *buildcache.Cache) {
		b := buildcache.Compiler{Cache: c, Schema: schema(d.t), Next: next}
		build, problems = b.Compile(d.t.Context(), snap)
	})
	return build, problems, next.n
}

// files are the files of a kind.
func (d *stateDir) files(kind string) []string {
	d.t.Helper()
	found, err := filepath.Glob(filepath.Join(d.path, "*", kind+"-*"))
	if err != nil {
		d.t.Fatal(err)
	}
	return found
}

const aTool = `package catalog

tools: %s: {
	description: "Say <it> & again."
	args: {a!: string, b: *1 | int, c?: [...{d: number}]}
	effect: "read"
	binding: jq: program: ".a"
	examples: [{args: {a: "x"}, result: "x"}]
}
branches: default: {select: {}, labels: team: "a"}
`

func snapshot(t testing.TB, source loader.Source) *loader.Snapshot {
	t.Helper()
	snap, _ := source.Snapshot(t.Context())
	if snap == nil {
		t.Fatal("no snapshot")
	}
	return snap
}

// TestWarmEqualsCold compiles every load case, and the starter catalog under random edits, twice: at the
// second start the cache returns what a compiler without a cache does, every field and every problem.
func TestWarmEqualsCold(t *testing.T) {
	t.Parallel()
	sources := loadCases(t)
	starter := map[string]string{}
	for _, dir := range []string{"catalog", "policy"} {
		err := fs.WalkDir(os.DirFS("../.."), dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(filepath.Join("../..", name))
			starter[name] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		sources[fmt.Sprintf("edit %d", i)] = tree(t, edited(random, starter))
	}
	d := newStateDir(t)
	kept := 0
	for name, source := range sources {
		snap := snapshot(t, source)
		want, problems := newCompiler(t).Compile(t.Context(), snap)
		for start := range 2 {
			got, more, compiled := d.compile(snap)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, start %d: -fresh +got\n%s", name, start, diff)
			}
			if diff := cmp.Diff(problems, more); diff != "" {
				t.Errorf("%s, start %d: problems: -fresh +got\n%s", name, start, diff)
			}
			sound := want != nil && !problems.HasErrors()
			if start == 1 && sound == (compiled > 0) {
				t.Errorf("%s: at the second start it was compiled %d times", name, compiled)
			}
			if start == 1 && sound {
				kept++
			}
		}
		if d.log.Len() > 0 {
			t.Errorf("%s: %s", name, &d.log)
		}
	}
	if kept < 10 {
		t.Errorf("only %d builds came from the cache", kept)
	}
}

// edited is the catalog with a few bytes of its CUE files removed, doubled or replaced.
func edited(random *rand.Rand, files map[string]string) map[string]string {
	out := map[string]string{}
	for name, data := range files {
		if strings.HasSuffix(name, ".cue") && random.IntN(3) == 0 {
			at := random.IntN(len(data))
			end := min(len(data), at+1+random.IntN(4))
			replacements := []string{"", data[at:end] + data[at:end], "\n", " ", "x", "1", "// "}
			data = data[:at] + replacements[random.IntN(len(replacements))] + data[end:]
		}
		out[name] = data
	}
	return out
}

// TestDamagedFileIsMadeAgain changes a cache file as disks, crashes and people do: it is not used, is warned
// of once, and is made again.
func TestDamagedFileIsMadeAgain(t *testing.T) {
	t.Parallel()
	d := newStateDir(t)
	one := snapshot(t, tree(t, map[string]string{"a.cue": fmt.Sprintf(aTool, "one")}))
	two := snapshot(t, tree(t, map[string]string{"a.cue": fmt.Sprintf(aTool, "two")}))
	d.compile(two)
	other := d.files("build")[0]
	want, _, _ := d.compile(one)
	var file string
	for _, f := range d.files("build") {
		if f != other {
			file = f
		}
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	flip := func(at int) []byte {
		data := bytes.Clone(whole)
		data[at] ^= 1
		return data
	}
	for name, data := range map[string][]byte{
		"empty":                       {},
		"half":                        whole[:len(whole)/2],
		"one byte less":               whole[:len(whole)-1],
		"one byte more":               append(bytes.Clone(whole), 0),
		"first byte":                  flip(0),
		"checksum":                    flip(20),
		"content":                     flip(len(whole) / 2),
		"last byte":                   flip(len(whole) - 1),
		"zeros":                       make([]byte, len(whole)),
		"the file of another catalog": foreign,
	} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		got, problems, compiled := d.compile(one)
		if diff := cmp.Diff(want, got); diff != "" || compiled != 1 || len(problems) > 0 {
			t.Errorf("%s: compiled %d times, %v, %s", name, compiled, problems, diff)
		}
		if n := strings.Count(d.log.String(), "level=WARN"); n != 1 {
			t.Errorf("%s: %d warnings\n%s", name, n, &d.log)
		}
		if _, _, compiled := d.compile(one); compiled != 0 || d.log.Len() > 0 {
			t.Errorf("%s: it was not made again (%s)", name, &d.log)
		}
	}
	// Something that is not a file.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, compiled := d.compile(one); compiled != 1 || !strings.Contains(d.log.String(), "level=WARN") {
		t.Errorf("a directory: compiled %d times\n%s", compiled, &d.log)
	}
}

// TestKeyCoversEveryInput: everything that compiling depends on leads to a file of its own.
func TestKeyCoversEveryInput(t *testing.T) {
	t.Parallel()
	d := newStateDir(t)
	base := map[string]string{"a.cue": fmt.Sprintf(aTool, "one")}
	if _, _, compiled := d.compile(snapshot(t, tree(t, base))); compiled != 1 {
		t.Fatal(compiled)
	}
	if _, _, compiled := d.compile(snapshot(t, tree(t, base))); compiled != 0 {
		t.Fatal("nothing was kept")
	}
	for name, snap := range map[string]*loader.Snapshot{
		"content": snapshot(t, tree(t, map[string]string{"a.cue": base["a.cue"] + "\n"})),
		"name":    snapshot(t, tree(t, map[string]string{"b.cue": base["a.cue"]})),
		"policy":  snapshot(t, tree(t, map[string]string{"a.cue": base["a.cue"], "policy/a.rego": "package a"})),
		"tags":    snapshot(t, tree(t, base, "a")),
	} {
		if _, _, compiled := d.compile(snap); compiled != 1 {
			t.Errorf("with another %s: got a build of the cache, want a new one", name)
		}
	}
	next := &countingCompiler{Compiler: newCompiler(t)}
	d.start(func(c *buildcache.Cache) {
		for _, b := range []buildcache.Compiler{
			{Cache: c, Schema: schema(t), MaxTools: 7, Next: next},
			{Cache: c, Schema: append(schema(t), '\n'), Next: next},
		} {
			b.Compile(t.Context(), snapshot(t, tree(t, base)))
		}
	})
	if next.n != 2 {
		t.Errorf("with another limit and another schema: compiled %d times, want 2", next.n)
	}
}

// TestPrune: the newest four files of a kind stay, and what a crash left unfinished goes.
func TestPrune(t *testing.T) {
	t.Parallel()
	d := newStateDir(t)
	for i := range 8 {
		d.compile(snapshot(t, tree(t, map[string]string{"a.cue": fmt.Sprintf(aTool, fmt.Sprintf("tool%d", i))})))
		for _, f := range d.files("build") { // make each older than what comes next
			info, err := os.Stat(f)
			if err != nil {
				t.Fatal(err)
			}
			at := info.ModTime().Add(-time.Minute)
			if err := os.Chtimes(f, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(d.files("build")); n != 4 {
		t.Errorf("%d builds are kept, want 4", n)
	}
	newest := snapshot(t, tree(t, map[string]string{"a.cue": fmt.Sprintf(aTool, "tool7")}))
	if _, _, compiled := d.compile(newest); compiled != 0 {
		t.Error("the newest is not among them")
	}
	left := filepath.Join(filepath.Dir(d.files("build")[0]), ".new-half")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(left, time.Unix(0, 0), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	d.compile(snapshot(t, tree(t, map[string]string{"a.cue": fmt.Sprintf(aTool, "another")})))
	if _, err := os.Stat(left); err == nil {
		t.Error("an old unfinished file is still there")
	}
	for _, f := range d.files("build") {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", f, info.Mode(), err)
		}
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	d := newStateDir(t)
	want := map[buildcache.Question]bool{{1}: true, {2}: false, {3, 4}: true}
	d.start(func(c *buildcache.Cache) {
		if got := c.Lists("policy"); got != nil {
			t.Errorf("at first: %v", got)
		}
		c.KeepLists("policy", want)
	})
	d.start(func(c *buildcache.Cache) {
		if diff := cmp.Diff(want, c.Lists("policy")); diff != "" {
			t.Error(diff)
		}
		if got := c.Lists("another"); got != nil {
			t.Errorf("of another policy: %v", got)
		}
	})
	file := d.files("lists")[0]
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1 // allowed becomes denied, or the other way round
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	d.start(func(c *buildcache.Cache) {
		if got := c.Lists("policy"); got != nil || !strings.Contains(d.log.String(), "level=WARN") {
			t.Errorf("damaged: %v\n%s", got, &d.log)
		}
	})
}
