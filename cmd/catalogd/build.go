package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/state"
	"github.com/catalogd/catalogd/problem"
)

type buildCmd struct {
	Dir string `arg:"" optional:"" default:"." help:"The catalog's root."`
	Out string `name:"output" short:"o" required:"" placeholder:"FILE" help:"The file to write, for catalogd serve --build FILE."`
	catalogFlags
}

// Run checks as `check` does, and writes nothing where there is an error.
func (c *buildCmd) Run(e *env) error {
	cfg, err := c.config(e, c.Dir)
	if err != nil {
		return err
	}
	done := e.progress("building the catalog")
	built, problems, err := catalogd.Build(e.ctx, cfg)
	done()
	if err != nil {
		return err
	}
	if built == nil {
		return &catalogd.RefusedError{Problems: problems}
	}
	if err := writeFile(c.Out, built.Data); err != nil {
		return err
	}
	if e.json {
		if problems == nil {
			problems = problem.List{}
		}
		return e.printJSON(struct {
			File       string       `json:"file"`
			Generation string       `json:"generation"`
			Source     string       `json:"source"`
			Bytes      int          `json:"bytes"`
			Tools      int          `json:"tools"`
			Servers    int          `json:"servers"`
			Branches   int          `json:"branches"`
			Problems   problem.List `json:"problems"`
		}{c.Out, built.Generation, built.Source, len(built.Data), built.Tools, built.Servers, built.Branches, problems})
	}
	if err := e.problems(problems); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "%s: generation %s, %s\n", c.Out, short(built.Generation), count(built.Tools, "tool"))
	return err
}

// servedFlags say what a daemon serves and what it keeps; the directory is each command's own.
type servedFlags struct {
	Build string `placeholder:"FILE" help:"Serve a file that catalogd build wrote, without the catalog's directory. Nothing is watched; a reload reads the file again."`
	Root  string `placeholder:"DIR" help:"With --build: what relative commands and secret files refer to, by default the file's directory."`
	State string `placeholder:"DIR" help:"Keep what makes the next start fast in this directory of mode 0700, by default catalogd's own in the user's state directory."`
	decisionLogFlags
	catalogFlags
}

// config is the configuration of a daemon that serves dir, which is empty where the command line names none.
func (f servedFlags) config(e *env, dir string) (cfg catalogd.Config, err error) {
	switch {
	case f.Build == "" && f.Root != "":
		return cfg, errors.New("--root is for --build; a catalog's directory is its own root")
	case f.Build != "" && dir != "":
		return cfg, errors.New("--build serves a file and no directory; name what relative paths refer to with --root")
	case f.Build != "" && len(f.Tag) > 0:
		return cfg, errors.New("--tag is for catalogd build; a build has its tags in it")
	case f.Build == "":
		return f.catalogFlags.config(e, cmp.Or(dir, "."))
	}
	switch info, err := os.Stat(f.Build); {
	case err != nil:
		return cfg, fmt.Errorf("the build file can't be read: %w", err)
	case info.IsDir():
		return cfg, fmt.Errorf("%s is a directory; --build takes a file that catalogd build wrote", f.Build)
	}
	cfg, err = f.catalogFlags.config(e, cmp.Or(f.Root, filepath.Dir(f.Build)))
	cfg.Build = f.Build
	return cfg, err
}

// keep chooses the state directory.
func (f servedFlags) keep(cfg *catalogd.Config) {
	cfg.State = f.State
	if cfg.State != "" {
		return
	}
	dir, err := state.Default()
	if err != nil {
		cfg.Log.Warn("no state is kept: the next start will be slow; name a directory with --state", "error", err)
		return
	}
	cfg.State = dir
}
