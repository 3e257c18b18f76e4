package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/diff"
	"github.com/catalogd/catalogd/internal/httpapi"
)

type matrixCmd struct {
	Dir        string   `arg:"" optional:"" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	Branch     []string `help:"Only branches of these names; * matches any characters."`
	Tool       []string `help:"Only tools of these names; * matches any characters."`
	Visible    bool     `help:"Leave out what is hidden: in the text form, tools that are hidden in every column, with their number."`
	By         string   `enum:"branch,principal," default:"" placeholder:"WHAT" help:"What the columns of the text form are: branch or principal. By default principal if there is one branch and several principals, and branch else. Columns that don't fit the terminal (or COLUMNS) follow below; a pipe gets whole lines."`
	Principals string   `placeholder:"FILE" help:"The principals: YAML with name, groups and admin of each. The local principal by default."`
	Server     string   `placeholder:"URL" help:"Ask a running daemon, such as http://127.0.0.1:8420, or here for the one that serves this directory; by default the environment's CATALOGD_SERVER. It takes a token made with --admin."`
	principalFlags
	catalogFlags
}

func (*matrixCmd) formats() []string { return []string{"csv", "markdown"} }

func (c *matrixCmd) Run(e *env) error {
	var err error
	if c.Server, err = e.asked(c.Server, "", c.Dir); err != nil {
		return err
	}
	principals, err := readPrincipals(c.Principals)
	if err != nil {
		return err
	}
	if c.Principal != "" && c.Principals != "" {
		return errors.New("--principal names one principal, and --principals a file of them; give one of both")
	}
	all, err := c.access(e, principals)
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

// access returns the matrix of the files or of a daemon, for these principals or the one of the flags.
func (c *matrixCmd) access(e *env, principals []decision.Principal) ([]catalogd.AccessEntry, error) {
	one, err := c.principal()
	if err != nil {
		return nil, err
	}
	if c.Server != "" {
		var asked httpapi.MatrixRequest
		for _, p := range principals {
			asked.Principals = append(asked.Principals, httpapi.AskedPrincipal{Name: p.Name, Groups: p.Groups, Admin: p.Admin})
		}
		if c.Principal != "" {
			asked.Principals = []httpapi.AskedPrincipal{{Name: c.Principal, Groups: c.Group, Admin: c.Admin}}
		}
		var answer httpapi.Matrix
		err := askDaemon(e.ctx, c.Server, "matrix", asked, &answer)
		if err == nil && answer.Error != "" {
			err = errors.New(answer.Error)
		}
		return answer.Access, err
	}
	cfg, err := c.config(e, c.Dir)
	if err != nil {
		return nil, err
	}
	if principals == nil {
		principals = []decision.Principal{one}
	}
	done := e.progress("asking the policy")
	defer done()
	return catalogd.Matrix(e.ctx, cfg, principals)
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
