package generation

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Explanation is everything that decides whether a call of a tool through a branch would run. It is for the
// operator only: it contains what clients of the branch must not learn, such as that a hidden tool exists.
type Explanation struct {
	// Generation is the id of the generation that was asked.
	Generation string `json:"generation"`
	// Branch is the branch of the call.
	Branch string `json:"branch"`
	// Tool is the tool's name in the catalog.
	Tool string `json:"tool"`
	// Principal is the caller.
	Principal decision.Principal `json:"principal"`
	// Outcome is the result of a call: "callable", "hidden" (not listed, and a call is answered as unknown),
	// "denied", "invalid_arguments", "approval" (it must be approved first), "refused" (its intent would not be
	// released), "result_denied" (the given result would not leave), or "listed" if the tool needs arguments and
	// none were given.
	Outcome string `json:"outcome"`
	// Why is the reason in one line, for every outcome but "callable".
	Why string `json:"why,omitempty"`
	// Effect is the tool's effect, read or write.
	Effect registry.Effect `json:"effect"`
	// EffectNote is the author's reason why a tool that sends or runs something only reads; nil if there is none.
	EffectNote *EffectNote `json:"effectNote,omitempty"`
	// Declared is the position of the tool, Fields those of its parts, BranchAt that of the declared branch.
	Declared problem.Position            `json:"declared"`
	Fields   map[string]problem.Position `json:"fields"`
	BranchAt problem.Position            `json:"branchDeclared"`
	// AddedTo is the conversation branch to which the program has added the tool, a Go function; empty for a tool of
	// the catalog.
	AddedTo string `json:"addedTo,omitempty"`
	// Narrowed is what the declared branch narrows of the tool; nil if nothing.
	Narrowed *NarrowedTool `json:"narrowed,omitempty"`
	// Admitted says whether the select and hide of the branch, and of those above it, admit the tool.
	Admitted bool `json:"admitted"`
	// Server is the upstream server of the tool, and ServerAt its position; unset for other bindings.
	Server   string           `json:"server,omitempty"`
	ServerAt problem.Position `json:"serverDeclared,omitzero"`
	// Lock is the locked state of a discovered tool; nil if nothing is locked.
	Lock *Locked `json:"lock,omitempty"`
	// Violations are the faults of the arguments.
	Violations []Violated `json:"violations,omitempty"`
	// Lineage are, for a conversation branch, the branches that decide, the declared one first and the branch
	// itself last, up to the first that does not show the tool; nil for a declared branch.
	Lineage []ExplainedBranch `json:"lineage,omitempty"`
	// Steps are the decisions in their order: connect (if the tool reaches a target), discover (if the tool's
	// server discovers its tools), list, call, release, result. Each of the last four is there for every
	// branch of the lineage that is asked. Call is evaluated only if arguments were given or none are needed,
	// release only for an allowed call of a tool with a side effect: as if the call were made, and its
	// approval given, at this moment; result only if one was given.
	Steps []Step `json:"steps"`

	// For Brief: the tool as declared, the name by which the branch shows it, the declared branch, why no branch can
	// show it, whether the policy is why this one does not, and the given arguments if they have no secret.
	tool        registry.Tool
	shown       string
	root        registry.Branch
	unavailable string
	byPolicy    bool
	given       json.RawMessage
}

// NarrowedTool is what a branch narrows of a tool.
type NarrowedTool struct {
	// Name is the name by which the branch shows the tool; empty if that is the one in the catalog.
	Name string `json:"name,omitempty"`
	// Args are the arguments that the branch fixes, restricts or describes anew.
	Args *contract.Narrowing `json:"args,omitempty"`
	// Pos is the position of the narrowing, Fields those of its parts.
	Pos    problem.Position            `json:"pos"`
	Fields map[string]problem.Position `json:"fields"`
}

// below returns the positions of the fields below a path, by the rest of their path.
func below(fields map[string]problem.Position, path string) map[string]problem.Position {
	out := map[string]problem.Position{}
	for name, pos := range fields {
		if rest, ok := strings.CutPrefix(name, path+"."); ok {
			out[rest] = pos
		}
	}
	return out
}

// declared returns the tool that a branch shows under a name, or else the one that the catalog has under it.
func (g *Generation) declared(b registry.Branch, tool string) (*registry.Entry, bool) {
	if name, ok := b.Catalog(tool); ok {
		if e, ok := g.registry.Lookup(name); ok {
			return e, true
		}
	}
	return g.registry.Lookup(tool)
}

