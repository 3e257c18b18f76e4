package main

import (
	"errors"
	"fmt"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/problem"
)

type checkCmd struct {
	Dir        string `arg:"" optional:"" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	Verbose    bool   `short:"v" help:"Also list the constraints of the tools' arguments and results that JSON Schema can't express, and the tools' effect notes."`
	Strict     bool   `help:"Make each of these an error (lossy_contract), and every warning."`
	Principals string `placeholder:"FILE" help:"The principals for whom tool visibility and rules are checked, as for matrix. The local principal by default."`
	catalogFlags
}

// checked is the JSON form of a check.
type checked struct {
	Problems problem.List `json:"problems"`
	Errors   int          `json:"errors"`
	Warnings int          `json:"warnings"`
	// Losses and EffectNotes are included with -v.
	Losses      *[]generation.Lost       `json:"losses,omitempty"`
	EffectNotes *[]generation.EffectNote `json:"effectNotes,omitempty"`
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
	found, err := catalogd.CheckFor(e.ctx, cfg, principals)
	done()
	if err := errors.Join(err, e.ctx.Err()); err != nil {
		return err
	}
	if c.Strict {
		found.Problems = append(generation.Strict(found.Problems), generation.LossErrors(found.Losses)...).Sorted()
	}
	if err := e.checked(found, c.Verbose); err != nil {
		return err
	}
	if found.Problems.HasErrors() {
		return errFailed
	}
	return nil
}

// checked prints the result of a check; with verbose, losses and effect notes too.
func (e *env) checked(found generation.Checked, verbose bool) error {
	errs, warnings := found.Problems.Count()
	lost, notes := found.Losses, found.EffectNotes
	if e.json {
		out := checked{Problems: found.Problems, Errors: errs, Warnings: warnings}
		if out.Problems == nil {
			out.Problems = problem.List{}
		}
		if lost == nil {
			lost = []generation.Lost{}
		}
		if notes == nil {
			notes = []generation.EffectNote{}
		}
		if verbose {
			out.Losses, out.EffectNotes = &lost, &notes
		}
		return e.printJSON(out)
	}
	if err := e.problems(found.Problems); err != nil {
		return err
	}
	summary := "no problems"
	if errs+warnings > 0 {
		summary = count(errs, "error") + ", " + count(warnings, "warning")
	}
	if verbose {
		if err := e.losses(lost, ""); err != nil {
			return err
		}
		for _, n := range notes {
			line := fmt.Sprintf("%s: effect note: tools.%s.effectNote: %s", n.Pos, n.Tool, n)
			if _, err := fmt.Fprintln(e.stderr, problem.Printable(line)); err != nil {
				return err
			}
		}
		if len(lost) == 0 && errs > 0 { // a catalog with errors has no tools whose losses could be counted
			summary += "; losses are listed once there are no errors"
		} else {
			summary += "; " + countLosses(len(lost))
		}
		if len(notes) > 0 {
			summary += ", " + count(len(notes), "effect note")
		}
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
