// Package gitfs reads a directory as a git repository had it at some revision: out of the repository's own objects,
// without a git program, a network or a checkout. What it returns is an fs.FS, so that a catalog of last week is loaded
// by the same code as the one on disk.
package gitfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
)

// Revision is a directory at a commit. It is immutable; its FS is for one goroutine.
type Revision struct {
	// Name is what was asked for, Commit the hash that it meant, and Time when that was committed.
	Name   string
	Commit string
	Time   time.Time
	// FS holds the directory. A symbolic link to a file in it is that file; all other links, and submodules, are
	// irregular files, which a catalog can't consist of.
	FS fs.FS
}

// Open reads dir, which a git repository must hold, at a revision as git spells it: a branch, a tag, a hash or the
// beginning of one, HEAD~2. A directory that did not exist then is an error that wraps fs.ErrNotExist.
func Open(dir, name string) (*Revision, error) {
	repository, err := git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) {
		repository, err = git.PlainOpen(dir) // one without a worktree has no .git to be found by
	}
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return nil, fmt.Errorf("%q is not a directory, and %s is not in a git repository that could have such a revision", name, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the git repository of %s: %w", dir, err)
	}
	hash, err := repository.ResolveRevision(plumbing.Revision(name))
	if err != nil {
		return nil, fmt.Errorf("%q is neither a directory nor a revision of the git repository (%w); one that was not fetched, as in a shallow clone, has to be fetched first", name, err)
	}
	commit, err := repository.CommitObject(*hash)
	if err != nil {
		return nil, fmt.Errorf("reading the commit %s: %w", hash, err)
	}
	root, err := commit.Tree()
	if err != nil {
		return nil, fmt.Errorf("reading the files of commit %s: %w", hash, err)
	}
	below, err := place(repository, dir)
	if err != nil {
		return nil, err
	}
	if below != "." {
		if root, err = root.Tree(below); err != nil {
			return nil, fmt.Errorf("%s had no directory %s: %w", name, below, fs.ErrNotExist)
		}
	}
	return &Revision{Name: name, Commit: hash.String(), Time: commit.Committer.When.UTC(), FS: &tree{root: root}}, nil
}

// place is where dir stands in its repository, with slashes; "." in a repository that has no worktree.
func place(repository *git.Repository, dir string) (string, error) {
	worktree, err := repository.Worktree()
	if errors.Is(err, git.ErrIsBareRepository) {
		return ".", nil
	}
	if err != nil {
		return "", err
	}
	// Either may be reached through links, and then they have no path from one to the other.
	top, err := filepath.EvalSymlinks(worktree.Filesystem.Root())
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", err
	}
	below, err := filepath.Rel(top, dir)
	if err != nil || below == ".." || strings.HasPrefix(below, ".."+string(filepath.Separator)) {
		return "", fmt.Errorf("%s is not in the worktree of its git repository, %s", dir, top)
	}
	return filepath.ToSlash(below), nil
}