// found is declared, or else the Go function that was added to the branch or to one above it, also if the branch does
// not show it.
func (g *Generation) found(
	name string, b registry.Branch, p decision.Principal, tool string,
) (*registry.Entry, bool) {
	if e, ok := g.declared(b, tool); ok {
		return e, true
	}
	added, ok := b.Catalog(tool)
	if !ok {
		added = tool
	}
	chain, _ := g.conversations.Chain(name, OwnerOf(p))
	for _, c := range chain {
		if e := c.Functions[added]; e != nil {
			return e, true
		}
	}
	return nil, false
}

// Violated is one fault of the arguments, with the position of the declaration that it violates.
type Violated struct {
	contract.Violation
	// Pos is where the constraint is declared.
	Pos problem.Position `json:"pos"`
}

func (v Violated) String() string {
	if !v.Pos.IsValid() { // of a built-in tool
		return v.Violation.String()
	}
	return fmt.Sprintf("%s (declared at %s)", v.Violation, v.Pos)
}

// ExplainRequest is a call of a tool through a branch that is to be explained.
type ExplainRequest struct {
	Branch string
	// Request is the call. If its arguments are empty, the call decision is explained for {} if the contract
	// accepts that.
	invoke.Request
	// Result is what the tool would answer; nil leaves the result decision out.
	Result *decision.ToolResult
}

// explaining is an Explanation that is being made.
type explaining struct {
	*Explanation
	g     *Generation
	path  *invoke.Path
	entry *registry.Entry // as the branch shows it, else as the catalog declares it
	who   decision.Principal
}

// Explain evaluates every decision about a call, of every branch of which a call asks it
// (invoke.Path.Asked), with the rules that answered. Unlike a call, it asks on after a denial.
func (g *Generation) Explain(ctx context.Context, q ExplainRequest) (*Explanation, error) {
	path, ok := g.PathFor(q.Branch, q.Principal)
	if !ok {
		return nil, g.UnknownBranchOf(q.Branch, q.Principal)
	}
	b := path.View.Branch()
	entry, ok := g.found(q.Branch, b, q.Principal, q.Tool)
	if !ok {
		if entry, ok = builtinTool(q.Tool); !ok {
			return nil, g.unknown(q.Tool)
		}
	}
	t := entry.Tool()
	x := explaining{
		Explanation: &Explanation{
			Generation: g.ID, Branch: q.Branch, Tool: t.Name, Principal: q.Principal, Effect: t.Effect,
			Declared: t.Pos, Fields: t.Fields, Steps: []Step{},
			tool: t, shown: t.Name, unavailable: entry.Hidden(),
		},
		g: g, path: path, entry: entry, who: q.Principal,
	}
	if note, ok := effectNote(t); ok {
		x.EffectNote = &note
	}
	withheld, err := x.lineage(ctx)
	if err != nil {
		return nil, err
	}
	x.byPolicy = withheld.policy
	if err := x.reach(ctx, t); err != nil {
		return nil, err
	}
	if err := x.lock(ctx, t); err != nil {
		return nil, err
	}
	listing := decision.ListInput{Tool: invoke.PolicyTool(entry), Principal: q.Principal}
	list, err := x.each(decision.List, func(b decision.Branch) (decision.Explanation, error) {
		listing.Branch = b
		return g.engine.WithBuildDeadline().Explain(ctx, decision.List, listing)
	})
	if err != nil {
		return nil, err
	}
	if shown := path.View.Declares(t.Name); shown != nil {
		x.entry, x.shown = shown, shown.Name() // the branch may narrow the tool's contract
	}
	raw := q.Dialect.Arguments(x.entry.Declared().Args.Schema, q.Arguments)
	checked, invalid := invoke.Check(ctx, x.entry, raw)
	if invalid == nil && len(q.Arguments) > 0 {
		x.given = x.repeatable(ctx, raw)
	}
	if invalid != nil && len(q.Arguments) > 0 {
		for _, v := range invalid.Violations {
			x.Violations = append(x.Violations, Violated{v, t.At("args" + strings.ReplaceAll(v.Pointer, "/", "."))})
		}
	}
	var ran ranDecisions
	if invalid == nil {
		if ran, err = x.run(ctx, checked, q.Result); err != nil {
			return nil, err
		}
	} else if list.Allow && withheld.policy { // the call decision hides it whatever the arguments
		if _, err = x.each(decision.Call, func(b decision.Branch) (decision.Explanation, error) {
			listing.Branch = b
			return g.engine.Explain(ctx, decision.Call, calling(listing))
		}); err != nil {
			return nil, err
		}
	}
	switch {
	case withheld.why != "":
		x.Outcome, x.Why = "hidden", withheld.why
	case invalid != nil && len(q.Arguments) == 0:
		x.Outcome, x.Why = "listed", "the call decision is asked with the arguments; give them with --args"
	case invalid != nil:
		x.Outcome, x.Why = string(invalid.Code), oneLine.Replace(invalid.Msg)
	case !ran.call.Allow:
		x.Outcome, x.Why = string(registry.Denied), refusal(ran.call)
	case !ran.release.Allow:
		x.Outcome, x.Why = string(Refused), refusal(ran.release)
	case !ran.result.Allow:
		x.Outcome, x.Why = string(registry.ResultDenied), refusal(ran.result)
	case ran.call.RequireApproval != nil:
		x.Outcome, x.Why = string(Approval), waiting(ran.call)
	default:
		x.Outcome = "callable"
	}
	return x.Explanation, nil
}

