package buildfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/buildfile"
	"github.com/catalogd/catalogd/loader"
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

// starter is the build of the starter catalog, for the caller to change.
func starter(t testing.TB) buildfile.Content {
	t.Helper()
	return compile(t, loader.Tree{FS: os.DirFS("../..")})
}

// compile is the content of a source; zero where it has errors.
func compile(t testing.TB, source loader.Source) (c buildfile.Content) {
	t.Helper()
	snap, problems := source.Snapshot(context.Background())
	if snap == nil {
		return c
	}
	b, more := loader.NewCompiler(loader.Config{Schema: schema(t)}).Compile(context.Background(), snap)
	if problems.HasErrors() || more.HasErrors() {
		return c
	}
	return buildfile.Content{Build: b, Warnings: more}
}

// compiled is every build without errors that testdata/load and the starter catalog make.
func compiled(t testing.TB) map[string]buildfile.Content {
	t.Helper()
	cases, err := filepath.Glob("../../testdata/load/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no load cases: %v", err)
	}
	sources := map[string]loader.Source{"starter": loader.Tree{FS: os.DirFS("../..")}}
	for _, name := range cases {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m := fstest.MapFS{
			"schema.cue":         {Data: schema(t)},
			"cue.mod/module.cue": {Data: []byte("module: \"example.com/catalog@v0\"\nlanguage: version: \"v0.17.0\"\n")},
		}
		tree := loader.Tree{FS: m}
		for _, f := range archive.Files {
			if f.Name == "tags" {
				tree.Tags = strings.Fields(string(f.Data))
			}
			m[f.Name] = &fstest.MapFile{Data: f.Data}
		}
		sources[strings.TrimSuffix(filepath.Base(name), ".txtar")] = tree
	}
	out := map[string]buildfile.Content{}
	for name, source := range sources {
		if c := compile(t, source); c.Build != nil {
			out[name] = c
		}
	}
	if len(out) < 5 {
		t.Fatalf("only %d catalogs compile", len(out))
	}
	return out
}

// TestRoundTrip holds that what is read back is what was compiled, to the last byte and the difference between nothing
// and an empty list: a warm start serves what a cold one does.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, want := range compiled(t) {
		t.Run(name, func(t *testing.T) {
			data, err := buildfile.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := buildfile.Unmarshal(data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-compiled +read\n%s", diff)
			}
			again, err := buildfile.Marshal(got)
			if err != nil || !bytes.Equal(data, again) {
				t.Errorf("two encodings differ (%v)", err)
			}
		})
	}
}

// TestRefused changes a file in every way that a disk, a copy or another version may, and reads it.
func TestRefused(t *testing.T) {
	t.Parallel()
	content := starter(t)
	content.Policy = map[string][]byte{"policy/call.rego": []byte("package catalogd.call\n")}
	file, _, err := buildfile.Write(content, schema(t), "v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := buildfile.Read(file, schema(t)); err != nil {
		t.Fatal(err)
	}
	replace := func(old, new string) []byte {
		out := bytes.Replace(file, []byte(old), []byte(new), 1)
		if bytes.Equal(out, file) {
			t.Fatalf("%q is not in the file", old)
		}
		return out
	}
	for _, test := range []struct {
		name string
		data []byte
		want error
		says string
	}{
		{"empty", nil, buildfile.ErrNotBuild, "catalogd build -o FILE"},
		{"another file", []byte("#!/bin/sh\n"), buildfile.ErrNotBuild, "catalogd build -o FILE"},
		{"no header", []byte("catalogd-build "), buildfile.ErrDamaged, "first line"},
		{"newer format", replace(fmt.Sprintf(`"format":%d`, buildfile.Format), fmt.Sprintf(`"format":%d`, buildfile.Format+1)), buildfile.ErrVersion, fmt.Sprintf("(v1): it has format %d, this one reads format %d; make it again", buildfile.Format+1, buildfile.Format)},
		{"a flipped byte", replace("Celsius", "celsius"), buildfile.ErrDamaged, "changed"},
		{"another byte more", append(bytes.Clone(file), '\n'), buildfile.ErrDamaged, "bytes of"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := buildfile.Read(test.data, schema(t))
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v\nwant %v ... %s", err, test.want, test.says)
			}
		})
	}
	if _, _, err := buildfile.Read(file, []byte("other")); !errors.Is(err, buildfile.ErrVersion) || !strings.Contains(err.Error(), "schema") {
		t.Errorf("another schema: %v", err)
	}
	for n := range file {
		if n%97 == 0 || n < 200 {
			if _, _, err := buildfile.Read(file[:n], schema(t)); err == nil {
				t.Fatalf("a file cut at %d of %d bytes is read", n, len(file))
			}
		}
	}
}

