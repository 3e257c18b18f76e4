package serve

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/catalogd/catalogd/internal/forward"
)

// capable lets mcp-go declare everything that a branch could have, and takes out of each answer what it has not.
func (b *branch) capable() []server.ServerOption {
	hooks := &server.Hooks{}
	hooks.AddAfterInitialize(func(ctx context.Context, _ any, _ *mcp.InitializeRequest, result *mcp.InitializeResult) {
		b.limit(ctx, &result.Capabilities)
	})
	hooks.AddAfterDiscover(func(ctx context.Context, _ any, _ *mcp.DiscoverRequest, result *mcp.DiscoverResult) {
		b.limit(ctx, &result.Capabilities)
	})
	return []server.ServerOption{
		server.WithToolCapabilities(true), server.WithLogging(), server.WithResourceCapabilities(false, true),
		server.WithPromptCapabilities(true), server.WithCompletions(), server.WithHooks(hooks),
	}
}

// limit takes out what the branch has not.
func (b *branch) limit(ctx context.Context, c *mcp.ServerCapabilities) {
	has := b.has(ctx)
	if !has.resources {
		c.Resources = nil
	} else {
		c.Resources.Subscribe = has.subscriptions
	}
	if !has.prompts {
		c.Prompts = nil
	}
	if !has.completions {
		c.Completions = nil
	}
}

// extras says what a branch has beside tools.
type extras struct{ resources, subscriptions, prompts, completions bool }

// has is what the branch is shown anything of. Of a server that hasn't answered yet it isn't known, and a list that turns
// out to be empty does no harm.
func (b *branch) has(ctx context.Context) (has extras) {
	g, release := b.front.Pin()
	defer release()
	path, ok := b.path(g)
	if !ok {
		return extras{}
	}
	shown := g.shown(ctx, path.View.Declared(), b.caller.principal)
	has.resources = shown.Len(forward.Resource)+shown.Len(forward.Template) > 0
	has.subscriptions = shown.Subscribes()
	has.prompts, has.completions = shown.Len(forward.Prompt) > 0, shown.Completes()
	for _, s := range g.forwarding() {
		if shown.Offer(s.Name) == nil {
			has.resources = has.resources || s.Forwards("resources")
			has.subscriptions = has.subscriptions || s.Forwards("resources")
			has.prompts = has.prompts || s.Forwards("prompts")
			has.completions = true
		}
	}
	return has
}

// forwardDigests names what a branch is shown of resources and of prompts.
type forwardDigests struct{ resources, prompts string }

// Forwarded tells the clients of each branch whose resources or prompts changed since they were told or shown them last. It
// is called when what servers pass on has changed, and after each swap.
func (f *Front) Forwarded() {
	if f.unused() {
		return
	}
	g, release := f.Pin()
	defer release()
	f.resubscribe(g)
	for _, b := range f.served(g) {
		before := b.passed.Load()
		path, ok := b.path(g)
		if before == nil || !ok {
			continue // nobody has been shown anything
		}
		now := digests(g.shown(f.ctx, path.View.Declared(), b.caller.principal))
		b.passed.Store(&now)
		if before.resources != now.resources {
			b.notify(mcp.MethodNotificationResourcesListChanged)
		}
		if before.prompts != now.prompts {
			b.notify(mcp.MethodNotificationPromptsListChanged)
		}
	}
}

func digests(s *forward.Shown) forwardDigests {
	return forwardDigests{s.Digest(forward.Resource, forward.Template), s.Digest(forward.Prompt)}
}
