package generation

import (
	"context"
	"fmt"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// NotAskedError is the reason why a decision point is not evaluated for a call.
type NotAskedError struct {
	Point decision.Point
	Why   string
}

func (e *NotAskedError) Error() string { return fmt.Sprintf("%s is not asked: %s", e.Point, e.Why) }

// InputRequest names a decision point and the call of a tool through a branch whose input is wanted.
type InputRequest struct {
	Point  decision.Point
	Branch string
	invoke.Request
	// Result is the tool's result, for the result point.
	Result decision.ToolResult
}

// Input returns the input of the decision point for a call, as a policy sees it. If the point is not
// evaluated for that call, the error is a NotAskedError.
func (g *Generation) Input(ctx context.Context, q InputRequest) (any, error) {
	path, ok := g.PathFor(q.Branch, q.Principal)
	if !ok {
		return nil, g.UnknownBranch(q.Branch)
	}
	entry, ok := g.declared(path.View.Branch(), q.Tool)
	if !ok {
		return nil, g.unknown(q.Tool)
	}
	name := entry.Name()
	branch, tool := invoke.PolicyBranch(path.View.Branch()), invoke.PolicyTool(entry)
	switch remote := entry.Tool().Binding.MCP; q.Point {
	case decision.Connect:
		for _, r := range g.reaches {
			if r.Kind == "tool" && r.Name == name || r.Kind == "server" && remote != nil && r.Name == remote.Server {
				return r.asked, nil
			}
		}
		return nil, &NotAskedError{q.Point, "the tool reaches nothing"}
	case decision.Discover:
		if asked, ok := g.discovered(remote); ok {
			return asked, nil
		}
		return nil, &NotAskedError{q.Point, "the tool is not discovered"}
	case decision.List:
		return decision.ListInput{Branch: branch, Tool: tool, Principal: q.Principal}, nil
	}
	if shown, unknown := path.View.Lookup(path.View.Declared().Shown(name)); unknown == nil {
		entry = shown // the branch may narrow the tool's contract
	}
	args, invalid := invoke.Check(ctx, entry, q.Dialect.Arguments(entry.Declared().Args.Schema, q.Arguments))
	if invalid != nil {
		return nil, &NotAskedError{q.Point, string(registry.InvalidArguments) + ": " + oneLine.Replace(invalid.Msg)}
	}
	call := decision.CallInput{
		Branch: branch, Tool: tool, Principal: q.Principal, Arguments: args.JSON(), Time: time.Now().UTC(),
	}
	if q.Point == decision.Release {
		if entry.Effect() == registry.Read {
			return nil, &NotAskedError{q.Point, "the tool has no side effect"}
		}
		asked := g.engine.WithBuildDeadline().Call(ctx, call)
		if err := late(ctx, asked, AccessCell{Branch: q.Branch, Tool: name, Principal: q.Principal.Name}); err != nil {
			return nil, err
		}
		if !asked.Allow {
			return nil, &NotAskedError{q.Point, "the call is denied: " + invoke.Secrets(entry, args).Replace(refusal(asked))}
		}
		return releaseOf(call, asked.RequireApproval), nil
	}
	if q.Point == decision.Result {
		return decision.ResultInput{
			Branch: branch, Tool: tool, Principal: q.Principal, Arguments: call.Arguments, Result: q.Result, Time: call.Time,
		}, nil
	}
	return call, nil
}

// discovered returns the input of the discover decision about a tool of a server; ok is false if there was
// none.
func (g *Generation) discovered(tool *registry.MCP) (asked decision.DiscoverInput, ok bool) {
	if tool != nil {
		asked, ok = g.questions[remote{tool.Server, tool.Tool}]
	}
	return asked, ok
}
