package loader

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
)

// TestStandardNames compares the list of what CUE's standard packages declare with CUE and its source.
func TestStandardNames(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "cuelang.org/go").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "pkg")
	written := regexp.MustCompile(`(?m)^\t+Name:\s+"(\w+)",$|^\t{1,2}(\w+):`)
	for path, known := range standardNames {
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path), "pkg.go"))
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "import p %q\n", path)
		for _, name := range known {
			fmt.Fprintf(&b, "x: %s: p.%s\n", name, name)
		}
		if err := cuecontext.New().CompileString(b.String()).LookupPath(cue.ParsePath("x")).Err(); err != nil {
			t.Errorf("%s lacks a name of the list: %v", path, err)
		}
		for _, m := range written.FindAllStringSubmatch(string(source), -1) {
			if name := m[1] + m[2]; declares(path, name) && !slices.Contains(known, name) {
				t.Errorf("the list lacks %s of %s", name, path)
			}
		}
	}
	if n := len(standardNames); n < 20 {
		t.Errorf("the list has %d packages", n)
	}
}
