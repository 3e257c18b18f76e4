package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/clients"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/invoke"
)

type explainCmd struct {
	Branch string `arg:"" optional:"" help:"The branch."`
	Tool   string `arg:"" optional:"" help:"The tool."`
	Args   string `placeholder:"JSON" help:"The arguments of the call, a JSON object, @FILE or -."`
	Result string `placeholder:"JSON" help:"What the tool would answer, to ask the result decision too, as a policy has it in input.result."`
	askedFlags
	At       string `placeholder:"REV" help:"Use the catalog of a git revision or of another directory."`
	Decision string `placeholder:"ID" help:"Explain this decision of --decision-log instead, and make it again."`
	Log      string `name:"decision-log" placeholder:"FILE" help:"The file that --decision-log of serve or stdio wrote."`
	Verbose  bool   `short:"v" help:"Print every decision, with the rules that answered and the facts that they read; by default five lines: what, why, and what to change."`
	Dir      string `short:"C" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	catalogFlags
}

// Run exits with 0 whatever the decision is. For a logged decision that can't be evaluated again, or has
// another result now, it exits with 1.
func (c *explainCmd) Run(e *env) error {
	if c.Args != "" {
		if err := e.readArguments(&c.Args); err != nil {
			return err
		}
	}
	if c.Decision != "" || c.Log != "" {
		return c.past(e)
	}
	if c.Branch == "" || c.Tool == "" {
		return incompleteError("explain needs BRANCH and TOOL, or --decision ID with --decision-log FILE")
	}
	result, err := toolResult(c.Result)
	if err != nil {
		return err
	}
	if c.Server, err = e.asked(c.Server, c.At, c.Dir); err != nil {
		return err
	}
	if c.Server != "" {
		return c.remote(e, result)
	}
	principal, err := c.principal()
	if err != nil {
		return err
	}
	cfg, err := c.config(e, c.Dir)
	if err != nil {
		return err
	}
	done := e.progress("compiling the catalog")
	x, err := catalogd.Explain(e.ctx, cfg, c.At, catalogd.ExplainRequest{
		Branch:  c.Branch,
		Request: invoke.Request{Tool: c.Tool, Arguments: json.RawMessage(c.Args), Principal: principal},
		Result:  result,
	})
	done()
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(x)
	}
	return c.print(e, x.Brief(), x.String())
}

// print prints five lines, or the whole explanation with -v.
func (c *explainCmd) print(e *env, brief generation.Brief, whole string) error {
	if c.Verbose {
		return e.println(whole)
	}
	if strings.HasSuffix(brief.Next, " -v") && (c.Result != "" || c.Args != "" && brief.Arguments == nil) {
		brief.Next = "the same command with -v" // the arguments or the result may have secrets, which are not repeated
	} else {
		brief.Next += c.repeat(brief)
	}
	return e.println(brief.String())
}

// repeat returns the options of this command line that the next command takes too.
func (c *explainCmd) repeat(brief generation.Brief) (words string) {
	add := func(flag, value string) {
		if value != "" {
			words += " " + flag + " " + clients.Shell(value)
		}
	}
	explains := strings.HasPrefix(brief.Next, "catalogd explain ")
	if explains {
		add("--args", string(brief.Arguments))
		add("--at", c.At)
	}
	if explains || strings.HasPrefix(brief.Next, "catalogd schema ") {
		words += c.repeated()
		if c.Server != "" {
			words += " --server " + c.Server
		}
	}
	add("-C", c.Dir)
	for _, tag := range c.Tag {
		add("--tag", tag)
	}
	add("--functions", c.Functions)
	return words
}

// past explains a logged decision.
func (c *explainCmd) past(e *env) error {
	switch {
	case c.Decision == "" || c.Log == "":
		return errors.New("--decision ID and --decision-log FILE go together")
	case c.Branch != "" || c.Principal != "" || len(c.Group) > 0 || c.Admin || c.Result != "" || c.Server != "":
		return errors.New("the log says which branch, tool and principal a decision was about; give --decision, --decision-log, --args and --at only")
	}
	cfg, err := c.config(e, c.Dir)
	if err != nil {
		return err
	}
	done := e.progress("compiling the catalog")
	p, err := catalogd.ExplainDecision(e.ctx, cfg, c.At, c.Log, c.Decision, json.RawMessage(c.Args))
	done()
	if err != nil {
		return err
	}
	if e.json {
		err = e.printJSON(p)
	} else {
		_, err = fmt.Fprintln(e.stdout, p)
	}
	if err == nil && !p.Same {
		return errFailed
	}
	return err
}
