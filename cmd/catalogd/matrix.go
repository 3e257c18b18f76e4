package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/diff"
)

type matrixCmd struct {
	Dir        string   `arg:"" optional:"" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	Branch     []string `help:"Only branches of these names; * matches any characters."`
	Tool       []string `help:"Only tools of these names; * matches any characters."`
	Visible    bool     `help:"Leave out what is hidden: in the text form, tools that are hidden in every column, with their number."`
	By         string   `enum:"branch,principal," default:"" placeholder:"WHAT" help:"What the columns of the text form are: branch or principal. By default principal if there is one branch and several principals, and branch else. Columns that don't fit the terminal (or COLUMNS) follow below; a pipe gets whole lines."`
	Principals string   `placeholder:"FILE" help:"The principals: YAML with name, groups and admin of each. The local principal by default."`
	principalFlags
	catalogFlags
}

func (*matrixCmd) formats() []string { return []string{"csv", "markdown"} }

func (c *matrixCmd) Run(e *env) error {
	cfg, err := c.config(e, c.Dir)
	if err != nil {
		return err
	}
	principals, err := readPrincipals(c.Principals)
	if err != nil {
		return err
	}
	if c.Principal != "" && c.Principals != "" {
		return errors.New("--principal names one principal, and --principals a file of them; give one of both")
	}
	one, err := c.principal()
	if err != nil {
		return err
	}
	if principals == nil {
		principals = []decision.Principal{one}
	}
	done := e.progress("asking the policy")
	all, err := catalogd.Matrix(e.ctx, cfg, principals)
	done()
	if err != nil {
		return err
	}
	if all, err = diff.Pick(all, c.Branch, c.Tool); err != nil {
		return err
	}
	if e.format == "text" {
		t := diff.Table{ByPrincipal: c.byPrincipal(all), Visible: c.Visible, Width: columns(e.stdout)}
		return t.Write(e.stdout, all)
	}
	if c.By != "" {
		return fmt.Errorf("--by is of the text form, and --format %s has branch and principal of each line", e.format)
	}
	if c.Visible {
		all = slices.DeleteFunc(all, func(s catalogd.AccessEntry) bool { return !s.Visible() })
	}
	switch e.format {
	case "csv":
		return diff.CSV(e.stdout, all)
	case "markdown":
		_, err := fmt.Fprint(e.stdout, diff.MarkdownTable(all))
		return err
	}
	return e.printJSON(all)
}

// byPrincipal reports whether the columns of the text form are principals.
func (c *matrixCmd) byPrincipal(all []catalogd.AccessEntry) bool {
	if c.By != "" {
		return c.By == "principal"
	}
	branches, principals := map[string]bool{}, map[string]bool{}
	for _, s := range all {
		branches[s.Branch], principals[s.Principal] = true, true
	}
	return len(branches) == 1 && len(principals) > 1
}

// readPrincipals reads the principals of a file; none if name is empty.
func readPrincipals(name string) ([]decision.Principal, error) {
	if name == "" {
		return nil, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return diff.Principals(name, data)
}