// TestForged reads payloads that the loader would never have made.
func TestForged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*buildfile.Content){
		"tool twice": func(c *buildfile.Content) { c.Build.Tools[1].Name = c.Build.Tools[0].Name },
		"bad name":   func(c *buildfile.Content) { c.Build.Tools[0].Name = "a\nb" },
		"no effect":  func(c *buildfile.Content) { c.Build.Tools[0].Effect = "" },
		"no time":    func(c *buildfile.Content) { c.Build.Tools[0].Timeout = 0 },
		"no digest":  func(c *buildfile.Content) { c.Build.Tools[0].Digest = "" },
		"unknown server": func(c *buildfile.Content) {
			c.Build.Tools[0].Binding = registry.Binding{MCP: &registry.MCP{Server: "x"}}
		},
		"no transport": func(c *buildfile.Content) {
			c.Build.Servers = append(c.Build.Servers, registry.Server{Name: "x", MaxConnections: 1, ConnectTimeout: 1, InitializeTimeout: 1, CallTimeout: 1})
		},
		"no limit": func(c *buildfile.Content) {
			c.Build.Servers = append(c.Build.Servers, aServer(func(s *registry.Server) { s.InitializeTimeout = 0 }))
		},
		"unknown isolation": func(c *buildfile.Content) {
			c.Build.Servers = append(c.Build.Servers, aServer(func(s *registry.Server) { s.Isolate = "session" }))
		},
		"branch twice":   func(c *buildfile.Content) { c.Build.Branches = append(c.Build.Branches, c.Build.Branches[0]) },
		"no JSON":        func(c *buildfile.Content) { c.Build.Tools[0].Examples = []registry.Example{{Args: []byte("{")}} },
		"policy outside": func(c *buildfile.Content) { c.Policy = map[string][]byte{"policy/../../x": nil} },
	} {
		t.Run(name, func(t *testing.T) {
			c := starter(t)
			change(&c)
			data, err := buildfile.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := buildfile.Unmarshal(data); err == nil {
				t.Error("it was read")
			}
		})
	}
}

// aServer is one that is read, but for what change does.
func aServer(change func(*registry.Server)) registry.Server {
	s := registry.Server{
		Name: "x", Stdio: &registry.Stdio{Command: "x"}, MaxConnections: 1, Isolate: registry.ByBranch,
		ConnectTimeout: 1, InitializeTimeout: 1, CallTimeout: 1, Source: registry.Source{Digest: "x"},
	}
	change(&s)
	return s
}

func TestServerOfABuildIsRead(t *testing.T) {
	t.Parallel()
	c := starter(t)
	c.Build.Servers = append(c.Build.Servers, aServer(func(*registry.Server) {}))
	data, err := buildfile.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := buildfile.Unmarshal(data); err != nil {
		t.Error(err)
	}
}

// TestForgedSources: what a call is checked with by CUE is there, and is what it was, or the file is not read.
func TestForgedSources(t *testing.T) {
	t.Parallel()
	source := []byte("package catalog\n")
	sum := registry.Sum(source)
	for name, change := range map[string]func(*registry.Build){
		"nothing forged":   func(*registry.Build) {},
		"other content":    func(b *registry.Build) { b.Sources[sum] = []byte("package other\n") },
		"missing content":  func(b *registry.Build) { delete(b.Sources, sum) },
		"content of none":  func(b *registry.Build) { b.Sources[registry.Sum(nil)] = nil },
		"a file outside":   func(b *registry.Build) { b.Packages[0].Files[0].Name = "../a.cue" },
		"a folder outside": func(b *registry.Build) { b.Packages[0].Dir = "/etc" },
		"no digest":        func(b *registry.Build) { b.Packages[0].Digest = "" },
		"twice":            func(b *registry.Build) { b.Packages = append(b.Packages, b.Packages[0]) },
		"another package":  func(b *registry.Build) { b.Tools[0].Args.Remainder.Digest = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			c := starter(t)
			c.Build.Sources = map[string][]byte{sum: source}
			c.Build.Packages = []registry.Package{{Dir: "catalog", Digest: "d", Files: []registry.PackageFile{{Name: "catalog/a.cue", Place: "catalog/a.cue", Sum: sum}}}}
			c.Build.Tools[0].Args.Remainder = &contract.Remainder{Package: "catalog", Path: "tools.x.args", Digest: "d"}
			change(c.Build)
			data, err := buildfile.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := buildfile.Unmarshal(data); (err == nil) != (name == "nothing forged") {
				t.Error(err)
			}
		})
	}
}

// FuzzRead holds that reading always ends in a build or an error, and that what it reads is written the same again.
func FuzzRead(f *testing.F) {
	for _, c := range compiled(f) {
		data, err := buildfile.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := buildfile.Unmarshal(data)
		if err != nil {
			return
		}
		once, err := buildfile.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := buildfile.Unmarshal(once)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, again); diff != "" {
			t.Error(diff)
		}
	})
}
