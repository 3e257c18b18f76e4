package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/catalogd/catalogd/internal/clients"
	"github.com/catalogd/catalogd/internal/filelock"
)

// maxClientFile is the largest file of a client that is merged into, in bytes.
const maxClientFile = 16 << 20

// merge puts the entry into the file of --merge.
func (c *exportConfigCmd) merge(e *env, client clients.Client, server clients.Server, notes []string) error {
	did, err := mergeFile(e.ctx, c.Merge, func(file []byte) ([]byte, string, error) { return client.Merge(file, server) })
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
func mergeFile(
	ctx context.Context, name string, edit func([]byte) (edited []byte, did string, err error),
) (did string, err error) {
	path, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("--merge: there is no file %s; without --merge, a whole one is printed", name)
	}
	if err != nil {
		return "", fmt.Errorf("--merge: %w", err)
	}
	folder, err := lockFolder(ctx, filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("--merge: %w", err)
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
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

// mergeTurn is how long a merge waits for another catalogd that merges into a file of the same folder.
const mergeTurn = 10 * time.Second

// lockFolder waits until no other catalogd merges into a file of the folder; closing it ends the turn. On a file system
// without locks there are no turns.
func lockFolder(ctx context.Context, path string) (*os.File, error) {
	folder, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, mergeTurn)
	defer cancel()
	if err := filelock.Lock(ctx, folder); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}
