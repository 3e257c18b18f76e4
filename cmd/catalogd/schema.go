package main

import (
	"fmt"
	"strings"

	"github.com/catalogd/catalogd/internal/serve"
	"github.com/catalogd/catalogd/registry"
)

type schemaCmd struct {
	Branch string   `arg:"" help:"The branch."`
	Tools  []string `arg:"" optional:"" help:"Only these tools."`
	Dir    string   `short:"C" default:"." help:"The catalog's root."`
	catalogFlags
}

// Run prints the tools exactly as tools/list shows them; that is JSON in either format.
func (c *schemaCmd) Run(e *env) error {
	catalog, err := e.open(c.catalogFlags, c.Dir)
	if err != nil {
		return err
	}
	defer catalog.Close()
	tools, err := catalog.Branch(c.Branch).Tools()
	if err != nil {
		return err
	}
	byName := map[string]registry.Tool{}
	var names []string
	for _, t := range tools {
		byName[t.Name] = t
		names = append(names, t.Name)
	}
	chosen := names
	if len(c.Tools) > 0 {
		chosen = c.Tools
	}
	out := []any{}
	for _, name := range chosen {
		t, ok := byName[name]
		if !ok {
			if near := registry.Nearest(name, names); len(near) > 0 {
				return fmt.Errorf("branch %q sees no tool %q; did you mean %s?", c.Branch, name, strings.Join(near, " or "))
			}
			return fmt.Errorf("branch %q sees no tool %q; %s", c.Branch, name, askExplain(c.Branch, name))
		}
		out = append(out, serve.Listed(t))
	}
	return e.printJSON(out)
}
