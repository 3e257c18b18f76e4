package binding

import (
	"context"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// mcpKind calls a tool of an upstream server. The server has its own trust, so there is no target here.
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

func (m *mcpInvoker) Invoke(ctx context.Context, call registry.Invocation) (*registry.Result, error) {
	_, write, err := keyOf(call)
	switch {
	case err != nil:
		return nil, err
	case write && m.deps.UpstreamWrite != nil:
		return m.deps.UpstreamWrite(ctx, m.server, m.tool, call.Args.JSON(), call.Attempt, call.To)
	case !write && m.deps.Upstream != nil:
		return m.deps.Upstream(ctx, m.server, m.tool, call.Args.JSON(), call.To)
	}
	return nil, nothingRan(registry.BindingFailed, "this process reaches no upstream servers", nil)
}

func (m *mcpInvoker) Plan(args contract.Args) (registry.Plan, error) {
	return registry.Plan{Kind: "mcp", Server: m.server, Tool: m.tool, Args: args.JSON()}, nil
}
