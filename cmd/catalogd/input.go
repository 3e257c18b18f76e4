package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/httpapi"
	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/invoke"
)

type inputCmd struct {
	Branch string `arg:"" help:"The branch."`
	Tool   string `arg:"" help:"The tool."`
	Args   string `placeholder:"JSON" help:"The arguments of the call, a JSON object, @FILE or -; printed as they are."`
	Result string `placeholder:"JSON" help:"What the tool answered, for --point result, as input.result has it."`
	Point  string `enum:"call,list,result,release,connect,discover" default:"call" help:"call, list, result, release, connect or discover."`
	askedFlags
	Of  string `placeholder:"BRANCH" help:"With --server: print what is asked of this branch, one of those above a conversation branch; BRANCH itself by default."`
	At  string `placeholder:"REV" help:"Use the catalog of a git revision or of another directory."`
	Dir string `short:"C" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	catalogFlags
}

// Run always prints JSON. It exits with 1 if the point is not evaluated for such a call.
func (c *inputCmd) Run(e *env) error {
	e.document = true
	if c.Args != "" {
		if err := e.readArguments(&c.Args); err != nil {
			return err
		}
	}
	if c.Result != "" && c.Point != string(decision.Result) {
		return errors.New("--result is for --point result")
	}
	given, err := toolResult(c.Result)
	if err != nil {
		return err
	}
	var result decision.ToolResult
	if given != nil {
		result = *given
	}
	if c.Server, err = e.asked(c.Server, c.At, c.Dir); err != nil {
		return err
	}
	if c.Server != "" {
		return c.remote(e, given)
	}
	if c.Of != "" && c.Of != c.Branch {
		return errors.New("--of is for the branches above a conversation branch, which a daemon has: give --server")
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
	return e.indented(text)
}

// indented prints a JSON document.
func (e *env) indented(text json.RawMessage) error {
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return err
	}
	return e.println(out.String())
}

// toolResult reads the value of --result; nil if there is none.
func toolResult(text string) (*decision.ToolResult, error) {
	if text == "" {
		return nil, nil
	}
	result := &decision.ToolResult{}
	err := strictjson.Check([]byte(text), strictjson.Options{})
	if err == nil {
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.DisallowUnknownFields()
		err = d.Decode(result)
	}
	if err != nil {
		return nil, fmt.Errorf("--result: %w; it is what a policy has as input.result", err)
	}
	return result, nil
}

// remote prints an input document of a daemon's.
func (c *inputCmd) remote(e *env, result *decision.ToolResult) error {
	call, err := c.call(c.Branch, c.Tool, c.Args)
	if err != nil {
		return err
	}
	var answer httpapi.Inputs
	request := httpapi.InputRequest{AskedCall: call, Point: decision.Point(c.Point), Result: result}
	if err := askDaemon(e.ctx, c.Server, "input", request, &answer); err != nil {
		return err
	}
	asked := []string{}
	for i, in := range answer.Inputs {
		if in.Branch == c.Of || c.Of == "" && i == len(answer.Inputs)-1 {
			return e.indented(in.Input)
		}
		asked = append(asked, in.Branch)
	}
	return fmt.Errorf("%s is not asked of %s, but of %s", c.Point, c.Of, strings.Join(asked, ", "))
}
