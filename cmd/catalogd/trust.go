package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/serve"
)

type trustCmd struct {
	Why string `placeholder:"NAME" help:"Say which rules decide on this server or tool, what they are asked, and where all that is written."`
	Dir string `short:"C" default:"." help:"The catalog's root."`
	catalogFlags
}

func (c *trustCmd) Run(e *env) error {
	catalog, err := e.open(c.catalogFlags, c.Dir)
	if err != nil {
		return err
	}
	defer catalog.Close()
	if c.Why != "" {
		return c.why(e, catalog)
	}
	reaches := catalog.Reaches()
	if e.json {
		return e.printJSON(reaches)
	}
	rows := [][]string{{"KIND", "NAME", "DECISION", "TRUST", "WRITTEN", "DECLARED", "TARGET", "NOTES", "REASONS"}}
	for _, r := range reaches {
		decided, entry := "denied", "-"
		if r.Decision.Allow {
			decided, entry = "allowed", r.Trust
		}
		rows = append(rows, []string{r.Kind, r.Name, decided, entry, r.Written.String(), r.Pos.String(), r.Target.String(), notes(r), strings.Join(r.Decision.Reasons, "; ")})
	}
	return e.table(rows)
}

// why prints what was asked about one server or tool and the rules that answered. It exits 0 whatever the decision is.
func (c *trustCmd) why(e *env, catalog *catalogd.Catalog) error {
	found, err := catalog.ExplainReach(e.ctx, c.Why)
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(found)
	}
	for _, x := range found {
		asked, err := json.MarshalIndent(x.Target, "  ", "  ")
		if err != nil {
			return err
		}
		seen, err := json.MarshalIndent(x.Observed, "  ", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "%s %s, declared at %s\n  asked  %s\n  seen   %s\n", x.Kind, x.Name, x.Pos, asked, seen)
		if note := notes(x.Reach); note != "" {
			fmt.Fprintf(e.stdout, "  notes  %s\n", note)
		}
		fmt.Fprintln(e.stdout, x.Explanation)
	}
	return nil
}

// notes are what an operator should know of a way out beside its target: what of the environment is handed on and what is
// not, and whether what runs is pinned, or lies where a change of the catalog changes it.
func notes(r serve.Reach) string {
	var notes []string
	if r.Observed.InTree {
		notes = append(notes, "in the catalog's tree")
	}
	if r.Pinned {
		notes = append(notes, "pinned")
	}
	if len(r.Decision.Env) > 0 {
		notes = append(notes, "passes "+strings.Join(r.Decision.Env, " "))
	}
	if len(r.Decision.Withheld) > 0 {
		notes = append(notes, "withholds "+strings.Join(r.Decision.Withheld, " "))
	}
	return strings.Join(notes, "; ")
}
