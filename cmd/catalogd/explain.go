package main

import (
	"encoding/json"
	"fmt"
)

type explainCmd struct {
	Branch string `arg:"" help:"The branch."`
	Tool   string `arg:"" help:"The tool."`
	Args   string `placeholder:"JSON" help:"The arguments of the call, a JSON object."`
	Dir    string `short:"C" default:"." help:"The catalog's root."`
	catalogFlags
}

// Run exits 0 whatever the decision is: it was asked why, and says so.
func (c *explainCmd) Run(e *env) error {
	if c.Args != "" {
		if err := validJSON(c.Args); err != nil {
			return err
		}
	}
	catalog, err := e.open(c.catalogFlags, c.Dir)
	if err != nil {
		return err
	}
	defer catalog.Close()
	x, err := catalog.Explain(e.ctx, c.Branch, c.Tool, json.RawMessage(c.Args))
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(x)
	}
	_, err = fmt.Fprintln(e.stdout, x)
	return err
}
