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

// WatchConfig says how Watch goes about it.
type WatchConfig struct {
	// Quiet is how long nothing must happen before a change is told; 150 ms by default. Writes that never stop are told
	// after 20 times as long. A file that is suddenly empty is given a second to be written.
	Quiet time.Duration
	// Poll is how often the files are looked at even without an event, for file systems that send none; 5 s by default.
	// Where there are no events at all, or no root, it is at most 1 s.
	Poll time.Duration
	// Logger gets one warning when events can't be had; nil discards it.
	Logger *slog.Logger
}

// Watch calls changed whenever the catalog at root may have changed: once at the start, because nobody knows what
// happened since the last snapshot, and then once after each quiet period in which something happened. Whether anything
// did change is for the next snapshot's digest to tell. It runs until ctx ends, and returns nil
// then.
//
// Watch watches directories and not files, so it survives files that are replaced by renaming, switched branches,
// mounted volumes whose symlinks are swapped, and a root that is removed and comes back. changed is called on the
// goroutine of Watch; what happens meanwhile is told afterwards.
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

// watcher is the state of one Watch; its goroutine is the only one that touches it.
type watcher struct {
	root    string
	cfg     WatchConfig
	notify  *fsnotify.Watcher // nil: polling only
	watched map[string]uint64 // directories and their inodes
	warned  bool
	missing bool             // there is no root now
	print   string           // the fingerprint that was told last
	found   []found          // what the last look found
	sizes   map[string]int64 // of what was told last
	emptied bool             // a file that had content has none now
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

	w.print = w.look(ctx)
	w.settle()
	changed()

	quiet := time.NewTimer(w.cfg.Quiet)
	quiet.Stop()
	poll := time.NewTimer(w.pause())
	var since time.Time // when the first untold event came; zero: there is none
	certain := false    // a file of the catalog was named, so it counts even if its stamp is the same
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
			if since.IsZero() && w.look(ctx) != w.print {
				stir()
			}
			poll.Reset(w.pause())
		case <-quiet.C:
			print := w.look(ctx)
			if wait := 1200*time.Millisecond - time.Since(since); w.emptied && wait > 0 {
				quiet.Reset(wait) // whoever truncates a file is about to write it
				continue
			}
			since = time.Time{}
			w.settle()
			if certain || print != w.print {
				w.print, certain = print, false
				changed()
			}
		}
	}
}

// concerns reports whether an event may be about the catalog: not about what is skipped, and in the directory above the
// root only about the root itself. A hidden name still counts where it is swapped in, as the ..data of a ConfigMap is.
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

// look walks the catalog, watches what is new in it, and returns a fingerprint of what it saw.
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

// settle keeps the sizes that the last look found, to tell later which files were emptied.
func (w *watcher) settle() {
	w.sizes = make(map[string]int64, len(w.found))
	for _, f := range w.found {
		w.sizes[f.name] = f.stamp.size
	}
}

// attach watches the directories of the catalog and forgets those that are gone: a directory that was removed and made
// again under its name needs a new watch. The directory above the root is watched where only that tells of a root to come:
// when it is missing, or a symlink that can be swapped. Otherwise whatever else stands there, such as the log that each
// call writes a line to, would wake the watcher for nothing.
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

// forget ends the watch of a directory. That there is none any more is no failure.
func (w *watcher) forget(dir string) {
	if err := w.notify.Remove(dir); err != nil && !errors.Is(err, fsnotify.ErrNonExistentWatch) {
		w.warn(err)
	}
}

// pause is how long to wait until the next poll.
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
