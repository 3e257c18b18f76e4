package generation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// A conversation branch is derived in each generation anew: from the view of its parent for the same principal,
// less what its own terms take away, less what the policy does not list for its own labels. Its ancestors'
// decisions stay: they are in the view, and in the lineage of the path (invoke.Lineage).

// OwnerOf returns the owner of the conversation branches that a principal forks.
func OwnerOf(p decision.Principal) conversation.Owner {
	return conversation.Owner{Name: p.Name, Local: p.Local}
}

// Root returns the declared branch on whose account a branch counts: itself, or the one that a conversation
// branch of the principal's was forked from. ok is false if there is no such branch for the principal.
func (g *Generation) Root(branch string, p decision.Principal) (root string, ok bool) {
	if _, declared := g.paths[branch]; declared {
		return branch, true
	}
	chain, ok := g.conversations.Chain(branch, OwnerOf(p))
	if !ok {
		return "", false
	}
	root = chain[0].Root
	_, ok = g.paths[root]
	return root, ok
}

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

// askFork requests the list decisions of a branch about tools that a conversation branch below it, or the branch itself,
// may show.
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

// Missing is something that a conversation branch had and has no longer, because of a change of the catalog, the
// policy or its parent.
type Missing struct {
	// Exactly one of Branch, Tool and Label is set.
	Branch string `json:"branch,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Label  string `json:"label,omitempty"`
	// Reason is why it is missing.
	Reason string `json:"reason"`
}

// Conversation is a conversation branch as its owner sees it.
type Conversation struct {
	// Branch is a copy of what is stored.
	conversation.Branch
	// Path is its call path; nil if the declared branch at the top is not served.
	Path *invoke.Path
	// Lost is what it has lost since it was forked or last changed.
	Lost []Missing
}

// Conversation returns a conversation branch of a principal; ok is false if there is none of that name.
func (g *Generation) Conversation(name string, p decision.Principal) (c Conversation, ok bool) {
	chain, ok := g.conversations.Chain(name, OwnerOf(p))
	if !ok {
		return c, false
	}
	return g.conversation(chain, p), true
}

// Conversations returns the conversation branches of a principal, sorted by name.
func (g *Generation) Conversations(p decision.Principal) (all []Conversation) {
	for _, b := range g.conversations.Owned(OwnerOf(p)) {
		if c, ok := g.Conversation(b.Name, p); ok {
			all = append(all, c)
		}
	}
	return all
}

func (g *Generation) conversation(chain []conversation.Branch, p decision.Principal) Conversation {
	c := Conversation{Branch: chain[len(chain)-1].Clone(), Lost: []Missing{}}
	path, ok := g.chainPath(chain, p)
	if !ok {
		c.Lost = append(c.Lost, Missing{Branch: c.Root, Reason: "it is not served any more"})
		return c
	}
	c.Path = path
	parent, _ := g.PathFor(c.From, p)
	for _, name := range c.Showed {
		there := c.Parent(name)
		n, narrowed := c.Narrow[there]
		_, function := c.Functions[name]
		switch {
		case function || path.View.Find(name) != nil:
		case narrowed && parent != nil && parent.View.Find(there) != nil && parent.View.CheckNarrowing(there, n) != nil:
			c.Lost = append(c.Lost, Missing{Tool: name, Reason: "narrow doesn't fit it any more: " + parent.View.CheckNarrowing(there, n).Error()})
		case parent != nil && parent.View.Find(there) != nil:
			c.Lost = append(c.Lost, Missing{Tool: name, Reason: "the policy does not show it to this branch any more"})
		default:
			c.Lost = append(c.Lost, Missing{Tool: name, Reason: fmt.Sprintf("%s does not show it any more", c.From)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Functions)) {
		if why := g.lostFunction(path, parent, c.Branch, name); why != "" {
			c.Lost = append(c.Lost, Missing{Tool: name, Reason: why})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		if path.View.Declared().Labels[name] != c.Labels[name] {
			c.Lost = append(c.Lost, Missing{Label: name, Reason: fmt.Sprintf("%s has another value for it", c.From)})
		}
	}
	return c
}

// ConflictError is the error of something that can't be added, because its name is taken.
type ConflictError struct{ Text string }

func (e *ConflictError) Error() string { return e.Text }

// Fork forks a conversation branch from a branch, for a principal. The error is an *UnknownBranchError, a
// *ConflictError for a label of the parent's, a *registry.UnknownError for a tool that the parent doesn't show,
// or one of conversation.Store.Create.
func (g *Generation) Fork(from string, p decision.Principal, terms conversation.Terms, labels map[string]string, ttl time.Duration) (Conversation, error) {
	parent, ok := g.PathFor(from, p)
	if !ok || g.conversations == nil {
		return Conversation{}, g.UnknownBranchOf(from, p)
	}
	b := conversation.Branch{From: from, Owner: OwnerOf(p), Labels: labels, Terms: terms.Clone()}
	if err := conversation.CheckLabels(labels); err != nil {
		return Conversation{}, &conversation.InvalidError{Err: err}
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if _, taken := parent.View.Declared().Labels[name]; taken {
			return Conversation{}, &ConflictError{fmt.Sprintf("branch %s has the label %q; a fork can add labels, and change none", from, name)}
		}
	}
	if err := known(parent.View, terms); err != nil {
		return Conversation{}, err
	}
	if err := checkNarrow(parent.View, terms); err != nil {
		return Conversation{}, err
	}
	root := ""
	if _, declared := g.paths[from]; declared {
		root = from
	}
	b, err := g.conversations.Create(b, root, ttl, func(b conversation.Branch) []string {
		path, _ := g.decideFork(parent, b, p)
		return path.View.Names()
	})
	if errors.Is(err, conversation.ErrUnknown) {
		return Conversation{}, g.UnknownBranchOf(from, p)
	}
	if err != nil {
		return Conversation{}, err
	}
	c, ok := g.Conversation(b.Name, p)
	if !ok { // it has ended already
		return Conversation{}, g.UnknownBranchOf(b.Name, p)
	}
	return c, nil
}

// Change replaces terms of a conversation branch of a principal's, and keeps it for a further ttl if that is not
// 0. change gets a copy of the terms, the parent's view and that of the branch, and its error is returned. The other
// errors are those of Fork.
func (g *Generation) Change(name string, p decision.Principal, ttl time.Duration, change func(t *conversation.Terms, parent, own *registry.View) error) (Conversation, error) {
	now, ok := g.Conversation(name, p)
	if !ok || now.Path == nil {
		return Conversation{}, g.UnknownConversation(name, p)
	}
	parent, ok := g.PathFor(now.From, p)
	if !ok {
		return Conversation{}, g.UnknownConversation(name, p)
	}
	_, err := g.conversations.Change(name, OwnerOf(p), ttl, func(b *conversation.Branch) error {
		before, own := b.Terms.Clone(), now.Path
		if b.Revision != now.Revision { // another change came between
			own, _ = g.decideFork(parent, *b, p)
		}
		if err := change(&b.Terms, parent.View, own.View); err != nil {
			return err
		}
		if err := g.checkNames(parent.View, before, b.Terms); err != nil {
			return err
		}
		if err := knownAnew(parent.View, before, b.Terms); err != nil {
			return err
		}
		if err := checkNarrow(parent.View, b.Terms); err != nil {
			return err
		}
		path, _ := g.decideFork(parent, *b, p)
		b.Showed = path.View.Names()
		if err := g.checkFunctions(path, before, *b, p); err != nil {
			return err
		}
		_, err := path.View.Select(registry.Names(addedTo(before, b.Terms)...)) // the policy may deny it these
		return err
	})
	if errors.Is(err, conversation.ErrUnknown) {
		return Conversation{}, g.UnknownConversation(name, p)
	}
	if err != nil {
		return Conversation{}, err
	}
	g.forgetForks()
	if now, ok = g.Conversation(name, p); !ok {
		return Conversation{}, g.UnknownConversation(name, p)
	}
	return now, nil
}

// EndConversation deletes a conversation branch of a principal's, or of anyone's for an admin, with those that
// were forked from it. The errors are those of conversation.Store.Delete.
func (g *Generation) EndConversation(name string, p decision.Principal) error {
	if g.conversations == nil {
		return conversation.ErrUnknown
	}
	defer g.forgetForks()
	return g.conversations.Delete(name, OwnerOf(p), p.Admin)
}

// AllConversations returns what is stored of the conversation branches of all principals, for an admin.
func (g *Generation) AllConversations() []conversation.Branch {
	all := g.conversations.All()
	for i, b := range all {
		all[i] = b.Clone()
	}
	return all
}

// SweepConversations removes the conversation branches that have expired.
func (g *Generation) SweepConversations() {
	g.conversations.Sweep()
	g.forgetForks()
}

// forgetForks drops the cached views of conversation branches that have ended, or are not what they were, and so the
// functions that were removed from them.
func (g *Generation) forgetForks() {
	g.views.forget(func(key viewKey) bool {
		now, ok := g.conversations.Revisions(key.branch)
		return !ok || !strings.HasPrefix(key.fork, now)
	})
}

// addedTo returns the names of the tools that terms add one by one, and those before did not.
func addedTo(before, t conversation.Terms) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(t.Tools)) {
		if t.Tools[name] && !before.Tools[name] {
			names = append(names, t.Shown(name))
		}
	}
	return names
}

// checkNarrow returns an error if a fork of a view can't narrow tools so, or would show two under one name. Tools
// that the view doesn't have are left to known, because what was lost may stay named.
func checkNarrow(v *registry.View, t conversation.Terms) error {
	for _, tool := range slices.Sorted(maps.Keys(t.Narrow)) {
		n := t.Narrow[tool]
		if v.Find(tool) == nil {
			continue
		}
		if err := v.CheckNarrowing(tool, n); err != nil {
			return &conversation.InvalidError{Err: fmt.Errorf("narrow.%s: %w", registry.Shown(tool), err)}
		}
		if invoke.Builtin(n.Name) {
			return &conversation.InvalidError{Err: fmt.Errorf("narrow.%s: %s is the name of a built-in tool", registry.Shown(tool), n.Name)}
		}
		for name := range t.Functions {
			if strings.EqualFold(name, n.Name) {
				return &ConflictError{fmt.Sprintf("narrow.%s: %q is the name of a Go function that was added to the fork; choose another",
					registry.Shown(tool), n.Name)}
			}
		}
		for _, e := range v.Entries() {
			other := e.Name()
			if n.Name != "" && other != tool && strings.EqualFold(t.Shown(other), n.Name) {
				return &ConflictError{fmt.Sprintf("narrow.%s: the fork would show two tools as %q: %s and %s; choose another name, or rename both",
					registry.Shown(tool), n.Name, tool, other)}
			}
		}
	}
	return nil
}

// known returns an error for each tool that terms name and a view doesn't have; patterns may match nothing.
func known(v *registry.View, t conversation.Terms) error {
	return knownAnew(v, conversation.Terms{}, t)
}

// knownAnew is known of those names that are not in the terms before: what was lost may stay named.
func knownAnew(v *registry.View, before, t conversation.Terms) error {
	was := namedBy(before)
	names := slices.DeleteFunc(namedBy(t), func(name string) bool { return slices.Contains(was, name) })
	_, err := v.Select(registry.Names(names...))
	return err
}

// namedBy returns the names of tools in terms, without patterns.
func namedBy(t conversation.Terms) []string {
	names := slices.Concat(slices.Sorted(maps.Keys(t.Tools)), slices.Sorted(maps.Keys(t.Narrow)))
	for _, s := range []*registry.Selector{t.Select, t.Hide} {
		if s == nil {
			continue
		}
		for _, name := range s.Names {
			if !strings.Contains(name, "*") {
				names = append(names, name)
			}
		}
	}
	return names
}
