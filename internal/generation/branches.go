package generation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// views decides what each branch shows, and warns of a branch for which the policy denies every tool.
func (a *assembly) views(branches []registry.Branch) (problems problem.List) {
	a.g.lists = newListCache(a.engine.Digest())
	a.g.claims = a.engine.ListClaims(decision.Local())
	if a.prev != nil && a.prev.lists.policy == a.g.lists.policy {
		a.g.views.inherit(&a.prev.views, a.prev.lists.answers)
	}
	var old listCache
	if a.prev != nil {
		old = a.prev.lists
	} else if a.State != nil {
		old = listCache{a.g.lists.policy, a.State.Lists(a.g.lists.policy)}
	}
	news := 0
	for _, b := range branches {
		begin := time.Now()
		visible, asked := a.g.lists.decide(a.ctx, a.engine, b, a.g.registry, old, &a.undecided, a.g.noting(a.ctx, b.Name))
		a.g.logList(b, decision.Local(), visible, asked, begin)
		news += asked
		a.Log.Debug("list decisions", "branch", b.Name, "asked", asked)
		view, _ := a.g.view(a.ctx, a.engine, b, decision.Local(), visible)
		a.g.paths[b.Name] = &invoke.Path{
			View:       view,
			Generation: a.g.ID,
			Decide:     a.g.AskCall,
			Judge:      a.g.askResult,
			Policy:     a.engine.Digest(),
			Release:    a.g.askRelease,
			Effects:    a.Effects,
			Rates:      &a.rates,
			Counted:    a.engine.Reads(decision.Call, "rate"),
			Decided:    a.g.decided,
			Events:     a.Events,
			Log:        a.Log,
		}
		if why := a.refused(b, visible); why != "" {
			who := ""
			if a.g.claims != "" {
				who = " for the operator" // the policy distinguishes the operator from bearers of tokens
			}
			problems.Warnf(problem.EmptyBranch, b.Pos, "branches."+b.Name, "branch %q sees no tool%s: %s", b.Name, who, why)
		}
	}
	if a.State != nil && news > 0 {
		a.State.KeepLists(a.g.lists.policy, a.g.lists.answers)
	}
	return problems
}

// refused returns the reason why the policy denies a branch all tools that were decided on, empty if it allows
// one, or if there was none. A reason that is not that of all is told as an example, with the tool that it is of.
func (a *assembly) refused(b registry.Branch, visible map[string]bool) string {
	for _, allowed := range visible {
		if allowed {
			return ""
		}
	}
	names := slices.Sorted(maps.Keys(visible))
	var first string
	for i, name := range names[:min(len(names), 2)] { // two tell whether the reason is about the branch or about a tool
		entry, ok := a.g.registry.Lookup(name)
		if !ok {
			return ""
		}
		why := refusal(listed(a.ctx, a.engine, decision.ListInput{
			Branch: invoke.PolicyBranch(b), Tool: invoke.PolicyTool(entry), Principal: decision.Local(),
		}))
		if i == 0 {
			first = why
		} else if why != first {
			return fmt.Sprintf("the policy denies it each of its %d tools, as %s: %s", len(names), names[0], first)
		}
	}
	return first
}
