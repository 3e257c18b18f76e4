package generation

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// conversationPath is PathFor of a conversation branch.
func (g *Generation) conversationPath(name string, p decision.Principal) (*invoke.Path, bool) {
	chain, ok := g.conversations.Chain(name, OwnerOf(p))
	if !ok {
		return nil, false
	}
	return g.chainPath(chain, p)
}

// chainPath returns the call path of the last branch of a chain; ok is false if the declared branch at its top
// is not served.
func (g *Generation) chainPath(chain []conversation.Branch, p decision.Principal) (path *invoke.Path, ok bool) {
	if _, declared := g.paths[chain[0].Root]; !declared {
		return nil, false
	}
	if path, ok = g.PathFor(chain[0].Root, p); !ok {
		return nil, false
	}
	for i, c := range chain {
		parent := path
		path = g.views.of(g.forkKey(parent, c, p, conversation.Revisions(chain[:i+1])), func(knownAnswers) (*invoke.Path, bool) {
			return g.decideFork(parent, c, p)
		})
	}
	return path, true
}

func (g *Generation) forkKey(parent *invoke.Path, c conversation.Branch, p decision.Principal, revisions string) viewKey {
	return viewKey{c.Name, g.engine.ListClaims(p), revisions + parent.View.Digest()}
}

// decideFork derives the path of a conversation branch from its parent's. complete is false if a decision
// failed; its tool is hidden.
func (g *Generation) decideFork(parent *invoke.Path, c conversation.Branch, p decision.Principal) (path *invoke.Path, complete bool) {
	ctx := context.Background() // other callers wait for the result, so no request's context may cancel it
	b := forked(parent.View.Declared(), c)
	differs := g.distinguishes(parent.View.Declared(), b)
	path = parent.Fork(invoke.PolicyBranch(b), differs)
	visible := map[string]bool{}
	var admitted []*registry.Entry
	for _, e := range parent.View.Entries() {
		if termsAdmit(c.Terms, e) {
			admitted = append(admitted, e)
			visible[e.Name()] = true
		}
	}
	complete = true
	if differs(decision.List) {
		visible, complete = g.askFork(ctx, path, c.Name, b, admitted, p)
	}
	writes := slices.ContainsFunc(admitted, func(e *registry.Entry) bool {
		return visible[e.Name()] && !isBuiltin(e) && e.Effect() != registry.Read
	})
	own := parent.View.Fork(b, c.Narrow, func(e *registry.Entry) bool { return visible[e.Name()] && (writes || !isBuiltin(e)) })
	functions, decided := g.visibleFunctions(ctx, path, parent.View, c, p)
	if len(functions) > 0 {
		own = own.With(functions...)
	}
	path.View = own
	return path, complete && decided
}

// termsAdmit reports whether the terms of a conversation branch admit a tool as its parent shows it.
func termsAdmit(t conversation.Terms, e *registry.Entry) bool {
	if isBuiltin(e) {
		t.Select = nil // as in a declared branch: what selects tools doesn't mean these
	}
	shown := *e.Declared()
	shown.Name = e.Name() // by which the parent shows it, and its client names it
	return t.Admits(shown)
}

func isBuiltin(e *registry.Entry) bool { return e.Declared().Binding.Intent != "" }

// forked returns the declaration of a conversation branch: the parent's labels, and those of its own that the
// parent doesn't have.
func forked(parent *registry.Branch, c conversation.Branch) registry.Branch {
	labels := maps.Clone(c.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, parent.Labels)
	return registry.Branch{
		Name: parent.Name, Session: c.Name, Description: parent.Description, Labels: labels, Source: parent.Source,
		Narrow: parent.Narrow, // of the names, by which tools are found; the parent's entries are narrowed already
	}
}

// distinguishes returns a function that reports whether the policy can tell a fork from its parent at a point.
// What is listed depends on the call decision too.
func (g *Generation) distinguishes(parent *registry.Branch, b registry.Branch) func(decision.Point) bool {
	return func(point decision.Point) bool {
		points := []decision.Point{point}
		if point == decision.List {
			points = append(points, decision.Call)
		}
		return slices.ContainsFunc(points, func(point decision.Point) bool {
			if g.engine.Reads(point, "branch", "session") {
				return true
			}
			for name := range b.Labels {
				if _, above := parent.Labels[name]; !above && g.engine.Reads(point, "branch", "labels", name) {
					return true
				}
			}
			return false
		})
	}
}

// askFork requests the list decisions of a branch about tools that a conversation branch below it, or the
// branch itself, may show.
func (g *Generation) askFork(ctx context.Context, path *invoke.Path, below string, b registry.Branch, admitted []*registry.Entry, p decision.Principal) (visible map[string]bool, complete bool) {
	var listing undecided
	q := listQuestions{
		engine: g.engine, branch: b, principal: p, entries: admitted, undecided: &listing, note: g.noting(ctx, b.Address()),
		known: func(string, buildcache.Question) (allowed, ok bool) { return false, false },
	}
	begin := time.Now()
	visible, asked := q.decide(ctx)
	g.logList(b, p, visible, asked, begin)
	path.Log.Debug("list decisions", "branch", b.Name, "session", b.Session, "principal", p.Name, "asked", asked)
	if q.failed > 0 {
		path.Log.Warn("list decisions failed; their tools are hidden from this conversation branch for now", "branch", b.Name, "session", b.Session, "failed", q.failed)
	}
	if listing.any() {
		time.AfterFunc(retryView+time.Second, func() { g.retryFork(below, p) })
	}
	return visible, q.failed == 0
}

// retryFork decides anew, in the background, what the policy did not decide in time.
func (g *Generation) retryFork(name string, p decision.Principal) {
	if !g.Pin() {
		return // another generation serves
	}
	defer g.Unpin()
	if _, ok := g.PathFor(name, p); ok && g.views.changed != nil {
		g.views.changed()
	}
}
