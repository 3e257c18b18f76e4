package harness

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
)

// EmptyStarter writes the starter catalog without its tools into dir. Its policy trusts nothing, and shows every tool in the
// branch default.
func EmptyStarter(t *testing.T, dir string) {
	t.Helper()
	err := fs.WalkDir(catalogd.Starter(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(name, "catalog/") {
			return err
		}
		data, err := fs.ReadFile(catalogd.Starter(), name)
		if err != nil {
			return err
		}
		switch name { // these name the starter's own tools
		case "policy/access/data.yaml":
			data = []byte("branches:\n  default:\n    tools: [\"*\"]\n")
		case "policy/trust/data.yaml":
			data = []byte("entries: {}\n")
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o644)
	})
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, "catalog"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Assemble makes the catalog of a directory of testdata, as its README says: the starter's schema and policy, and over them
// the directory's own files. replace are pairs of old and new text in its trust data.
func Assemble(t testing.TB, from string, replace ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "catalog")
	for _, source := range []struct {
		fsys  fs.FS
		parts []string
	}{{catalogd.Starter(), []string{"schema.cue", "policy"}}, {os.DirFS(from), []string{"."}}} {
		for _, part := range source.parts {
			err := fs.WalkDir(source.fsys, part, func(name string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				data, err := fs.ReadFile(source.fsys, name)
				WriteFile(t, filepath.Join(dir, filepath.FromSlash(name)), string(data))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	trust := filepath.Join(dir, "policy/trust/data.yaml")
	WriteFile(t, trust, strings.NewReplacer(replace...).Replace(ReadFile(t, trust)))
	return dir
}

// Starter copies the starter catalog into a directory of its own. Both branches may show every tool, so that what a test
// adds is seen; research hides those for texts.
func Starter(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "catalog")
	if err := os.CopyFS(dir, catalogd.Starter()); err != nil {
		t.Fatal(err)
	}
	access := filepath.Join(dir, AccessFile)
	comments, _, _ := strings.Cut(ReadFile(t, access), "\nbranches:\n")
	WriteFile(t, access, comments+"\nbranches:\n  default:\n    tools: [\"*\"]\n  research:\n    tools: [\"*\"]\nhide: []\n")
	Edit(t, dir, "catalog/branches.cue", `labels: team: "research"`, "labels: team: \"research\"\n\thide: tags: [\"text\"]")
	return dir
}

// WriteFile replaces a file in one step, as most editors do.
func WriteFile(t testing.TB, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	next := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".swp")
	if err := os.WriteFile(next, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, name); err != nil {
		t.Fatal(err)
	}
}

// ReadFile returns a file's content.
func ReadFile(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// AccessFile holds the policy data that say which branch is shown which tools.
const AccessFile = "policy/access/data.yaml"

// JQTool is the declaration of a tool that answers one word.
func JQTool(name, description, word string) string {
	return fmt.Sprintf("tools: %s: {\n\tdescription: %q\n\teffect: \"read\"\n\ttags: [\"everyday\"]\n\tbinding: jq: program: %q\n}\n",
		name, description, strconv.Quote(word))
}

// ManyTools adds n tools in packages of 100 to a starter catalog, each with a few arguments as real tools have them.
func ManyTools(t testing.TB, dir string, n int, binding string) {
	t.Helper()
	for p := range (n + 99) / 100 {
		var b strings.Builder
		b.WriteString("package catalog\n\nimport \"strings\"\n\n_units: *\"celsius\" | \"fahrenheit\"\n\n")
		for i := range min(100, n-100*p) {
			fmt.Fprintf(&b, `tools: tool_%03d_%02d: {
	description: "Look something up."
	args: {
		// The city name to look up.
		city!: string & strings.MinRunes(1)
		// The units of the answer.
		units: _units
		// How many at most.
		limit?: int & >=1 & <=100
		deep?: {a!: int, tags?: [...string]}
		verbose: *false | bool
	}
	effect: "read"
	tags: ["everyday"]
	binding: %s
}
`, p, i, strings.ReplaceAll(binding, "NAME", fmt.Sprintf("%d/%d", p, i)))
		}
		name := filepath.Join(dir, "catalog", fmt.Sprintf("p%03d", p), "tools.cue")
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Edit replaces the first occurrence of old in the file name below dir.
func Edit(t testing.TB, dir, name, old, new string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		t.Fatalf("%s: got no %q to replace", name, old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), old, new, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}
