package catalogd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocsImporting does what docs/importing.md shows, with the program and the starter catalog.
func TestDocsImporting(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "catalogd"), "./cmd/catalogd")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	copyStarter(t, dir)
	r := reader{t: t, dir: dir}
	ran := 0
	for _, b := range blocks(t, "docs/importing.md") {
		at := "docs/importing.md:" + strings.SplitN(b.text, "\n", 2)[0]
		switch b.kind {
		case "json":
			name := strings.TrimPrefix(strings.SplitN(b.text, "\n", 2)[0], "// ")
			if err := os.WriteFile(filepath.Join(dir, name), []byte(b.text), 0o644); err != nil {
				t.Fatal(err)
			}
		case "console":
			ran++
			r.console(at, b.text)
		default:
			t.Errorf("%s: no test runs blocks of kind %q", at, b.kind)
		}
	}
	if ran != 1 {
		t.Errorf("%d transcripts ran", ran)
	}
}
