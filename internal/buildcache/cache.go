package buildcache

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Cache is the cache of one catalog. It is safe for concurrent use. Its methods never fail: what can't be
// read is made again, and what can't be written is not kept; each such trouble is logged once.
//
// A file's name has its kind and its key, the digest of everything that its content depends on. Its checksum
// covers key and content, and so finds damage as well as a file that was given another's name.
type Cache struct {
	dir     *directory
	folder  string // of the catalog, below dir
	program []byte // programID
	log     *slog.Logger

	writers sync.WaitGroup
	mu      sync.Mutex
	warned  map[string]bool // by kind and trouble
	// pending has an entry for each kind that a goroutine writes: what it writes next, or nil.
	pending map[string]*pendingWrite
}

// cacheKey identifies a content by everything that it depends on.
type cacheKey [sha256.Size]byte

type pendingWrite struct {
	key    cacheKey
	encode func() ([]byte, error)
}

const (
	// maxFilesPerKind is how many files of one kind are kept; the oldest are removed.
	maxFilesPerKind = 4
	cacheMagic      = "catalogd-cache\n"
	// unfinishedAge is the age from which on an unfinished file is the rest of a crash.
	unfinishedAge = time.Hour
)

// OpenCache opens the state directory at path, making it where there is none, and in it the cache of the
// catalog at root, an absolute path. log takes warnings. Its error is an ErrUnsafe, or says why nothing can
// be kept.
func OpenCache(path, root string, log *slog.Logger) (*Cache, error) {
	program, err := programID()
	if err != nil {
		return nil, fmt.Errorf("this program can't be distinguished from another version of it: %w", err)
	}
	d, err := openDirectory(path)
	if err != nil {
		return nil, err
	}
	folder := catalogFolder(root)
	err = d.root.MkdirAll(folder, 0o700)
	if err == nil {
		err = probeWrite(d.root, folder)
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return &Cache{
		dir: d, folder: folder, program: program, log: log,
		warned: map[string]bool{}, pending: map[string]*pendingWrite{},
	}, nil
}

// Close waits for pending writes and closes the directory. The cache must not be used afterwards.
func (c *Cache) Close() {
	c.writers.Wait()
	if err := c.dir.close(); err != nil {
		c.warn("directory", "it can't be closed", "error", err)
	}
}

// Children is Children of this catalog, as an absolute path; empty where that is not known.
func (c *Cache) Children() string {
	dir, err := filepath.Abs(c.dir.path)
	if err != nil {
		return ""
	}
	return filepath.Join(dir, c.folder, childrenFolder)
}

// key is the key of the content that depends on this program and the parts.
func (c *Cache) key(kind string, parts ...string) cacheKey {
	h := sha256.New()
	for _, part := range append([]string{kind, string(c.program)}, parts...) {
		var n [8]byte // keeps the parts apart
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return cacheKey(h.Sum(nil))
}

func (c *Cache) file(kind string, key cacheKey) string {
	return path.Join(c.folder, kind+"-"+hex.EncodeToString(key[:16]))
}

func checksum(key cacheKey, content []byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write(key[:])
	h.Write(content)
	return [sha256.Size]byte(h.Sum(nil))
}

// read returns what was written under the key. A file that can't be read or is damaged counts as none, with a
// warning.
func (c *Cache) read(kind string, key cacheKey) ([]byte, bool) {
	name := c.file(kind, key)
	data, err := readIn(c.dir.root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false
	case err != nil:
		c.warn(kind, "it can't be read", "file", name, "error", err)
		return nil, false
	}
	rest, ok := bytes.CutPrefix(data, []byte(cacheMagic))
	if ok && len(rest) >= sha256.Size {
		content := rest[sha256.Size:]
		if checksum(key, content) == [sha256.Size]byte(rest[:sha256.Size]) {
			return content, true
		}
	}
	c.discard(kind, key, errNotAsWritten)
	return nil, false
}

// discard removes a damaged file and warns of it.
func (c *Cache) discard(kind string, key cacheKey, err error) {
	name := c.file(kind, key)
	c.warn(kind, "it is damaged", "file", name, "error", errors.Join(err, c.dir.root.Remove(name)))
}

// write keeps what encode returns under the key, in the background. Of several writes of one kind that wait,
// only the newest is done, so that contents don't pile up in memory when the disk is slower than the reloads.
func (c *Cache) write(kind string, key cacheKey, encode func() ([]byte, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, writing := c.pending[kind]
	c.pending[kind] = &pendingWrite{key, encode}
	if !writing {
		c.writers.Go(func() { c.writePending(kind) })
	}
}

// writePending writes files of a kind until none is pending.
func (c *Cache) writePending(kind string) {
	for {
		c.mu.Lock()
		next := c.pending[kind]
		c.pending[kind] = nil
		if next == nil {
			delete(c.pending, kind)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		err := c.store(kind, next)
		if err == nil {
			err = c.prune(kind)
		}
		if err != nil {
			c.warn(kind, "it can't be written", "error", err)
		}
	}
}

func (c *Cache) store(kind string, w *pendingWrite) error {
	data, err := w.encode()
	if err != nil {
		return err
	}
	if len(data) > MaxBytes-len(cacheMagic)-sha256.Size {
		return fmt.Errorf("it would have more than %d bytes", MaxBytes)
	}
	sum := checksum(w.key, data)
	return writeAtomic(c.dir.root, c.file(kind, w.key), []byte(cacheMagic), sum[:], data)
}

// prune removes all but the newest files of a kind, and what a crash has left unfinished.
func (c *Cache) prune(kind string) error {
	entries, err := fs.ReadDir(c.dir.root.FS(), c.folder)
	if err != nil {
		return err
	}
	type file struct {
		name     string
		modified time.Time
	}
	var files []file
	var errs []error
	remove := func(name string) {
		err := c.dir.root.Remove(path.Join(c.folder, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // another daemon may have removed it
			errs = append(errs, err)
		}
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		unfinished := strings.HasPrefix(e.Name(), unfinishedPrefix) || strings.HasPrefix(e.Name(), probePrefix)
		switch {
		case unfinished && time.Since(info.ModTime()) > unfinishedAge:
			remove(e.Name())
		case strings.HasPrefix(e.Name(), kind+"-"):
			files = append(files, file{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b file) int {
		return cmp.Or(b.modified.Compare(a.modified), cmp.Compare(a.name, b.name))
	})
	for _, f := range files[min(maxFilesPerKind, len(files)):] {
		remove(f.name)
	}
	return errors.Join(errs...)
}

// warn logs one warning for each kind of file and trouble.
func (c *Cache) warn(kind, trouble string, args ...any) {
	c.mu.Lock()
	already := c.warned[kind+trouble]
	c.warned[kind+trouble] = true
	c.mu.Unlock()
	if !already {
		c.log.Warn("a file of the state directory is not used: "+trouble,
			append([]any{"kind", kind, "state", c.dir.path}, args...)...)
	}
}
