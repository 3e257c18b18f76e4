package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

type listCmd struct {
	Dir    string `short:"C" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	Branch string `help:"Only this branch."`
	Tokens bool   `help:"Estimate how much of a model's context each tool takes, with a sum for each branch."`
	viewFlags
	catalogFlags
}

type listedBranch struct {
	Branch string       `json:"branch"`
	Tools  []listedTool `json:"tools"`
	// Tokens is the sum over the tools, with --tokens.
	Tokens *int `json:"tokens,omitempty"`
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
	// Tokens is an estimate, with --tokens.
	Tokens *int `json:"tokens,omitempty"`
}

// howTokens explains the numbers of --tokens.
const howTokens = "tokens are an estimate: name, description and schema of the arguments as JSON, by o200k_base; on real tools off by 3 % on average and 13 % at most"

func (c *listCmd) Run(e *env) error {
	listed, err := c.listed(e)
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(listed)
	}
	rows := [][]string{{"BRANCH", "TOOL", "EFFECT", "BINDING", "DESCRIPTION"}}
	if c.Tokens {
		rows = [][]string{{"BRANCH", "TOOL", "EFFECT", "BINDING", "TOKENS", "DESCRIPTION"}}
	}
	for _, b := range listed {
		if len(b.Tools) == 0 {
			fmt.Fprintf(e.stderr, "branch %s sees no tool\n", b.Branch)
		}
		rows = append(rows, b.rows()...)
	}
	if c.Tokens {
		fmt.Fprintln(e.stderr, howTokens)
	}
	return e.table(rows)
}

// listed returns the branches with their tools, from the files or a daemon.
func (c *listCmd) listed(e *env) ([]listedBranch, error) {
	var err error
	if c.Server, err = e.asked(c.Server, "", c.Dir); err != nil {
		return nil, err
	}
	if c.Server != "" {
		return c.remote(e)
	}
	principal, err := c.principal()
	if err != nil {
		return nil, err
	}
	catalog, err := e.opened(c.catalogFlags, c.Dir)
	if err != nil {
		return nil, err
	}
	defer catalog.Close()
	names := catalog.Branches()
	if c.Branch != "" {
		names = []string{c.Branch}
	}
	listed := []listedBranch{}
	for _, name := range names {
		tools, err := catalog.Branch(name).As(principal).Tools()
		if err != nil {
			return nil, err
		}
		b := listedBranch{Branch: name, Tools: []listedTool{}}
		for _, t := range tools {
			tags := t.Tags
			if tags == nil {
				tags = []string{}
			}
			b.Tools = append(b.Tools, listedTool{Name: t.Name, Title: t.Title, Description: t.Description, Effect: t.Effect, Binding: t.Binding.Kind(), Tags: tags, Deprecated: t.Deprecated, Pos: t.Pos})
		}
		if c.Tokens {
			b.count(tools)
		}
		listed = append(listed, b)
	}
	return listed, nil
}

// count sets the estimates. tools are those that the branch lists.
func (b *listedBranch) count(tools []registry.Tool) {
	sum := 0
	for i, t := range tools {
		n := generation.Tokens(&t)
		sum += n
		b.Tools[i].Tokens = &n
	}
	b.Tokens = &sum
}

func (b *listedBranch) rows() (rows [][]string) {
	for _, t := range b.Tools {
		row := []string{b.Branch, t.Name, string(t.Effect), cmp.Or(t.Binding, "-")}
		if t.Tokens != nil {
			row = append(row, strconv.Itoa(*t.Tokens))
		}
		rows = append(rows, append(row, firstLine(t.Description)))
	}
	if b.Tokens != nil {
		rows = append(rows, []string{b.Branch, "", "", "", strconv.Itoa(*b.Tokens), "(" + count(len(b.Tools), "tool") + ")"})
	}
	return rows
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