// ranDecisions are the decisions about a call with arguments, each of all branches together. What is not
// asked allows.
type ranDecisions struct{ call, release, result decision.Decision }

// run explains the decisions about a call with these arguments, whose secrets are redacted.
func (x *explaining) run(
	ctx context.Context, args contract.Args, result *decision.ToolResult,
) (ran ranDecisions, err error) {
	ran.release.Allow, ran.result.Allow = true, true
	redacted := x.entry.Contract().Redact(args)
	ask := func(point decision.Point, of func(decision.Branch) any) (decision.Decision, error) {
		return x.each(point, func(b decision.Branch) (decision.Explanation, error) {
			in := of(b)
			step, err := x.g.engine.WithBuildDeadline().Explain(ctx, point, in)
			if err != nil {
				return step, err
			}
			return masking(x.entry, args, withArguments(in, redacted))(step), nil
		})
	}
	in := decision.CallInput{
		Tool: invoke.PolicyTool(x.entry), Principal: x.who, Arguments: args.JSON(), Time: time.Now().UTC(),
	}
	ran.call, err = ask(decision.Call, func(b decision.Branch) any { in.Branch = b; return in })
	if err != nil || !ran.call.Allow {
		return ran, err
	}
	if x.Effect != registry.Read {
		release := releaseOf(in, ran.call.RequireApproval)
		ran.release, err = ask(decision.Release, func(b decision.Branch) any { release.Branch = b; return release })
	}
	if err != nil || result == nil {
		return ran, err
	}
	judged := decision.ResultInput{
		Tool: in.Tool, Principal: in.Principal, Arguments: in.Arguments, Result: *result, Time: in.Time,
	}
	ran.result, err = ask(decision.Result, func(b decision.Branch) any { judged.Branch = b; return judged })
	return ran, err
}

// releaseOf returns the input of the release decision about a call that has no intent yet: as if it were
// staged at the time of the call, and its approval given at once, by a member of the first group or else by
// the caller.
func releaseOf(call decision.CallInput, approval *decision.Approval) decision.ReleaseInput {
	in := decision.ReleaseInput{
		Branch: call.Branch, Tool: call.Tool, Principal: call.Principal, Arguments: call.Arguments,
		Intent: decision.NewIntent(call.Time), Time: call.Time,
	}
	if approval == nil {
		return in
	}
	by := decision.Approver{Name: call.Principal.Name, Groups: call.Principal.Groups}
	if len(approval.Groups) > 0 {
		by = decision.Approver{Name: "(one in " + approval.Groups[0] + ")", Groups: approval.Groups[:1]}
	}
	in.Intent.Approval = &decision.IntentApproval{
		Asked: decision.AskedApproval{Groups: approval.Groups, Reason: approval.Reason, Self: approval.Self},
		By:    by, At: call.Time,
	}
	return in
}

// oneLine joins an error that lists violations into one line.
var oneLine = strings.NewReplacer(":\n- ", ": ", "\n- ", "; ")
