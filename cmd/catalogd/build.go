package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/problem"
)

type buildCmd struct {
	Dir string `arg:"" optional:"" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	Out string `name:"output" short:"o" required:"" placeholder:"FILE" help:"The file to write, for catalogd serve --build FILE."`
	catalogFlags
}

// Run runs the checks of `check`, and writes nothing if there is an error.
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

// servedFlags configure what a daemon serves and what it stores; the catalog directory is a flag of each
// command.
type servedFlags struct {
	Build string `placeholder:"FILE" help:"Serve a file that catalogd build wrote, without the catalog's directory. Nothing is watched; a reload reads the file again."`
	Root  string `placeholder:"DIR" help:"With --build: what relative commands and secret files refer to, by default the file's directory."`
	stateFlags
	keptIntentFlags
	decisionLogFlags
	limitFlags
	traceFlags
	catalogFlags
}

// config returns the configuration of a daemon that serves dir; dir is empty if the command line names none.
func (f servedFlags) config(e *env, dir string) (cfg catalogd.Config, err error) {
	if cfg, err = f.source(e, dir); err != nil {
		return cfg, err
	}
	return cfg, errors.Join(f.set(&cfg), f.limit(&cfg), f.trace(&cfg))
}

func (f servedFlags) source(e *env, dir string) (cfg catalogd.Config, err error) {
	switch {
	case f.Build == "" && f.Root != "":
		return cfg, errors.New("--root is for --build; a catalog's directory is its own root")
	case f.Build != "" && dir != "":
		return cfg, errors.New("--build serves a file and no directory; name what relative paths refer to with --root")
	case f.Build != "" && len(f.Tag) > 0:
		return cfg, errors.New("--tag is for catalogd build; a build has its tags in it")
	case f.Build == "":
		return f.catalogFlags.config(e, dir)
	}
	switch info, err := os.Stat(f.Build); {
	case err != nil:
		return cfg, fmt.Errorf("the build file can't be read: %w", err)
	case info.IsDir():
		return cfg, fmt.Errorf("%s is a directory; --build takes a file that catalogd build wrote", f.Build)
	}
	if f.Root == "" {
		if err := checkBuildRoot(f.Build); err != nil {
			return cfg, err
		}
	}
	cfg, err = f.catalogFlags.config(e, cmp.Or(f.Root, filepath.Dir(f.Build)))
	cfg.Build = f.Build
	return cfg, err
}

// checkBuildRoot returns an error if the folder of a build file can't be meant as its root: if it holds the
// home or the directory for temporary files, then almost everything would count as the catalog's own tree.
func checkBuildRoot(file string) error {
	root, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return err
	}
	places := map[string]string{"the directory for temporary files": os.TempDir()}
	if home, err := os.UserHomeDir(); err == nil {
		places["your home"] = home
	}
	for _, what := range slices.Sorted(maps.Keys(places)) {
		if rel, err := filepath.Rel(root, places[what]); err != nil || !filepath.IsLocal(rel) {
			continue
		}
		return fmt.Errorf("without --root, relative commands and secret files refer to the folder of the build file, %s, and all in it "+
			"counts as the catalog's own; that can't be right, because it is or holds %s; name the catalog's root with --root DIR", root, what)
	}
	return nil
}

// stateFlags configure the state that is kept between starts.
type stateFlags struct {
	State     string `placeholder:"DIR" help:"Keep the build cache and the last adopted files in this directory of mode 0700, by default catalogd's own in the user's state directory; none disables this."`
	Bootstrap bool   `help:"Let the policy in the files decide on their adoption, instead of the last adopted policy."`
}

// keep sets the state directory.
func (f stateFlags) keep(cfg *catalogd.Config) {
	cfg.State, cfg.Bootstrap = f.State, f.Bootstrap
	switch cfg.State {
	case "":
	case "none":
		cfg.State = ""
		cfg.Log.Info("no state is kept (--state none): what is adopted is not remembered for the next start")
		return
	default:
		return
	}
	dir, err := buildcache.DefaultDirectory()
	if err != nil {
		cfg.Log.Warn("no state is kept: the next start will be slow, and what is adopted is not remembered for it; name a directory with --state, or none", "error", err)
		return
	}
	cfg.State = dir
}
