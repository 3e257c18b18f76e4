package loader_test

import (
	"context"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

var update = flag.Bool("update", false, "write what the load cases answer into their want files; read the difference before keeping it")

const moduleFile = "module: \"example.com/catalog@v0\"\nlanguage: version: \"v0.17.0\"\n"

func schema(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("../schema.cue")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// tree is a catalog of the given files, with the schema and a module file unless they are given (or taken away by "-").
func tree(t testing.TB, files map[string]string) fs.FS {
	t.Helper()
	m := fstest.MapFS{
		"schema.cue":         {Data: schema(t)},
		"cue.mod/module.cue": {Data: []byte(moduleFile)},
	}
	for name, data := range files {
		if strings.TrimSpace(data) == "-" {
			delete(m, name)
			continue
		}
		m[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return m
}

// load takes a catalog through a source and the compiler.
func load(t testing.TB, c *loader.Compiler, src loader.Source) (*registry.Build, problem.List) {
	t.Helper()
	ctx := context.Background()
	snap, problems := src.Snapshot(ctx)
	if snap == nil {
		return nil, problems
	}
	b, more := c.Compile(ctx, snap)
	return b, append(problems, more...).Sorted()
}

// TestLoad runs testdata/load/*.txtar. A case is the files of a catalog; want lists every problem that it must have, as
// `file:line:col: code`, or `file:line:col: code: warning`, and nothing else may be reported. tags holds CUE tags, one a
// line. tools, if it is there, lists the tools of the build. TestBadInput runs the cases whose comment begins with the
// number of a row of the list of bad inputs.
func TestLoad(t *testing.T) {
	t.Parallel()
	loadCases(t, false)
}

func loadCases(t *testing.T, rows bool) {
	cases, err := filepath.Glob("../testdata/load/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no load cases: %v", err)
	}
	for _, name := range cases {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		title := strings.TrimSuffix(filepath.Base(name), ".txtar")
		row := rowOf.FindString(string(archive.Comment))
		if rows != (row != "") {
			continue
		}
		t.Run(strings.TrimPrefix(strings.TrimSuffix(row, ":")+"/"+title, "/"), func(t *testing.T) {
			t.Parallel()
			files, want := unpack(archive)
			b, problems := load(t, loader.NewCompiler(loader.Config{Schema: schema(t)}),
				loader.Tree{FS: tree(t, files), Tags: strings.Fields(want["tags"])})
			got := map[string]string{"want": summary(problems)}
			if _, ok := want["tools"]; ok && b != nil {
				got["tools"] = listing(b)
			}
			if *update {
				rewrite(t, name, archive, got)
				t.Logf("%s\n%s", name, full(problems))
				return
			}
			if diff := cmp.Diff(want["want"], got["want"]); diff != "" {
				t.Errorf("problems (-want +got):\n%s\n%s", diff, full(problems))
			}
			if diff := cmp.Diff(want["tools"], got["tools"]); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
		})
	}
}

var rowOf = regexp.MustCompile(`^A\d+:`)

// unpack parts the files of a case from what is said about them. What txtar can't hold is written with other characters:
// \u240d for a carriage return, \u2400 at the end of a file without a last newline.
func unpack(a *txtar.Archive) (files, said map[string]string) {
	files, said = map[string]string{}, map[string]string{}
	for _, f := range a.Files {
		switch f.Name {
		case "want", "tags", "tools":
			said[f.Name] = string(f.Data)
		default:
			files[f.Name] = strings.TrimSuffix(strings.ReplaceAll(string(f.Data), "\u240d", "\r"), "\u2400\n")
		}
	}
	return files, said
}

func summary(l problem.List) string {
	var b strings.Builder
	for _, p := range l {
		b.WriteString(p.Position.String() + ": " + string(p.Code))
		if p.Severity == problem.Warning {
			b.WriteString(": warning")
		}
		for _, a := range p.Also {
			b.WriteString(" " + a.String())
		}
		b.WriteString("\n")
	}
	return b.String()
}

func full(l problem.List) string {
	var b strings.Builder
	for _, p := range l {
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}

// listing is the declarations of a build with their places.
func listing(b *registry.Build) string {
	var out strings.Builder
	for _, t := range b.Tools {
		out.WriteString("tool " + t.Name + " " + t.Binding.Kind() + " " + t.Pos.String() + "\n")
	}
	for _, s := range b.Servers {
		out.WriteString("server " + s.Name + " " + s.Pos.String() + "\n")
	}
	for _, br := range b.Branches {
		out.WriteString("branch " + br.Name + " " + br.Pos.String() + "\n")
	}
	return out.String()
}

func rewrite(t *testing.T, name string, a *txtar.Archive, got map[string]string) {
	t.Helper()
	for field, text := range got {
		found := false
		for i := range a.Files {
			if a.Files[i].Name == field {
				a.Files[i].Data, found = []byte(text), true
			}
		}
		if !found {
			a.Files = append(a.Files, txtar.File{Name: field, Data: []byte(text)})
		}
	}
	if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}
