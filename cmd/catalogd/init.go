package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/catalogd/catalogd"
)

type initCmd struct {
	Dir     string `arg:"" optional:"" default:"." help:"The directory to write to; created if it does not exist."`
	Upgrade bool   `help:"Only bring schema.cue up to this version of catalogd."`
	Force   bool   `help:"Write even inside another catalog, which then doesn't see those files."`
}

// Run writes the starter catalog. It never overwrites: an existing file with other content is an error that
// names it, before anything is written. With --upgrade it replaces only schema.cue.
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
	var names []string
	err = fs.WalkDir(catalogd.Starter(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	var missing []string
	for _, name := range names {
		want, err := fs.ReadFile(catalogd.Starter(), name)
		if err != nil {
			return err
		}
		have, err := os.ReadFile(filepath.Join(c.Dir, filepath.FromSlash(name)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, name)
		case err != nil:
			return err
		case !bytes.Equal(have, want):
			return fmt.Errorf("%s exists already with other content; nothing was written (to bring an older schema.cue up to date: catalogd init --upgrade)",
				filepath.Join(c.Dir, filepath.FromSlash(name)))
		}
	}
	for _, name := range missing {
		data, err := fs.ReadFile(catalogd.Starter(), name)
		if err != nil {
			return err
		}
		path := filepath.Join(c.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := writeFile(path, data); err != nil {
			return err
		}
	}
	if e.json {
		if missing == nil {
			missing = []string{}
		}
		return e.printJSON(map[string]any{"written": missing})
	}
	for _, name := range missing {
		fmt.Fprintln(e.stdout, name)
	}
	fmt.Fprintf(e.stderr, "%s written; next: catalogd check %s && catalogd serve %s\n", count(len(missing), "file"), c.Dir, c.Dir)
	return nil
}

func (c *initCmd) upgrade(e *env) error {
	if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no directory %s; --upgrade is for a catalog that exists", c.Dir)
	}
	path := filepath.Join(c.Dir, "schema.cue")
	have, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	changed := !bytes.Equal(have, catalogd.Schema())
	if changed {
		if err := writeFile(path, catalogd.Schema()); err != nil {
			return err
		}
	}
	if e.json {
		written := []string{}
		if changed {
			written = append(written, "schema.cue")
		}
		return e.printJSON(map[string]any{"written": written})
	}
	if !changed {
		fmt.Fprintln(e.stderr, "schema.cue is up to date")
		return nil
	}
	fmt.Fprintln(e.stdout, "schema.cue")
	return nil
}

// writeFile writes a file atomically, so that a watching daemon never reads a part of it.
func writeFile(path string, data []byte) (err error) {
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
	if err = f.Chmod(0o644); err != nil {
		return errors.Join(err, f.Close())
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
