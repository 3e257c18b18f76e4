package generation

import (
	"context"

	"github.com/catalogd/catalogd/decision"
)

// listed decides whether a branch and principal may see a tool, a resource or a prompt: the list decision
// must allow it, and the call decision must not deny every call of it. The Point of the result is the one
// that hides it.
func listed(ctx context.Context, engine *decision.Engine, in decision.ListInput) decision.Decision {
	d := engine.List(ctx, in)
	if !d.Allow {
		return d
	}
	call, known := engine.ConstantCall(ctx, calling(in))
	switch {
	case known && call.Allow, !known && call.Code == "":
		return d
	case call.Code == decision.PolicyTimeout:
		// It is unknown, and is asked again as if the list decision had timed out.
		for i, reason := range call.Reasons {
			call.Reasons[i] = foreseeing + reason
		}
	default:
		for i, reason := range call.Reasons {
			call.Reasons[i] = everyCall + reason
		}
	}
	return call
}

const (
	everyCall  = "every call is denied: "
	foreseeing = "data.catalogd.call, asked whether it denies every call: "
)

// calling returns the input of the call decision about what a list shows.
func calling(in decision.ListInput) decision.CallInput {
	call := decision.CallInput{Branch: in.Branch, Tool: in.Tool, Principal: in.Principal}
	if in.Resource != nil {
		r := *in.Resource
		r.Action = "read"
		call.Resource = &r
	}
	if in.Prompt != nil {
		p := *in.Prompt
		p.Action = "get"
		call.Prompt = &p
	}
	return call
}
