package invoke

import (
	"context"
	"errors"
	"fmt"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/registry"
)

// PolicyTool returns the form of a tool that policies see, in lists and in calls.
func PolicyTool(e *registry.Entry) decision.Tool {
	t := e.Declared()
	tool := decision.Tool{
		Name: t.Name, Effect: string(t.Effect), Tags: t.Tags, Binding: t.Binding.Kind(),
		Trust: e.Trust(), Deprecated: t.Deprecated != "", Discovered: t.Discovered(),
	}
	if tool.Tags == nil {
		tool.Tags = []string{}
	}
	if t.Binding.MCP != nil {
		tool.Server = t.Binding.MCP.Server
	}
	return tool
}

// PolicyBranch returns the form of a branch that policies see.
func PolicyBranch(b registry.Branch) decision.Branch {
	labels := b.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	return decision.Branch{Name: b.Name, Labels: labels, Session: b.Session}
}

// Withdrawn reports whether a decision was aborted because the caller has cancelled the call or its time
// limit was exceeded.
func Withdrawn(ctx context.Context, d decision.Decision) bool {
	return !d.Allow && (d.Code == decision.PolicyError || d.Code == decision.PolicyTimeout) && ctx.Err() != nil
}

// Undecided returns the error of a call whose decision is Withdrawn, or whose program was interrupted likewise.
// In its message, what is the decision that was not made, and done what has happened by then.
func Undecided(ctx context.Context, what, done string) *registry.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && !registry.CallersDeadline(ctx) {
		return &registry.Error{Code: registry.Timeout, Msg: fmt.Sprintf("the time limit of the call was exceeded before %s. %s", what, done)}
	}
	return &registry.Error{Code: registry.Cancelled, Msg: fmt.Sprintf("the call was cancelled before %s. %s", what, done)}
}
