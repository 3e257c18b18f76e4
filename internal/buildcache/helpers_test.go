package buildcache_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/catalogd/catalogd/loader"
)

func schema(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("../../schema.cue")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// tree is a catalog of these files, with the schema and a module.
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

// loadCases are the catalogs of testdata/load, sound and unsound, by name.
func loadCases(t testing.TB) map[string]loader.Source {
	t.Helper()
	cases, err := filepath.Glob("../../testdata/load/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no load cases: %v", err)
	}
	sources := map[string]loader.Source{}
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
		sources[strings.TrimSuffix(filepath.Base(name), ".txtar")] = tree(t, files, tags...)
	}
	return sources
}
