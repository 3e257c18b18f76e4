package gitfs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/catalogd/catalogd/internal/gitfs"
)

// repository is a real git repository in a directory of the test's.
type repository struct {
	t   *testing.T
	dir string
	git *git.Repository
	now time.Time
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	dir := t.TempDir()
	r, err := git.PlainInit(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	return &repository{t, dir, r, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (r *repository) write(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repository) link(name, target string) {
	r.t.Helper()
	if err := os.Symlink(target, filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

// commit takes everything that is there, and returns the commit's hash.
func (r *repository) commit(message string) string {
	r.t.Helper()
	worktree, err := r.git.Worktree()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := worktree.AddWithOptions(&git.AddOptions{All: true}); err != nil {
		r.t.Fatal(err)
	}
	r.now = r.now.Add(time.Hour)
	who := &object.Signature{Name: "Ann", Email: "ann@example.com", When: r.now}
	hash, err := worktree.Commit(message, &git.CommitOptions{Author: who, Committer: who})
	if err != nil {
		r.t.Fatal(err)
	}
	return hash.String()
}

func read(t *testing.T, fsys fs.FS, name string) string {
	t.Helper()
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestOpen(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.write("tools/a.cue", "first")
	r.write("README.md", "outside")
	first := r.commit("one")
	r.write("tools/a.cue", "second")
	r.write("tools/deep/er/b.cue", "new")
	second := r.commit("two")
	if _, err := r.git.CreateTag("v1", plumbing.NewHash(first), nil); err != nil {
		t.Fatal(err)
	}
	r.write("tools/a.cue", "not committed")

	for name, want := range map[string]struct{ commit, content string }{
		"HEAD": {second, "second"}, "HEAD~1": {first, "first"}, "v1": {first, "first"}, "master": {second, "second"},
		second[:8]: {second, "second"}, first: {first, "first"},
	} {
		got, err := gitfs.Open(filepath.Join(r.dir, "tools"), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Commit != want.commit || read(t, got.FS, "a.cue") != want.content || got.Name != name {
			t.Errorf("%s is %s with %q, want %s with %q", name, got.Commit, read(t, got.FS, "a.cue"), want.commit, want.content)
		}
	}
	whole, err := gitfs.Open(r.dir, "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(whole.FS, "README.md", "tools/a.cue", "tools/deep/er/b.cue"); err != nil {
		t.Error(err)
	}
	if want := r.now; !whole.Time.Equal(want) {
		t.Errorf("committed at %v, want %v", whole.Time, want)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.write("a.cue", "x")
	r.commit("one")
	r.write("later/a.cue", "x")
	r.commit("two")
	for _, c := range []struct{ dir, name, want string }{
		{r.dir, "nosuch", "neither a directory nor a revision"},
		{r.dir, "deadbeef", "neither a directory nor a revision"},
		{filepath.Join(r.dir, "later"), "HEAD~1", "HEAD~1 had no directory later"},
		{t.TempDir(), "HEAD", "is not in a git repository"},
	} {
		if _, err := gitfs.Open(c.dir, c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in %s: %v, want %q", c.name, c.dir, err, c.want)
		}
	}
}

// A repository without a worktree has its root as the directory.
func TestOpenBare(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.write("a.cue", "x")
	r.commit("one")
	bare := t.TempDir()
	if _, err := git.PlainClone(bare, true, &git.CloneOptions{URL: r.dir}); err != nil {
		t.Fatal(err)
	}
	got, err := gitfs.Open(bare, "master")
	if err != nil {
		t.Fatal(err)
	}
	if read(t, got.FS, "a.cue") != "x" {
		t.Error("a.cue is another file")
	}
}

// A link to a file is the file. One that leads out, round in a circle, to nothing or to a directory is irregular.
func TestLinks(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.write("real/a.cue", "content")
	r.link("a.cue", "real/a.cue")
	r.link("twice.cue", "a.cue")
	r.link("dir.cue", "real")
	r.link("out.cue", "../secret")
	r.link("abs.cue", "/etc/hostname")
	r.link("loop.cue", "loop.cue")
	r.link("gone.cue", "nothing")
	r.commit("one")
	got, err := gitfs.Open(r.dir, "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.cue", "twice.cue"} {
		if text := read(t, got.FS, name); text != "content" {
			t.Errorf("%s is %q", name, text)
		}
	}
	entries, err := fs.ReadDir(got.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	var irregular []string
	for _, e := range entries {
		if !e.Type().IsRegular() && !e.IsDir() {
			irregular = append(irregular, e.Name())
			if _, err := fs.ReadFile(got.FS, e.Name()); err == nil {
				t.Errorf("%s can be read", e.Name())
			}
		}
	}
	if want := []string{"abs.cue", "dir.cue", "gone.cue", "loop.cue", "out.cue"}; !slices.Equal(irregular, want) {
		t.Errorf("irregular are %v, want %v", irregular, want)
	}
}
