package gitfs

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"time"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// tree is a git tree as an fs.FS.
type tree struct{ root *object.Tree }

// Open implements fs.FS.
func (t *tree) Open(name string) (fs.File, error) {
	fail := func(err error) (fs.File, error) { return nil, &fs.PathError{Op: "open", Path: name, Err: err} }
	if !fs.ValidPath(name) {
		return fail(fs.ErrInvalid)
	}
	if name == "." {
		return &directory{info: info{name: ".", mode: fs.ModeDir | 0o555}, of: t, tree: t.root}, nil
	}
	entry, err := t.root.FindEntry(name)
	if err != nil {
		return fail(missing(err))
	}
	about, blob, err := t.describe(name, *entry)
	if err != nil {
		return fail(err)
	}
	switch {
	case about.IsDir():
		below, err := t.root.Tree(name)
		if err != nil {
			return fail(missing(err))
		}
		return &directory{info: about, of: t, tree: below, at: name}, nil
	case blob == nil:
		return &irregular{about}, nil
	}
	content, err := blob.Reader()
	if err != nil {
		return fail(err)
	}
	return &file{ReadCloser: content, info: about}, nil
}

func missing(err error) error {
	if errors.Is(err, object.ErrEntryNotFound) || errors.Is(err, object.ErrDirectoryNotFound) || errors.Is(err, object.ErrFileNotFound) {
		return fs.ErrNotExist
	}
	return err
}

// maxLinks bounds how many links lead from one to the next.
const maxLinks = 40

// describe says what stands at name, and has its content where that is a regular file or a link to one.
func (t *tree) describe(name string, entry object.TreeEntry) (about info, blob *object.Blob, err error) {
	about = info{name: path.Base(name)}
	for range maxLinks {
		switch entry.Mode {
		case filemode.Dir:
			if about.linked { // a link to a directory could lead round in circles
				about.mode = fs.ModeSymlink
				return about, nil, nil
			}
			about.mode = fs.ModeDir | 0o555
			return about, nil, nil
		case filemode.Regular, filemode.Deprecated, filemode.Executable:
			file, err := t.root.TreeEntryFile(&entry)
			if err != nil {
				return about, nil, err
			}
			about.mode, about.size = 0o444, file.Size
			return about, &file.Blob, nil
		case filemode.Symlink:
			about.linked = true
			target, err := t.target(entry)
			if err != nil {
				return about, nil, err
			}
			name = path.Join(path.Dir(name), target)
			next, err := t.root.FindEntry(name)
			if path.IsAbs(target) || !fs.ValidPath(name) || err != nil {
				about.mode = fs.ModeSymlink
				return about, nil, nil
			}
			entry = *next
		default: // a submodule
			about.mode = fs.ModeIrregular
			return about, nil, nil
		}
	}
	about.mode = fs.ModeSymlink
	return about, nil, nil
}

// target is what a link says. A longer text than any path may have is none.
func (t *tree) target(entry object.TreeEntry) (string, error) {
	file, err := t.root.TreeEntryFile(&entry)
	if err != nil {
		return "", err
	}
	content, err := file.Reader()
	if err != nil {
		return "", err
	}
	defer content.Close()
	text, err := io.ReadAll(io.LimitReader(content, 4096))
	return string(text), err
}

// info is an fs.FileInfo and an fs.DirEntry. Git keeps no times of files.
type info struct {
	name   string
	size   int64
	mode   fs.FileMode
	linked bool
}

func (i info) Name() string               { return i.name }
func (i info) Size() int64                { return i.size }
func (i info) Mode() fs.FileMode          { return i.mode }
func (i info) Type() fs.FileMode          { return i.mode.Type() }
func (i info) ModTime() time.Time         { return time.Time{} }
func (i info) IsDir() bool                { return i.mode.IsDir() }
func (i info) Sys() any                   { return nil }
func (i info) Info() (fs.FileInfo, error) { return i, nil }

type file struct {
	io.ReadCloser
	info info
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }

// irregular is what has no content here.
type irregular struct{ info info }

func (f *irregular) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *irregular) Close() error               { return nil }
func (f *irregular) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: errors.New("not a regular file")}
}

type directory struct {
	info info
	of   *tree
	tree *object.Tree
	at   string
	read int
}

func (d *directory) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *directory) Close() error               { return nil }
func (d *directory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: errors.New("is a directory")}
}

// ReadDir implements fs.ReadDirFile.
func (d *directory) ReadDir(n int) ([]fs.DirEntry, error) {
	rest := d.tree.Entries[d.read:]
	if n > 0 {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		rest = rest[:min(n, len(rest))]
	}
	d.read += len(rest)
	entries := make([]fs.DirEntry, 0, len(rest))
	for _, e := range rest {
		about, _, err := d.of.describe(path.Join(d.at, e.Name), e)
		if err != nil {
			return entries, err
		}
		entries = append(entries, about)
	}
	return entries, nil
}
