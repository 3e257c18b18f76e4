package loader_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/loader"
)

func paths(t testing.TB, s *loader.Snapshot) []string {
	t.Helper()
	var out []string
	err := fs.WalkDir(s.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t testing.TB, s *loader.Snapshot, name string) string {
	t.Helper()
	data, err := fs.ReadFile(s.FS(), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func snapshot(t testing.TB, src loader.Source) (*loader.Snapshot, string) {
	t.Helper()
	s, problems := src.Snapshot(context.Background())
	return s, summary(problems)
}

// snapshotFiles holds what is part of a catalog, the same for a directory and for a tree.
func snapshotFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{
		"schema.cue", "cue.mod/module.cue", "cue.mod/local-module.cue", "cue.mod/pkg/x.y/z.cue",
		"catalog/a.cue", "catalog/a.cue~", "catalog/.a.cue.swp", "catalog/.#a.cue", "catalog/#a.cue#", "catalog/4913",
		"catalog/a.cue.bak", "catalog/_off.cue", "catalog/_off/a.cue", "catalog/.hidden/a.cue", "catalog/deep/er/b.cue",
		"node_modules/x/a.cue", "docs/readme.md", "data.json",
		"policy/a.rego", "policy/a_test.rego", "policy/_b.rego", "policy/_lib/c.rego", "policy/trust/data.yaml",
		"policy/data.json", "policy/x/data.yml", "policy/other.json", "policy/.hidden.rego", "catalog/a.rego",
		"other/cue.mod/module.cue", "other/a.cue",
	} {
		write(t, filepath.Join(root, filepath.FromSlash(name)), "// "+name)
	}
	want := []string{
		"catalog/a.cue", "catalog/deep/er/b.cue", "cue.mod/module.cue",
		"policy/_b.rego", "policy/_lib/c.rego", "policy/a.rego", "policy/a_test.rego", "policy/data.json",
		"policy/other.json", "policy/trust/data.yaml", "policy/x/data.yml", "schema.cue",
	}
	var digests []string
	for _, src := range []loader.Source{loader.Dir{Root: root}, loader.Tree{FS: os.DirFS(root)}} {
		s, problems := snapshot(t, src)
		if problems != "" {
			t.Errorf("%T: problems:\n%s", src, problems)
		}
		if diff := cmp.Diff(want, paths(t, s)); diff != "" {
			t.Errorf("%T: files (-want +got):\n%s", src, diff)
		}
		if err := fstest.TestFS(s.FS(), want...); err != nil {
			t.Errorf("%T: the snapshot is no proper file system: %v", src, err)
		}
		digests = append(digests, s.Digest())
	}
	if digests[0] != digests[1] {
		t.Errorf("a directory and its tree have different digests: %v", digests)
	}
}

func TestSnapshotDigest(t *testing.T) {
	t.Parallel()
	digest := func(files map[string]string, tags ...string) string {
		m := fstest.MapFS{}
		for name, data := range files {
			m[name] = &fstest.MapFile{Data: []byte(data)}
		}
		s, _ := snapshot(t, loader.Tree{FS: m, Tags: tags})
		return s.Digest()
	}
	base := map[string]string{"a.cue": "x", "policy/a.rego": "y", "policy/data.json": "{}"}
	if digest(base) != digest(map[string]string{"a.cue": "x", "policy/a.rego": "y", "policy/data.json": "{}"}) {
		t.Error("equal files have different digests")
	}
	if digest(base, "a=1", "b=2") != digest(base, "b=2", "a=1") {
		t.Error("the order of tags matters")
	}
	seen := map[string]bool{digest(base): true}
	for i, other := range []string{
		digest(map[string]string{"a.cue": "x ", "policy/a.rego": "y", "policy/data.json": "{}"}),
		digest(map[string]string{"a.cue": "x", "policy/a.rego": "y ", "policy/data.json": "{}"}),
		digest(map[string]string{"a.cue": "x", "policy/a.rego": "y", "policy/data.json": "[]"}),
		digest(map[string]string{"b.cue": "x", "policy/a.rego": "y", "policy/data.json": "{}"}),
		digest(map[string]string{"a.cue": "x", "policy/a.rego": "y"}),
		digest(base, "env=prod"),
		digest(base, "env=test"),
	} {
		if seen[other] {
			t.Errorf("change %d left the digest as it was", i)
		}
		seen[other] = true
	}
}

func snapshotLimits(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "a.cue"), strings.Repeat("a", 60))
	write(t, filepath.Join(root, "b.cue"), strings.Repeat("b", 60))
	write(t, filepath.Join(root, "c.txt"), strings.Repeat("c", 6000))
	for _, c := range []struct {
		limits loader.Limits
		want   string
		files  []string
	}{
		{loader.Limits{}, "", []string{"a.cue", "b.cue"}},
		{loader.Limits{FileBytes: 60, CatalogBytes: 120, Files: 2}, "", []string{"a.cue", "b.cue"}},
		{loader.Limits{FileBytes: 59}, "a.cue: file_too_large\nb.cue: file_too_large\n", nil},
		{loader.Limits{CatalogBytes: 119}, "b.cue: catalog_too_large\n", []string{"a.cue"}},
		{loader.Limits{Files: 1}, ".: too_many_files\n", []string{"a.cue"}},
	} {
		for _, src := range []loader.Source{loader.Dir{Root: root, Limits: c.limits}, loader.Tree{FS: os.DirFS(root), Limits: c.limits}} {
			s, problems := snapshot(t, src)
			if problems != c.want || !slices.Equal(paths(t, s), c.files) {
				t.Errorf("%T %+v: got %q with %v, want %q with %v", src, c.limits, problems, paths(t, s), c.want, c.files)
			}
		}
	}
}

