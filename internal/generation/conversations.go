package generation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/invoke"
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
