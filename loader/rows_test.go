package loader_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/catalogd/catalogd/loader"
)

// row is one test under the number that the lists of bad inputs and threats give to what it holds against
// (docs/robustness.md).
type row struct {
	name string
	test func(*testing.T)
}

// TestBadInput has the rows of sections A and C that files alone decide about.
func TestBadInput(t *testing.T) {
	t.Parallel()
	loadCases(t, true)
	crowded(t)
	for _, r := range []row{
		{"A15/2,000 tools", twoThousand},
		{"A16/sizes", sizes},
		{"A16/limits", snapshotLimits},
		{"A19/NUL and bytes that are no text", snapshotText},
		{"A21/UTF-16", snapshotText},
		{"A28/links and copies", compileOnePlace},
		{"C1/truncated, then written", watchTruncate},
		{"C2/editors", watchFiles},
		{"C2/what editors leave", snapshotFiles},
		{"C3/renamed over 100 times", renamedOver},
		{"C5/the last state wins", checkout},
		{"C6/a tool goes with its file", fileGoes},
		{"C7/the directory goes and returns", watchRoot},
		{"C9/links", snapshotLinks},
		{"C9/no files", snapshotSpecial},
		{"C9/unreadable", unreadable},
		{"C11/recovers", compileRecovers},
		{"C14/no descriptors", watchWithoutEvents},
		{"C19/no events", watchPoll},
		{"C19/a clock that jumps", clockJumps},
		{"C20/names", snapshotFileNames},
		{"C20/only files of the catalog", snapshotFiles},
		{"C20/names that differ in case", caseOnly},
	} {
		t.Run(r.name, r.test)
	}
}

// TestThreat has the threats that the loader holds against.
func TestThreat(t *testing.T) {
	t.Parallel()
	for _, r := range []row{
		{"T12/one name in two places", compileOnePlace},
		{"T12/names that look alike", lookalikes},
		{"T16/too many tools", compileTooManyTools},
		{"T16/limits", snapshotLimits},
		{"T17/what changes while it is read", torn},
		{"T24/world-writable", snapshotWorldWritable},
		{"T24/links out of the root", snapshotLinks},
	} {
		t.Run(r.name, r.test)
	}
}

func twoThousand(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("package catalog\n")
	for i := range 2000 {
		b.WriteString(plainTool(fmt.Sprint("t", i), "x"))
	}
	build, problems := load(t, compiler(t), loader.Tree{FS: tree(t, map[string]string{"catalog/a.cue": b.String()})})
	if len(problems) > 0 || len(build.Tools) != 2000 {
		t.Errorf("%v", problems)
	}
}

// The limits that stand where none are given.
func sizes(t *testing.T) {
	t.Parallel()
	comment := func(n int) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("package catalog\n//" + strings.Repeat("x", n) + "\n")}
	}
	many := fstest.MapFS{}
	for i := range 9 {
		many[fmt.Sprintf("catalog/%d.cue", i)] = comment(1<<20 - 100)
	}
	files := fstest.MapFS{}
	for i := range 5001 {
		files[fmt.Sprintf("catalog/%d.cue", i)] = comment(0)
	}
	for want, fsys := range map[string]fs.FS{
		"catalog/a.cue: file_too_large\n":    fstest.MapFS{"catalog/a.cue": comment(10 << 20)},
		"catalog/b.cue: file_too_large\n":    fstest.MapFS{"catalog/b.cue": comment(1 << 20)},
		"catalog/8.cue: catalog_too_large\n": many,
		".: too_many_files\n":                files,
		"":                                   fstest.MapFS{"catalog/a.cue": comment(1<<20 - 100)},
	} {
		if _, problems := snapshot(t, loader.Tree{FS: fsys}); problems != want {
			t.Errorf("got %q, want %q", problems, want)
		}
	}
}

func renamedOver(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "catalog")
	file := filepath.Join(root, "catalog", "x.cue")
	write(t, file, "0")
	w := watch(t, root, loader.WatchConfig{Quiet: 1, Poll: fast.Poll})
	for i := range 100 {
		next := filepath.Join(root, "catalog", ".x.cue.tmp")
		write(t, next, fmt.Sprint(i+1))
		must(t, os.Rename(next, file))
		w.holds("catalog/x.cue", fmt.Sprint(i+1))
	}
}

// A thousand files that change at once are reported a few times, and the last state is seen.
func checkout(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "catalog")
	put := func(content string) {
		for i := range 1000 {
			write(t, filepath.Join(root, "catalog", fmt.Sprintf("d%d", i%20), fmt.Sprintf("f%d.cue", i)), content)
		}
	}
	put("before")
	w := watch(t, root, fast)
	put("after")
	w.until("the checkout", func(now map[string]string) bool {
		for _, content := range now {
			if content != "after" {
				return false
			}
		}
		return len(now) == 1000
	})
}

// A change is seen whatever time it claims to be of: without events, and with as many bytes as before.
func clockJumps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, outside := filepath.Join(dir, "catalog"), filepath.Join(dir, "x.cue")
	write(t, filepath.Join(root, "x.cue"), "0")
	must(t, os.Link(filepath.Join(root, "x.cue"), outside))
	w := watch(t, root, loader.WatchConfig{Quiet: 10 * time.Millisecond, Poll: 20 * time.Millisecond})
	w.holds("x.cue", "0")
	now := time.Now()
	for i, at := range []time.Time{now.Add(-time.Hour), now.Add(24 * time.Hour), now, {}, time.Unix(0, 0)} {
		content := fmt.Sprint(i + 1)
		write(t, outside, content)
		must(t, os.Chtimes(outside, at, at))
		w.holds("x.cue", content)
	}
}

