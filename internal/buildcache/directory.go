package buildcache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// ErrUnsafe is the error of a state directory that others can look into or change: whoever may write it could
// change what a branch is shown.
var ErrUnsafe = errors.New("the state directory is not safe")

// DefaultDirectory is the user's state directory: $XDG_STATE_HOME/catalogd, else ~/.local/state/catalogd, and
// on macOS ~/Library/Application Support/catalogd. It is an error where there is no home.
func DefaultDirectory() (string, error) {
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

// directory is an open state directory. It is safe for concurrent use.
type directory struct {
	path string
	root *os.Root
}

// openDirectory opens the state directory at path, and makes it with mode 0700 where there is none. A
// directory that belongs to another user, or that others may enter, read or write, is an ErrUnsafe that says
// which, with its mode. All access goes through the directory that was checked, whatever path means later.
func openDirectory(path string) (*directory, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil {
		err = CheckPrivate(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &directory{path, root}, nil
}

// CheckPrivate returns an ErrUnsafe unless this user alone may enter the directory at path, of which info is.
func CheckPrivate(path string, info fs.FileInfo) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%w: can't find out who owns %s", ErrUnsafe, path)
	}
	if int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: %s (mode %04o) belongs to user %d, and this is user %d; "+
			"name another directory with --state", ErrUnsafe, path, info.Mode().Perm(), owner.Uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%w: other users may enter %s (mode %04o); chmod 0700 it, or "+
			"name another directory with --state", ErrUnsafe, path, info.Mode().Perm())
	}
	return nil
}

func (d *directory) close() error { return d.root.Close() }

// catalogFolder is the folder of the catalog at root, below the state directory.
func catalogFolder(root string) string {
	sum := sha256.Sum256([]byte(filepath.Clean(root)))
	return hex.EncodeToString(sum[:16])
}

const childrenFolder = "children"

// Intents is where the intents of the catalog at root are stored, in the state directory at path.
func Intents(path, root string) string { return filepath.Join(path, catalogFolder(root), "intents") }

// Conversations is where the conversation branches of the catalog at root are stored, in the state directory at
// path.
func Conversations(path, root string) string {
	return filepath.Join(path, catalogFolder(root), "conversations")
}

// SessionKey is the file of the key that seals the ids of MCP sessions of the catalog at root, in the state
// directory at path.
func SessionKey(path, root string) string {
	return filepath.Join(path, catalogFolder(root), "session.key")
}

// Children is where the child processes of the catalog at root have their private directories, in the state
// directory at path, which must be absolute.
func Children(path, root string) string {
	return filepath.Join(path, catalogFolder(root), childrenFolder)
}
