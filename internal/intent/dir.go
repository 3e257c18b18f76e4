package intent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrUnsafe is wrapped by the error of Open for a folder that another user could enter or replace, or that is
// not on a local file system.
var ErrUnsafe = errors.New("the folder of intents is not safe")

// prepareDir creates the folder of a store if it doesn't exist, checks who may use it, and returns its
// absolute path without symbolic links.
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
		return "", fmt.Errorf("%w: %s is a symbolic link, which can be pointed at another folder; name the folder itself with --intents",
			ErrUnsafe, dir)
	}
	owner, ok := ownerOf(info)
	switch {
	case !info.IsDir():
		return "", fmt.Errorf("%w: %s is not a folder; name another with --intents", ErrUnsafe, dir)
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
	if err := CheckFileSystem(dir); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnsafe, err)
	}
	return dir, nil
}

// makeDir creates a folder and its parents, and syncs each parent.
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

// notLocal returns the error for a file system that is not known to be local. SQLite's WAL and the check
// whether an owner is alive need locks and shared memory, which work only between processes of one kernel.
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
