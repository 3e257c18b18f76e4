package conversation

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/catalogd/catalogd/internal/filelock"
	"github.com/catalogd/catalogd/internal/strictjson"
)

// ErrInUse is wrapped by the error of Open for a directory that another process uses.
var ErrInUse = errors.New("another process uses the directory")

const (
	ending      = ".json"
	unusable    = ".unusable"
	unfinished  = ".new-"
	lockName    = "lock"
	fileVersion = 1
	// maxFile is the most that a file may have, in bytes.
	maxFile = 16 << 20
)

// files are the branches in a directory: one file each, replaced as a whole, of mode 0600.
type files struct {
	root *os.Root
	lock *os.File
}

// stored is the content of a file. An unknown member is an error: it may be something that a later version takes
// away.
type stored struct {
	Version int    `json:"version"`
	Branch  Branch `json:"branch"`
}

func openFiles(dir string) (*files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	lock, err := root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	locked, err := filelock.TryLock(lock)
	if err == nil && !locked {
		err = fmt.Errorf("%s: %w", dir, ErrInUse)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close(), root.Close())
	}
	return &files{root, lock}, nil
}

func (f *files) close() error { return errors.Join(f.lock.Close(), f.root.Close()) }

// read reads all branches, and sets aside what is not one.
func (f *files) read(log *slog.Logger) (all []Branch, err error) {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ending)
		switch {
		case strings.HasPrefix(e.Name(), unfinished): // of a write that was cut off
			if err := f.root.Remove(e.Name()); err != nil {
				return nil, err
			}
			continue
		case !ok:
			continue
		}
		b, err := f.readOne(name)
		if err != nil {
			if aside := f.root.Rename(e.Name(), name+unusable); aside != nil {
				return nil, errors.Join(fmt.Errorf("%s: %w", e.Name(), err), aside)
			}
			log.Error("a conversation branch can't be read and no longer exists; its file is set aside",
				"file", filepath.Join(f.root.Name(), name+unusable), "error", err)
			continue
		}
		all = append(all, b)
	}
	return all, nil
}

func (f *files) readOne(name string) (Branch, error) {
	file, err := f.root.OpenFile(name+ending, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return Branch{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Branch{}, err
	}
	if !info.Mode().IsRegular() {
		return Branch{}, errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return Branch{}, err
	}
	if len(data) > maxFile {
		return Branch{}, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	if err := strictjson.Check(data, strictjson.Options{}); err != nil {
		return Branch{}, err
	}
	var s stored
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return Branch{}, err
	}
	b := s.Branch
	switch {
	case s.Version != fileVersion:
		return Branch{}, fmt.Errorf("it is of version %d, and this catalogd reads %d", s.Version, fileVersion)
	case b.Name != name || !IsName(name):
		return Branch{}, errors.New("its name is not that of the branch in it")
	case b.From == "" || b.Root == "" || b.Depth < 1 || (b.From == b.Root) != (b.Depth == 1) || b.Owner.Name == "" || b.Expires.IsZero():
		return Branch{}, errors.New("it is incomplete")
	}
	return b, errors.Join(CheckLabels(b.Labels), b.Check())
}

// write replaces the file of a branch: as a whole or not at all, also if the machine stops meanwhile.
func (f *files) write(b Branch) (err error) {
	data, err := json.Marshal(stored{fileVersion, b})
	if err != nil {
		return err
	}
	aside := unfinished + rand.Text()
	file, err := f.root.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = f.root.Rename(aside, b.Name+ending)
	}
	if err != nil {
		return errors.Join(err, f.root.Remove(aside))
	}
	return f.sync()
}

func (f *files) remove(names []string) error {
	var failed []error
	for _, name := range names {
		if err := f.root.Remove(name + ending); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	return errors.Join(append(failed, f.sync())...)
}

// sync makes the names of the files durable. Some file systems can't, and have nothing to sync then.
func (f *files) sync() error {
	dir, err := f.root.Open(".")
	if err != nil {
		return err
	}
	if err := dir.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return errors.Join(err, dir.Close())
	}
	return dir.Close()
}
