package state_test

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
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/catalogd/catalogd/internal/state"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

func schema(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("../../schema.cue")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// counted is a compiler that counts what it is asked for.
type counted struct {
	*loader.Compiler
	n int
}

func (c *counted) Compile(ctx context.Context, s *loader.Snapshot) (*registry.Build, problem.List) {
	c.n++
	return c.Compiler.Compile(ctx, s)
}

func newCompiler(t testing.TB) *loader.Compiler {
	return loader.NewCompiler(loader.Config{Schema: schema(t)})
}

// machine is a state directory that is opened again and again, as starts of the daemon do.
type machine struct {
	t    testing.TB
	path string
	log  bytes.Buffer
}

func newMachine(t testing.TB) *machine {
	return &machine{t: t, path: filepath.Join(t.TempDir(), "state")}
}

// start opens the cache for f and waits until everything is written.
func (m *machine) start(f func(*state.Cache)) {
	m.t.Helper()
	m.log.Reset()
	c, err := state.OpenCache(m.path, "/srv/catalog", slog.New(slog.NewTextHandler(&m.log, nil)))
	if err != nil {
		m.t.Fatal(err)
	}
	defer c.Close()
	f(c)
}

// compile compiles as one start of the daemon does, and says how often the compiler itself was asked.
func (m *machine) compile(snap *loader.Snapshot) (build *registry.Build, problems problem.List, asked int) {
	m.t.Helper()
	next := &counted{Compiler: newCompiler(m.t)}
	m.start(func(c *state.Cache) {
		b := state.Builds{Cache: c, Schema: schema(m.t), Next: next}
		build, problems = b.Compile(m.t.Context(), snap)
	})
	return build, problems, next.n
}

// files are what the machine keeps of a kind.
func (m *machine) files(kind string) []string {
	m.t.Helper()
	found, err := filepath.Glob(filepath.Join(m.path, "*", kind+"-*"))
	if err != nil {
		m.t.Fatal(err)
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

func tree(t testing.TB, files map[string]string, tags ...string) loader.Tree {
	t.Helper()
	m := fstest.MapFS{
		"schema.cue":         {Data: schema(t)},
		"cue.mod/module.cue": {Data: []byte("module: \"example.com/catalog@v0\"\nlanguage: version: \"v0.17.0\"\n")},
	}
	for name, data := range files {
		m[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return loader.Tree{FS: m, Tags: tags}
}

func snapshot(t testing.TB, source loader.Source) *loader.Snapshot {
	t.Helper()
	snap, _ := source.Snapshot(t.Context())
	if snap == nil {
		t.Fatal("no snapshot")
	}
	return snap
}

// TestWarmEqualsCold compiles every case of testdata/load, and the starter catalog under random edits, twice: what the
// second start serves is what a compiler without a cache makes, in every field and every problem.
func TestWarmEqualsCold(t *testing.T) {
	t.Parallel()
	sources := map[string]loader.Source{}
	cases, err := filepath.Glob("../../testdata/load/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no load cases: %v", err)
	}
	for _, name := range cases {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		var tags []string
		for _, f := range archive.Files {
			if f.Name == "tags" {
				tags = strings.Fields(string(f.Data))
			}
			files[f.Name] = string(f.Data)
		}
		sources[filepath.Base(name)] = tree(t, files, tags...)
	}
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
	m := newMachine(t)
	kept := 0
	for name, source := range sources {
		snap := snapshot(t, source)
		want, problems := newCompiler(t).Compile(t.Context(), snap)
		for start := range 2 {
			got, more, asked := m.compile(snap)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, start %d: -fresh +got\n%s", name, start, diff)
			}
			if diff := cmp.Diff(problems, more); diff != "" {
				t.Errorf("%s, start %d: problems: -fresh +got\n%s", name, start, diff)
			}
			sound := want != nil && !problems.HasErrors()
			if start == 1 && sound == (asked > 0) {
				t.Errorf("%s: at the second start the compiler was asked %d times", name, asked)
			}
			if start == 1 && sound {
				kept++
			}
		}
		if m.log.Len() > 0 {
			t.Errorf("%s: %s", name, &m.log)
		}
	}
	if kept < 10 {
		t.Errorf("only %d builds came from the cache", kept)
	}
}

// edited is the catalog with a few bytes of its CUE files taken out, doubled or replaced.
func edited(random *rand.Rand, files map[string]string) map[string]string {
	out := map[string]string{}
	for name, data := range files {
		if strings.HasSuffix(name, ".cue") && random.IntN(3) == 0 {
			at := random.IntN(len(data))
			end := min(len(data), at+1+random.IntN(4))
			data = data[:at] + []string{"", data[at:end] + data[at:end], "\n", " ", "x", "1", "// "}[random.IntN(7)] + data[end:]
		}
		out[name] = data
	}
	return out
}

// TestDamaged changes the cache's file as disks, crashes and people do: it is never served, said once, and made again.
func TestDamaged(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	one, two := snapshot(t, tree(t, map[string]string{"a.cue": fmt.Sprintf(aTool, "one")})), snapshot(t, tree(t, map[string]string{"a.cue": fmt.Sprintf(aTool, "two")}))
	m.compile(two)
	other := m.files("build")[0]
	want, _, _ := m.compile(one)
	var file string
	for _, f := range m.files("build") {
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
		"empty": {}, "half": whole[:len(whole)/2], "one byte less": whole[:len(whole)-1], "more": append(bytes.Clone(whole), 0),
		"first byte": flip(0), "checksum": flip(20), "content": flip(len(whole) / 2), "last byte": flip(len(whole) - 1),
		"zeros": make([]byte, len(whole)), "the file of another catalog": foreign,
	} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		got, problems, asked := m.compile(one)
		if diff := cmp.Diff(want, got); diff != "" || asked != 1 || len(problems) > 0 {
			t.Errorf("%s: compiled %d times, %v, %s", name, asked, problems, diff)
		}
		if n := strings.Count(m.log.String(), "level=WARN"); n != 1 {
			t.Errorf("%s: %d warnings\n%s", name, n, &m.log)
		}
		if _, _, asked := m.compile(one); asked != 0 || m.log.Len() > 0 {
			t.Errorf("%s: it was not made again (%s)", name, &m.log)
		}
	}
	// What is no file at all.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, asked := m.compile(one); asked != 1 || !strings.Contains(m.log.String(), "level=WARN") {
		t.Errorf("a directory: compiled %d times\n%s", asked, &m.log)
	}
}

// TestKeys holds that everything that compiling depends on leads to a file of its own.
func TestKeys(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	base := map[string]string{"a.cue": fmt.Sprintf(aTool, "one")}
	if _, _, asked := m.compile(snapshot(t, tree(t, base))); asked != 1 {
		t.Fatal(asked)
	}
	if _, _, asked := m.compile(snapshot(t, tree(t, base))); asked != 0 {
		t.Fatal("nothing was kept")
	}
	for name, snap := range map[string]*loader.Snapshot{
		"content": snapshot(t, tree(t, map[string]string{"a.cue": base["a.cue"] + "\n"})),
		"name":    snapshot(t, tree(t, map[string]string{"b.cue": base["a.cue"]})),
		"policy":  snapshot(t, tree(t, map[string]string{"a.cue": base["a.cue"], "policy/a.rego": "package a"})),
		"tags":    snapshot(t, tree(t, base, "a")),
	} {
		if _, _, asked := m.compile(snap); asked != 1 {
			t.Errorf("another %s is served from the cache", name)
		}
	}
	next := &counted{Compiler: newCompiler(t)}
	m.start(func(c *state.Cache) {
		for _, b := range []state.Builds{
			{Cache: c, Schema: schema(t), MaxTools: 7, Next: next},
			{Cache: c, Schema: append(schema(t), '\n'), Next: next},
		} {
			b.Compile(t.Context(), snapshot(t, tree(t, base)))
		}
	})
	if next.n != 2 {
		t.Error("another schema or limit is served from the cache")
	}
}

// TestNewestStay holds the cache small, and clears what a crash has left.
func TestNewestStay(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for i := range 8 {
		m.compile(snapshot(t, tree(t, map[string]string{"a.cue": fmt.Sprintf(aTool, fmt.Sprintf("tool%d", i))})))
		for _, f := range m.files("build") { // each is older than what comes
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
	if n := len(m.files("build")); n != 4 {
		t.Errorf("%d builds are kept", n)
	}
	if _, _, asked := m.compile(snapshot(t, tree(t, map[string]string{"a.cue": fmt.Sprintf(aTool, "tool7")}))); asked != 0 {
		t.Error("the newest is not among them")
	}
	left := filepath.Join(filepath.Dir(m.files("build")[0]), ".new-half")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(left, time.Unix(0, 0), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	m.compile(snapshot(t, tree(t, map[string]string{"a.cue": fmt.Sprintf(aTool, "another")})))
	if _, err := os.Stat(left); err == nil {
		t.Error("what was half written long ago is still there")
	}
	for _, f := range m.files("build") {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", f, info.Mode(), err)
		}
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	want := map[state.Question]bool{{1}: true, {2}: false, {3, 4}: true}
	m.start(func(c *state.Cache) {
		if got := c.Lists("policy"); got != nil {
			t.Errorf("at first: %v", got)
		}
		c.KeepLists("policy", want)
	})
	m.start(func(c *state.Cache) {
		if diff := cmp.Diff(want, c.Lists("policy")); diff != "" {
			t.Error(diff)
		}
		if got := c.Lists("another"); got != nil {
			t.Errorf("of another policy: %v", got)
		}
	})
	file := m.files("lists")[0]
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1 // allowed becomes denied, or the other way round
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	m.start(func(c *state.Cache) {
		if got := c.Lists("policy"); got != nil || !strings.Contains(m.log.String(), "level=WARN") {
			t.Errorf("damaged: %v\n%s", got, &m.log)
		}
	})
}
