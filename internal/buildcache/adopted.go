package buildcache

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"

	"github.com/catalogd/catalogd/loader"
)

// ErrNoDirectory is the error of OpenRecord where there is no state directory and it can't be created: nothing
// was ever recorded there.
var ErrNoDirectory = errors.New("there is no state directory and it can't be created")

// Adopted is the generation that was adopted last: what is needed to serve it again, and to ask its policy.
type Adopted struct {
	// Snapshot has all of its files; of a build file, the policy's and the lock.
	Snapshot *loader.Snapshot
	// Build is the build file that it was served from; nil where it was a directory.
	Build []byte
	// Summary says what it consists of, in a form that is the caller's own.
	Summary json.RawMessage
	// File is where Load found it.
	File string
	// Superseded says that something else was adopted later and could not be saved (Supersede).
	Superseded bool

	saved    int64    // recordHeader.Saved
	outdated []string // the paths of the catalog under which something older is recorded, or nothing
}

// Record keeps the generation of one catalog that was adopted last. It outlives a change of version, which a
// cache does not, and what can't be read of it is an error, because ignoring it would ignore the policy in
// it. Any number of goroutines and processes may use it; the last to save wins.
//
// There is a file for each path of the catalog. One is for its real path, so that every spelling and link
// finds it; the other for the path as given, so that a link that is pointed at the next release finds what it
// led to before. If they differ, the one saved later counts, and Spread copies it to the other path.
type Record struct {
	dir  *directory // nil where there is none and none is made
	root string
}

// OpenRecord opens the record of the catalog at root, the absolute path of a directory or a build file, in
// the state directory at path, which is made unless readOnly. Its error is an ErrUnsafe, an ErrNoDirectory,
// or says why nobody can know whether there is a record.
func OpenRecord(path, root string, readOnly bool) (*Record, error) {
	r := &Record{root: filepath.Clean(root)}
	_, err := os.Stat(path)
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	switch {
	case missing && readOnly:
		return r, nil
	case err != nil && !missing:
		return nil, err
	}
	if r.dir, err = openDirectory(path); err != nil {
		if missing || errors.Is(err, syscall.ENOTDIR) {
			return nil, fmt.Errorf("%w: %w", ErrNoDirectory, err)
		}
		return nil, err
	}
	return r, nil
}

// Close closes the directory.
func (r *Record) Close() error {
	if r.dir == nil {
		return nil
	}
	return r.dir.close()
}

// Path is the file for the path as given, for messages.
func (r *Record) Path() string { return r.path(recordFile(r.root)) }

// path is where a file of the record is, for messages.
func (r *Record) path(file string) string {
	if r.dir == nil {
		return file
	}
	return filepath.Join(r.dir.path, file)
}

// recordFile is the file for one path of a catalog, below the directory.
func recordFile(root string) string { return filepath.Join(catalogFolder(root), "adopted") }

// supersededFile is an empty file that is there while what is recorded is not what was adopted last.
func supersededFile(root string) string { return filepath.Join(catalogFolder(root), "superseded") }

// roots are the paths of the catalog: the real path, then the path as given if it is another. A catalog that
// does not exist has the given path alone.
func (r *Record) roots() ([]string, error) {
	actual, err := filepath.EvalSymlinks(r.root)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && actual == r.root:
		return []string{r.root}, nil
	case err != nil:
		return nil, fmt.Errorf("the real path of %s is not known: %w", r.root, err)
	}
	return []string{actual, r.root}, nil
}

// Save replaces what is recorded. Each of its files is replaced as a whole or not at all.
func (r *Record) Save(a Adopted) error {
	if r.dir == nil {
		return ErrNoDirectory
	}
	roots, err := r.roots()
	if err != nil {
		return err
	}
	saved := time.Now().UnixNano()
	for _, root := range roots {
		// A file that can't be read is replaced as well: the caller has loaded it before, or was told to
		// ignore it.
		if data, err := readIn(r.dir.root, recordFile(root)); err == nil {
			if h, _, err := decodeRecordHeader(data, root); err == nil {
				saved = max(saved, h.Saved+1)
			}
		}
	}
	for _, root := range roots {
		if err := r.save(a, root, saved); err != nil {
			return err
		}
		if err := r.dir.root.Remove(supersededFile(root)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Supersede says of what is recorded that something else was adopted since, which could not be saved. A full disk
// mostly has room for that: it makes an empty file. Save takes it back.
func (r *Record) Supersede() error {
	if r.dir == nil {
		return ErrNoDirectory
	}
	roots, err := r.roots()
	for _, root := range roots {
		err = errors.Join(err, r.supersede(root))
	}
	return err
}

func (r *Record) supersede(root string) error {
	file := supersededFile(root)
	if err := r.dir.root.MkdirAll(path.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := r.dir.root.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// save writes the file for one path of the catalog.
func (r *Record) save(a Adopted, root string, saved int64) error {
	parts, err := encodeRecord(a, root, saved)
	if err != nil {
		return err
	}
	file := recordFile(root)
	if err := r.dir.root.MkdirAll(path.Dir(file), 0o700); err != nil {
		return err
	}
	return writeAtomic(r.dir.root, file, parts...)
}

// Load returns what was saved last, nil where nothing ever was. Its error names the file that can't be used:
// none is ignored, as it may be the one that counts.
func (r *Record) Load() (*Adopted, error) {
	if r.dir == nil {
		return nil, nil
	}
	roots, err := r.roots()
	if err != nil {
		return nil, err
	}
	found := make([]*Adopted, len(roots))
	var latest *Adopted
	for i, root := range roots {
		if found[i], err = r.load(root); err != nil {
			return nil, err
		}
		if found[i] != nil && (latest == nil || found[i].saved > latest.saved) {
			latest = found[i]
		}
	}
	for i, root := range roots {
		if found[i] != nil && found[i].saved == latest.saved && found[i].Superseded {
			latest.Superseded = true
		}
		if latest != nil && (found[i] == nil || found[i].saved < latest.saved) {
			latest.outdated = append(latest.outdated, root)
		}
	}
	return latest, nil
}

// load reads the file for one path of the catalog; nil where there is none.
func (r *Record) load(root string) (*Adopted, error) {
	file := recordFile(root)
	data, err := readIn(r.dir.root, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var a *Adopted
	if err == nil {
		a, err = decodeRecord(data, root)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.path(file), err)
	}
	a.File = r.path(file)
	_, err = r.dir.root.Stat(supersededFile(root))
	a.Superseded = !errors.Is(err, fs.ErrNotExist)
	return a, nil
}

// Spread records what Load returned under the paths of the catalog that have nothing, or something older, and with it
// that it is superseded.
func (r *Record) Spread(a *Adopted) error {
	for _, root := range a.outdated {
		if a.Superseded {
			if err := r.supersede(root); err != nil {
				return err
			}
		}
		if err := r.save(*a, root, a.saved); err != nil {
			return err
		}
	}
	return nil
}
