package loader_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/catalogd/catalogd/loader"
)

// watching is a catalog on disk under Watch. Its changed takes a snapshot, as the daemon does, so that a test waits for
// content and not for calls.
type watching struct {
	t    *testing.T
	root string

	mu    sync.Mutex
	seen  chan struct{}
	now   map[string]string
	calls int
	empty bool // x.cue was once seen empty
	stop  func()
}

func watch(t *testing.T, root string, cfg loader.WatchConfig) *watching {
	t.Helper()
	w := &watching{t: t, root: root, seen: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- loader.Watch(ctx, root, cfg, w.changed) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Watch: %v", err)
		}
	})
	t.Cleanup(w.stop)
	w.until("the start", func(map[string]string) bool { return true })
	return w
}

func (w *watching) changed() {
	now := map[string]string{}
	snap, _ := loader.Dir{Root: w.root}.Snapshot(context.Background())
	if snap != nil {
		for _, name := range paths(w.t, snap) {
			now[name] = read(w.t, snap, name)
		}
	}
	w.mu.Lock()
	w.now, w.calls = now, w.calls+1
	if content, ok := now["x.cue"]; ok && content == "" {
		w.empty = true
	}
	w.mu.Unlock()
	select {
	case w.seen <- struct{}{}:
	default:
	}
}

// until waits for the content that ok accepts.
func (w *watching) until(what string, ok func(map[string]string) bool) {
	w.t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		w.mu.Lock()
		now, calls := w.now, w.calls
		w.mu.Unlock()
		if calls > 0 && ok(now) {
			return
		}
		select {
		case <-w.seen:
		case <-deadline:
			w.t.Fatalf("%s was never seen; the last content is %v", what, now)
		}
	}
}

func (w *watching) holds(name, content string) {
	w.t.Helper()
	w.until(name+" = "+content, func(now map[string]string) bool { return now[name] == content })
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fast makes events tell quickly and polling take no part, so that a test of events is one.
var fast = loader.WatchConfig{Quiet: 20 * time.Millisecond, Poll: time.Hour}

func watchFiles(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "catalog")
	file := filepath.Join(root, "catalog", "x.cue")
	write(t, file, "1")
	w := watch(t, root, fast)
	w.holds("catalog/x.cue", "1")

	// What an editor does that writes into the file: truncate, then write.
	write(t, file, "2")
	w.holds("catalog/x.cue", "2")

	// What one does that renames: try out 4913, move the old file away, write the new one; then again, on another inode.
	for _, content := range []string{"3", "4", "5"} {
		write(t, filepath.Join(root, "catalog", "4913"), "")
		must(t, os.Remove(filepath.Join(root, "catalog", "4913")))
		must(t, os.Rename(file, file+"~"))
		write(t, file, content)
		must(t, os.Remove(file+"~"))
		w.holds("catalog/x.cue", content)
	}

	// What one does that writes a temporary file and renames it over.
	for _, content := range []string{"6", "7"} {
		write(t, filepath.Join(root, "catalog", ".x.cue.tmp"), content)
		must(t, os.Rename(filepath.Join(root, "catalog", ".x.cue.tmp"), file))
		w.holds("catalog/x.cue", content)
	}

	// New directories, one in another, and one that is removed and made again.
	deep := filepath.Join(root, "catalog", "a", "b", "y.cue")
	write(t, deep, "1")
	w.holds("catalog/a/b/y.cue", "1")
	write(t, deep, "2")
	w.holds("catalog/a/b/y.cue", "2")
	must(t, os.RemoveAll(filepath.Join(root, "catalog", "a")))
	w.until("the removal", func(now map[string]string) bool { _, ok := now["catalog/a/b/y.cue"]; return !ok })
	write(t, deep, "3")
	w.holds("catalog/a/b/y.cue", "3")
	write(t, deep, "4")
	w.holds("catalog/a/b/y.cue", "4")

	// Policies and their data are part of it.
	write(t, filepath.Join(root, "policy", "trust", "data.yaml"), "a: 1")
	w.holds("policy/trust/data.yaml", "a: 1")

	must(t, os.Remove(file))
	w.until("the deletion", func(now map[string]string) bool { _, ok := now["catalog/x.cue"]; return !ok })
}

// TestWatchConfigMap swaps a symlink as the kubelet does.
func TestWatchConfigMap(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "catalog")
	swap := func(version, content string) {
		write(t, filepath.Join(root, ".."+version, "x.cue"), content)
		write(t, filepath.Join(root, ".."+version, "catalog", "y.cue"), content)
		must(t, os.Symlink(".."+version, filepath.Join(root, "..data_tmp")))
		must(t, os.Rename(filepath.Join(root, "..data_tmp"), filepath.Join(root, "..data")))
	}
	swap("1", "one")
	must(t, os.Symlink("..data/x.cue", filepath.Join(root, "x.cue")))
	must(t, os.Symlink("..data/catalog", filepath.Join(root, "catalog")))
	w := watch(t, root, fast)
	w.holds("catalog/y.cue", "one")
	for _, version := range []string{"two", "three", "four"} {
		swap(version, version)
		w.holds("x.cue", version)
		w.holds("catalog/y.cue", version)
	}
}

