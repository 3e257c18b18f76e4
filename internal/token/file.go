package token

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/catalogd/catalogd/internal/filelock"
)

// maxFile is the maximum size of the file, 16 MiB.
const maxFile = 16 << 20

// header is the first line of a new file.
const header = "# Who may use catalogd: one token a line, made by `catalogd token create`. Secrets are not in here, only their SHA-256.\n"

// Load reads the file at path. warning reports a mode that lets others read it. A file that others may write,
// or that belongs to another user than root, is an error: whoever can add a line has full access.
func Load(path string) (s *Set, warning string, err error) {
	s, warning, _, err = load(path)
	return s, warning, err
}

// load is Load, and returns the file's FileInfo.
func load(path string) (*Set, string, fs.FileInfo, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil, fmt.Errorf("there is no file %s; make one with its first token: catalogd token create NAME --branch BRANCH --tokens %s", path, path)
	} else if err != nil {
		return nil, "", nil, err
	}
	defer f.Close()
	data, warning, info, err := read(f, path)
	if err != nil {
		return nil, "", info, err
	}
	s, err := Parse(data)
	if err != nil {
		return nil, "", info, fmt.Errorf("%s: %w", path, err)
	}
	return s, warning, info, nil
}

func read(f *os.File, path string) (data []byte, warning string, info fs.FileInfo, err error) {
	info, err = f.Stat()
	if err != nil {
		return nil, "", nil, err
	}
	if warning, err = safe(path, info); err != nil {
		return nil, "", info, err
	}
	data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return data, warning, info, err
}

func safe(path string, info fs.FileInfo) (warning string, err error) {
	mode := info.Mode()
	if !mode.IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("can't find out who owns %s", path)
	}
	if uid := int(owner.Uid); uid != os.Geteuid() && uid != 0 {
		return "", fmt.Errorf("%s belongs to user %d, who could add tokens, and this is user %d; chown it", path, uid, os.Geteuid())
	}
	if mode.Perm()&0o022 != 0 {
		return "", fmt.Errorf("others may write %s (mode %04o), and so add tokens; chmod 0600 it", path, mode.Perm())
	}
	if mode.Perm()&0o044 != 0 {
		warning = fmt.Sprintf("others may read %s (mode %04o), and so who has tokens; chmod 0600 it", path, mode.Perm())
	}
	return warning, nil
}

// Add appends a token to the file, and creates a missing file with mode 0600. Name and hash must be new.
func Add(path string, t Token) error {
	if err := t.check(); err != nil {
		return err
	}
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return edit(path, true, func(lines [][]byte) ([][]byte, error) {
		for _, line := range lines {
			if other, err := parseLine(line); err == nil && other.Name == t.Name {
				return nil, fmt.Errorf("there is a token %q already; choose another name, or revoke that one first", t.Name)
			}
		}
		if len(lines) > 0 && len(lines[len(lines)-1]) > 0 {
			lines = append(lines, nil) // the last line had no line break
		}
		return slices.Insert(lines, max(len(lines)-1, 0), line), nil
	})
}

// Remove removes the token of that name from the file. The other lines stay unchanged.
func Remove(path, name string) error {
	return edit(path, false, func(lines [][]byte) ([][]byte, error) {
		var names []string
		for i, line := range lines {
			if blank(line) {
				continue
			}
			t, err := parseLine(line)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			if t.Name == name {
				return slices.Delete(lines, i, i+1), nil
			}
			names = append(names, t.Name)
		}
		return nil, &UnknownError{Name: name, Names: names}
	})
}

// UnknownError reports that no token has the name.
type UnknownError struct {
	Name  string
	Names []string // all existing names
}

func (e *UnknownError) Error() string { return fmt.Sprintf("there is no token %q", e.Name) }

// turn is how long an edit waits for another one of the same file.
const turn = 10 * time.Second

// edit replaces the file as a whole. Concurrent editors exclude each other: each locks the file that it
// reads, and retries if another has replaced it meanwhile.
func edit(path string, create bool, change func(lines [][]byte) ([][]byte, error)) error {
	path, err := target(path)
	if err != nil {
		return err
	}
	for {
		again, err := editOnce(path, create, change)
		if !again {
			return err
		}
	}
}

// target resolves symbolic links, so that a link remains one.
func target(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	return real, err
}

func editOnce(path string, create bool, change func(lines [][]byte) ([][]byte, error)) (again bool, err error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // releases the lock
	ctx, cancel := context.WithTimeout(context.Background(), turn)
	defer cancel()
	if err := filelock.Lock(ctx, f); err != nil {
		return false, err
	}
	data, _, info, err := read(f, path)
	if err != nil {
		return false, err
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(info, now) {
		if errors.Is(err, fs.ErrNotExist) || err == nil {
			return true, nil
		}
		return false, err
	}
	if len(data) == 0 {
		data = []byte(header)
	}
	lines, err := change(bytes.Split(data, []byte("\n")))
	if err != nil {
		return false, err
	}
	next := bytes.Join(lines, []byte("\n"))
	if _, err := Parse(next); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return false, replace(path, next, info.Mode().Perm())
}

// replace replaces the file atomically, and syncs the new content to disk first.
func replace(path string, data []byte, mode fs.FileMode) (err error) {
	aside := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text())
	f, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(aside, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(aside))
	}
	return nil
}
