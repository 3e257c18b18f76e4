package catalogd_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/contract/dialect"
)

// TestDocsDialects does what docs/dialects.md shows, with the program and the catalog of the page, and holds its tables to
// the closed lists.
func TestDocsDialects(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "catalogd"), "./cmd/catalogd").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	copyStarter(t, dir)
	write(t, filepath.Join(dir, "policy/trust/data.yaml"), "entries: {}\n") // the page's catalog reaches nothing
	r := reader{t: t, dir: dir}
	ran := 0
	for _, b := range blocks(t, "docs/dialects.md") {
		at := "docs/dialects.md:" + strings.SplitN(b.text, "\n", 2)[0]
		switch b.kind {
		case "cue":
			r.save(at, b.text)
		case "console":
			ran++
			r.console(at, b.text)
		default:
			t.Errorf("%s: no test runs blocks of kind %q", at, b.kind)
		}
	}
	if ran < 5 {
		t.Errorf("%d transcripts ran", ran)
	}
	page, err := os.ReadFile("docs/dialects.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dialect.All() {
		if !strings.Contains(string(page), "\n| `"+string(d)+"` | ") {
			t.Errorf("the page has no row for the dialect %s", d)
		}
	}
	for _, code := range dialect.Codes() {
		if !strings.Contains(string(page), "\n| `"+string(code)+"` | ") {
			t.Errorf("the page has no row for the code %s", code)
		}
	}
}

// copyStarter writes a starter catalog without its tools, and with a policy that shows everything in the branch default.
func copyStarter(t *testing.T, dir string) {
	t.Helper()
	err := fs.WalkDir(catalogd.Starter(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(name, "catalog/") {
			return err
		}
		data, err := fs.ReadFile(catalogd.Starter(), name)
		if err != nil {
			return err
		}
		switch name { // what speaks of the starter's own tools
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
