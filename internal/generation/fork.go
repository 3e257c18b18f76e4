package generation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

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
