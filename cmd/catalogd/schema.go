package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

type schemaCmd struct {
	Branch  string   `arg:"" help:"The branch."`
	Tools   []string `arg:"" optional:"" help:"Only these tools."`
	Dialect string   `default:"mcp" placeholder:"NAME" help:"The provider's form: mcp (default), openai, openai-strict, openai-responses, anthropic or gemini."`
	Select  *string  `placeholder:"NAME,NAME" help:"Only these tools; --select= is an empty list, printed as []."`
	None    bool     `help:"No tools at all, printed as null: leave the field out of the request."`
	Verbose bool     `short:"v" help:"Also print on standard error which tool of which server each name is."`
	Dir     string   `short:"C" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	viewFlags
	catalogFlags
}

// Run prints the tools as a list that can be used in a provider's request unchanged. Losses go to standard
// error; --format json has both in one object. A tool that the dialect can't express fails the command; the
// others are still printed.
func (c *schemaCmd) Run(e *env) error {
	d, err := dialect.Parse(c.Dialect)
	if err != nil {
		return err
	}
	chosen, err := c.chosen()
	if err != nil {
		return err
	}
	offers, err := c.offers(e, d, chosen)
	if err != nil {
		return c.unseen(err)
	}
	if err := e.offers(offers, c.Verbose); err != nil {
		return err
	}
	if len(offers.Refused) > 0 {
		return errFailed
	}
	return nil
}

// offers returns the tools, from the files or a daemon.
func (c *schemaCmd) offers(e *env, d dialect.Dialect, chosen registry.Selection) (*generation.Offers, error) {
	var err error
	if c.Server, err = e.asked(c.Server, "", c.Dir); err != nil {
		return nil, err
	}
	if c.Server != "" {
		query := url.Values{"dialect": {string(d)}, "details": {"true"}} // so that an admin is shown everybody's branches
		switch {
		case len(c.Tools) > 0:
			query.Set("tools", strings.Join(c.Tools, ","))
		case c.Select != nil:
			query.Set("tools", *c.Select)
		case c.None:
			query.Set("none", "true")
		}
		if err := c.query(query); err != nil {
			return nil, err
		}
		shown, err := askOffers(e.ctx, c.Server, c.Branch, query)
		if err != nil {
			return nil, err
		}
		return &shown.Offers, nil
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
	return catalog.Branch(c.Branch).As(principal).In(d).Offer(chosen)
}

func (c *schemaCmd) chosen() (registry.Selection, error) {
	given := 0
	chosen := registry.All()
	if len(c.Tools) > 0 {
		given, chosen = given+1, registry.Names(c.Tools...)
	}
	if c.Select != nil {
		given, chosen = given+1, registry.Names(generation.SplitNames(*c.Select)...)
	}
	if c.None {
		given, chosen = given+1, registry.None()
	}
	if given > 1 {
		return chosen, errors.New("names, --select and --none exclude each other")
	}
	return chosen, nil
}

// unseen reports for each tool that the branch doesn't see what to do about it.
func (c *schemaCmd) unseen(err error) error {
	var unknown *registry.UnknownError
	if !errors.As(err, &unknown) {
		return err
	}
	flags := c.repeated()
	if c.Server != "" {
		flags += " --server " + c.Server
	}
	var each []string
	for _, u := range unknown.Tools {
		text := fmt.Sprintf("branch %q sees no tool %q; ", c.Branch, registry.Shown(u.Name))
		if len(u.Nearest) > 0 {
			text += "did you mean " + strings.Join(u.Nearest, " or ") + "?"
		} else {
			text += askExplain(c.Branch, registry.Shown(u.Name), flags)
		}
		each = append(each, text)
	}
	return errors.New(strings.Join(each, "\n"))
}

func (e *env) offers(o *generation.Offers, verbose bool) error {
	if e.json {
		return e.printJSON(o)
	}
	if err := e.printJSON(o.Tools); err != nil {
		return err
	}
	for _, r := range o.Upstream {
		if !verbose {
			break
		}
		line := fmt.Sprintf("%s is %q of server %q", r.Tool, r.Remote, r.Server)
		if _, err := fmt.Fprintln(e.stderr, problem.Printable(line)); err != nil {
			return err
		}
	}
	if err := e.losses(o.Losses, string(o.Dialect)); err != nil {
		return err
	}
	if err := e.unsaid(o.Fallbacks, "without strict", "strict mode can't say it"); err != nil {
		return err
	}
	return e.unsaid(o.Refused, "refused", string(o.Dialect)+" can't say it")
}

// unsaid prints one line for each reason on standard error.
func (e *env) unsaid(tools []generation.DialectIssue, outcome, why string) error {
	for _, t := range tools {
		for _, reason := range t.Reasons {
			line := fmt.Sprintf("%s: %s: tools.%s: %s: %s", e.seen(t.Pos), outcome, t.Tool, why, reason)
			if _, err := fmt.Fprintln(e.stderr, problem.Printable(line)); err != nil {
				return err
			}
		}
	}
	return nil
}

// losses prints one line for each loss on standard error.
func (e *env) losses(lost []generation.Lost, dialect string) error {
	for _, l := range lost {
		by, what := "JSON Schema", l.Kind+": "+l.What
		if l.By == "dialect" {
			by, what = dialect, l.What
		}
		line := fmt.Sprintf("%s: loss: %s: %s doesn't say: %s", e.seen(l.Pos), l.At(), by, what)
		if _, err := fmt.Fprintln(e.stderr, problem.Printable(line)); err != nil {
			return err
		}
	}
	return nil
}
