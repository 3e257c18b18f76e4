// Package state is the directory in which catalogd keeps what it may lose: caches that make a start fast. Nothing that
// was declared, decided or granted lives here alone. What is read back is a compiled build, whose connect decisions are
// asked anew at each start, and list decisions, behind which each call is decided anew: so nothing that is found here can
// grant anything; a forged file can change what the decisions are asked about, as a change of the catalog can. No secret is
// ever written.
//
// The directory is the user's own with mode 0700, or it is refused: whoever may write it could change what a branch is
// shown. Below it each catalog root has a folder of its own. A file's name is the digest of everything that its content
// depends on, the program included, and a checksum over name and content finds what a disk or a crash has damaged: such
// a file is ignored with a warning and made again.
//
// Two daemons may share a directory without a lock: files are written aside and renamed, so a reader sees a whole file or
// none, and two writers of one name write the same content.
package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// ErrUnsafe is the kind of error that Open returns for a directory that others can look into or change.
var ErrUnsafe = errors.New("the state directory is not safe")

// Default is the user's state directory: $XDG_STATE_HOME/catalogd, else ~/.local/state/catalogd, and on macOS
// ~/Library/Application Support/catalogd. It is an error where there is no home.
func Default() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) { // the specification ignores a relative one
		return filepath.Join(dir, "catalogd"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(home) {
		return "", fmt.Errorf("the home directory %q is not absolute", home)
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "catalogd"), nil
	}
	return filepath.Join(home, ".local", "state", "catalogd"), nil
}

// Dir is an open state directory. It is safe for concurrent use; Close gives it up.
type Dir struct {
	path string
	root *os.Root
}

// Open opens the state directory at path and makes it, with mode 0700, where it is not there. A directory that belongs to
// another user or that others may enter, read or write is an ErrUnsafe that says which, with its mode. Everything is then
// done through the directory that was looked at, whatever its path comes to mean.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil {
		err = safe(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Dir{path, root}, nil
}

func safe(path string, info fs.FileInfo) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%w: nobody can say who owns %s", ErrUnsafe, path)
	}
	if int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: %s (mode %04o) belongs to user %d, and this is user %d; name another directory with --state",
			ErrUnsafe, path, info.Mode().Perm(), owner.Uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%w: other users may enter %s (mode %04o); chmod 0700 it, or name another directory with --state",
			ErrUnsafe, path, info.Mode().Perm())
	}
	return nil
}

// Path is where the directory is, for messages.
func (d *Dir) Path() string { return d.path }

// Close gives the directory up.
func (d *Dir) Close() error { return d.root.Close() }
