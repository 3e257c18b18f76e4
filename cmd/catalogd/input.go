package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/invoke"
)

type inputCmd struct {
	Branch string `arg:"" help:"The branch."`
	Tool   string `arg:"" help:"The tool."`
	Args   string `placeholder:"JSON" help:"The arguments of the call, a JSON object; printed as they are."`
	Result string `placeholder:"JSON" help:"What the tool answered, for --point result, as input.result has it."`
	Point  string `enum:"call,list,result,release,connect,discover" default:"call" help:"call, list, result, release, connect or discover."`
	principalFlags
	At  string `placeholder:"REV" help:"Use the catalog of a git revision or of another directory."`
	Dir string `short:"C" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	catalogFlags
}

// Run always prints JSON. It exits with 1 if the point is not evaluated for such a call.
func (c *inputCmd) Run(e *env) error {
	e.document = true
	if c.Args != "" {
		if err := validJSON(c.Args); err != nil {
			return err
		}
	}
	var result decision.ToolResult
	if c.Result != "" {
		if c.Point != string(decision.Result) {
			return errors.New("--result is for --point result")
		}
		err := strictjson.Check([]byte(c.Result), strictjson.Options{})
		if err == nil {
			d := json.NewDecoder(bytes.NewReader([]byte(c.Result)))
			d.DisallowUnknownFields()
			err = d.Decode(&result)
		}
		if err != nil {
			return fmt.Errorf("--result: %w; it is what a policy has as input.result", err)
		}
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
	text, err := catalogd.Input(e.ctx, cfg, c.At, catalogd.InputRequest{
		Point: decision.Point(c.Point), Branch: c.Branch, Result: result,
		Request: invoke.Request{Tool: c.Tool, Arguments: json.RawMessage(c.Args), Principal: principal},
	})
	done()
	var notAsked *catalogd.NotAskedError
	if errors.As(err, &notAsked) {
		fmt.Fprintf(e.stderr, "catalogd: %v\n", notAsked)
		return errFailed
	}
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.stdout, out.String())
	return err
}
