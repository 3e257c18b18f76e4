package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
)

type explainCmd struct {
	Branch    string   `arg:"" help:"The branch."`
	Tool      string   `arg:"" help:"The tool."`
	Args      string   `placeholder:"JSON" help:"The arguments of the call, a JSON object."`
	Principal string   `placeholder:"NAME" help:"Who would call; the local operator by default."`
	Group     []string `help:"A group that the principal is in; may be given several times."`
	Admin     bool     `help:"The principal's token may administer the daemon."`
	At        string   `placeholder:"REV" help:"Ask the catalog as a git revision, or another directory, has it."`
	Dir       string   `short:"C" default:"." help:"The catalog's root."`
	catalogFlags
}

// Run exits 0 whatever the decision is: it was asked why, and says so.
func (c *explainCmd) Run(e *env) error {
	if c.Args != "" {
		if err := validJSON(c.Args); err != nil {
			return err
		}
	}
	principal, err := c.principal()
	if err != nil {
		return err
	}
	cfg, err := c.config(e, c.Dir)
	if err != nil {
		return err
	}
	done := e.progress("compiling the catalog")
	x, err := catalogd.Explain(e.ctx, cfg, c.At, c.Branch, invoke.Request{Tool: c.Tool, Arguments: json.RawMessage(c.Args), Principal: principal})
	done()
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(x)
	}
	_, err = fmt.Fprintln(e.stdout, x)
	return err
}

func (c *explainCmd) principal() (decision.Principal, error) {
	if c.Principal == "" {
		if len(c.Group) > 0 || c.Admin {
			return decision.Principal{}, errors.New("--group and --admin are of a principal; name it with --principal")
		}
		return decision.Local(), nil
	}
	return decision.Principal{Name: c.Principal, Groups: append([]string{}, c.Group...), Admin: c.Admin}, nil
}
