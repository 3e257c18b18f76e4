package binding

import (
	"context"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// mcpKind calls a tool of an upstream server. The server is reached by trust of its own, so there is no target here.
type mcpKind struct{ server, tool string }

func newMCP(c *check) kind {
	m := c.tool.Binding.MCP
	if m.Server == "" {
		c.errorf(problem.BadBinding, "binding.mcp.server", "the server is empty; name one of servers")
	}
	if m.Tool == "" {
		c.errorf(problem.BadBinding, "binding.mcp.tool", "the tool's name at the server is empty")
	}
	return mcpKind{m.Server, m.Tool}
}

func (k mcpKind) target() (trust.Target, bool) { return trust.Target{}, false }

func (k mcpKind) bind(_ trust.Trust, deps Deps) registry.Invoker { return &mcpInvoker{k, deps} }

type mcpInvoker struct {
	mcpKind
	deps Deps
}

func (m *mcpInvoker) Invoke(ctx context.Context, args contract.Args) (*registry.Result, error) {
	return m.InvokeHeard(ctx, args, registry.Listener{})
}

func (m *mcpInvoker) InvokeHeard(ctx context.Context, args contract.Args, to registry.Listener) (*registry.Result, error) {
	if m.deps.Upstream == nil {
		return nil, &registry.Error{Code: registry.BindingFailed, Msg: "this process reaches no upstream servers"}
	}
	return m.deps.Upstream(ctx, m.server, m.tool, args.JSON(), to)
}

func (m *mcpInvoker) Plan(args contract.Args) (registry.Plan, error) {
	return registry.Plan{Kind: "mcp", Server: m.server, Tool: m.tool, Args: args.JSON()}, nil
}
