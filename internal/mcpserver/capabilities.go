package mcpserver

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/catalogd/catalogd/internal/passthrough"
)

// capable returns the options that make mcp-go declare every capability, and hooks that remove those the
// branch lacks from each answer.
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

// limit removes the capabilities that the branch lacks.
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

// extras are the capabilities of a branch beside tools.
type extras struct{ resources, subscriptions, prompts, completions bool }

// has returns the capabilities for which the branch is shown at least one item. Those of a server that hasn't
// answered yet are unknown and are declared: a list that turns out to be empty does no harm.
func (b *branch) has(ctx context.Context) (has extras) {
	g, release := b.server.Pin()
	defer release()
	path, ok := b.path(g)
	if !ok {
		return extras{}
	}
	shown := g.ShownPassthrough(ctx, path, b.caller.Principal)
	has.resources = shown.Len(passthrough.Resource)+shown.Len(passthrough.Template) > 0
	has.subscriptions = shown.Subscribes()
	has.prompts, has.completions = shown.Len(passthrough.Prompt) > 0, shown.Completes()
	for _, s := range g.PassthroughServers() {
		if shown.Offer(s.Name) == nil {
			has.resources = has.resources || s.Forwards("resources")
			has.subscriptions = has.subscriptions || s.Forwards("resources")
			has.prompts = has.prompts || s.Forwards("prompts")
			has.completions = true
		}
	}
	return has
}

// passthroughDigests identifies the resources and the prompts that a branch is shown.
type passthroughDigests struct{ resources, prompts string }

// PassthroughChanged notifies the clients of each branch whose resources or prompts changed since they were
// last listed or announced. Call it after the passthrough items of servers have changed, and after each swap
// of the generation.
func (s *Server) PassthroughChanged() {
	if s.unused() {
		return
	}
	g, release := s.Pin()
	defer release()
	s.resubscribe(g)
	for _, b := range s.served(g) {
		before := b.advertised.Load()
		path, ok := b.path(g)
		if before == nil || !ok {
			continue // no client has listed any yet
		}
		now := digests(g.ShownPassthrough(s.Ctx, path, b.caller.Principal))
		b.advertised.Store(&now)
		if before.resources != now.resources {
			b.notify(mcp.MethodNotificationResourcesListChanged)
		}
		if before.prompts != now.prompts {
			b.notify(mcp.MethodNotificationPromptsListChanged)
		}
	}
}

func digests(s *passthrough.Shown) passthroughDigests {
	return passthroughDigests{s.Digest(passthrough.Resource, passthrough.Template), s.Digest(passthrough.Prompt)}
}
