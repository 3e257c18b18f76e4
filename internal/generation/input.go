package generation

import (
	"cmp"
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

// AskedInput is the input of a decision point for one branch.
type AskedInput struct {
	// Branch is the one of which the point is asked, and For are the branches above it whose decision it is as
	// well, because the policy can't tell them apart. Both are unset for connect and discover, which are asked
	// of no branch.
	Branch string   `json:"branch,omitempty"`
	For    []string `json:"for,omitempty"`
	Input  any      `json:"input"`
}

// Input returns the input of the decision point for a call, as a policy sees it, for the branch itself. If
// the point is not evaluated for that call, the error is a NotAskedError.
func (g *Generation) Input(ctx context.Context, q InputRequest) (any, error) {
	all, err := g.Inputs(ctx, q)
	if err != nil {
		return nil, err
	}
	return all[len(all)-1].Input, nil
}

// Inputs is Input for every branch of which a call asks the point, in that order; a declared branch is the
// only one (invoke.Path.Asked).
func (g *Generation) Inputs(ctx context.Context, q InputRequest) ([]AskedInput, error) {
	path, ok := g.PathFor(q.Branch, q.Principal)
	if !ok {
		return nil, g.UnknownBranchOf(q.Branch, q.Principal)
	}
	entry, ok := g.found(q.Branch, path.View.Branch(), q.Principal, q.Tool)
	if !ok {
		return nil, g.unknown(q.Tool)
	}
	each := func(of func(decision.Branch) any) (all []AskedInput, _ error) {
		for _, b := range path.Asked(q.Point) {
			all = append(all, AskedInput{cmp.Or(b.Session, b.Name), b.For, of(b.Branch)})
		}
		return all, nil
	}
	name, tool := entry.Name(), invoke.PolicyTool(entry)
	switch remote := entry.Tool().Binding.MCP; q.Point {
	case decision.Connect:
		for _, r := range g.reaches {
			if r.Kind == "tool" && r.Name == name || r.Kind == "server" && remote != nil && r.Name == remote.Server {
				return []AskedInput{{Input: r.asked}}, nil
			}
		}
		return nil, &NotAskedError{q.Point, "the tool reaches nothing"}
	case decision.Discover:
		if asked, ok := g.discovered(remote); ok {
			return []AskedInput{{Input: asked}}, nil
		}
		return nil, &NotAskedError{q.Point, "the tool is not discovered"}
	case decision.List:
		return each(func(b decision.Branch) any {
			return decision.ListInput{Branch: b, Tool: tool, Principal: q.Principal}
		})
	}
	if shown := path.View.Declares(name); shown != nil {
		entry = shown // the branch may narrow the tool's contract
	}
	args, invalid := invoke.Check(ctx, entry, q.Dialect.Arguments(entry.Declared().Args.Schema, q.Arguments))
	if invalid != nil {
		return nil, &NotAskedError{q.Point, string(registry.InvalidArguments) + ": " + oneLine.Replace(invalid.Msg)}
	}
	call := decision.CallInput{
		Tool: tool, Principal: q.Principal, Arguments: args.JSON(), Time: time.Now().UTC(),
	}
	switch q.Point {
	case decision.Release:
		if entry.Effect() == registry.Read {
			return nil, &NotAskedError{q.Point, "the tool has no side effect"}
		}
		asked := path.Each(decision.Call, "", func(b decision.Branch, _ string) decision.Decision {
			call.Branch = b
			return g.engine.WithBuildDeadline().Call(ctx, call)
		})
		about := AccessCell{Branch: q.Branch, Tool: name, Principal: q.Principal.Name}
		if err := late(ctx, asked, about); err != nil {
			return nil, err
		}
		if !asked.Allow {
			why := invoke.Secrets(entry, args).Replace(refusal(asked))
			return nil, &NotAskedError{q.Point, "the call is denied: " + why}
		}
		release := releaseOf(call, asked.RequireApproval)
		return each(func(b decision.Branch) any { release.Branch = b; return release })
	case decision.Result:
		return each(func(b decision.Branch) any {
			return decision.ResultInput{
				Branch: b, Tool: tool, Principal: q.Principal, Arguments: call.Arguments, Result: q.Result,
				Time: call.Time,
			}
		})
	}
	return each(func(b decision.Branch) any { call.Branch = b; return call })
}

// discovered returns the input of the discover decision about a tool of a server; ok is false if there was
// none.
func (g *Generation) discovered(tool *registry.MCP) (asked decision.DiscoverInput, ok bool) {
	if tool != nil {
		asked, ok = g.questions[remote{tool.Server, tool.Tool}]
	}
	return asked, ok
}
