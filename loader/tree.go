package loader

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"

	"github.com/catalogd/catalogd/problem"
)

// Tree is the Source for an fs.FS, such as an embedded catalog. It reads the same files as Dir, within the
// same limits; an fs.FS has no symlinks.
type Tree struct {
	FS fs.FS
	// Schema is the schema.cue of a tree that has none; nil leaves it missing, which is a problem.
	Schema []byte
	Limits Limits
	// Tags are CUE tags, key=value or a shorthand; they are part of the digest.
	Tags []string
}

// Snapshot reads the tree.
func (t Tree) Snapshot(ctx context.Context) (*Snapshot, problem.List) {
	limits := t.Limits.orDefaults()
	r := reader{limits: limits, files: map[string][]byte{}, refused: map[string]bool{}}
	seen := 0
	err := fs.WalkDir(t.FS, ".", func(p string, e fs.DirEntry, err error) error {
		if ended := ctx.Err(); ended != nil {
			return ended
		}
		if err != nil {
			if p == "." {
				return err
			}
			r.refuse(p, problem.Unreadable, "the file can't be read: %v", reason(err))
			return nil
		}
		if p == "." {
			return nil
		}
		if skipped(p, e.IsDir()) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !e.IsDir() && !wanted(p) {
			return nil
		}
		if seen++; seen > limits.Files {
			return errTooMany
		}
		switch {
		case !e.IsDir() && !clean(p):
			r.refuse(p, problem.NotUTF8, badName)
		case e.IsDir():
			if info, err := fs.Stat(t.FS, path.Join(p, "cue.mod")); err == nil && info.IsDir() {
				if p == rootName || p == "policy" {
					r.refuse(p, problem.NoCatalog, nestedRoot, p)
				}
				return fs.SkipDir
			}
		case !e.Type().IsRegular():
			r.refuse(p, problem.NotRegular, "this is not a regular file (%s); remove it or give it another name", kind(e.Type()))
		default:
			r.take(p, func() ([]byte, error) { return readFrom(t.FS, p, limits.of(p)) })
		}
		return nil
	})
	switch {
	case errors.Is(err, errTooMany):
		r.problems.Errorf(problem.TooManyFiles, problem.Position{File: "."}, "",
			"the catalog has more than %d files and directories; remove what is not part of it, or raise the limit", limits.Files)
	case err != nil:
		return nil, noCatalog(err)
	}
	if _, ok := r.files[schemaPath]; !ok && !r.refused[schemaPath] && t.Schema != nil {
		r.files[schemaPath] = bytes.Clone(t.Schema)
	}
	return newSnapshot(r.files, nil, r.refused, t.Tags), r.problems.Sorted()
}

func readFrom(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}
