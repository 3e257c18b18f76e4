package main

import (
	"strings"

	"github.com/catalogd/catalogd/decision/trust"
)

type trustCmd struct {
	Dir string `short:"C" default:"." help:"The catalog's root."`
	catalogFlags
}

func (c *trustCmd) Run(e *env) error {
	catalog, err := e.open(c.catalogFlags, c.Dir)
	if err != nil {
		return err
	}
	defer catalog.Close()
	reaches := catalog.Reaches()
	if e.json {
		return e.printJSON(reaches)
	}
	rows := [][]string{{"KIND", "NAME", "DECISION", "TRUST", "WRITTEN", "DECLARED", "TARGET", "REASONS"}}
	for _, r := range reaches {
		decided, entry := "denied", "-"
		if r.Decision.Allow {
			decided, entry = "allowed", r.Trust
		}
		rows = append(rows, []string{r.Kind, r.Name, decided, entry, r.Written.String(), r.Pos.String(), target(r.Target), strings.Join(r.Decision.Reasons, "; ")})
	}
	return e.table(rows)
}

// target is a target in one line, for people.
func target(t trust.Target) string {
	if t.Command != nil {
		line := strings.Join(append([]string{t.Command.Path}, t.Command.Args...), " ")
		if t.Command.Dir != "" {
			line += " (in " + t.Command.Dir + ")"
		}
		return line
	}
	if t.URL != nil {
		return t.URL.Origin() + t.URL.Path
	}
	return string(t.Kind)
}
