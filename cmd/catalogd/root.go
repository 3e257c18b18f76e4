package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/catalogd/catalogd/problem"
)

// root returns the directory that a command works on: dir as it is, or if it is empty the nearest catalog at
// the working directory or above it. Without any it is the working directory, whose problems say what is
// missing. Positions in texts then begin at the working directory (seen).
func (e *env) root(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	found, err := findRoot()
	if err != nil || found == "" {
		return ".", err
	}
	if found == "." || filepath.IsAbs(found) {
		return found, nil
	}
	root, err := filepath.Abs(found)
	if err != nil {
		return "", err
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	e.below, err = filepath.Rel(root, here)
	return found, err
}

// seen returns a position with its file relative to the working directory instead of the catalog's root, if
// the root was found above.
func (e *env) seen(p problem.Position) problem.Position {
	if e.below == "" || p.File == "" {
		return p
	}
	if rel, err := filepath.Rel(e.below, filepath.FromSlash(p.File)); err == nil { // else p.File is not relative
		p.File = filepath.ToSlash(rel)
	}
	return p
}

// findRoot returns the nearest root of a catalog at the working directory or above it, up to the user's home
// or the top of the file system: relative to the working directory where possible, else absolute. It is empty
// if there is none.
//
// The working directory is taken as it is. What is found above it must belong to this user, to root or to the
// owner of the working directory: in a directory such as /tmp anybody could put a catalog above others' files,
// whose policy would then decide which commands run.
func findRoot() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if isRoot(here) {
		return ".", nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // then only the top of the file system ends the search
	}
	starts := []string{here}
	if real, err := filepath.EvalSymlinks(here); err == nil && real != here {
		starts = append(starts, real)
	}
	for _, start := range starts {
		for dir, up := start, ""; dir != home && filepath.Dir(dir) != dir; {
			dir, up = filepath.Dir(dir), filepath.Join(up, "..")
			if !isRoot(dir) {
				continue
			}
			if err := checkOwners(dir, here); err != nil {
				return "", err
			}
			if sameFile(up, dir) {
				return up, nil
			}
			return dir, nil
		}
	}
	return "", nil
}

// rootMarks are what the root of a catalog holds. The first two are found nowhere below it.
var rootMarks = []string{"cue.mod", "schema.cue", "catalog", "policy"}

// isRoot reports whether a directory is the root of a catalog: it has cue.mod or schema.cue, and another of
// rootMarks, since a root that lacks one of them needs `catalogd check` to say so.
func isRoot(dir string) bool {
	marks := marksOf(dir)
	return len(marks) > 1 && marks[0] != "catalog"
}

func marksOf(dir string) []string {
	return slices.DeleteFunc(slices.Clone(rootMarks), func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err != nil || info.IsDir() == (name == "schema.cue")
	})
}

// checkOwners returns an error if what makes a directory a root belongs to another user.
func checkOwners(dir, here string) error {
	trusted := []uint32{0, uint32(os.Geteuid())}
	if uid, err := ownerOf(here); err == nil {
		trusted = append(trusted, uid)
	}
	for _, name := range append(marksOf(dir), ".") {
		uid, err := ownerOf(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if !slices.Contains(trusted, uid) {
			return fmt.Errorf("the catalog found above, %s, belongs to another user (%s is of user %d); "+
				"to use it all the same name it: -C %s, or as DIR", dir, name, uid, dir)
		}
	}
	return nil
}

func ownerOf(name string) (uint32, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return 0, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, errors.New("can't find out who owns " + name)
	}
	return stat.Uid, nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// rootAround returns the nearest root of a catalog above a directory that may not exist yet, empty if there is
// none, or if the directory is a root itself.
func rootAround(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil || isRoot(dir) {
		return "", err
	}
	for filepath.Dir(dir) != dir {
		if dir = filepath.Dir(dir); isRoot(dir) {
			return dir, nil
		}
	}
	return "", nil
}

// noDirectory returns the error for a root that can't be used, nil if it is a directory.
func noDirectory(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no directory %s; name a catalog's root, or write a new catalog: catalogd init %s", dir, dir)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is a file; name the directory that holds schema.cue", dir)
	}
	return nil
}
