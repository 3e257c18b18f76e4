package serve

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// Access is what a principal meets at a tool of a branch. The list is closed.
type Access string

const (
	// Callable: listed, and every call that its contract accepts runs.
	Callable Access = "callable"
	// Depends: listed, and the call decision looks at the arguments or the time.
	Depends Access = "depends"
	// Effectful: listed, and only the effector may run it.
	Effectful Access = Access(registry.EffectorRequired)
	// Refused: listed, and every call is denied.
	Refused Access = Access(registry.Denied)
	// Hidden: neither listed nor callable, like a tool that there is not.
	Hidden Access = "hidden"
)

// Standing is what one principal meets at one tool through one branch, before there are any arguments.
type Standing struct {
	Branch    string `json:"branch"`
	Tool      string `json:"tool"`
	Principal string `json:"principal"`
	Access    Access `json:"access"`
	// Why is the reason in one line, for everything but Callable.
	Why string `json:"why,omitempty"`
}

// Visible reports whether the tool is listed.
func (s Standing) Visible() bool { return s.Access != Hidden }

// Standings asks the list and call decisions for every tool of every branch and each of the principals, in the order of
// branches, principals as given, and tools. It ends early, with its error, where ctx does.
func (g *Generation) Standings(ctx context.Context, principals []decision.Principal) ([]Standing, error) {
	type row struct {
		branch    registry.Branch
		principal decision.Principal
		out       []Standing
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
	for range min(len(rows), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for r := range next {
				for _, e := range g.registry.Entries() {
					if ctx.Err() != nil {
						break
					}
					r.out = append(r.out, g.standing(ctx, r.branch, e, r.principal))
				}
			}
		})
	}
	for _, r := range rows {
		next <- r
	}
	close(next)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var all []Standing
	for _, r := range rows {
		all = append(all, r.out...)
	}
	return all, nil
}

func (g *Generation) standing(ctx context.Context, b registry.Branch, e *registry.Entry, p decision.Principal) Standing {
	s := Standing{Branch: b.Name, Tool: e.Name(), Principal: p.Name, Access: Hidden}
	branch, tool := invoke.PolicyBranch(b), invoke.PolicyTool(e)
	switch {
	case e.Bound().Hidden != "":
		s.Why = e.Bound().Hidden
		return s
	case !b.Admits(*e.Declared()):
		s.Why = leftOut(b)
		return s
	}
	if list := g.engine.List(ctx, decision.ListInput{Branch: branch, Tool: tool, Principal: p}); !list.Allow {
		s.Why = refusal(list)
		return s
	}
	call, known := g.engine.Foreseen(ctx, decision.CallInput{Branch: branch, Tool: tool, Principal: p})
	switch {
	case !known:
		s.Access, s.Why = Depends, "the call decision looks at the arguments or the time"
	case !call.Allow:
		s.Access, s.Why = Refused, refusal(call)
	case e.Effect() != registry.Read:
		s.Access, s.Why = Effectful, onlyEffector
	default:
		s.Access = Callable
	}
	return s
}

const onlyEffector = "the tool has a side effect, and only the effector may run it"

func leftOut(b registry.Branch) string {
	return fmt.Sprintf("the branch's select or hide leaves it out (%s)", b.Pos)
}

// Responsible are the rules of the policy behind a standing: those that allowed the tool to be listed, or refused that,
// or the ones of which none was true; none where something else hides the tool.
func (g *Generation) Responsible(ctx context.Context, s Standing, p decision.Principal) ([]decision.Rule, error) {
	path, ok := g.paths[s.Branch]
	e, known := g.registry.Lookup(s.Tool)
	if !ok || !known || e.Bound().Hidden != "" || !path.View.Declared().Admits(*e.Declared()) {
		return nil, nil
	}
	branch, tool := invoke.PolicyBranch(path.View.Branch()), invoke.PolicyTool(e)
	x, err := g.engine.Explain(ctx, decision.List, decision.ListInput{Branch: branch, Tool: tool, Principal: p})
	if err != nil {
		return nil, err
	}
	return x.Responsible(), nil
}
