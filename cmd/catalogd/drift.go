package main

import (
	"fmt"
	"strings"

	"github.com/catalogd/catalogd/internal/lockfile"
)

type driftCmd struct {
	Dir string `short:"C" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	catalogFlags
}

// driftReport compares what one server offers with what is locked.
type driftReport struct {
	Server string `json:"server"`
	// Error is why the server could not be queried.
	Error   string            `json:"error,omitempty"`
	Locked  lockfile.Identity `json:"locked"`
	Offered lockfile.Identity `json:"offered"`
	// Changes are the tools that differ.
	Changes []lockfile.Change `json:"changes"`
}

// Run shows the drift between the lock and what the servers offer now. Any drift is exit code 1.
func (c *driftCmd) Run(e *env) error {
	survey, err := c.survey(e, c.Dir)
	if err != nil {
		return err
	}
	reports, differs := []driftReport{}, false
	rows := [][]string{{"TOOL", "CHANGE", "DETAILS"}}
	for _, s := range survey.Servers {
		locked, _ := survey.Lock.Server(s.Server.Name)
		locked.Name = s.Server.Name
		r := driftReport{Server: s.Server.Name, Locked: locked.Identity, Offered: s.Offer.Identity, Changes: []lockfile.Change{}}
		if s.Err != nil {
			r.Error, differs = s.Err.Error(), true
			rows = append(rows, []string{s.Server.Name, "not asked", r.Error})
			reports = append(reports, r)
			continue
		}
		if len(locked.Tools) > 0 && locked.Identity.Name != s.Offer.Identity.Name {
			differs = true
			rows = append(rows, []string{s.Server.Name, "identity", fmt.Sprintf("it was %q and says that it is %q", locked.Identity.Name, s.Offer.Identity.Name)})
		}
		for _, change := range lockfile.Compare(locked, s.Offer, s.Chosen) {
			if change.Kind == lockfile.Identical {
				continue
			}
			differs = true
			r.Changes = append(r.Changes, change)
			details := strings.Join(append(change.Details, change.Findings...), "; ")
			rows = append(rows, []string{s.Server.Name + "/" + change.Tool, string(change.Kind), details})
		}
		reports = append(reports, r)
	}
	switch {
	case e.json:
		err = e.printJSON(reports)
	case !differs:
		_, err = fmt.Fprintln(e.stdout, "no drift: what is offered is what is locked")
	default:
		err = e.table(rows)
	}
	if err == nil && differs {
		return errFailed
	}
	return err
}
