package buildcache_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/loader"
)

func openRecord(t *testing.T, path, root string) *buildcache.Record {
	t.Helper()
	r, err := buildcache.OpenRecord(path, root, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// aSnapshot is one with a symlink, a lock, a policy and tags.
func aSnapshot(t *testing.T, text string) *loader.Snapshot {
	t.Helper()
	dir := t.TempDir()
	for name, data := range map[string]string{
		"schema.cue":              "package catalog\n",
		"catalog/a.cue":           text,
		"policy/call.rego":        "package catalogd.call\n",
		"policy/access/data.yaml": "",
		"catalog.lock.json":       "{}",
		"cue.mod/module.cue":      "module: \"example.com/c@v0\"\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(data), 0o644))
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a.cue", filepath.Join(dir, "catalog/b.cue")); err != nil {
		t.Fatal(err)
	}
	snap, problems := loader.Dir{Root: dir, Tags: []string{"env=prod", "debug"}}.Snapshot(t.Context())
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	return snap
}

// TestRecord: what is read back is what was saved, by another program too, and the last one counts.
func TestRecord(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state")
	r := openRecord(t, path, "/a/catalog")
	if a, err := r.Load(); a != nil || err != nil {
		t.Fatalf("at first: %v, %v", a, err)
	}
	one, two := aSnapshot(t, "package catalog\n"), aSnapshot(t, "package catalog\n// two\n")
	for _, want := range []buildcache.Adopted{
		{Snapshot: one, Summary: []byte(`{"a":1}`)},
		{Snapshot: two, Summary: []byte(`{"b":2}`)},
		{
			Snapshot: loader.Compiled(map[string][]byte{"policy/a.rego": []byte("package a\n")}, "sha256:build"),
			Build:    []byte("the build"), Summary: []byte(`{}`),
		},
	} {
		if err := r.Save(want); err != nil {
			t.Fatal(err)
		}
		got, err := openRecord(t, path, "/a/catalog").Load()
		if err != nil {
			t.Fatal(err)
		}
		if got.Snapshot.Digest() != want.Snapshot.Digest() || !bytes.Equal(got.Build, want.Build) ||
			!bytes.Equal(got.Summary, want.Summary) || !slices.Equal(got.Snapshot.Tags(), want.Snapshot.Tags()) {
			t.Errorf("got %s %q %s, want %s %q %s", got.Snapshot.Digest(), got.Build, got.Summary,
				want.Snapshot.Digest(), want.Build, want.Summary)
		}
		a, b := got.Snapshot.All(), want.Snapshot.All()
		if !slices.EqualFunc(a.Files, b.Files, func(x, y loader.SourceFile) bool {
			return x.Name == y.Name && x.Place == y.Place && bytes.Equal(x.Data, y.Data)
		}) {
			t.Errorf("got the files %v, want %v", a.Files, b.Files)
		}
	}
	if a, err := openRecord(t, path, "/another").Load(); a != nil || err != nil {
		t.Errorf("another root: %v, %v", a, err)
	}
}

// TestRecordConcurrentSaves: of two programs that save at once, one record remains, whole.
func TestRecordConcurrentSaves(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state")
	snaps := []*loader.Snapshot{
		aSnapshot(t, "package catalog\n"),
		aSnapshot(t, "package catalog\n"+strings.Repeat("// two\n", 1000)),
	}
	var all sync.WaitGroup
	for _, snap := range snaps {
		r := openRecord(t, path, "/a")
		all.Go(func() {
			for range 20 {
				if err := r.Save(buildcache.Adopted{Snapshot: snap, Summary: []byte("{}")}); err != nil {
					t.Error(err)
				}
				if _, err := r.Load(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// TestRecordDamaged: a record that was changed or cut anywhere is an error.
func TestRecordDamaged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state")
	r := openRecord(t, path, "/a")
	saved := buildcache.Adopted{Snapshot: aSnapshot(t, "package catalog\n"), Summary: []byte("{}")}
	if err := r.Save(saved); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(r.Path())
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(r.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	refused := func(what string, data []byte) {
		t.Helper()
		if err := os.WriteFile(r.Path(), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if a, err := r.Load(); a != nil || err == nil {
			t.Errorf("%s: got %v, %v", what, a, err)
		}
	}
	for i := range whole {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1
		if i%7 == 0 || i < 100 {
			refused("a flipped byte", flipped)
			refused("cut short", whole[:i])
		}
	}
	refused("longer", append(bytes.Clone(whole), 'x'))
	// The record of another root, under this one's name.
	other := openRecord(t, path, "/b")
	err = errors.Join(os.MkdirAll(filepath.Dir(other.Path()), 0o700), os.WriteFile(other.Path(), whole, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	const want = "it is of the catalog /a, and this is /b"
	if _, err := other.Load(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the record of another root: got %v, want %q", err, want)
	}
	// The file as it was written loads again, unless others may write it.
	if err := errors.Join(os.WriteFile(r.Path(), whole, 0o600), os.Chmod(r.Path(), 0o620)); err != nil {
		t.Fatal(err)
	}
	if a, err := r.Load(); a != nil || err == nil || !strings.Contains(err.Error(), "others may write it (mode 0620)") {
		t.Errorf("writable by others: %v, %v", a, err)
	}
	if err := os.Chmod(r.Path(), 0o600); err != nil {
		t.Fatal(err)
	}
	if a, err := r.Load(); a == nil || err != nil {
		t.Errorf("put back: %v, %v", a, err)
	}
}

// TestRecordNoDirectory: a directory that can't exist has no record; one that can't be looked at may have
// one.
func TestRecordNoDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below")} {
		if _, err := buildcache.OpenRecord(path, "/a", false); !errors.Is(err, buildcache.ErrNoDirectory) {
			t.Errorf("%s: %v", path, err)
		}
	}
	missing := filepath.Join(dir, "missing")
	r, err := buildcache.OpenRecord(missing, "/a", true)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := r.Load(); a != nil || err != nil {
		t.Errorf("read-only, no directory: got %v, %v, want nothing", a, err)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("opening it read-only made the directory")
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	_, err = buildcache.OpenRecord(loop, "/a", false)
	if err == nil || errors.Is(err, buildcache.ErrNoDirectory) {
		t.Errorf("a loop of links: got %v, want an error that is not ErrNoDirectory", err)
	}
}

// TestRecordPaths: what was saved by one path of a catalog is found by any other, the later of two counts,
// and a link that is pointed at another catalog keeps what it led to before.
func TestRecordPaths(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	link := func(to, name string) {
		t.Helper()
		if err := os.Remove(at(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(at("one"), 0o700), os.Mkdir(at("two"), 0o700), os.Mkdir(at("three"), 0o700)); err != nil {
		t.Fatal(err)
	}
	link("one", "link")
	link("link", "further")
	link(".", "up")
	snap := aSnapshot(t, "package catalog\n")
	save := func(name, summary string) {
		t.Helper()
		adopted := buildcache.Adopted{Snapshot: snap, Summary: []byte(`"` + summary + `"`)}
		if err := openRecord(t, at("state"), at(name)).Save(adopted); err != nil {
			t.Fatal(err)
		}
	}
	want := func(name, summary string) *buildcache.Adopted {
		t.Helper()
		a, err := openRecord(t, at("state"), at(name)).Load()
		switch {
		case err != nil:
			t.Fatal(err)
		case summary == "" && a != nil:
			t.Errorf("%s has %s, want nothing", name, a.Summary)
		case summary != "" && (a == nil || string(a.Summary) != `"`+summary+`"`):
			t.Errorf("%s has %+v, want %s", name, a, summary)
		}
		return a
	}
	want("link", "")
	save("one", "first")
	for _, name := range []string{"one", "link", "further", "up/link", "up/up/one", "one/../two/../one/."} {
		want(name, "first")
	}
	want("two", "")
	save("further", "second")
	want("one", "second")
	save("one", "third")
	want("further", "third")

	// The link's own is what it had when something was saved or spread through it.
	link("two", "link")
	want("link", "")
	want("further", "second")
	want("two", "")
	link("one", "link")
	r := openRecord(t, at("state"), at("link"))
	if err := r.Spread(want("link", "third")); err != nil {
		t.Fatal(err)
	}
	link("two", "link")
	if err := r.Spread(want("link", "third")); err != nil {
		t.Fatal(err)
	}
	want("two", "third")

	// What is known to be superseded is that under every name, by what is spread too, until something is saved.
	superseded := func(name string) bool {
		t.Helper()
		a, err := openRecord(t, at("state"), at(name)).Load()
		if err != nil || a == nil {
			t.Fatalf("%s: %v, %v", name, a, err)
		}
		return a.Superseded
	}
	if err := r.Supersede(); err != nil {
		t.Fatal(err)
	}
	link("three", "link")
	if !superseded("link") {
		t.Error("a link that leads elsewhere now has forgotten it")
	}
	if err := r.Spread(want("link", "third")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "two", "three"} {
		if !superseded(name) {
			t.Errorf("%s is not known to be superseded", name)
		}
	}
	save("link", "fourth")
	if superseded("link") || superseded("three") {
		t.Error("what was saved is superseded")
	}
	link("two", "link")
	save("link", "third")

	// Neither is ignored when it is damaged.
	for _, name := range []string{"two", "link"} {
		file := openRecord(t, at("state"), at(name)).Path()
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, whole[:len(whole)-1], 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := openRecord(t, at("state"), at("link")).Load()
		if err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s damaged: got %+v, %v, want an error with %s", name, a, err, file)
		}
		if err := os.WriteFile(file, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A path whose real path can't be found may have a record.
	link("loop", "loop")
	if a, err := openRecord(t, at("state"), at("loop")).Load(); err == nil {
		t.Errorf("a loop of links: %+v", a)
	}
}
