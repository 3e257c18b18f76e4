package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// Past is a decision that was made, as a log has it.
type Past struct {
	Point decision.Point
	// Generation and Policy are the digests under which it was made.
	Generation, Policy string
	// Input is what was asked, without what Missing names by JSON pointer (/input/arguments).
	Input   json.RawMessage
	Missing []string
	// Digest names the arguments; empty where there were none, or their digest is not known.
	Digest string
	// Arguments are those that somebody says they were; empty where nobody does.
	Arguments json.RawMessage
}

// Recomputed is the answer to a past question once more.
type Recomputed struct {
	// Explanation is unset for a list decision, which stands for those on all tools: Visible has its answer.
	Explanation *decision.Explanation
	Visible     []string
	// Except names parts of the answer that come of what the log never has, by JSON pointer.
	Except []string
}

// Recompute asks a past question once more. The policy must be the one that was asked, and a list decision needs the
// catalog too. The error says why the question can't be asked again: what the policy looks at is missing, or the arguments are
// others.
func (g *Generation) Recompute(ctx context.Context, past Past) (*Recomputed, error) {
	if g.Policy() != past.Policy {
		return nil, fmt.Errorf("the policy is %s, and %s was asked", g.Policy(), past.Policy)
	}
	input, err := decision.ReadInput(past.Point, past.Input)
	if err != nil {
		return nil, err
	}
	var mask func(decision.Explanation) decision.Explanation
	if len(past.Arguments) > 0 {
		entry, args, err := g.sameArguments(ctx, input, past)
		if err != nil {
			return nil, err
		}
		mask = masking(entry, args, withArguments(input, entry.Contract().Redact(args)))
		input = withArguments(input, args)
	}
	out := &Recomputed{}
	if err := g.whole(past, out); err != nil {
		return nil, err
	}
	if viewer, ok := input.(decision.Viewer); ok {
		if g.ID != past.Generation {
			return nil, fmt.Errorf("a list decision is about the whole catalog: that was %s, and this one is %s", past.Generation, g.ID)
		}
		path, ok := g.PathFor(viewer.Branch.Name, viewer.Principal)
		if !ok {
			return nil, g.UnknownBranch(viewer.Branch.Name)
		}
		out.Visible = path.View.Names()
		return out, nil
	}
	x, err := g.engine.Explain(ctx, past.Point, input)
	if err != nil {
		return nil, err
	}
	if mask != nil {
		x = mask(x)
	}
	out.Explanation = &x
	return out, nil
}

// masking takes secret arguments out of an explanation; shown is its input without them.
func masking(entry *registry.Entry, args contract.Args, shown any) func(decision.Explanation) decision.Explanation {
	return func(x decision.Explanation) decision.Explanation {
		for i, reason := range x.Decision.Reasons {
			x.Decision.Reasons[i] = entry.Contract().Mask(args, reason)
		}
		x.Facts = []decision.Fact{}
		if facts, err := x.FactsOf(shown); err == nil { // else the decision says that the input can't be read
			x.Facts = facts
		}
		return x
	}
}

// withArguments is the input of a call or its result with these arguments.
func withArguments(input any, args contract.Args) any {
	switch in := input.(type) {
	case decision.CallInput:
		in.Arguments = args.JSON()
		return in
	case decision.ResultInput:
		in.Arguments = args.JSON()
		return in
	}
	return input
}

// sameArguments are the checked arguments, held against the digest of those that were decided on.
func (g *Generation) sameArguments(ctx context.Context, input any, past Past) (*registry.Entry, contract.Args, error) {
	var none contract.Args
	var branch, tool string
	switch in := input.(type) {
	case decision.CallInput:
		branch, tool = in.Branch.Name, in.Tool.Name
	case decision.ResultInput:
		branch, tool = in.Branch.Name, in.Tool.Name
	default:
		return nil, none, fmt.Errorf("a %s decision is about no arguments; leave out --args", past.Point)
	}
	if past.Digest == "" {
		return nil, none, errors.New("the log has no digest of the arguments, so nobody can tell whether these are those; leave out --args")
	}
	path, ok := g.paths[branch]
	if !ok {
		return nil, none, g.UnknownBranch(branch)
	}
	entry, ok := g.registry.Lookup(tool)
	if !ok {
		return nil, none, g.unknown(tool)
	}
	if shown, unknown := path.View.Lookup(tool); unknown == nil {
		entry = shown // the branch may be stricter than the tool
	}
	args, invalid := invoke.Check(ctx, entry, past.Arguments)
	if invalid != nil {
		return nil, none, fmt.Errorf("these are not the arguments of that call: %s", oneLine.Replace(invalid.Msg))
	}
	if got := args.Digest(); got != past.Digest {
		return nil, none, fmt.Errorf("these are not the arguments of that call: their digest is %s, and the log has %s", got, past.Digest)
	}
	return entry, args, nil
}

// whole reports what the policy looks at and the log doesn't have. Which variables catalogd's own environment has decides
// only which of them a command is given, so that a connect decision is asked without.
func (g *Generation) whole(past Past, out *Recomputed) error {
	var lost []string
	for _, pointer := range past.Missing {
		steps := strings.Split(pointer, "/")[1:]
		switch {
		case steps[0] != "input":
		case pointer == "/input/arguments" && len(past.Arguments) > 0:
		case pointer == "/input/environment" && past.Point == decision.Connect:
			out.Except = []string{"/result/env", "/result/withheld"}
		case g.engine.Reads(past.Point, steps[1:]...):
			lost = append(lost, pointer)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	why := fmt.Sprintf("the policy looks at %s, which the log does not have", strings.Join(lost, ", "))
	if slices.Contains(lost, "/input/arguments") {
		why += "; give the arguments with --args"
	}
	return errors.New(why)
}
