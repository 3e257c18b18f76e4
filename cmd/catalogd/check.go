package main

import (
	"errors"
	"fmt"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/problem"
)

type checkCmd struct {
	Dir        string `arg:"" optional:"" default:"." help:"The catalog's root."`
	Verbose    bool   `short:"v" help:"Also list the constraints of the tools' arguments and results that JSON Schema can't express."`
	Strict     bool   `help:"Make each of these an error (lossy_contract), and every warning."`
	Principals string `placeholder:"FILE" help:"The principals for whom tool visibility and rules are checked, as for matrix. The local principal by default."`
	catalogFlags
}

// checked is the JSON form of a check.
type checked struct {
	Problems problem.List `json:"problems"`
	Errors   int          `json:"errors"`
	Warnings int          `json:"warnings"`
	// Losses are included with -v.
	Losses *[]generation.Lost `json:"losses,omitempty"`
}

func (c *checkCmd) Run(e *env) error {
	cfg, err := c.config(e, c.Dir)
	if err != nil {
		return err
	}
	principals, err := readPrincipals(c.Principals)
	if err != nil {
		return err
	}
	done := e.progress("checking the catalog")
	problems, lost, err := catalogd.CheckFor(e.ctx, cfg, principals)
	done()
	if err := errors.Join(err, e.ctx.Err()); err != nil {
		return err
	}
	if c.Strict {
		problems = append(generation.Strict(problems), generation.LossErrors(lost)...).Sorted()
	}
	if !c.Verbose {
		lost = nil
	} else if lost == nil {
		lost = []generation.Lost{}
	}
	if err := e.checked(problems, lost); err != nil {
		return err
	}
	if problems.HasErrors() {
		return errFailed
	}
	return nil
}

// checked prints the result of a check. lost is nil if losses were not requested.
func (e *env) checked(problems problem.List, lost []generation.Lost) error {
	errs, warnings := problems.Count()
	if e.json {
		out := checked{Problems: problems, Errors: errs, Warnings: warnings}
		if out.Problems == nil {
			out.Problems = problem.List{}
		}
		if lost != nil {
			out.Losses = &lost
		}
		return e.printJSON(out)
	}
	if err := e.problems(problems); err != nil {
		return err
	}
	if err := e.losses(lost, ""); err != nil {
		return err
	}
	summary := "no problems"
	if errs+warnings > 0 {
		summary = count(errs, "error") + ", " + count(warnings, "warning")
	}
	switch {
	case lost != nil && len(lost) == 0 && errs > 0: // a catalog with errors has no tools whose losses could be counted
		summary += "; losses are listed once there are no errors"
	case lost != nil:
		summary += "; " + countLosses(len(lost))
	}
	_, err := fmt.Fprintln(e.stderr, summary)
	return err
}

func countLosses(n int) string {
	if n == 1 {
		return "1 loss"
	}
	return fmt.Sprintf("%d losses", n)
}
