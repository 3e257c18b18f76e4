package catalogd

import (
	"context"
	"encoding/json"

	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// Branch is a named view of the catalog, for one principal. The branch need not exist, and follows reloads:
// each method uses the generation that is served when it is called.
type Branch struct {
	catalog   *Catalog
	name      string
	dialect   dialect.Dialect
	principal decision.Principal
	key       string
}

// Branches are the names of the branches, in order.
func (c *Catalog) Branches() []string {
	g, release := c.daemon.Pin()
	defer release()
	return g.Branches()
}

// Branch returns the branch of that name, for the local operator.
func (c *Catalog) Branch(name string) Branch {
	return Branch{catalog: c, name: name, dialect: dialect.MCP, principal: decision.Local()}
}

// In returns the branch in the dialect of a model provider: Offer writes tools in it, and Call and Plan read
// arguments by it.
func (b Branch) In(d dialect.Dialect) Branch {
	b.dialect = d
	return b
}

// As returns the branch as a principal sees and calls it, in place of the operator. The caller of As vouches
// for the principal: no token is asked for.
func (b Branch) As(p decision.Principal) Branch {
	if p.Groups == nil {
		p.Groups = []string{}
	}
	b.principal = p
	return b
}

// Keyed returns the branch with an idempotency key for its calls, of at most 256 bytes; empty is none. Of a
// principal's calls of one tool with the same key only the first is executed, and its outcome answers the
// others. Tools without a side effect ignore the key.
func (b Branch) Keyed(key string) Branch {
	b.key = key
	return b
}

// Tools returns copies of the declarations of the tools that the branch lists, by name.
func (b Branch) Tools() ([]registry.Tool, error) {
	g, release := b.catalog.daemon.Pin()
	defer release()
	path, ok := g.PathFor(b.name, b.principal)
	if !ok {
		return nil, g.UnknownBranchOf(b.name, b.principal)
	}
	var tools []registry.Tool
	for _, e := range path.View.Entries() {
		tools = append(tools, e.Tool())
	}
	return tools, nil
}

// Tool returns a copy of the declaration of one tool. The error of one that the branch doesn't list is a
// registry.UnknownError, which names similar ones.
func (b Branch) Tool(name string) (registry.Tool, error) {
	g, release := b.catalog.daemon.Pin()
	defer release()
	path, ok := g.PathFor(b.name, b.principal)
	if !ok {
		return registry.Tool{}, g.UnknownBranchOf(b.name, b.principal)
	}
	entries, err := path.View.Select(registry.Names(name))
	if err != nil {
		return registry.Tool{}, err
	}
	return entries[0].Tool(), nil
}

// Has reports whether the branch exists and lists the tool.
func (b Branch) Has(tool string) bool {
	_, err := b.Tool(tool)
	return err == nil
}

// Offer returns the chosen tools of the branch in its dialect, with what their schemas do not state. The error of
// tools that the branch doesn't list is a registry.UnknownError.
func (b Branch) Offer(chosen registry.Selection) (*Offer, error) {
	g, release := b.catalog.daemon.Pin()
	defer release()
	return g.Offer(b.name, b.principal, b.dialect, chosen)
}

// Call runs one call, on the path that calls over MCP take too. A call that fails is no error: its Err or its Result
// says so. The error is that of a branch that does not exist.
func (b Branch) Call(ctx context.Context, tool string, args json.RawMessage) (registry.Call, error) {
	g, release := b.catalog.daemon.Pin()
	defer release()
	path, ok := g.PathFor(b.name, b.principal)
	if !ok {
		return registry.Call{}, g.UnknownBranchOf(b.name, b.principal)
	}
	return path.Call(ctx, invoke.Request{
		Tool: tool, Arguments: args, Dialect: b.dialect, Principal: b.principal, Key: b.key,
	}), nil
}

// Plan returns what Call would run, and runs nothing. The Err of the call says why nothing would run.
func (b Branch) Plan(
	ctx context.Context, tool string, args json.RawMessage,
) (registry.Plan, registry.Call, error) {
	g, release := b.catalog.daemon.Pin()
	defer release()
	path, ok := g.PathFor(b.name, b.principal)
	if !ok {
		return registry.Plan{}, registry.Call{}, g.UnknownBranchOf(b.name, b.principal)
	}
	plan, call := path.Plan(ctx, invoke.Request{
		Tool: tool, Arguments: args, Dialect: b.dialect, Principal: b.principal,
	})
	return plan, call, nil
}

// Explain asks every decision that a call of the tool meets, and says which rules answered. args may be empty.
func (b Branch) Explain(ctx context.Context, tool string, args json.RawMessage) (*Explanation, error) {
	g, release := b.catalog.daemon.Pin()
	defer release()
	return g.Explain(ctx, ExplainRequest{Branch: b.name, Request: invoke.Request{
		Tool: tool, Arguments: args, Dialect: b.dialect, Principal: b.principal,
	}})
}
