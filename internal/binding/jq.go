package binding

import (
	"context"
	"errors"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/jq"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// jqKind runs a jq program over the arguments. It has no I/O, so however it ends, nothing left this process.
type jqKind struct{ program *jq.Program }

func newJQ(c *check) kind {
	program, err := jq.Compile(c.tool.Binding.JQ.Program)
	if err != nil {
		c.errorf(problem.BadJQ, "binding.jq.program", "%v", err)
	}
	return &jqKind{program}
}

func (k *jqKind) target() (trust.Target, bool) { return trust.Target{}, false }

func (k *jqKind) bind(trust.Trust, Deps) registry.Invoker { return k }

func (k *jqKind) Invoke(ctx context.Context, call registry.Invocation) (*registry.Result, error) {
	if _, _, err := keyOf(call); err != nil {
		return nil, err
	}
	in := call.Args.Object()
	if in == nil {
		in = map[string]any{}
	}
	out, err := k.program.Run(ctx, in)
	switch {
	case ctx.Err() != nil:
		return nil, ended(ctx, &egress.UnsentError{Err: ctx.Err()})
	case errors.Is(err, jq.ErrNoOutput):
		return textResult(true, "the tool's program gave no output for these arguments"), nil
	case err != nil:
		return textResult(true, "the tool's program failed on these arguments: "+head(err.Error())), nil
	}
	if s, ok := out.(string); ok {
		if len(s) > defaultMaxOutput {
			return nil, nothingRan(registry.OutputTooLarge, tooLarge("the program's output", defaultMaxOutput)+"; ask for less", nil)
		}
		return textResult(false, s), nil
	}
	b, err := jq.Marshal(out)
	if err != nil {
		return nil, nothingRan(registry.Internal, "the program's output is not JSON", err)
	}
	if len(b) > defaultMaxOutput {
		return nil, nothingRan(registry.OutputTooLarge, tooLarge("the program's output", defaultMaxOutput)+"; ask for less", nil)
	}
	r := textResult(false, string(b))
	if _, ok := out.(map[string]any); ok {
		r.Structured = b
	}
	return r, nil
}

func (k *jqKind) Plan(args contract.Args) (registry.Plan, error) {
	return registry.Plan{Kind: "jq", Program: k.program.Source(), Args: args.JSON()}, nil
}
