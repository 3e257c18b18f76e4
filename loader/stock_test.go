package loader_test

import (
	"encoding/json"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	cueload "cuelang.org/go/cue/load"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/catalogd/catalogd/loader"
)

// stock evaluates the package in dir as `cue vet -c=false ./dir` does, through CUE's own loader.
func stock(fsys fs.FS, dir string, tags []string) (cue.Value, error) {
	inst := cueload.Instances([]string{"./" + dir + ":catalog"}, &cueload.Config{FS: fsys, Tags: tags, Env: []string{"CUE_REGISTRY=none"}})[0]
	if inst.Err != nil {
		return cue.Value{}, inst.Err
	}
	v := cuecontext.New().BuildInstance(inst)
	return v, v.Validate()
}

// TestStock holds that what the compiler takes is what stock CUE takes, with the same values: the compiler reads files,
// imports and tags itself.
func TestStock(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("../testdata/load/good*.txtar")
	must(t, err)
	for _, name := range cases {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			must(t, err)
			files, said := unpack(archive)
			tags := strings.Fields(said["tags"])
			fsys := tree(t, files)
			b, problems := load(t, compiler(t), loader.Tree{FS: fsys, Tags: tags})
			if len(problems) > 0 {
				t.Fatal(full(problems))
			}
			checked := 0
			for _, tool := range b.Tools {
				v, err := stock(fsys, path.Dir(tool.Pos.File), used(tags, files, path.Dir(tool.Pos.File)))
				if err != nil {
					t.Errorf("%s: stock CUE refuses it: %s", tool.Name, errors.Details(err, nil))
					continue
				}
				sv := v.LookupPath(cue.MakePath(cue.Str("tools"), cue.Str(tool.Name)))
				for field, got := range map[string]any{
					"description": tool.Description, "effect": tool.Effect, "title": tool.Title, "tags": tool.Tags,
				} {
					fv := sv.LookupPath(cue.MakePath(cue.Str(field)))
					if !fv.Exists() {
						continue
					}
					want, err := fv.MarshalJSON()
					must(t, err)
					data, err := json.Marshal(got)
					must(t, err)
					if diff := cmp.Diff(string(want), string(data)); diff != "" {
						t.Errorf("%s.%s (-stock +ours): %s", tool.Name, field, diff)
					}
					checked++
				}
			}
			if checked == 0 {
				t.Error("nothing was compared")
			}
		})
	}
}

// used are the tags that a file of the package in dir asks for: stock CUE refuses any other.
func used(tags []string, files map[string]string, dir string) []string {
	var out []string
	for _, tag := range tags {
		key, _, _ := strings.Cut(tag, "=")
		for name, data := range files {
			above := path.Dir(name)
			if (above == "." || above == dir || strings.HasPrefix(dir, above+"/")) && (strings.Contains(data, "@tag("+key) || strings.Contains(data, "@if(")) {
				out = append(out, tag)
				break
			}
		}
	}
	return out
}

// TestStockReports holds that an editor with stock CUE shows a mistake where the compiler does.
func TestStockReports(t *testing.T) {
	t.Parallel()
	for place, tool := range map[string]string{
		"catalog/a.cue:5:2":  "efect: \"read\"\n\tbinding: jq: {program: \".\"}",
		"catalog/a.cue:6:30": "effect: \"read\"\n\tbinding: jq: {program: \".\", prgram: \"\"}",
		"catalog/a.cue:6:18": "effect: \"read\"\n\tbinding: exec: {comand: \"true\"}",
		"catalog/a.cue:6:26": "effect: \"read\"\n\tbinding: exec: [\"true\", 1]",
	} {
		fsys := tree(t, map[string]string{"catalog/a.cue": "package catalog\n\ntools: t: {\n\tdescription: \"d\"\n\t" + tool + "\n}\n"})
		_, err := stock(fsys, "catalog", nil)
		if err == nil {
			t.Fatalf("stock CUE takes %s", tool)
		}
		_, found := load(t, compiler(t), loader.Tree{FS: fsys})
		if problems := summary(found); !strings.Contains(errors.Details(err, nil), place) || !strings.Contains(problems, place+": ") {
			t.Errorf("%s is not in both:\n%s\n%s", place, errors.Details(err, nil), problems)
		}
	}
}

// TestRepository loads the catalog that this repository is.
func TestRepository(t *testing.T) {
	t.Parallel()
	b, problems := load(t, compiler(t), loader.Dir{Root: ".."})
	if len(problems) > 0 || len(b.Tools) == 0 {
		t.Errorf("%d tools and these problems:\n%s", len(b.Tools), full(problems))
	}
}
