package generation

import (
	"context"

	"github.com/catalogd/catalogd/decision"
)

// AskCall requests the call decision, and records its failure.
func (g *Generation) AskCall(ctx context.Context, in decision.CallInput) decision.Decision {
	d := g.engine.Call(ctx, in)
	if !d.Allow {
		g.failures.note(ctx, g.log, d, aboutCall(in.Branch, in.Tool, in.Resource, in.Prompt))
	}
	return d
}

// askRelease requests the release decision, and records its failure.
func (g *Generation) askRelease(ctx context.Context, in decision.ReleaseInput) decision.Decision {
	d := g.engine.Release(ctx, in)
	if !d.Allow {
		g.failures.note(ctx, g.log, d, aboutTool(in.Tool.Name, in.Branch.Name))
	}
	return d
}

// askResult requests the result decision, and records its failure.
func (g *Generation) askResult(ctx context.Context, in decision.ResultInput, result func() decision.ToolResult) decision.Decision {
	d := g.engine.Result(ctx, in, result)
	if !d.Allow {
		g.failures.note(ctx, g.log, d, aboutTool(in.Tool.Name, in.Branch.Name))
	}
	return d
}
