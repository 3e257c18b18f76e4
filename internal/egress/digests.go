package egress

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/catalogd/catalogd/internal/cache"
)

// settledAfter is how old the last change of a file must be for its digest to be cached: a second change
// within one tick of the file system's clock would not be noticed.
const settledAfter = 2 * time.Second

// maxDigests is how many digests are cached.
const maxDigests = 1 << 12

// Digests caches the SHA-256 of programs, so that reloads and further starts do not read them again. The key
// is what stat reports: device, inode, size, mtime and ctime, which nobody can set back. The zero Digests is
// ready for use, and safe for concurrent use; one file is read at a time.
type Digests struct {
	mu    sync.Mutex
	known *cache.Cache[identity, string] // nil before the first
}

// identity is a version of a file.
type identity struct {
	device, inode   uint64
	size            int64
	changed, status unix.Timespec
}

func identify(f *os.File) (identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return identity{}, fmt.Errorf("stat %s: %w", f.Name(), err)
	}
	return identityOf(&st), nil
}

func identityOf(st *unix.Stat_t) identity {
	return identity{uint64(st.Dev), uint64(st.Ino), st.Size, st.Mtim, st.Ctim}
}

// remembered returns the cached digest of the file at a path.
func (d *Digests) remembered(path string) (string, bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return "", false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		return "", false
	}
	return d.known.Get(identityOf(&st))
}

// of is the SHA-256 of an open file's content, in hexadecimal, with the state of the file that it is of.
func (d *Digests) of(f *os.File) (string, identity, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := identify(f)
	if err != nil {
		return "", id, err
	}
	if d.known == nil {
		d.known = cache.New[identity, string](maxDigests)
	}
	if sum, ok := d.known.Get(id); ok {
		return sum, id, nil
	}
	began := time.Now()
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(f, 0, id.size)); err != nil {
		return "", id, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	if after, err := identify(f); err != nil || after != id {
		return "", id, fmt.Errorf("%s changes while it is read", f.Name())
	}
	if began.Sub(time.Unix(id.status.Unix())) > settledAfter {
		d.known.Put(id, sum)
	}
	return sum, id, nil
}

// file returns the digest of the file at a path; empty where it can't be read.
func (d *Digests) file(path string) string {
	if sum, ok := d.remembered(path); ok {
		return sum
	}
	f, err := openProgram(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	sum, _, err := d.of(f)
	if err != nil {
		return ""
	}
	return sum
}
