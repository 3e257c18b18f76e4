package main

import (
	"fmt"
	"strings"

	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

type listCmd struct {
	Dir    string `short:"C" default:"." help:"The catalog's root."`
	Branch string `help:"Only this branch."`
	catalogFlags
}

type listedBranch struct {
	Branch string       `json:"branch"`
	Tools  []listedTool `json:"tools"`
}

type listedTool struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description"`
	Effect      registry.Effect  `json:"effect"`
	Binding     string           `json:"binding"`
	Tags        []string         `json:"tags"`
	Deprecated  string           `json:"deprecated,omitempty"`
	Pos         problem.Position `json:"pos"`
}

func (c *listCmd) Run(e *env) error {
	catalog, err := e.open(c.catalogFlags, c.Dir)
	if err != nil {
		return err
	}
	defer catalog.Close()
	names := catalog.Branches()
	if c.Branch != "" {
		names = []string{c.Branch}
	}
	listed := []listedBranch{}
	for _, name := range names {
		tools, err := catalog.Branch(name).Tools()
		if err != nil {
			return err
		}
		b := listedBranch{Branch: name, Tools: []listedTool{}}
		for _, t := range tools {
			tags := t.Tags
			if tags == nil {
				tags = []string{}
			}
			b.Tools = append(b.Tools, listedTool{t.Name, t.Title, t.Description, t.Effect, t.Binding.Kind(), tags, t.Deprecated, t.Pos})
		}
		listed = append(listed, b)
	}
	if e.json {
		return e.printJSON(listed)
	}
	rows := [][]string{{"BRANCH", "TOOL", "EFFECT", "BINDING", "DESCRIPTION"}}
	for _, b := range listed {
		if len(b.Tools) == 0 {
			fmt.Fprintf(e.stderr, "branch %s sees no tool\n", b.Branch)
		}
		for _, t := range b.Tools {
			rows = append(rows, []string{b.Branch, t.Name, string(t.Effect), t.Binding, firstLine(t.Description)})
		}
	}
	return e.table(rows)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
