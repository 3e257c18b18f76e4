package daemon

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// rootIsDeleted: without its folder the last good generation keeps serving, and a new folder is found.
func rootIsDeleted(t *testing.T) {
	t.Parallel()
	dir := harness.Starter(t)
	r := harness.Serve(t, catalogd.Config{Dir: dir})
	l := harness.Connect(t, r.URL, "default", harness.Legacy)
	for round := range 2 {
		names := slices.Sorted(maps.Keys(l.Listing(t)))
		// In one step: a folder that is seen while its files go one by one is a smaller catalog.
		if err := os.Rename(dir, fmt.Sprintf("%s.%d", dir, round)); err != nil {
			t.Fatal(err)
		}
		harness.Await(t, "the missing folder to be reported", func() bool { f := r.Status().Failed; return f != nil && f.Reason == "source" })
		compareListing(t, l, "without a folder", names)
		if got := l.Answer(t.Context(), "slugify", map[string]any{"title": "A b"}); got != "a-b" {
			t.Errorf("without a folder: %s", got)
		}
		if err := os.CopyFS(dir, catalogd.Starter()); err != nil {
			t.Fatal(err)
		}
		tool := fmt.Sprintf("again_%d", round)
		harness.WriteFile(t, filepath.Join(dir, "catalog/again.cue"), "package catalog\n\n"+harness.JQTool(tool, "Back.", "x"))
		harness.Await(t, "the new folder to be served", func() bool { _, ok := l.Listing(t)[tool]; return ok })
		if s := r.Status(); !s.Healthy && !r.Settled(t) {
			t.Errorf("status %+v", s.Failed)
		}
	}
}

// configMap swaps the folder as Kubernetes does: what lies in it are symlinks into a folder that one symlink names,
// and that one is replaced.
func configMap(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mount")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(dir, 0o755))
	version := func(i int) string {
		name := fmt.Sprintf("..2026_%d", i)
		must(os.CopyFS(filepath.Join(dir, name), catalogd.Starter()))
		harness.WriteFile(t, filepath.Join(dir, name, "catalog/version.cue"), "package catalog\n\n"+harness.JQTool(fmt.Sprintf("version_%d", i), "One.", "x"))
		return name
	}
	swap := func(to string) {
		must(os.Symlink(to, filepath.Join(dir, "..data_tmp")))
		must(os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	old := version(0)
	swap(old)
	for _, name := range []string{"schema.cue", "cue.mod", "catalog", "policy"} {
		must(os.Symlink("..data/"+name, filepath.Join(dir, name)))
	}
	r := harness.Serve(t, catalogd.Config{Dir: dir})
	l := harness.Connect(t, r.URL, "default", harness.Modern)
	if _, ok := l.Listing(t)["version_0"]; !ok {
		t.Fatalf("lists %v", l.Listing(t))
	}
	for i := 1; i <= 3; i++ {
		next := version(i)
		swap(next)
		must(os.RemoveAll(filepath.Join(dir, old)))
		old = next
		harness.Await(t, "the swap", func() bool { _, ok := l.Listing(t)[fmt.Sprintf("version_%d", i)]; return ok })
		if _, ok := l.Listing(t)[fmt.Sprintf("version_%d", i-1)]; ok {
			t.Errorf("swap %d: the old one is still listed", i)
		}
	}
	if !r.Settled(t) {
		t.Errorf("%+v", r.Status().Failed)
	}
}

// gitCheckout switches between two branches of a repository that differ in a hundred files.
func gitCheckout(t *testing.T) {
	t.Parallel()
	dir := harness.Starter(t)
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "--quiet", "-m", "starter")
	commit := func(branch string, first, last int) {
		git(t, dir, "checkout", "--quiet", "-b", branch, "main")
		for i := first; i < last; i++ {
			harness.WriteFile(t, filepath.Join(dir, fmt.Sprintf("catalog/p%d/tools.cue", i)), "package catalog\n\n"+harness.JQTool(fmt.Sprintf("tool_%03d", i), "On "+branch+".", branch))
		}
		git(t, dir, "add", ".")
		git(t, dir, "commit", "--quiet", "-m", branch)
	}
	// 30 packages are in both, with other content.
	commit("left", 0, 60)
	commit("right", 30, 90)
	r := harness.Serve(t, catalogd.Config{Dir: dir})
	l := harness.Connect(t, r.URL, "default", harness.Modern)
	for i := range 4 {
		branch := []string{"left", "right"}[i%2]
		git(t, dir, "checkout", "--quiet", branch)
		if !r.Settled(t) {
			t.Fatalf("checkout of %s is refused: %+v", branch, r.Status().Failed)
		}
		shown := l.Listing(t)
		n := 0
		for name, description := range shown {
			if strings.HasPrefix(name, "tool_") {
				n++
				if description != "On "+branch+"." {
					t.Errorf("%s shows %s as %q", branch, name, description)
				}
			}
		}
		if n != 60 {
			t.Errorf("%s shows %d tools", branch, n)
		}
		if got := l.Answer(t.Context(), "tool_045", nil); got != branch {
			t.Errorf("tool_045 answers %q on %s", got, branch)
		}
	}
}

// git runs one command in a folder, with nobody's configuration.
func git(t testing.TB, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}
