package catalogd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocsUpstream does what docs/upstream.md shows, with the program and the npm server of the page.
func TestDocsUpstream(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "catalogd"), "./cmd/catalogd")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	modules, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, "@modelcontextprotocol/server-everything/dist/index.js")); err != nil {
		t.Fatalf("the npm server is not installed: run `npm ci` (%v)", err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	copyStarter(t, dir)
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	r := reader{t: t, dir: dir}
	ran := 0
	for _, b := range blocks(t, "docs/upstream.md") {
		at := "docs/upstream.md:" + strings.SplitN(b.text, "\n", 2)[0]
		switch b.kind {
		case "cue":
			r.save(at, b.text)
		case "yaml":
			name := strings.TrimPrefix(strings.SplitN(b.text, "\n", 2)[0], "# ")
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
	if ran < 3 {
		t.Errorf("%d transcripts ran", ran)
	}
}
