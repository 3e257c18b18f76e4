package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestDocsUpstream does what docs/upstream.md shows, with the program and the npm server of the page.
func TestDocsUpstream(t *testing.T) {
	dir := t.TempDir()
	modules, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, "@modelcontextprotocol/server-everything/dist/index.js")); err != nil {
		t.Fatalf("the npm server is not installed: run `npm ci` (%v)", err)
	}
	usePrograms(t)
	harness.EmptyStarter(t, dir)
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	r := reader{t: t, dir: dir}
	ran := 0
	for _, b := range harness.Blocks(t, "docs/upstream.md") {
		at := "docs/upstream.md:" + strings.SplitN(b.Text, "\n", 2)[0]
		switch b.Kind {
		case "cue":
			r.save(at, b.Text)
		case "yaml":
			name := strings.TrimPrefix(strings.SplitN(b.Text, "\n", 2)[0], "# ")
			if err := os.WriteFile(filepath.Join(dir, name), []byte(b.Text), 0o644); err != nil {
				t.Fatal(err)
			}
		case "console":
			ran++
			r.console(at, b.Text)
		default:
			t.Errorf("%s: no test runs blocks of kind %q", at, b.Kind)
		}
	}
	if ran < 2 {
		t.Errorf("%d transcripts ran", ran)
	}
}
