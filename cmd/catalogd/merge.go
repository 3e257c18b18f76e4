package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/catalogd/catalogd/internal/clients"
)

// maxClientFile is the largest file of a client that is merged into, in bytes.
const maxClientFile = 16 << 20

// merge puts the entry into the file of --merge.
func (c *exportConfigCmd) merge(e *env, client clients.Client, server clients.Server, notes []string) error {
	did, err := mergeFile(c.Merge, func(file []byte) ([]byte, string, error) { return client.Merge(file, server) })
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(map[string]any{
			"client": client.Name, "file": c.Merge, "entry": server.Name, "result": did, "notes": append([]string{}, notes...),
		})
	}
	fmt.Fprintf(e.stderr, "%s: %s %s\n", c.Merge, server.Name, did)
	for _, n := range notes {
		fmt.Fprintln(e.stderr, n)
	}
	return nil
}

// mergeFile replaces a file by what edit makes of it, in one step and with its mode; behind a symbolic link, the
// file that it leads to. did is what edit says that it did; unchanged writes nothing. Several processes take turns.
func mergeFile(name string, edit func([]byte) (edited []byte, did string, err error)) (did string, err error) {
	path, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("--merge: there is no file %s; without --merge, a whole one is printed", name)
	}
	if err != nil {
		return "", fmt.Errorf("--merge: %w", err)
	}
	free, err := lockFolder(filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("--merge: %w", err)
	}
	defer func() { err = errors.Join(err, free()) }()
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("--merge: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxClientFile {
		return "", fmt.Errorf("--merge: %s is no file of at most %d bytes", name, maxClientFile)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--merge: %w", err)
	}
	edited, did, err := edit(file)
	if err != nil {
		return "", fmt.Errorf("--merge: %s: %w; nothing was written", name, err)
	}
	if bytes.Equal(edited, file) {
		return did, nil
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, file) {
		return "", fmt.Errorf("--merge: %s has just been changed by another program; nothing was written, so try again", name)
	}
	return did, replaceFile(path, edited, info.Mode().Perm())
}

// lockFolder waits until no other catalogd merges into a file of the folder; free ends its own turn. On a file system
// without locks there are no turns.
func lockFolder(path string) (free func() error, err error) {
	folder, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		switch err := unix.Flock(int(folder.Fd()), unix.LOCK_EX); {
		case errors.Is(err, unix.EINTR):
		case err == nil, errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP):
			return folder.Close, nil
		default:
			return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), folder.Close())
		}
	}
}
