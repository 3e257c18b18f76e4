package binding

import (
	"context"
	"fmt"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// funcKind calls a Go function of the program that embeds catalogd. What it reaches is that program's business.
type funcKind struct{ name string }

func newFunc(c *check) kind {
	name := c.tool.Binding.Func.Name
	if name == "" {
		c.errorf(problem.BadBinding, "binding.func.name", "the function's name is empty")
	}
	return funcKind{name}
}

func (k funcKind) target() (trust.Target, bool) { return trust.Target{}, false }

func (k funcKind) bind(_ trust.Trust, deps Deps) registry.Invoker { return &funcInvoker{k, deps} }

type funcInvoker struct {
	funcKind
	deps Deps
}

// Invoke returns what the function returns. A panic fails the call alone.
func (f *funcInvoker) Invoke(ctx context.Context, args contract.Args) (result *registry.Result, err error) {
	call, ok := f.deps.Funcs[f.name]
	if !ok {
		return nil, &registry.Error{Code: registry.BindingFailed, Msg: fmt.Sprintf("the program registers no function %q", f.name)}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			result, err = nil, &registry.Error{Code: registry.Internal, Msg: "the tool's function failed", Err: fmt.Errorf("function %q panicked: %v", f.name, r)}
		}
	}()
	result, err = call(ctx, args)
	if result == nil && err == nil {
		err = &registry.Error{Code: registry.BindingFailed, Msg: "the tool's function gave no result"}
	}
	return result, err
}

func (f *funcInvoker) Plan(args contract.Args) (registry.Plan, error) {
	return registry.Plan{Kind: "func", Tool: f.name, Args: args.JSON()}, nil
}