func snapshotText(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "bom.cue"), "\ufeffpackage catalog\n")
	write(t, filepath.Join(root, "crlf.cue"), "package catalog\r\n")
	write(t, filepath.Join(root, "empty.cue"), "")
	write(t, filepath.Join(root, "latin1.cue"), "// ok\n// caf\xe9\n")
	write(t, filepath.Join(root, "nul.cue"), "// ok\n// ok\n// \x00\n")
	write(t, filepath.Join(root, "utf16.cue"), "\xff\xfep\x00a\x00")
	s, problems := snapshot(t, loader.Dir{Root: root})
	if want := "latin1.cue:2: not_utf8\nnul.cue:3: not_utf8\nutf16.cue:1: not_utf8\n"; problems != want {
		t.Errorf("got %q, want %q", problems, want)
	}
	if got := paths(t, s); !slices.Equal(got, []string{"bom.cue", "crlf.cue", "empty.cue"}) {
		t.Errorf("got %v", got)
	}
}

func snapshotLinks(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside.cue")
	write(t, outside, "secret")
	root := t.TempDir()
	write(t, filepath.Join(root, "catalog", "a.cue"), "a")
	write(t, filepath.Join(root, "..1", "c.cue"), "c")
	for name, target := range map[string]string{
		"..data":             "..1",
		"c.cue":              "..data/c.cue",
		"inside.cue":         "catalog/a.cue",
		"other":              "catalog",
		"catalog/out.cue":    outside,
		"catalog/outdir":     filepath.Dir(outside),
		"catalog/broken.cue": "nowhere.cue",
		"catalog/self.cue":   "self.cue",
		"catalog/up":         "..",
		"unrelated.txt":      "nowhere.txt",
		"also-unrelated":     outside,
	} {
		must(t, os.Symlink(target, filepath.Join(root, filepath.FromSlash(name))))
	}
	s, problems := snapshot(t, loader.Dir{Root: root})
	want := "catalog/broken.cue: bad_symlink\ncatalog/out.cue: bad_symlink\ncatalog/outdir: bad_symlink\ncatalog/self.cue: bad_symlink\n" +
		"catalog/up: bad_symlink\nother/broken.cue: bad_symlink\nother/out.cue: bad_symlink\nother/outdir: bad_symlink\n" +
		"other/self.cue: bad_symlink\nother/up: bad_symlink\n"
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if got := paths(t, s); !slices.Equal(got, []string{"c.cue", "catalog/a.cue", "inside.cue", "other/a.cue"}) {
		t.Errorf("got %v", got)
	}
	if got := read(t, s, "c.cue"); got != "c" {
		t.Errorf("c.cue is %q", got)
	}
}

