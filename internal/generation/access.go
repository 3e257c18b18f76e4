package generation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/progress"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// Access is what a principal may do with a tool of a branch. The set of values is closed.
type Access string

const (
	// Callable: listed, and every call that its contract accepts runs.
	Callable Access = "callable"
	// Depends: listed, and the call or the release decision depends on the arguments, the intent or the time.
	Depends Access = "depends"
	// Approval: listed, and each call must be approved before it runs.
	Approval Access = "approval"
	// Refused: listed, and the release decision refuses every intent, so that no call runs.
	Refused Access = "refused"
	// Hidden: neither listed nor callable, like a tool that doesn't exist.
	Hidden Access = "hidden"
)

// AccessCell is what one principal may do with one tool through one branch, before any arguments are known.
type AccessCell struct {
	// Branch is the name of the branch.
	Branch string `json:"branch"`
	// Tool is the name of the tool in the catalog.
	Tool string `json:"tool"`
	// Shown is the name by which the branch shows the tool; empty if that is Tool, the one in the catalog.
	Shown string `json:"shown,omitempty"`
	// Principal is the name of the principal.
	Principal string `json:"principal"`
	// Access is "callable", "depends" (on the arguments, the intent or the time), "approval" (of each call),
	// "refused" (no call runs) or "hidden" (not listed either).
	Access Access `json:"access"`
	// Why is the reason in one line; empty if access is "callable".
	Why string `json:"why,omitempty"`
}

// Visible reports whether the tool is listed.
func (s AccessCell) Visible() bool { return s.Access != Hidden }

// AccessMatrix evaluates the list and call decisions, and for tools with a side effect the release decision,
// for every tool of every branch and each of the principals. If a tool has a side effect, the built-in tools
// for intents are among them. The order is by branch, by principal as given, and by tool. It returns an error
// when ctx ends, and at the first decision that times out.
func (g *Generation) AccessMatrix(outer context.Context, principals []decision.Principal) ([]AccessCell, error) {
	ctx, fail := context.WithCancel(outer)
	defer fail()
	type row struct {
		branch    registry.Branch
		principal decision.Principal
		out       []AccessCell
		err       error
	}
	var rows []*row
	for _, name := range g.Branches() {
		for _, p := range principals {
			rows = append(rows, &row{branch: g.paths[name].View.Branch(), principal: p})
		}
	}
	var (
		wg   sync.WaitGroup
		next = make(chan *row)
	)
	step := progress.Begin(ctx, "working out who may call what", "answers")
	step.Of(len(rows) * g.registry.Len())
	for range min(len(rows), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for r := range next {
				if r.out, r.err = g.accessRow(ctx, r.branch, r.principal); r.err != nil {
					fail()
				}
			}
		})
	}
	for _, r := range rows {
		next <- r
	}
	close(next)
	wg.Wait()
	var all []AccessCell
	for _, r := range rows {
		if r.err != nil && (outer.Err() != nil || !errors.Is(r.err, context.Canceled)) {
			return nil, r.err
		}
		all = append(all, r.out...)
	}
	return all, nil
}

// accessRow returns the cells of one branch and principal, by tool.
func (g *Generation) accessRow(
	ctx context.Context, b registry.Branch, p decision.Principal,
) (row []AccessCell, err error) {
	declared, shown := false, false // whether a tool with a side effect is
	step := progress.Current(ctx)
	for _, e := range g.registry.Entries() {
		s, err := g.accessCell(ctx, b, e, p)
		if err != nil {
			return nil, err
		}
		step.Done()
		if e.Effect() != registry.Read {
			declared, shown = true, shown || s.Visible()
		}
		row = append(row, s)
	}
	if !declared {
		return row, nil
	}
	for _, e := range invoke.Builtins() {
		s := AccessCell{
			Branch: b.Name, Tool: e.Name(), Principal: p.Name, Access: Hidden,
			Why: NoWrites,
		}
		if shown {
			if s, err = g.accessCell(ctx, b, e, p); err != nil {
				return nil, err
			}
		}
		row = append(row, s)
	}
	slices.SortFunc(row, func(x, y AccessCell) int { return cmp.Compare(x.Tool, y.Tool) })
	return row, nil
}

