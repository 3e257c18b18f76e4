package buildcache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/registry"
)

// starter is the build of the starter catalog, for the caller to change.
func starter(t testing.TB) buildcache.Compiled {
	t.Helper()
	return compile(t, loader.Tree{FS: os.DirFS("../..")})
}

// compile compiles a source; the result is zero where it has errors.
func compile(t testing.TB, source loader.Source) (c buildcache.Compiled) {
	t.Helper()
	snap, problems := source.Snapshot(context.Background())
	if snap == nil {
		return c
	}
	b, more := loader.NewCompiler(loader.Config{Schema: schema(t)}).Compile(context.Background(), snap)
	if problems.HasErrors() || more.HasErrors() {
		return c
	}
	return buildcache.Compiled{Build: b, Warnings: more}
}

// compiledCases are the builds of the starter catalog and of every load case without errors.
func compiledCases(t testing.TB) map[string]buildcache.Compiled {
	t.Helper()
	sources := loadCases(t)
	sources["starter"] = loader.Tree{FS: os.DirFS("../..")}
	out := map[string]buildcache.Compiled{}
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

// TestRoundTrip: what is decoded is what was compiled, nil and empty slices apart, so that a warm start
// serves what a cold one does.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, want := range compiledCases(t) {
		t.Run(name, func(t *testing.T) {
			data, err := buildcache.Encode(want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := buildcache.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-compiled +read\n%s", diff)
			}
			again, err := buildcache.Encode(got)
			if err != nil || !bytes.Equal(data, again) {
				t.Errorf("two encodings differ (%v)", err)
			}
		})
	}
}

// TestDecodeFileRefuses changes a file in every way that a disk, a copy or another version may.
func TestDecodeFileRefuses(t *testing.T) {
	t.Parallel()
	content := starter(t)
	content.Policy = map[string][]byte{"policy/call.rego": []byte("package catalogd.call\n")}
	file, _, err := buildcache.EncodeFile(content, schema(t), "v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := buildcache.DecodeFile(file, schema(t)); err != nil {
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
		{"empty", nil, buildcache.ErrNotBuild, "catalogd build -o FILE"},
		{"another file", []byte("#!/bin/sh\n"), buildcache.ErrNotBuild, "catalogd build -o FILE"},
		{"no header", []byte("catalogd-build "), buildcache.ErrDamaged, "first line"},
		{
			"newer format", replace(fmt.Sprintf(`"format":%d`, buildcache.Format), `"format":99`),
			buildcache.ErrVersion,
			fmt.Sprintf("(v1): it has format 99, this one reads format %d; make it again", buildcache.Format),
		},
		{"a flipped byte", replace("Celsius", "celsius"), buildcache.ErrDamaged, "changed"},
		{"another byte more", append(bytes.Clone(file), '\n'), buildcache.ErrDamaged, "bytes of"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := buildcache.DecodeFile(test.data, schema(t))
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v\nwant %v ... %s", err, test.want, test.says)
			}
		})
	}
	_, _, err = buildcache.DecodeFile(file, []byte("other"))
	if !errors.Is(err, buildcache.ErrVersion) || !strings.Contains(err.Error(), "schema") {
		t.Errorf("another schema: got %v, want ErrVersion", err)
	}
	for n := range file {
		if n%97 == 0 || n < 200 {
			if _, _, err := buildcache.DecodeFile(file[:n], schema(t)); err == nil {
				t.Fatalf("a file cut at %d of %d bytes is read", n, len(file))
			}
		}
	}
}

// TestDecodeRefusesForgedBuilds decodes builds that the loader would never make.
func TestDecodeRefusesForgedBuilds(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*buildcache.Compiled){
		"tool twice": func(c *buildcache.Compiled) { c.Build.Tools[1].Name = c.Build.Tools[0].Name },
		"bad name":   func(c *buildcache.Compiled) { c.Build.Tools[0].Name = "a\nb" },
		"no effect":  func(c *buildcache.Compiled) { c.Build.Tools[0].Effect = "" },
		"no time":    func(c *buildcache.Compiled) { c.Build.Tools[0].Timeout = 0 },
		"no digest":  func(c *buildcache.Compiled) { c.Build.Tools[0].Digest = "" },
		"unknown server": func(c *buildcache.Compiled) {
			c.Build.Tools[0].Binding = registry.Binding{MCP: &registry.MCP{Server: "x"}}
		},
		"no transport": func(c *buildcache.Compiled) {
			c.Build.Servers = append(c.Build.Servers, aServer(func(s *registry.Server) { s.Stdio = nil }))
		},
		"no limit": func(c *buildcache.Compiled) {
			c.Build.Servers = append(c.Build.Servers, aServer(func(s *registry.Server) { s.InitializeTimeout = 0 }))
		},
		"unknown isolation": func(c *buildcache.Compiled) {
			c.Build.Servers = append(c.Build.Servers, aServer(func(s *registry.Server) { s.Isolate = "session" }))
		},
		"branch twice": func(c *buildcache.Compiled) {
			c.Build.Branches = append(c.Build.Branches, c.Build.Branches[0])
		},
		"no JSON": func(c *buildcache.Compiled) {
			c.Build.Tools[0].Examples = []registry.Example{{Args: []byte("{")}}
		},
		"policy outside": func(c *buildcache.Compiled) { c.Policy = map[string][]byte{"policy/../../x": nil} },
	} {
		t.Run(name, func(t *testing.T) {
			c := starter(t)
			change(&c)
			data, err := buildcache.Encode(c)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := buildcache.Decode(data); err == nil {
				t.Error("it was decoded")
			}
		})
	}
}

// aServer is a valid server, but for what change does.
func aServer(change func(*registry.Server)) registry.Server {
	s := registry.Server{
		Name: "x", Stdio: &registry.Stdio{Command: "x"}, MaxConnections: 1, Isolate: registry.ByBranch,
		ConnectTimeout: 1, InitializeTimeout: 1, CallTimeout: 1, Source: registry.Source{Digest: "x"},
	}
	change(&s)
	return s
}

func TestServerIsDecoded(t *testing.T) {
	t.Parallel()
	c := starter(t)
	c.Build.Servers = append(c.Build.Servers, aServer(func(*registry.Server) {}))
	data, err := buildcache.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := buildcache.Decode(data); err != nil {
		t.Error(err)
	}
}

// TestDecodeRefusesForgedSources: the sources with which CUE checks a call are complete and unchanged, or
// nothing is decoded.
func TestDecodeRefusesForgedSources(t *testing.T) {
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
			file := registry.PackageFile{Name: "catalog/a.cue", Place: "catalog/a.cue", Sum: sum}
			c.Build.Packages = []registry.Package{{Dir: "catalog", Digest: "d", Files: []registry.PackageFile{file}}}
			remainder := contract.Remainder{Package: "catalog", Path: "tools.x.args", Digest: "d"}
			c.Build.Tools[0].Args.Remainder = &remainder
			change(c.Build)
			data, err := buildcache.Encode(c)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := buildcache.Decode(data); (err == nil) != (name == "nothing forged") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// FuzzDecode: any bytes end in an error, or in a build that survives another round trip.
func FuzzDecode(f *testing.F) {
	for _, c := range compiledCases(f) {
		data, err := buildcache.Encode(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := buildcache.Decode(data)
		if err != nil {
			return
		}
		once, err := buildcache.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := buildcache.Decode(once)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, again); diff != "" {
			t.Error(diff)
		}
	})
}