// snapshotSpecial has files that are none: reading one of them would never end.
func snapshotSpecial(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "a.cue"), "a")
	must(t, syscall.Mkfifo(filepath.Join(root, "fifo.cue"), 0o644))
	must(t, os.Symlink("fifo.cue", filepath.Join(root, "linked.cue")))
	must(t, os.Symlink("/dev/zero", filepath.Join(root, "device.cue")))
	must(t, os.MkdirAll(filepath.Join(root, "dir.cue"), 0o755))
	short, err := os.MkdirTemp("", "s")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(short) })
	l, err := net.Listen("unix", filepath.Join(short, "sock.cue"))
	must(t, err)
	defer l.Close()
	must(t, os.Symlink(short, filepath.Join(root, "sock")))

	s, problems := snapshot(t, loader.Dir{Root: root})
	if want := "device.cue: bad_symlink\nfifo.cue: not_regular\nlinked.cue: not_regular\nsock: bad_symlink\n"; problems != want {
		t.Errorf("got %q, want %q", problems, want)
	}
	if got := paths(t, s); !slices.Equal(got, []string{"a.cue"}) {
		t.Errorf("got %v", got)
	}
	if _, problems := snapshot(t, loader.Dir{Root: short}); problems != "sock.cue: not_regular\n" {
		t.Errorf("a socket: got %q", problems)
	}
}

func snapshotFileNames(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	long := strings.Repeat("l", 251) + ".cue"
	for _, name := range []string{"ok ñ.cue", long, "bad\xff.cue", "esc\x1b[31m.cue", "line\n.cue", "rtl\u202e.cue", "esc\x1b.txt"} {
		write(t, filepath.Join(root, name), "x")
	}
	want := "bad\\xff.cue: not_utf8\nesc\\x1b[31m.cue: not_utf8\nline\\n.cue: not_utf8\nrtl\\u202e.cue: not_utf8\n"
	for _, src := range []loader.Source{loader.Dir{Root: root}, loader.Tree{FS: os.DirFS(root)}} {
		s, problems := snapshot(t, src)
		if problems != want {
			t.Errorf("%T: got %q, want %q", src, problems, want)
		}
		if got := paths(t, s); !slices.Equal(got, []string{long, "ok ñ.cue"}) {
			t.Errorf("%T: got %v", src, got)
		}
	}
}

// T24: whoever can write a file of the policy decides; that is said, and serves on.
func snapshotWorldWritable(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, mode := range map[string]os.FileMode{"catalog/a.cue": 0o644, "catalog/group.cue": 0o664, "policy/list.rego": 0o666} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("package catalog\n"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask says
			t.Fatal(err)
		}
	}
	for dir, mode := range map[string]os.FileMode{"catalog": 0o777, "policy": 0o775, "notes": 0o777} {
		path := filepath.Join(root, dir)
		if err := errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	s, problems := loader.Dir{Root: root}.Snapshot(context.Background())
	if s == nil || problems.HasErrors() {
		t.Fatalf("snapshot %v, problems %v", s, problems)
	}
	const want = "catalog: world_writable: warning: every user of this machine can add files to the directory, or replace them (mode 0777); chmod o-w it\n" +
		"policy/list.rego: world_writable: warning: every user of this machine can change the file (mode 0666); chmod o-w it\n"
	got := ""
	for _, p := range problems {
		got += p.String() + "\n"
	}
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestSnapshotNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "a.cue"), "a")
	for _, dir := range []string{filepath.Join(root, "missing"), filepath.Join(root, "a.cue")} {
		s, problems := snapshot(t, loader.Dir{Root: dir})
		if s != nil || problems != ".: no_catalog\n" {
			t.Errorf("%s: got %v and %q", dir, s, problems)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if s, _ := (loader.Dir{Root: root}).Snapshot(ctx); s != nil {
		t.Error("a snapshot was taken although its context had ended")
	}
}

// TestSnapshotImmutable changes what a caller gets, and the disk, behind a snapshot's back.
func TestSnapshotImmutable(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "a.cue"), "before")
	s, _ := snapshot(t, loader.Dir{Root: root, Tags: []string{"a=1"}})
	data, err := fs.ReadFile(s.FS(), "a.cue")
	must(t, err)
	data[0] = 'X'
	s.Tags()[0] = "b=2"
	write(t, filepath.Join(root, "a.cue"), "after")
	if got := read(t, s, "a.cue"); got != "before" {
		t.Errorf("a.cue is %q", got)
	}
	if got := s.Tags(); got[0] != "a=1" {
		t.Errorf("tags are %v", got)
	}
}
