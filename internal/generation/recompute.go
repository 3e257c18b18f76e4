package generation

import (
	"cmp"
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

// Past is a past decision as recorded in the decision log.
type Past struct {
	Point decision.Point
	// Generation and Policy are the digests under which it was made.
	Generation, Policy string
	// Input is the input, without the parts that Missing lists by JSON pointer (/input/arguments).
	Input   json.RawMessage
	Missing []string
	// Digest is that of the arguments; empty if there were none or it is unknown.
	Digest string
	// Arguments are the arguments that the operator claims were used; empty if none are given.
	Arguments json.RawMessage
}

// Recomputed is a past decision, evaluated again.
type Recomputed struct {
	// Explanation is nil for a list decision, whose record stands for the decisions on all tools; Visible has
	// their result.
	Explanation *decision.Explanation
	Visible     []string
}

// Recompute evaluates a past decision again. The policy must be the same, and for a list decision the catalog
// too. The error says why that is impossible: a part of the input that the policy reads is missing, or the
// arguments differ.
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
	if err := g.whole(past); err != nil {
		return nil, err
	}
	if viewer, ok := input.(decision.Viewer); ok {
		if g.ID != past.Generation {
			return nil, fmt.Errorf("a list decision is about the whole catalog: that was %s, and this one is %s", past.Generation, g.ID)
		}
		branch := cmp.Or(viewer.Branch.Session, viewer.Branch.Name)
		path, ok := g.PathFor(branch, viewer.Principal)
		if !ok {
			return nil, g.UnknownBranch(branch)
		}
		out.Visible = path.View.Catalog()
		return out, nil
	}
	x, err := g.engine.WithBuildDeadline().Explain(ctx, past.Point, input)
	if err != nil {
		return nil, err
	}
	if mask != nil {
		x = mask(x)
	}
	out.Explanation = &x
	return out, nil
}

// masking returns a function that removes secret arguments from an explanation; shown is the input without
// them.
func masking(entry *registry.Entry, args contract.Args, shown any) func(decision.Explanation) decision.Explanation {
	return func(x decision.Explanation) decision.Explanation {
		hide := invoke.Secrets(entry, args)
		for i, reason := range x.Decision.Reasons {
			x.Decision.Reasons[i] = hide.Replace(reason)
		}
		if a := x.Decision.RequireApproval; a != nil {
			masked := *a
			masked.Reason = hide.Replace(a.Reason)
			x.Decision.RequireApproval = &masked
		}
		x.Facts = []decision.Fact{}
		if facts, err := x.FactsOf(shown); err == nil { // else the decision reports that the input can't be read
			x.Facts = facts
		}
		return x
	}
}

// withArguments returns the input of a call, result or release decision with args as its arguments.
func withArguments(input any, args contract.Args) any {
	switch in := input.(type) {
	case decision.CallInput:
		in.Arguments = args.JSON()
		return in
	case decision.ResultInput:
		in.Arguments = args.JSON()
		return in
	case decision.ReleaseInput:
		in.Arguments = args.JSON()
		return in
	}
	return input
}

// sameArguments checks the given arguments, and compares their digest to the recorded one.
func (g *Generation) sameArguments(ctx context.Context, input any, past Past) (*registry.Entry, contract.Args, error) {
	var none contract.Args
	var branch, tool string
	switch in := input.(type) {
	case decision.CallInput:
		branch, tool = in.Branch.Name, in.Tool.Name
	case decision.ResultInput:
		branch, tool = in.Branch.Name, in.Tool.Name
	case decision.ReleaseInput:
		branch, tool = in.Branch.Name, in.Tool.Name
	default:
		return nil, none, fmt.Errorf("a %s decision is about no arguments; leave out --args", past.Point)
	}
	if past.Digest == "" {
		return nil, none, errors.New("the log has no digest of the arguments, so it is not known whether these are the same; leave out --args")
	}
	path, ok := g.paths[branch]
	if !ok {
		return nil, none, g.UnknownBranch(branch)
	}
	entry, ok := g.registry.Lookup(tool)
	if !ok {
		return nil, none, g.unknown(tool)
	}
	if shown, unknown := path.View.Lookup(path.View.Declared().Shown(tool)); unknown == nil {
		entry = shown // the branch may narrow the tool's contract
	}
	args, invalid := invoke.Check(ctx, entry, past.Arguments)
	if invalid != nil || args.Digest() != past.Digest { // they may be what the log shows: those that were decided on
		if final, found, err := entry.Contract().Recheck(ctx, past.Arguments); err == nil && found == nil {
			args, invalid = final, nil
		}
	}
	if invalid != nil {
		return nil, none, fmt.Errorf("these are not the arguments of that call: %s", oneLine.Replace(invalid.Msg))
	}
	if got := args.Digest(); got != past.Digest {
		return nil, none, fmt.Errorf("these are not the arguments of that call: their digest is %s, and the log has %s", got, past.Digest)
	}
	return entry, args, nil
}

// ofArguments reports whether a pointer refers to the arguments of a call, or into them.
func ofArguments(pointer string) bool {
	return pointer == "/input/arguments" || strings.HasPrefix(pointer, "/input/arguments/")
}

// aboveItems returns the steps of a pointer before the first wildcard for list items.
func aboveItems(steps []string) []string {
	if i := slices.Index(steps, "*"); i >= 0 {
		return steps[:i]
	}
	return steps
}

// whole returns an error if the policy reads a part of the input that the log lacks.
func (g *Generation) whole(past Past) error {
	var lost []string
	for _, pointer := range past.Missing {
		steps := strings.Split(pointer, "/")[1:]
		switch {
		case steps[0] != "input":
		case ofArguments(pointer) && len(past.Arguments) > 0:
		case g.engine.Reads(past.Point, aboveItems(steps[1:])...):
			lost = append(lost, pointer)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	why := fmt.Sprintf("the policy looks at %s, which the log does not have", strings.Join(lost, ", "))
	if slices.ContainsFunc(lost, ofArguments) {
		why += "; give the arguments with --args"
	}
	return errors.New(why)
}
