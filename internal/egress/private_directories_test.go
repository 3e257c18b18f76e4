package egress_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/egress"
)

// home is the HOME of a child that is started.
func home(t *testing.T, homes *egress.Homes, owner, entry string) string {
	t.Helper()
	dir := given(t, env(t), trust.Terms{Entry: entry}, egress.Command{Homes: homes, Owner: owner})["HOME"]
	if !filepath.IsAbs(dir) {
		t.Fatalf("HOME is %q", dir)
	}
	return dir
}

// A private directory is empty at first, the user's alone, and kept for the same server or tool and trust entry.
func TestHomesAreKept(t *testing.T) {
	kept := filepath.Join(realDir(t), "state", "children")
	homes := egress.NewHomes(kept, realDir(t))
	first := home(t, homes, "tool clock", "clock")
	if !strings.HasPrefix(first, kept+"/tool-clock-") {
		t.Errorf("HOME is %s, and not below %s", first, kept)
	}
	if found, err := os.ReadDir(first); err != nil || len(found) > 0 {
		t.Errorf("it is not empty: %v, %v", found, err)
	}
	for dir := first; dir != filepath.Dir(filepath.Dir(kept)); dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info.Mode(), err)
		}
	}
	put(t, filepath.Join(first, "cache"), "kept")
	homes.Close()
	again := egress.NewHomes(kept, "")
	if home(t, again, "tool clock", "clock") != first {
		t.Error("another HOME after a restart")
	}
	if b, err := os.ReadFile(filepath.Join(first, "cache")); err != nil || string(b) != "kept" {
		t.Errorf("what was left there: %q, %v", b, err)
	}
	seen := map[string]bool{first: true}
	for _, other := range [][2]string{{"tool clock", "other"}, {"tool clock2", "clock"}, {"server clock", "clock"}, {"tool ../../clock", "clock"}, {"", ""}} {
		dir := home(t, again, other[0], other[1])
		if seen[dir] || !strings.HasPrefix(dir, kept+"/") {
			t.Errorf("%v has %s", other, dir)
		}
		seen[dir] = true
	}
}

// Without a directory that keeps them, or with one in the catalog's own tree, private directories are temporary.
func TestHomesAreTemporary(t *testing.T) {
	root := realDir(t)
	link := filepath.Join(realDir(t), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", root, filepath.Join(root, "state"), filepath.Join(link, "state"), filepath.Join(root, "file", "state")} {
		put(t, filepath.Join(root, "file"), "")
		homes := egress.NewHomes(dir, root)
		first := home(t, homes, "tool a", "a")
		if strings.HasPrefix(first, root) || home(t, homes, "tool a", "a") != first {
			t.Errorf("%q: HOME is %s", dir, first)
		}
		homes.Close()
		if _, err := os.Stat(first); !os.IsNotExist(err) {
			t.Errorf("%q: %s is still there", dir, first)
		}
	}
	// A child of nobody in particular has a directory of its own, as long as it runs.
	if _, err := os.Stat(home(t, nil, "", "")); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	// Programs look for files in the parents of their directories, so none may be the catalog's.
	t.Setenv("TMPDIR", root)
	_, err := start(t, env(t), trust.Terms{Interpreter: true}, egress.Command{Root: root, Args: []string{"-0"}})
	if err == nil || !strings.Contains(err.Error(), "set TMPDIR") {
		t.Errorf("in the tree: %v", err)
	}
	if found, err := filepath.Glob(filepath.Join(root, "catalogd-*")); err != nil || len(found) > 0 {
		t.Errorf("left in the tree: %v, %v", found, err)
	}
}
