package docs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestGoPage: each snippet of the pages about Go is a part of the file that its first line names, which its
// own tests run.
func TestGoPage(t *testing.T) {
	t.Parallel()
	compared := 0
	for _, b := range append(harness.Blocks(t, goGuide), harness.Blocks(t, "docs/go.md")...) {
		first, rest, _ := strings.Cut(b.Text, "\n")
		name, ok := strings.CutPrefix(first, "// ")
		if !ok || b.Kind != "go" && b.Kind != "cue" {
			t.Errorf("a block of kind %q begins with %q, want // and the file that it is a part of", b.Kind, first)
			continue
		}
		file := harness.ReadFile(t, filepath.FromSlash(name)) // Main has changed to the root
		if !strings.Contains(file, rest) {
			t.Errorf("%s does not contain the snippet:\n%s", name, rest)
		}
		compared++
	}
	if compared < 11 {
		t.Errorf("%d snippets were compared, want those of the pages", compared)
	}
}
