package worker_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/catalogd/catalogd/internal/worker"
	"github.com/catalogd/catalogd/loader"
)

// TestSameAsInProcess compiles every load case in this process and in a child: the builds, with positions and
// digests, and the problems are equal.
func TestSameAsInProcess(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("../../testdata/load/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no load cases: %v", err)
	}
	c := compiler(t, worker.Config{})
	for _, name := range cases {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files, said := unpack(archive)
		s, _ := snapshot(t, files, strings.Fields(said["tags"])...)
		want, problems := loader.NewCompiler(loader.Config{Schema: schema(t)}).Compile(t.Context(), s)
		got, same := c.Compile(t.Context(), s)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: build (-in process +worker):\n%s", name, diff)
		}
		if diff := cmp.Diff(problems, same); diff != "" {
			t.Errorf("%s: problems (-in process +worker):\n%s", name, diff)
		}
	}
}

// TestEdits edits a catalog at random: what a child sends as differences adds up to a compilation from
// scratch. Children are replaced meanwhile.
func TestEdits(t *testing.T) {
	t.Parallel()
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	c := compiler(t, worker.Config{Builds: 9})
	files := good()
	for step := range 40 {
		names := slices.Sorted(maps.Keys(files))
		name := names[random.IntN(len(names))]
		switch random.IntN(7) {
		case 0:
			n := random.IntN(8)
			files[fmt.Sprintf("catalog/p%d/new%d.cue", n%3, n)] = "package catalog\n" + tool(fmt.Sprintf("tool_%d", n), "New.")
		case 1:
			if len(files) > 2 {
				delete(files, name)
			}
		case 2:
			files[name] += "\n// a comment moves nothing\n"
		case 3: // moves everything in it
			files[name] = strings.Replace(files[name], "package catalog\n", "package catalog\n\n", 1)
		case 4:
			files[name] = strings.Replace(files[name], "description: \"", "description: \"More. ", 1)
		case 5: // breaks and fixes
			if strings.HasSuffix(files[name], "tools: {\n") {
				files[name] = strings.TrimSuffix(files[name], "tools: {\n")
			} else {
				files[name] += "tools: {\n"
			}
		case 6: // a name moves to another file
			other := names[random.IntN(len(names))]
			files[name], files[other] = files[other], files[name]
		}
		s, _ := snapshot(t, files)
		want, problems := loader.NewCompiler(loader.Config{Schema: schema(t)}).Compile(t.Context(), s)
		got, same := c.Compile(t.Context(), s)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d, step %d: build (-from scratch +worker):\n%s", seed, step, diff)
		}
		if diff := cmp.Diff(problems, same); diff != "" {
			t.Fatalf("seed %d, step %d: problems (-from scratch +worker):\n%s", seed, step, diff)
		}
	}
}
