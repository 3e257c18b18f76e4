package binding

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/jq"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// jqKind runs a jq program over the arguments. It has no I/O, so whatever ends it, nothing has been sent.
type jqKind struct {
	program string
	// content says that the output is content of MCP.
	content bool
}

func newJQ(c *check) kind {
	b := c.tool.Binding.JQ
	k := jqKind{b.Program, b.Output == "content"}
	c.output("binding.jq.output", cmp.Or(b.Output, "json"), "json", "content")
	if err := jq.Check(k.program); err != nil {
		c.errorf(problem.BadJQ, "binding.jq.program", "%v", err)
	}
	return k
}

func (jqKind) target() (trust.Target, bool) { return trust.Target{}, false }

func (k jqKind) bind(_ trust.Trust, deps Deps) registry.Invoker {
	if deps.JQ == nil {
		deps.JQ = new(jq.InProcess)
	}
	return &jqInvoker{k, deps.JQ}
}

type jqInvoker struct {
	jqKind
	runner jq.Runner
}

func (i *jqInvoker) Invoke(ctx context.Context, call registry.Invocation) (*registry.Result, error) {
	if _, _, err := keyOf(call); err != nil {
		return nil, err
	}
	out, err := i.runner.Run(ctx, i.program, call.Args.JSON(), defaultMaxOutput)
	switch {
	case ctx.Err() != nil:
		return nil, ended(ctx, &egress.UnsentError{Err: ctx.Err()})
	case errors.Is(err, jq.ErrNoOutput):
		return textResult(true, "the tool's program gave no output for these arguments"), nil
	case errors.As(err, new(jq.TooLargeError)):
		return nil, nothingRan(registry.OutputTooLarge, tooLarge("the program's output", defaultMaxOutput)+"; ask for less", nil)
	case errors.As(err, new(jq.UnavailableError)):
		return nil, nothingRan(registry.Unavailable, "the tool's program could not be run; nothing was run; try again", err)
	case err != nil:
		return textResult(true, "the tool's program failed on these arguments: "+err.Error()), nil
	}
	if i.content {
		r, err := contentResult(string(out), false)
		if err != nil {
			return nil, nothingRan(registry.ResultInvalid, fmt.Sprintf("the program's output was to be content of MCP, and is not: %v", err), nil)
		}
		return r, nil
	}
	switch out[0] {
	case '"':
		var text string
		if err := json.Unmarshal(out, &text); err != nil {
			return nil, nothingRan(registry.Internal, "the program's output is not JSON", err)
		}
		return textResult(false, text), nil
	case '{':
		r := textResult(false, string(out))
		r.Structured = out
		return r, nil
	}
	return textResult(false, string(out)), nil
}

func (k jqKind) Plan(args contract.Args) (registry.Plan, error) {
	return registry.Plan{Kind: "jq", Program: k.program, Args: args.JSON()}, nil
}