func watchRoot(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "catalog")
	write(t, filepath.Join(root, "x.cue"), "1")
	w := watch(t, root, fast)
	w.holds("x.cue", "1")
	for _, content := range []string{"2", "3"} {
		must(t, os.RemoveAll(root))
		w.until("the removal of the root", func(now map[string]string) bool { return len(now) == 0 })
		write(t, filepath.Join(root, "x.cue"), content)
		w.holds("x.cue", content)
		write(t, filepath.Join(root, "x.cue"), content+"!")
		w.holds("x.cue", content+"!")
	}

	// Another directory in the root's place, as a deployment does that renames.
	next := root + ".next"
	write(t, filepath.Join(next, "x.cue"), "4")
	must(t, os.Rename(root, root+".old"))
	must(t, os.Rename(next, root))
	w.holds("x.cue", "4")
	write(t, filepath.Join(root, "x.cue"), "5")
	w.holds("x.cue", "5")
}

// watchTruncate empties a file and writes it after a while: the empty file is never told.
func watchTruncate(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "catalog")
	file := filepath.Join(root, "x.cue")
	write(t, file, "1")
	w := watch(t, root, fast)
	late := false // the machine took so long that the empty file may be told
	for _, content := range []string{"2", "3"} {
		begun := time.Now()
		must(t, os.Truncate(file, 0))
		time.Sleep(100 * time.Millisecond) // five times the quiet period
		write(t, file, content)
		late = late || time.Since(begun) > time.Second
		w.holds("x.cue", content)
	}
	w.mu.Lock()
	empty := w.empty
	w.mu.Unlock()
	if empty && !late {
		t.Error("the empty file was told")
	}
	// One that stays empty is reported in the end.
	write(t, file, "")
	w.holds("x.cue", "")
}

// watchWithoutEvents runs out of file descriptors, as it runs out of inotify watches: it polls, and warns once.
func watchWithoutEvents(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^TestWatchWithoutEventsChild$", "-test.v")
	cmd.Env = append(os.Environ(), "WATCH_WITHOUT_EVENTS="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestWatchWithoutEventsChild(t *testing.T) {
	dir := os.Getenv("WATCH_WITHOUT_EVENTS")
	if dir == "" {
		t.Skip("it is run by TestBadInput/C14")
	}
	root := filepath.Join(dir, "catalog")
	write(t, filepath.Join(root, "x.cue"), "1")
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 64, Max: 64}))
	var hogs []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		hogs = append(hogs, f)
	}
	var log bytes.Buffer
	w := watch(t, root, loader.WatchConfig{Quiet: 10 * time.Millisecond, Poll: 20 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, f := range hogs {
		must(t, f.Close())
	}
	w.holds("x.cue", "1")
	write(t, filepath.Join(root, "x.cue"), "22")
	w.holds("x.cue", "22")
	w.stop()
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, &log)
	}
}

// watchPoll writes through a hard link in another directory, which raises no event in the catalog's.
func watchPoll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, outside := filepath.Join(dir, "catalog"), filepath.Join(dir, "outside", "x.cue")
	write(t, filepath.Join(root, "x.cue"), "1")
	must(t, os.MkdirAll(filepath.Dir(outside), 0o755))
	must(t, os.Link(filepath.Join(root, "x.cue"), outside))
	w := watch(t, root, loader.WatchConfig{Quiet: 10 * time.Millisecond, Poll: 20 * time.Millisecond})
	w.holds("x.cue", "1")
	write(t, outside, "22")
	w.holds("x.cue", "22")
}

// TestWatchStorm writes without a pause for longer than the quiet period: it is reported, and the last state too.
func TestWatchStorm(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "catalog")
	file := filepath.Join(root, "x.cue")
	write(t, file, "0")
	const quiet = 30 * time.Millisecond
	w := watch(t, root, loader.WatchConfig{Quiet: quiet, Poll: time.Hour})
	began := time.Now()
	for range 200 {
		write(t, file, "half")
		time.Sleep(5 * time.Millisecond)
	}
	write(t, file, "whole")
	w.holds("x.cue", "whole")
	w.mu.Lock()
	defer w.mu.Unlock()
	if took := time.Since(began); w.calls > 2+int(took/quiet) {
		t.Errorf("200 writes in %v were reported %d times", took, w.calls)
	}
}
