package egress

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Homes manages the private directories of children, so that no child finds files in the user's home, in the
// catalog's tree or in another child's directory. Each server and tool has one per trust entry through which
// it is reached: a process under one entry can't prepare the HOME of a process under another. They are
// created empty and kept, with mode 0700. Homes is safe for concurrent use.
type Homes struct {
	root string // the catalog's directory; private directories lie outside its tree

	mu        sync.Mutex
	kept      string // the wanted parent directory, created at the first child
	dir       string // the parent directory in use; empty before the first child
	temporary bool   // dir is to be removed
}

// NewHomes keeps private directories in dir, which is created with mode 0700 at the first child. A temporary
// directory is used instead where dir is empty, can't be created, or lies in the tree of root (the catalog's
// directory; empty where it has none).
func NewHomes(dir, root string) *Homes {
	h := &Homes{root: root}
	h.Keep(dir)
	return h
}

// Keep changes the directory. It must be called before the first child is started.
func (h *Homes) Keep(dir string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = dir
}

// outside reports whether dir lies outside the catalog's tree, also after symbolic links are resolved:
// programs look for their files in parent directories too.
func (h *Homes) outside(dir string) bool {
	return h.root == "" || !within(h.root, dir) && !within(realPath(h.root), realPath(dir))
}

// Close removes a temporary directory. No child may be running.
func (h *Homes) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.temporary {
		// Files that can't be removed remain; no other process uses the directory.
		_ = os.RemoveAll(h.dir)
		h.dir, h.temporary = "", false
	}
}

// private is one child's private directory: its HOME, and its working directory.
type private struct{ home, work string }

// of returns the private directory of owner under the trust entry named entry.
func (h *Homes) of(owner, entry string) (private, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dir == "" && h.kept != "" && os.MkdirAll(h.kept, 0o700) == nil && h.outside(h.kept) {
		h.dir = h.kept
	}
	if h.dir == "" {
		dir, err := os.MkdirTemp("", "catalogd-")
		if err != nil {
			return private{}, fmt.Errorf("make a private directory for children: %w", err)
		}
		if !h.outside(dir) {
			return private{}, errors.Join(fmt.Errorf("a private directory for children would lie in the catalog's tree as %s; set TMPDIR to another place", dir), os.Remove(dir))
		}
		h.dir, h.temporary = dir, true
	}
	sum := sha256.Sum256([]byte(owner + "\x00" + entry))
	dir := filepath.Join(h.dir, plainName(owner)+"-"+hex.EncodeToString(sum[:6]))
	p := private{filepath.Join(dir, "home"), filepath.Join(dir, "work")}
	for _, path := range []string{p.home, p.work} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return private{}, fmt.Errorf("make a private directory for %s: %w", owner, err)
		}
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			return private{}, fmt.Errorf("the private directory %s is no longer a directory; remove it", path)
		}
	}
	return p, nil
}

// plainName returns the beginning of a name, for people who inspect the directory.
func plainName(owner string) string {
	plain := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, owner)
	return plain[:min(len(plain), 40)]
}
