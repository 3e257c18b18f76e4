package main

import (
	"errors"
	"fmt"

	"github.com/catalogd/catalogd"
)

type checkCmd struct {
	Dir string `arg:"" optional:"" default:"." help:"The catalog's root."`
	catalogFlags
}

func (c *checkCmd) Run(e *env) error {
	cfg, err := c.config(e, c.Dir)
	if err != nil {
		return err
	}
	done := e.progress("checking the catalog")
	problems, err := catalogd.Check(e.ctx, cfg)
	done()
	if err := errors.Join(err, e.ctx.Err()); err != nil {
		return err
	}
	if err := e.problems(problems); err != nil {
		return err
	}
	errs, warnings := problems.Count()
	if !e.json {
		switch {
		case errs == 0 && warnings == 0:
			fmt.Fprintln(e.stderr, "no problems")
		default:
			fmt.Fprintf(e.stderr, "%s, %s\n", count(errs, "error"), count(warnings, "warning"))
		}
	}
	if errs > 0 {
		return errFailed
	}
	return nil
}
