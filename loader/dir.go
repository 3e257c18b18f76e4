package loader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/catalogd/catalogd/problem"
)

// Dir is the Source for a directory. It is a plain value; Snapshot may be called concurrently.
type Dir struct {
	Root   string
	Limits Limits
	// Tags are CUE tags, key=value or a shorthand; they are part of the digest.
	Tags []string
}

// attempts bounds how often a catalog that changes during the read is read again.
const attempts = 5

// Snapshot reads the directory. Files that change during the read are read again, so that a snapshot shows
// the catalog at one moment; a catalog that keeps changing is a problem (unreadable).
func (d Dir) Snapshot(ctx context.Context) (*Snapshot, problem.List) {
	limits := d.Limits.orDefaults()
	for range attempts {
		before := walk{limit: limits.Files}
		if err := before.tree(ctx, d.Root); err != nil {
			return nil, noCatalog(err)
		}
		r := reader{limits: limits, files: map[string][]byte{}, refused: before.refused, problems: before.problems}
		for _, f := range before.files {
			if err := ctx.Err(); err != nil {
				return nil, noCatalog(err)
			}
			r.take(f.name, func() ([]byte, error) { return readRegular(f.real, limits.of(f.name)) })
		}
		after := walk{limit: limits.Files}
		if err := after.tree(ctx, d.Root); err != nil {
			return nil, noCatalog(err)
		}
		if slices.Equal(before.files, after.files) {
			return newSnapshot(r.files, origins(before), r.refused, d.Tags), r.problems.Sorted()
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	var l problem.List
	l.Errorf(problem.Unreadable, problem.Position{File: "."}, "",
		"the catalog kept changing while it was read (%d times); try again when whatever writes it has ended", attempts)
	return nil, l
}

// origins maps each file that was reached through a symlink to its canonical path: the path of the file
// itself if the walk found that too, else the first path that led to it.
func origins(w walk) map[string]string {
	first := map[string]string{}
	for _, f := range w.files {
		if f.real == filepath.Join(w.root, filepath.FromSlash(f.name)) {
			first[f.real] = f.name
		}
	}
	out := map[string]string{}
	for _, f := range w.files {
		if place, ok := first[f.real]; ok && place != f.name {
			out[f.name] = place
		} else if !ok {
			first[f.real] = f.name
		}
	}
	return out
}

// readRegular reads a file that was regular when the walk saw it. O_NONBLOCK keeps a pipe that has replaced
// it from blocking the loader.
func readRegular(name string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	return io.ReadAll(io.LimitReader(f, limit+1))
}

var errNotRegular = errors.New("not a regular file")

// reader reads files into a snapshot, within the limits.
type reader struct {
	limits   Limits
	files    map[string][]byte
	bytes    int64
	over     bool
	refused  map[string]bool
	problems problem.List
}

func (r *reader) take(name string, read func() ([]byte, error)) {
	if r.over {
		r.refused[name] = true
		return
	}
	data, err := read()
	size := int64(len(data))
	switch {
	case errors.Is(err, fs.ErrNotExist): // removed since the walk
	case errors.Is(err, errNotRegular):
		r.refuse(name, problem.NotRegular, "this is not a regular file; remove it or give it another name")
	case err != nil:
		r.refuse(name, problem.Unreadable, "the file can't be read: %v", reason(err))
	case size > r.limits.of(name):
		r.refuse(name, problem.FileTooLarge, "the file is larger than %s; split it, or raise the limit", bytesText(r.limits.of(name)))
	case r.bytes+size > r.limits.CatalogBytes:
		r.over = true
		r.refuse(name, problem.CatalogTooLarge,
			"with this file the catalog is larger than %s; remove what is not part of it, or raise the limit", bytesText(r.limits.CatalogBytes))
	default:
		if why, line := notText(data); why != "" {
			r.refused[name] = true
			r.problems.Errorf(problem.NotUTF8, problem.Position{File: printable(name), Line: line}, "", "the file %s; save it as UTF-8", why)
			return
		}
		r.bytes += size
		r.files[name] = data
	}
}

func (r *reader) refuse(name string, code problem.Code, format string, args ...any) {
	r.refused[name] = true
	r.problems.Errorf(code, problem.Position{File: printable(name)}, "", format, args...)
}

// notText reports why data is not UTF-8 text and in which line; why is empty if it is.
func notText(data []byte) (why string, line int) {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return "is UTF-16", 1
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return "has a NUL byte", 1 + bytes.Count(data[:i], []byte("\n"))
	}
	if utf8.Valid(data) {
		return "", 0
	}
	line = 1
	for rest := data; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		rest = rest[n:]
	}
	return "is not UTF-8", line
}

func bytesText(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

func noCatalog(err error) problem.List {
	var l problem.List
	l.Errorf(problem.NoCatalog, problem.Position{File: "."}, "", "the catalog can't be read: %v", reason(err))
	return l
}
