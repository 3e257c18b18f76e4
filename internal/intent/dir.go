package intent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrUnsafe is the kind of error that Open returns for a folder that can't keep intents safe.
var ErrUnsafe = errors.New("the folder of intents is not safe")

// prepareDir makes the folder of a store where it is not there, and returns its absolute path without
// symbolic links.
func prepareDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := makeDir(dir); err != nil {
		return "", &StoreError{Op: "open", Path: dir, Err: err}
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", &StoreError{Op: "open", Path: dir, Err: err}
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return "", fmt.Errorf("%w: %s is a symbolic link, which can come to mean another folder; name the folder itself with --intents",
			ErrUnsafe, dir)
	}
	owner, ok := ownerOf(info)
	switch {
	case !info.IsDir():
		return "", fmt.Errorf("%w: %s is no folder; name another with --intents", ErrUnsafe, dir)
	case !ok || owner.uid != os.Geteuid():
		return "", fmt.Errorf("%w: %s (mode %04o) belongs to user %d, and this is user %d; name another folder with --intents",
			ErrUnsafe, dir, info.Mode().Perm(), owner.uid, os.Geteuid())
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%w: other users may enter %s (mode %04o); chmod 0700 it, or name another folder with --intents",
			ErrUnsafe, dir, info.Mode().Perm())
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if err != nil {
		return "", &StoreError{Op: "open", Path: dir, Err: err}
	}
	dir = filepath.Join(parent, filepath.Base(dir))
	if err := localFileSystem(dir); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnsafe, err)
	}
	return dir, nil
}

// makeDir makes a folder and those above it, durably.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

// notLocal is the error for a file system that is not known to be local. Locks and shared memory, on which
// SQLite's WAL and the owners' liveness hang, hold only among the processes of one kernel.
func notLocal(dir, kind string) error {
	return fmt.Errorf("%s is on a file system (%s) that is not known to be a local disk, and locks may not hold there;"+
		" name a folder on a local disk or container volume with --intents", dir, kind)
}

type fileOwner struct{ uid, links int }

func ownerOf(info fs.FileInfo) (fileOwner, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileOwner{}, false
	}
	return fileOwner{int(st.Uid), int(st.Nlink)}, true
}
