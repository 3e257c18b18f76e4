package catalogd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
)

// TestDocs does what pages of docs/ show, each with the program and a starter catalog of its own: a file is written where
// the comment in its first line says, and what a transcript prints is what the page says.
func TestDocs(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "catalogd"), "./cmd/catalogd")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for page, transcripts := range map[string]int{"docs/importing.md": 1, "docs/review.md": 3, "docs/policy.md": 4, "docs/decision-log.md": 2} {
		t.Run(page, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, catalogd.Starter()); err != nil {
				t.Fatal(err)
			}
			r := reader{t: t, dir: dir}
			ran := 0
			for _, b := range blocks(t, page) {
				first, _, _ := strings.Cut(b.text, "\n")
				at := page + ":" + first
				switch b.kind {
				case "json", "yaml", "rego", "cue":
					if !strings.HasPrefix(first, "// ") && !strings.HasPrefix(first, "# ") {
						continue // a part of a file
					}
					name := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(first, "// "), "# ")))
					if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(name, []byte(b.text), 0o644); err != nil {
						t.Fatal(err)
					}
				case "console":
					ran++
					r.console(at, b.text)
				default:
					t.Errorf("%s: no test runs blocks of kind %q", at, b.kind)
				}
			}
			if ran != transcripts {
				t.Errorf("%d transcripts ran, want %d", ran, transcripts)
			}
		})
	}
}
