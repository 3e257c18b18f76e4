package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/generation"
)

type trustCmd struct {
	Why     string `placeholder:"NAME" help:"Show which rules decide on this server or tool, their input, and the positions of all."`
	Propose bool   `help:"Print the trust entry that would allow NAME, with a comment on each field; without NAME, for everything that is not trusted."`
	Name    string `arg:"" optional:"" help:"The server or tool, with --propose."`
	Dir     string `short:"C" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	catalogFlags
}

func (c *trustCmd) Run(e *env) error {
	if c.Name != "" && !c.Propose {
		return errors.New("a name is for --propose NAME or --why NAME")
	}
	e.document = c.Propose && !e.json
	catalog, err := e.opened(c.catalogFlags, c.Dir)
	if err != nil {
		return err
	}
	defer catalog.Close()
	if c.Why != "" {
		return c.why(e, catalog)
	}
	if c.Propose {
		return c.propose(e, catalog)
	}
	reaches := catalog.ConnectDecisions()
	if e.json {
		return e.printJSON(reaches)
	}
	rows := [][]string{{"KIND", "NAME", "DECISION", "TRUST", "WRITTEN", "DECLARED", "TARGET", "NOTES", "REASONS"}}
	for _, r := range reaches {
		decided, entry, why := "denied", "-", strings.Join(r.Decision.Reasons, "; ")
		switch {
		case r.Decision.Allow:
			decided, entry = "allowed", r.Trust
		case r.Missing != "":
			decided, why = "missing", r.Missing
		}
		rows = append(rows, []string{
			r.Kind, r.Name, decided, entry, r.Written.String(), e.seen(r.Pos).String(), r.Target.String(), notes(r), why,
		})
	}
	return e.table(rows)
}

// why prints the input of the decision about one server or tool and the rules that answered. It exits with 0
// whatever the decision is.
func (c *trustCmd) why(e *env, catalog *catalogd.Catalog) error {
	found, err := catalog.ExplainConnect(e.ctx, c.Why)
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
		fmt.Fprintf(e.stdout, "%s %s, declared at %s\n  asked  %s\n  seen   %s\n", x.Kind, x.Name, e.seen(x.Pos), asked, seen)
		if note := notes(x.Reach); note != "" {
			fmt.Fprintf(e.stdout, "  notes  %s\n", note)
		}
		fmt.Fprintln(e.stdout, x.Explanation)
	}
	return nil
}

// notes returns what an operator should know about an outward connection besides its target: whether the
// program is pinned, or is in a place that a change of the catalog changes, and every variable that it
// receives, by the origin of its value.
func notes(r generation.Reach) string {
	var notes []string
	if r.Observed.InTree {
		notes = append(notes, "in the catalog's tree")
	}
	if r.Pinned {
		notes = append(notes, "pinned")
	}
	var given []string
	for _, from := range []egress.Origin{egress.FromBase, egress.FromDaemon, egress.FromDeclaration, egress.FromEntry} {
		if names := ofOrigin(r.Variables, from); len(names) > 0 {
			given = append(given, fmt.Sprintf("%s (%s)", strings.Join(names, " "), from))
		}
	}
	if len(given) > 0 {
		notes = append(notes, "gets "+strings.Join(given, ", "))
	}
	return strings.Join(notes, "; ")
}

// ofOrigin returns the variables of one origin; variables fixed by an entry include the value.
func ofOrigin(all []egress.Variable, from egress.Origin) (names []string) {
	for _, v := range all {
		switch {
		case v.From != from:
		case from == egress.FromEntry:
			names = append(names, v.Name+"="+v.Value)
		default:
			names = append(names, v.Name)
		}
	}
	return names
}