func (g *Generation) accessCell(ctx context.Context, b registry.Branch, e *registry.Entry, p decision.Principal) (AccessCell, error) {
	engine := g.engine.WithBuildDeadline()
	s := AccessCell{Branch: b.Name, Tool: e.Name(), Principal: p.Name, Access: Hidden}
	if shown := b.Shown(e.Name()); shown != e.Name() {
		s.Shown = shown
	}
	branch, tool := invoke.PolicyBranch(b), invoke.PolicyTool(e)
	switch {
	case e.Hidden() != "":
		s.Why = e.Hidden()
		return s, nil
	case !leavesIn(b, e):
		s.Why = leftOut(b)
		return s, nil
	}
	in := decision.ListInput{Branch: branch, Tool: tool, Principal: p}
	list := listed(ctx, engine, in)
	if err := late(ctx, list, s); err != nil {
		return s, err
	}
	if !list.Allow {
		s.Why = refusal(list)
		return s, nil
	}
	call, known := engine.ConstantCall(ctx, calling(in))
	if err := late(ctx, call, s); err != nil {
		return s, err
	}
	release, released := decision.Decision{Allow: true}, true
	if e.Effect() != registry.Read {
		release, released = engine.ConstantRelease(ctx, decision.ReleaseInput{Branch: branch, Tool: tool, Principal: p})
		if err := late(ctx, release, s); err != nil {
			return s, err
		}
	}
	switch {
	case !release.Allow && (released || release.Code != ""):
		s.Access, s.Why = Refused, everyIntent+refusal(release)
	case !known:
		s.Access, s.Why = Depends, "the call decision looks at the arguments or the time"
	case call.RequireApproval != nil:
		s.Access, s.Why = Approval, waiting(call)
	case !released:
		s.Access, s.Why = Depends, "the release decision looks at the arguments, the intent or the time"
	default:
		s.Access = Callable
	}
	return s, nil
}

const everyIntent = "no intent is released: "

// waiting says who must approve a call.
func waiting(call decision.Decision) string {
	return "it waits for an approval " + call.RequireApproval.String()
}

// late returns the error of a decision that timed out or was cancelled: it says nothing about access.
func late(ctx context.Context, d decision.Decision, s AccessCell) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.Code != decision.PolicyTimeout {
		return nil
	}
	return fmt.Errorf("policy_timeout: the %s decision about tool %q in branch %q for %s is not made: %s; make the rules that the point asks cheaper",
		d.Point, s.Tool, s.Branch, s.Principal, refusal(d))
}

func leftOut(b registry.Branch) string {
	return fmt.Sprintf("the branch's select or hide leaves it out (%s)", b.Pos)
}

// Responsible returns the rules of the policy behind an AccessCell: those that allowed the tool to be listed;
// that denied it, every call or every intent; that required an approval; or those of which none was true. It
// returns none if something else hides the tool.
func (g *Generation) Responsible(ctx context.Context, s AccessCell, p decision.Principal) ([]decision.Rule, error) {
	path, ok := g.paths[s.Branch]
	e, known := g.Tool(s.Tool)
	if !ok || !known || e.Hidden() != "" || !leavesIn(path.View.Branch(), e) || s.Why == NoWrites {
		return nil, nil
	}
	branch, tool := invoke.PolicyBranch(path.View.Branch()), invoke.PolicyTool(e)
	in := decision.ListInput{Branch: branch, Tool: tool, Principal: p}
	engine := g.engine.WithBuildDeadline()
	x, err := engine.Explain(ctx, decision.List, in)
	switch {
	case err != nil || !x.Decision.Allow:
	case !s.Visible() || s.Access == Approval:
		x, err = engine.Explain(ctx, decision.Call, calling(in))
	case s.Access == Refused:
		x, err = engine.Explain(ctx, decision.Release, decision.ReleaseInput{Branch: branch, Tool: tool, Principal: p})
	}
	if err == nil {
		err = late(ctx, x.Decision, s)
	}
	if err != nil {
		return nil, err
	}
	return x.Responsible(), nil
}
