package state

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/catalogd/catalogd/internal/buildfile"
)

// Cache is what one catalog root keeps. It is safe for concurrent use. Its methods never fail: what can't be read is made
// again, and what can't be written is not kept; the log says so once.
type Cache struct {
	dir     *Dir
	folder  string // below dir
	program []byte // names this very program
	log     *slog.Logger

	writing sync.WaitGroup
	mu      sync.Mutex
	warned  map[string]bool
	// waiting has a kind while a goroutine writes files of it, with what that one is to write next, nil where nothing is.
	waiting map[string]*content
}

// content is what is to be kept under a key.
type content struct {
	key    [sha256.Size]byte
	encode func() ([]byte, error)
}

// kept is how many files of one kind stay; the oldest go.
const kept = 4

// maxFile caps a file that is read.
const maxFile = buildfile.MaxBytes

const magic = "catalogd-cache\n"

// OpenCache opens the state directory at path, as Open does, and in it the cache of the catalog at root, an absolute
// path. log takes warnings. Close gives both up.
func OpenCache(path, root string, log *slog.Logger) (*Cache, error) {
	program, err := identity()
	if err != nil {
		return nil, fmt.Errorf("this program can't be told from another version of it: %w", err)
	}
	d, err := Open(path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(filepath.Clean(root)))
	folder := hex.EncodeToString(sum[:16])
	if err := d.root.MkdirAll(folder, 0o700); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if err := writable(d.root, folder); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return &Cache{dir: d, folder: folder, program: program, log: log, warned: map[string]bool{}, waiting: map[string]*content{}}, nil
}

// writable is nil when a file can be made in the folder.
func writable(root *os.Root, folder string) error {
	name := path.Join(folder, tryPrefix+rand.Text())
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), root.Remove(name))
}

// key names what a content depends on: the kind, the program and the parts. Lengths keep the parts apart.
func (c *Cache) key(kind string, parts ...string) [sha256.Size]byte {
	h := sha256.New()
	for _, part := range append([]string{kind, string(c.program)}, parts...) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func (c *Cache) file(kind string, key [sha256.Size]byte) string {
	return path.Join(c.folder, kind+"-"+hex.EncodeToString(key[:16]))
}

// checksum covers the key, so that a file that was given another's name is none.
func checksum(key [sha256.Size]byte, content []byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write(key[:])
	h.Write(content)
	return [sha256.Size]byte(h.Sum(nil))
}

// read returns what was written under the key. A file that is damaged is nothing, with a warning.
func (c *Cache) read(kind string, key [sha256.Size]byte) ([]byte, bool) {
	name := c.file(kind, key)
	data, err := readRegular(c.dir.root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false
	case err != nil:
		c.warn(kind, "it can't be read", "file", name, "error", err)
		return nil, false
	}
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok || len(rest) < sha256.Size || checksum(key, rest[sha256.Size:]) != [sha256.Size]byte(rest[:sha256.Size]) {
		c.damaged(kind, key, errors.New("its content is not what was written"))
		return nil, false
	}
	return rest[sha256.Size:], true
}

// damaged warns of a file and takes it away.
func (c *Cache) damaged(kind string, key [sha256.Size]byte, err error) {
	name := c.file(kind, key)
	c.warn(kind, "it is damaged", "file", name, "error", errors.Join(err, c.dir.root.Remove(name)))
}

// readRegular reads a regular file. O_NONBLOCK keeps a pipe of that name from holding the start up.
func readRegular(root *os.Root, name string) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case info.Size() > maxFile:
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	data := make([]byte, info.Size())
	_, err = io.ReadFull(f, data)
	return data, err
}

// write keeps what encode returns under the key, in the background. While a file of the kind is being written, the newest
// content waits and those before it are not kept: on a disk that is slower than the reloads they would gather in memory.
func (c *Cache) write(kind string, key [sha256.Size]byte, encode func() ([]byte, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, writing := c.waiting[kind]
	c.waiting[kind] = &content{key, encode}
	if !writing {
		c.writing.Go(func() { c.writeAll(kind) })
	}
}

// writeAll writes the contents of a kind until none waits.
func (c *Cache) writeAll(kind string) {
	for {
		c.mu.Lock()
		next := c.waiting[kind]
		c.waiting[kind] = nil
		if next == nil {
			delete(c.waiting, kind)
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

func (c *Cache) store(kind string, what *content) error {
	data, err := what.encode()
	if err != nil {
		return err
	}
	if len(data) > maxFile-len(magic)-sha256.Size {
		return fmt.Errorf("it would have more than %d bytes", maxFile)
	}
	sum := checksum(what.key, data)
	return replace(c.dir.root, c.file(kind, what.key), []byte(magic), sum[:], data)
}

// replace writes a whole file or nothing.
func replace(root *os.Root, name string, parts ...[]byte) (err error) {
	aside := path.Join(path.Dir(name), asidePrefix+rand.Text())
	f, err := root.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.Remove(aside))
		}
	}()
	for _, part := range parts {
		if _, err = f.Write(part); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err = f.Close(); err != nil {
		return err
	}
	return root.Rename(aside, name)
}

const asidePrefix, tryPrefix = ".new-", ".try-"

// prune takes away all but the newest files of a kind, and what a crash has left half written.
func (c *Cache) prune(kind string) error {
	entries, err := fs.ReadDir(c.dir.root.FS(), c.folder)
	if err != nil {
		return err
	}
	type file struct {
		name string
		at   time.Time
	}
	var files []file
	var errs []error
	remove := func(name string) {
		// Another daemon may have been faster.
		if err := c.dir.root.Remove(path.Join(c.folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		switch {
		case (strings.HasPrefix(e.Name(), asidePrefix) || strings.HasPrefix(e.Name(), tryPrefix)) && time.Since(info.ModTime()) > time.Hour:
			remove(e.Name())
		case strings.HasPrefix(e.Name(), kind+"-"):
			files = append(files, file{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.name, b.name)) })
	for _, f := range files[min(kept, len(files)):] {
		remove(f.name)
	}
	return errors.Join(errs...)
}

// warn logs once a kind of file and of trouble.
func (c *Cache) warn(kind, what string, args ...any) {
	c.mu.Lock()
	already := c.warned[kind+what]
	c.warned[kind+what] = true
	c.mu.Unlock()
	if !already {
		c.log.Warn("a file of the state directory is not used: "+what, append([]any{"kind", kind, "state", c.dir.path}, args...)...)
	}
}

// Close waits until what is being written is there, and gives the directory up. The cache must not be used any more.
func (c *Cache) Close() {
	c.writing.Wait()
	if err := c.dir.Close(); err != nil {
		c.warn("directory", "it can't be closed", "error", err)
	}
}
