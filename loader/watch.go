package loader

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// WatchConfig configures Watch.
type WatchConfig struct {
	// Quiet is how long no event may occur before a change is reported; 150 ms by default. Writes that never
	// stop are reported after 20 times as long. A file that suddenly becomes empty gets one second to be
	// written.
	Quiet time.Duration
	// Poll is the interval at which the files are checked even without an event, for file systems that send
	// none; 5 s by default. If there are no events at all, or no root, it is at most 1 s.
	Poll time.Duration
	// Logger receives one warning if file events are not available; nil discards it.
	Logger *slog.Logger
}

// Watch calls changed whenever the catalog at root may have changed: once at the start, because changes since
// the last snapshot are unknown, and then once after each quiet period that follows an event. Only the digest
// of the next snapshot shows whether anything did change. Watch runs until ctx ends, and then returns nil.
//
// Watch watches directories and not files, so it survives files that are replaced by renaming, switched
// branches, mounted volumes whose symlinks are swapped, and a root that is removed and recreated. changed is
// called on the goroutine of Watch; changes during that call are reported after it.
func Watch(ctx context.Context, root string, cfg WatchConfig, changed func()) error {
	w := &watcher{root: root, cfg: cfg, watched: map[string]uint64{}}
	if w.cfg.Quiet <= 0 {
		w.cfg.Quiet = 150 * time.Millisecond
	}
	if w.cfg.Poll <= 0 {
		w.cfg.Poll = 5 * time.Second
	}
	if w.cfg.Logger == nil {
		w.cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return w.run(ctx, changed)
}

// watcher is the state of one Watch, used only by its goroutine.
type watcher struct {
	root        string
	cfg         WatchConfig
	notify      *fsnotify.Watcher // nil: polling only
	watched     map[string]uint64 // directories and their inodes
	warned      bool
	missing     bool             // the root does not exist now
	fingerprint string           // the fingerprint that was reported last
	found       []found          // the files found by the last walk
	sizes       map[string]int64 // the sizes reported last
	emptied     bool             // a file that had content is empty now
}

func (w *watcher) run(ctx context.Context, changed func()) error {
	var events <-chan fsnotify.Event
	var failures <-chan error
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		w.warn(err)
	} else {
		defer notify.Close()
		w.notify, events, failures = notify, notify.Events, notify.Errors
	}

	w.fingerprint = w.look(ctx)
	w.settle()
	changed()

	quiet := time.NewTimer(w.cfg.Quiet)
	quiet.Stop()
	poll := time.NewTimer(w.pause())
	var since time.Time // time of the first unreported event; zero if there is none
	certain := false    // an event named a file of the catalog, so it counts even if the file's stamp is equal
	stir := func() {
		if since.IsZero() {
			since = time.Now()
		}
		quiet.Reset(max(0, min(w.cfg.Quiet, 20*w.cfg.Quiet-time.Since(since))))
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-events:
			if w.concerns(e) {
				certain = certain || wanted("policy/"+filepath.Base(e.Name))
				stir()
			}
		case err := <-failures:
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				certain = true
				stir()
				continue
			}
			w.warn(err)
		case <-poll.C:
			if since.IsZero() && w.look(ctx) != w.fingerprint {
				stir()
			}
			poll.Reset(w.pause())
		case <-quiet.C:
			fingerprint := w.look(ctx)
			if wait := 1200*time.Millisecond - time.Since(since); w.emptied && wait > 0 {
				quiet.Reset(wait) // after truncating a file, its writer is about to write it
				continue
			}
			since = time.Time{}
			w.settle()
			if certain || fingerprint != w.fingerprint {
				w.fingerprint, certain = fingerprint, false
				changed()
			}
		}
	}
}

// concerns reports whether an event may concern the catalog: not if its path is skipped, and in the directory
// above the root only if it is the root itself. A hidden name still counts if it is swapped in, as the ..data
// of a ConfigMap is.
func (w *watcher) concerns(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	root, err := filepath.Abs(w.root)
	if err != nil {
		return true
	}
	if filepath.Dir(e.Name) == filepath.Dir(root) && !inside(root, e.Name) {
		return false
	}
	base := filepath.Base(e.Name)
	return !skipped(base, false) || strings.HasPrefix(base, "..")
}

// look walks the catalog, watches new directories, and returns a fingerprint of what it found.
func (w *watcher) look(ctx context.Context) string {
	t := walk{limit: 1 << 20}
	err := t.tree(ctx, w.root)
	w.missing = err != nil
	h := sha256.New()
	fmt.Fprintf(h, "%v\n", err)
	for _, f := range t.files {
		fmt.Fprintf(h, "%q %q %d %d %d %v\n", f.name, f.real, f.stamp.size, f.stamp.changed.UnixNano(), f.stamp.inode, f.stamp.mode)
	}
	for _, p := range t.problems {
		fmt.Fprintf(h, "%s\n", p)
	}
	w.emptied, w.found = false, t.files
	for _, f := range t.files {
		w.emptied = w.emptied || f.stamp.size == 0 && w.sizes[f.name] > 0
	}
	w.attach(t.dirs)
	return string(h.Sum(nil))
}

// settle records the sizes that the last walk found, to detect later which files were emptied.
func (w *watcher) settle() {
	w.sizes = make(map[string]int64, len(w.found))
	for _, f := range w.found {
		w.sizes[f.name] = f.stamp.size
	}
}

// attach watches the directories of the catalog and drops the watches of removed ones: a directory that was
// removed and recreated under its name needs a new watch. The directory above the root is watched only if the
// root is missing or is a symlink that can be swapped. Otherwise unrelated files there, such as a log with a
// line for each call, would wake the watcher needlessly.
func (w *watcher) attach(dirs []string) {
	if w.notify == nil {
		return
	}
	if root, err := filepath.Abs(w.root); err == nil && (w.missing || isSymlink(root)) {
		dirs = append(dirs, filepath.Dir(root))
	}
	live := map[string]bool{}
	for _, d := range w.notify.WatchList() {
		live[d] = true
	}
	watched := map[string]uint64{}
	for _, d := range dirs {
		info, err := os.Stat(d)
		if err != nil {
			continue
		}
		inode := stampOf(info).inode
		if live[d] && w.watched[d] == inode {
			watched[d] = inode
			continue
		}
		if live[d] {
			w.forget(d)
		}
		switch err := w.notify.Add(d); {
		case err == nil:
			watched[d] = inode
		case !errors.Is(err, fs.ErrNotExist):
			w.warn(err)
		}
	}
	for d := range live {
		if _, ok := watched[d]; !ok {
			w.forget(d)
		}
	}
	w.watched = watched
}

func isSymlink(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// forget removes the watch of a directory; a watch that no longer exists is not an error.
func (w *watcher) forget(dir string) {
	if err := w.notify.Remove(dir); err != nil && !errors.Is(err, fsnotify.ErrNonExistentWatch) {
		w.warn(err)
	}
}

// pause returns the time until the next poll.
func (w *watcher) pause() time.Duration {
	if w.warned || w.missing {
		return min(w.cfg.Poll, time.Second)
	}
	return w.cfg.Poll
}

func (w *watcher) warn(err error) {
	if w.warned {
		return
	}
	w.warned = true
	w.cfg.Logger.Warn("file events are not available, so the catalog is polled", "every", min(w.cfg.Poll, time.Second), "error", err)
}