func fileGoes(t *testing.T) {
	t.Parallel()
	c := compiler(t)
	both := map[string]string{"catalog/a/a.cue": "package catalog\n" + plainTool("a", "a"), "catalog/b.cue": "package catalog\n" + plainTool("b", "b")}
	sound(t, c, both)
	for gone, want := range map[string]string{"catalog/a/a.cue": "b", "catalog/b.cue": "a"} {
		rest := map[string]string{}
		for name, data := range both {
			if name != gone {
				rest[name] = data
			}
		}
		build := sound(t, c, rest)
		if len(build.Tools) != 1 || build.Tools[0].Name != want {
			t.Errorf("without %s: %s", gone, listing(build))
		}
	}
}

// Root reads everything, so that the file system is one that refuses.
func unreadable(t *testing.T) {
	t.Parallel()
	for _, fail := range []string{"catalog/a.cue", "catalog", "policy"} {
		fsys := refusing{fstest.MapFS{
			"catalog/a.cue": {Data: []byte("package catalog\n")}, "catalog/b.cue": {Data: []byte("package catalog\n")}, "policy/a.rego": {Data: []byte("package a\n")},
		}, fail}
		if _, problems := snapshot(t, loader.Tree{FS: fsys}); problems != fail+": unreadable\n" {
			t.Errorf("%s: %q", fail, problems)
		}
	}
	if os.Getuid() == 0 {
		return
	}
	root := t.TempDir()
	write(t, filepath.Join(root, "a.cue"), "package catalog\n")
	must(t, os.Chmod(filepath.Join(root, "a.cue"), 0))
	if _, problems := snapshot(t, loader.Dir{Root: root}); problems != "a.cue: unreadable\n" {
		t.Errorf("%q", problems)
	}
}

type refusing struct {
	fstest.MapFS
	name string
}

var errRefused = errors.New("the disk is on fire")

func (r refusing) Open(name string) (fs.File, error) {
	if name == r.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errRefused}
	}
	return r.MapFS.Open(name)
}

func (r refusing) ReadFile(name string) ([]byte, error) {
	if name == r.name {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errRefused}
	}
	return r.MapFS.ReadFile(name)
}

func (r refusing) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == r.name {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errRefused}
	}
	return r.MapFS.ReadDir(name)
}

// Files whose names differ in case alone are two files where the file system has two.
func caseOnly(t *testing.T) {
	t.Parallel()
	build := sound(t, compiler(t), map[string]string{
		"catalog/a.cue": "package catalog\n" + plainTool("a", "a"), "catalog/A.cue": "package catalog\n" + plainTool("b", "b"),
		"catalog/.c.cue": "]", "catalog/d.cue.bak": "]", "catalog/e.CUE": "]",
	})
	if len(build.Tools) != 2 {
		t.Error(listing(build))
	}
}

// Every name here can be taken for search or for payments: it is refused, or named beside what it looks like.
func lookalikes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Search", "SEARCH", "sEARCH", "s\u0435arch", "search ", " search", "se\u0430rch", "s\u0065\u0301arch", "ｓearch", "search\u200b", "search\ufeff",
		"\u202esearch", "search\t", "se\u00adarch", "sear\u212ah", "\u017fearch",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := load(t, compiler(t), loader.Tree{FS: tree(t, map[string]string{
				"catalog/a.cue": "package catalog\n" + plainTool("search", "a"),
				"catalog/b.cue": fmt.Sprintf("package catalog\n\ntools: %q: {description: \"x\", effect: \"read\", binding: jq: program: \".\"}\n", name),
			})})
			if !problems.HasErrors() {
				t.Fatal("it is a tool")
			}
			if code := string(problems[0].Code); code != "bad_name" && code != "name_confusable" {
				t.Errorf("%v", problems)
			}
		})
	}
}

// What is rewritten while the snapshot is taken is in it as it was or as it is, never in half. A snapshot that can't be
// taken because the writer doesn't rest says so.
func torn(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const size = 200_000
	put := func(c string) {
		for _, name := range []string{"a.cue", "b.cue"} {
			next := filepath.Join(root, "."+name+".tmp")
			write(t, next, strings.Repeat(c, size))
			must(t, os.Rename(next, filepath.Join(root, name)))
		}
	}
	put("x")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			put(string(rune('a' + i%26)))
		}
	}()
	for range 50 {
		s, problems := snapshot(t, loader.Dir{Root: root})
		if s == nil {
			if problems != ".: unreadable\n" {
				t.Errorf("%s", problems)
			}
			continue
		}
		for _, name := range paths(t, s) {
			data := read(t, s, name)
			if len(data) != size || strings.Count(data, data[:1]) != size {
				t.Errorf("%s is torn", name)
			}
		}
	}
	stop()
	<-done
	s, problems := snapshot(t, loader.Dir{Root: root})
	if problems != "" || read(t, s, "a.cue") != read(t, s, "b.cue") || !slices.Equal(paths(t, s), []string{"a.cue", "b.cue"}) {
		t.Errorf("%s", problems)
	}
}
