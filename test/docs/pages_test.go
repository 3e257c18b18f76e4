package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestDocs does what pages of docs/ show, each with the program and a starter catalog of its own: a file is written where
// the comment in its first line says, and what a transcript prints is what the page says.
func TestDocs(t *testing.T) {
	usePrograms(t)
	for page, transcripts := range map[string]int{
		"docs/clients.md": 14, "docs/compared.md": 7, "docs/review.md": 3, "docs/policy.md": 7, "docs/decision-log.md": 3, "docs/effects.md": 2,
		"docs/branches.md": 1,
	} {
		t.Run(page, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, catalogd.Starter()); err != nil {
				t.Fatal(err)
			}
			r := reader{t: t, dir: dir}
			ran := 0
			for _, b := range harness.Blocks(t, page) {
				first, _, _ := strings.Cut(b.Text, "\n")
				at := page + ":" + first
				switch b.Kind {
				case "json", "yaml", "rego", "cue":
					if !strings.HasPrefix(first, "// ") && !strings.HasPrefix(first, "# ") {
						continue // a part of a file
					}
					name := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(first, "// "), "# ")))
					if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(name, []byte(b.Text), 0o644); err != nil {
						t.Fatal(err)
					}
				case "go": // TestGoFunctionOfCompared
				case "console":
					ran++
					r.console(at, b.Text)
				default:
					t.Errorf("%s: no test runs blocks of kind %q", at, b.Kind)
				}
			}
			if ran != transcripts {
				t.Errorf("%d transcripts ran, want %d", ran, transcripts)
			}
		})
	}
}
