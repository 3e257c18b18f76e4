package generation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// A Go function that the program adds to a conversation branch is a tool of that branch, and of those that are forked
// from it. Every branch above must admit it, by its select and hide, and allow it, by its decisions, as if it were a
// tool of the catalog. It never takes the place of one.

// AddFunction adds a Go function, as a tool with effect read, to a conversation branch of a principal's, or with update
// replaces the one of its name that was added. The error wraps registry.ErrDuplicate if the name is taken, is an
// *UnknownBranchError, or says why the branch would not show it; it is for the program, and tells the policy's reasons.
func (g *Generation) AddFunction(
	branch string, p decision.Principal, function *registry.Entry, update bool,
) (Conversation, error) {
	return g.Change(branch, p, 0, func(t *conversation.Terms, _, _ *registry.View) error {
		return t.PutFunction(function, update)
	})
}

// visibleFunctions returns the functions of a conversation branch that it shows. path is that of the branch, with the
// branches of which a decision is asked. complete is false if a decision failed; its function is hidden.
func (g *Generation) visibleFunctions(
	ctx context.Context, path *invoke.Path, parent *registry.View, c conversation.Branch, p decision.Principal,
) (shown []*registry.Entry, complete bool) {
	for _, name := range slices.Sorted(maps.Keys(c.Functions)) {
		if e := c.Functions[name]; e != nil && g.nameHolder(parent, c.Terms, name) == "" && g.leftOutAbove(c, e) == "" {
			shown = append(shown, e)
		}
	}
	complete = true
	for _, b := range path.Asked(decision.List) {
		if len(shown) == 0 {
			return nil, complete
		}
		asked := registry.Branch{Name: b.Name, Session: b.Session, Labels: b.Labels}
		visible, decided := g.askFork(ctx, path, c.Name, asked, shown, p)
		shown = slices.DeleteFunc(shown, func(e *registry.Entry) bool { return !visible[e.Name()] })
		complete = complete && decided
	}
	return shown, complete
}

// nameHolder returns what has the name of a function already, or could have it in the fork of a view with these terms;
// empty if nothing.
func (g *Generation) nameHolder(parent *registry.View, t conversation.Terms, name string) string {
	if invoke.Builtin(name) {
		return "it is the name of a built-in tool"
	}
	for _, e := range g.registry.Entries() {
		if strings.EqualFold(e.Name(), name) {
			return fmt.Sprintf("the catalog declares a tool of this name at %s", e.Declared().Pos)
		}
	}
	for _, e := range parent.Entries() {
		if shown := t.Shown(e.Name()); !strings.EqualFold(shown, name) && !strings.EqualFold(e.Name(), name) {
			continue
		}
		if pos := e.Declared().Pos; pos.IsValid() {
			return fmt.Sprintf("the branch above shows %s so, which the catalog declares at %s", e.Declared().Name, pos)
		}
		return "a branch above has a Go function of this name"
	}
	return ""
}

// leftOutAbove returns the name of a branch above a conversation branch whose select or hide leaves a function out;
// empty if none does.
func (g *Generation) leftOutAbove(c conversation.Branch, function *registry.Entry) string {
	root, served := g.paths[c.Root]
	if !served || !root.View.Declared().Admits(*function.Declared()) {
		return c.Root
	}
	if c.From == c.Root {
		return ""
	}
	chain, ok := g.conversations.Chain(c.From, c.Owner)
	if !ok {
		return c.From
	}
	for _, above := range chain {
		if !termsAdmit(above.Terms, function) {
			return above.Name
		}
	}
	return ""
}

// addedFunctions returns the functions that terms have and those before did not, in the order of their names.
func addedFunctions(before, t conversation.Terms) (added []*registry.Entry) {
	for _, name := range slices.Sorted(maps.Keys(t.Functions)) {
		if e := t.Functions[name]; e != nil && e != before.Functions[name] {
			added = append(added, e)
		}
	}
	return added
}

// checkNames returns an error for a function that terms add under a name that is taken.
func (g *Generation) checkNames(parent *registry.View, before, t conversation.Terms) error {
	for _, e := range addedFunctions(before, t) {
		if what := g.nameHolder(parent, t, e.Name()); what != "" {
			return fmt.Errorf("%w %q: %s; give the Go function another name", registry.ErrDuplicate, e.Name(), what)
		}
	}
	return nil
}

// checkFunctions returns an error for a function that a change has added to a conversation branch, and that it does
// not show. path is that of the branch after the change.
func (g *Generation) checkFunctions(
	path *invoke.Path, before conversation.Terms, c conversation.Branch, p decision.Principal,
) error {
	for _, e := range addedFunctions(before, c.Terms) {
		if why := g.withheldFunction(path, c, e, p); why != "" {
			return fmt.Errorf("the Go function %q can't be added to branch %s: %s", e.Name(), c.Name, why)
		}
	}
	return nil
}

// withheldFunction returns why a conversation branch does not show a function whose name is not taken, for the
// operator; empty if it does.
func (g *Generation) withheldFunction(
	path *invoke.Path, c conversation.Branch, function *registry.Entry, p decision.Principal,
) string {
	if path.View.Find(function.Name()) == function {
		return ""
	}
	if above := g.leftOutAbove(c, function); above != "" {
		return fmt.Sprintf("the select or hide of branch %s leaves it out; functions have no tags", above)
	}
	d := path.Each(decision.List, "", func(b decision.Branch, _ string) decision.Decision {
		return listed(context.Background(), g.engine, decision.ListInput{
			Branch: b, Tool: invoke.PolicyTool(function), Principal: p,
		})
	})
	if !d.Allow {
		return "the policy does not show it: " + refusal(d)
	}
	return "the policy has not decided on it in time; try again"
}

// lostFunction returns why a conversation branch does not show a function that was added to it, for its owner; empty
// if it does. It tells nothing of the policy, and of the catalog only that it has the name.
func (g *Generation) lostFunction(path, parent *invoke.Path, c conversation.Branch, name string) string {
	e := c.Functions[name]
	switch {
	case e == nil:
		return "the program has not added this Go function since it was started"
	case path.View.Find(name) == e:
		return ""
	case parent != nil && g.nameHolder(parent.View, c.Terms, name) != "":
		return "duplicate: the catalog, or a branch above, has a tool of this name now"
	case g.leftOutAbove(c, e) != "":
		return "a branch above leaves it out now"
	}
	return "the policy does not show it to this branch any more"
}
