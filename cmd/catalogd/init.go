package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/catalogd/catalogd"
)

type initCmd struct {
	Dir     string `arg:"" optional:"" default:"." help:"The directory to write to; created if it does not exist."`
	Upgrade bool   `help:"Only bring schema.cue and policy/catalogd/ up to this version of catalogd."`
	Force   bool   `help:"Write even inside another catalog, which then doesn't see those files."`
}

//go:embed scaffold
var scaffold embed.FS

// beside are the files of a new repository beside the catalog, by their names in scaffold. One that exists is
// left as it is.
var beside = map[string]string{
	"README.md": "README.md", ".gitignore": "gitignore", ".github/workflows/catalog.yml": "catalog.yml",
}

// Run writes the starter catalog. It never overwrites: an existing file with other content is an error that
// names it, before anything is written. With --upgrade it replaces only what is catalogd's.
func (c *initCmd) Run(e *env) error {
	if c.Upgrade {
		return c.upgrade(e)
	}
	around, err := rootAround(c.Dir)
	if err != nil {
		return err
	}
	if around != "" && !c.Force {
		return fmt.Errorf("%s lies in the catalog %s, which would not see what a catalog of its own holds; nothing was written "+
			"(to use that catalog, run the other commands anywhere in it; to write one here all the same: --force)", c.Dir, around)
	}
	files, err := starterFiles()
	if err != nil {
		return err
	}
	missing := map[string][]byte{}
	for name, want := range files {
		have, err := os.ReadFile(c.path(name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing[name] = want
		case err != nil:
			return err
		case !bytes.Equal(have, want) && beside[name] == "":
			return fmt.Errorf("%s exists already with other content; nothing was written "+
				"(to bring an older catalog up to date: catalogd init --upgrade)", c.path(name))
		}
	}
	if err := c.write(missing); err != nil {
		return err
	}
	if e.json {
		return e.printJSON(map[string]any{"written": names(missing)})
	}
	for _, name := range names(missing) {
		fmt.Fprintln(e.stdout, name)
	}
	fmt.Fprintf(e.stderr, "%s written; next: catalogd check %s && catalogd serve %s\n", count(len(missing), "file"), c.Dir, c.Dir)
	return nil
}

func (c *initCmd) path(name string) string { return filepath.Join(c.Dir, filepath.FromSlash(name)) }

func (c *initCmd) write(files map[string][]byte) error {
	for _, name := range names(files) {
		if err := os.MkdirAll(filepath.Dir(c.path(name)), 0o755); err != nil {
			return err
		}
		if err := writeFile(c.path(name), files[name]); err != nil {
			return err
		}
	}
	return nil
}

// names returns the names of the files, sorted; never nil.
func names(files map[string][]byte) []string {
	return slices.AppendSeq([]string{}, slices.Values(slices.Sorted(maps.Keys(files))))
}

// starterFiles returns every file that init writes.
func starterFiles() (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(catalogd.Starter(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[name], err = fs.ReadFile(catalogd.Starter(), name)
		return err
	})
	for name, from := range beside {
		if err == nil {
			files[name], err = scaffold.ReadFile("scaffold/" + from)
		}
	}
	return files, err
}

// writeFile writes a file atomically, so that a watching daemon never reads a part of it.
func writeFile(path string, data []byte) error { return replaceFile(path, data, 0o644) }

// replaceFile is writeFile with a mode.
func replaceFile(path string, data []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".catalogd-*")
	var at *fs.PathError
	if errors.As(err, &at) {
		return &fs.PathError{Op: "write", Path: path, Err: at.Err}
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err = f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	if err = f.Chmod(mode); err != nil {
		return errors.Join(err, f.Close())
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
