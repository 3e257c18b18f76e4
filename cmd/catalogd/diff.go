package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/diff"
)

type diffCmd struct {
	Old        string   `arg:"" help:"A directory, or a git revision."`
	New        string   `arg:"" optional:"" help:"The same; the directory of -C, as it is now, by default."`
	Dir        string   `short:"C" help:"The catalog's root, of which revisions are taken; by default the nearest one, from the working directory upwards."`
	Principals string   `placeholder:"FILE" help:"The principals for whom visibility is compared, as for matrix. The local principal by default."`
	FailOn     []string `placeholder:"WHAT" enum:"any,breaking,visibility,trust,widening" help:"Exit with 1 if there is a change of this kind: any, breaking, visibility (gained), trust (gained or changed), widening (anything that widens, or that can't be classed)."`
	catalogFlags
}

func (*diffCmd) formats() []string { return []string{"markdown"} }

// Run exits with 0 if both sides load, unless --fail-on demands more.
func (c *diffCmd) Run(e *env) error {
	cfg, err := c.config(e, c.Dir)
	if err != nil {
		return err
	}
	c.New = cmp.Or(c.New, cfg.Dir)
	principals, err := readPrincipals(c.Principals)
	if err != nil {
		return err
	}
	collectLess()
	done := e.progress("comparing the two")
	d, err := catalogd.Diff(e.ctx, cfg, c.Old, c.New, principals)
	done()
	var side *catalogd.SideError
	var refused *catalogd.RefusedError
	if errors.As(err, &side) && errors.As(err, &refused) {
		fmt.Fprintf(e.stderr, "catalogd: %s does not load:\n", side.Name)
		return side.Err
	}
	if err != nil {
		return err
	}
	switch e.format {
	case "json":
		err = e.printJSON(d)
	case "markdown":
		_, err = fmt.Fprint(e.stdout, d.Markdown())
	default:
		_, err = fmt.Fprint(e.stdout, d.Text())
	}
	if err == nil && c.fails(d) {
		return errFailed
	}
	return err
}

func (c *diffCmd) fails(d *diff.Difference) bool {
	return slices.ContainsFunc(c.FailOn, func(what string) bool {
		switch strings.ToLower(what) {
		case "any":
			return !d.Empty()
		case "breaking":
			return d.Breaking()
		case "visibility":
			return len(d.Gained)+len(d.NotCompared) > 0
		case "widening":
			return d.Class().Widens()
		}
		return len(d.Trusted)+len(d.Redirected)+len(d.NotCompared) > 0
	})
}
