package main

import (
	"cmp"
	"errors"
	"time"

	"github.com/catalogd/catalogd"
)

// limitFlags cap the calls that run and wait at once, and the length of a list's page.
type limitFlags struct {
	MaxCalls             int           `default:"256" help:"How many calls may run at once on one branch."`
	MaxCallsTotal        int           `placeholder:"N" help:"How many calls may run at once on all branches, by default four times --max-calls; with tokens, one principal gets half of them."`
	MaxCallsPerPrincipal int           `placeholder:"N" help:"With tokens: how many calls of one principal may run at once on one branch, by default half of --max-calls."`
	MaxCallsPerTool      int           `placeholder:"N" help:"How many calls of one tool may run at once on one branch, by default half of --max-calls."`
	MaxWaiting           int           `default:"64" help:"How many more calls of one branch may wait; 0 refuses at once."`
	MaxWait              time.Duration `default:"1s" help:"How long a call may wait for others to end."`
	ListPage             int           `default:"1000" help:"How many tools, resources, templates or prompts one page of a list has; clients follow the cursor to the next."`
}

// limit sets the limits.
func (f limitFlags) limit(cfg *catalogd.Config) error {
	if f.MaxCalls < 1 || min(f.MaxCallsTotal, f.MaxCallsPerPrincipal, f.MaxCallsPerTool, f.MaxWaiting) < 0 {
		return errors.New("--max-calls must be at least 1, and the other limits of calls can't be negative")
	}
	if f.MaxWait <= 0 {
		return errors.New("--max-wait must be more than 0; --max-waiting 0 lets no call wait")
	}
	if f.ListPage < 1 {
		return errors.New("--list-page must be at least 1")
	}
	cfg.Serving.Page = f.ListPage
	cfg.Serving.Calls, cfg.Serving.AllCalls = f.MaxCalls, f.MaxCallsTotal
	cfg.Serving.CallsPerPrincipal, cfg.Serving.CallsPerTool = f.MaxCallsPerPrincipal, f.MaxCallsPerTool
	cfg.Serving.Queue, cfg.Serving.QueueWait = cmp.Or(f.MaxWaiting, -1), f.MaxWait
	return nil
}
