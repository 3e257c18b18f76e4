package loader

import (
	"bytes"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// memory is a read-only fs.FS over byte slices that never change.
type memory struct {
	files map[string][]byte
	dirs  map[string][]fs.DirEntry
}

func newMemory(files map[string][]byte) *memory {
	m := &memory{files: files, dirs: map[string][]fs.DirEntry{".": nil}}
	for name, data := range files {
		m.add(path.Dir(name), entry{path.Base(name), int64(len(data)), 0o444})
	}
	for _, entries := range m.dirs {
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return m
}

// add adds e to dir, and dir to the directories above it if it is new.
func (m *memory) add(dir string, e entry) {
	_, known := m.dirs[dir]
	m.dirs[dir] = append(m.dirs[dir], e)
	if !known {
		m.add(path.Dir(dir), entry{path.Base(dir), 0, fs.ModeDir | 0o555})
	}
}

// Open implements fs.FS.
func (m *memory) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if data, ok := m.files[name]; ok {
		return &memoryFile{Reader: bytes.NewReader(data), entry: entry{path.Base(name), int64(len(data)), 0o444}}, nil
	}
	if entries, ok := m.dirs[name]; ok {
		return &memoryDir{entry: entry{path.Base(name), 0, fs.ModeDir | 0o555}, rest: entries}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// ReadFile implements fs.ReadFileFS. The caller owns the returned copy.
func (m *memory) ReadFile(name string) ([]byte, error) {
	data, ok := m.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return bytes.Clone(data), nil
}

// ReadDir implements fs.ReadDirFS.
func (m *memory) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, ok := m.dirs[name]
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	return slices.Clone(entries), nil
}

// entry is the fs.DirEntry and fs.FileInfo of a file or directory. Modification times are zero, because a
// snapshot is its contents only.
type entry struct {
	name string
	size int64
	mode fs.FileMode
}

func (e entry) Name() string               { return e.name }
func (e entry) Size() int64                { return e.size }
func (e entry) Mode() fs.FileMode          { return e.mode }
func (e entry) Type() fs.FileMode          { return e.mode.Type() }
func (e entry) ModTime() time.Time         { return time.Time{} }
func (e entry) IsDir() bool                { return e.mode.IsDir() }
func (e entry) Sys() any                   { return nil }
func (e entry) Info() (fs.FileInfo, error) { return e, nil }

type memoryFile struct {
	*bytes.Reader
	entry
}

func (f *memoryFile) Size() int64                { return f.entry.size }
func (f *memoryFile) Stat() (fs.FileInfo, error) { return f.entry, nil }
func (f *memoryFile) Close() error               { return nil }

type memoryDir struct {
	entry
	rest []fs.DirEntry
}

func (d *memoryDir) Stat() (fs.FileInfo, error) { return d.entry, nil }
func (d *memoryDir) Close() error               { return nil }
func (d *memoryDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: fs.ErrInvalid}
}

// ReadDir implements fs.ReadDirFile.
func (d *memoryDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.rest)
	} else if len(d.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.rest))
	out := slices.Clone(d.rest[:n])
	d.rest = d.rest[n:]
	return out, nil
}
