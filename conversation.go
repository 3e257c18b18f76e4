package catalogd

import (
	"errors"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/registry"
)

// ForkOptions says what a conversation branch takes away from the branch that it is forked from. The zero value
// takes nothing away.
type ForkOptions struct {
	// Select matches the tools that it may show, Hide those of them that it does not; nil Select means all, nil
	// Hide none. A name without a pattern must be that of a tool that the parent shows.
	Select, Hide *registry.Selector
	// Narrow is how it shows tools otherwise than the parent, by their names there.
	Narrow map[string]registry.Narrowing
	// Labels are added to those of the parent, for policies; each begins with session/.
	Labels map[string]string
	// TTL is how long it is kept, from 1 s to 7 days and no longer than its parent; zero means 1 h.
	TTL time.Duration
	// Principal owns it, and is vouched for by the caller; nil is the local operator.
	Principal *decision.Principal
}

// Conversation is a conversation branch: a Branch that was forked with Fork, for its owner. It ends when its
// time is up, when it is deleted, or with its parent; after that every method answers as for a branch that does
// not exist. All methods are safe for concurrent use, and everything that is handed in or out is a copy.
type Conversation struct{ Branch }

// MissingPart is something that a conversation branch has lost by a change of the catalog, the policy or its
// parent.
type MissingPart = generation.Missing

// ErrConversationLimit is wrapped by the error of a Fork that a limit does not allow.
var ErrConversationLimit = conversation.ErrLimit

// Fork forks a conversation branch from a declared one, or from another of the same owner. It only takes away:
// what it may do is the decision of every branch above it, and its own. The error is that of a branch that does
// not exist, a registry.UnknownError for a tool that the parent does not show, one that wraps
// ErrConversationLimit, or says what is wrong with the options.
func (c *Catalog) Fork(from string, o ForkOptions) (Conversation, error) {
	who := decision.Local()
	if o.Principal != nil {
		who = *o.Principal
	}
	b := c.Branch(from).As(who)
	g, release := c.daemon.Pin()
	defer release()
	made, err := g.Fork(from, b.principal, conversation.Terms{Select: o.Select, Hide: o.Hide, Narrow: o.Narrow}, o.Labels, o.TTL)
	if err != nil {
		return Conversation{}, err
	}
	b.name = made.Name
	return Conversation{b}, nil
}

// Conversation returns the conversation branch of that name of a principal. The error is that of a branch that
// does not exist.
func (c *Catalog) Conversation(name string, p decision.Principal) (Conversation, error) {
	found := Conversation{c.Branch(name).As(p)}
	_, err := found.now()
	return found, err
}

// now returns the branch as it is now.
func (c Conversation) now() (generation.Conversation, error) {
	g, release := c.catalog.daemon.Pin()
	defer release()
	now, ok := g.Conversation(c.name, c.principal)
	if !ok {
		return now, g.UnknownConversation(c.name, c.principal)
	}
	return now, nil
}

// Name returns the name of the branch, under which it is served.
func (c Conversation) Name() string { return c.name }

// Expires returns when the branch ends.
func (c Conversation) Expires() (time.Time, error) {
	now, err := c.now()
	return now.Expires, err
}

// Lost returns what the branch has lost since it was forked or last changed.
func (c Conversation) Lost() ([]MissingPart, error) {
	now, err := c.now()
	return now.Lost, err
}

// Add shows a tool of the parent's again, whatever Select and Hide say. The error wraps registry.ErrDuplicate
// if the branch shows it already, and is a registry.UnknownError if the parent does not show it.
func (c Conversation) Add(tool string) error { return c.put(tool, false) }

// Replace is Add for a tool that the branch may show already.
func (c Conversation) Replace(tool string) error { return c.put(tool, true) }

func (c Conversation) put(tool string, update bool) error {
	return c.change(0, func(t *conversation.Terms, parent, own *registry.View) error {
		_, err := t.Put(parent, own, tool, update)
		return err
	})
}

// Remove takes a tool away, and a function of AddFunc. The error for a tool that the branch does not show is a
// registry.UnknownError.
func (c Conversation) Remove(tool string) error {
	return c.change(0, func(t *conversation.Terms, _, own *registry.View) error { return t.Remove(own, tool) })
}

// Change replaces Select, Hide and Narrow, which say nothing of the functions of AddFunc, and keeps the
// branch for a further TTL from now on if that is not zero. Labels and Principal must be empty: they don't
// change.
func (c Conversation) Change(o ForkOptions) error {
	if o.Labels != nil || o.Principal != nil {
		return errors.New("the labels and the owner of a conversation branch don't change; fork it")
	}
	return c.change(o.TTL, func(t *conversation.Terms, _, _ *registry.View) error {
		said := conversation.Terms{Select: o.Select, Hide: o.Hide, Narrow: o.Narrow}.Clone()
		t.Select, t.Hide, t.Narrow = said.Select, said.Hide, said.Narrow
		return nil
	})
}

func (c Conversation) change(ttl time.Duration, change func(t *conversation.Terms, parent, own *registry.View) error) error {
	g, release := c.catalog.daemon.Pin()
	defer release()
	_, err := g.Change(c.name, c.principal, ttl, change)
	return err
}

// Delete ends the branch, and those that were forked from it.
func (c Conversation) Delete() error {
	g, release := c.catalog.daemon.Pin()
	defer release()
	return g.EndConversation(c.name, c.principal)
}
