package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestDocsDialects does what docs/dialects.md shows, with the program and the catalog of the page, and holds its tables to
// the closed lists.
func TestDocsDialects(t *testing.T) {
	dir := t.TempDir()
	usePrograms(t)
	harness.EmptyStarter(t, dir)
	harness.WriteFile(t, filepath.Join(dir, "policy/trust/data.yaml"), "entries: {}\n") // the page's catalog reaches nothing
	r := reader{t: t, dir: dir}
	ran := 0
	for _, b := range harness.Blocks(t, "docs/dialects.md") {
		at := "docs/dialects.md:" + strings.SplitN(b.Text, "\n", 2)[0]
		switch b.Kind {
		case "cue":
			r.save(at, b.Text)
		case "console":
			ran++
			r.console(at, b.Text)
		default:
			t.Errorf("%s: no test runs blocks of kind %q", at, b.Kind)
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
