package mcpserver

import (
	"context"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/passthrough"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

// maxSubscriptions is the maximum number of resources that one client can subscribe to.
const maxSubscriptions = 100

// client is a receiver of resource updates: the session of an older revision that a message came from, or a
// subscriptions/listen of 2026-07-28.
type client struct {
	id  string
	ctx context.Context // cancelled when the client ends
}

// subscriptions are the resources that clients have subscribed to. They outlive generations: after each
// change of the generation or of the passthrough items, resubscribe drops those whose resource is not shown
// any more or comes from another origin. The zero value is ready to use.
type subscriptions struct {
	mu sync.Mutex
	by map[subscriptionKey]*subscription
}

type subscriptionKey struct {
	branch  *branch
	session string
	uri     string
}

// subscription is one client's subscription to one resource; from is the server that was subscribed to.
type subscription struct {
	from generation.Origin
	end  func()
	// forget cancels the function that drops the subscription when the client ends.
	forget func() bool
}

// put stores a subscription and ends an older one with the same key. It returns false if the client has too
// many, or has ended.
func (s *subscriptions) put(key subscriptionKey, ctx context.Context, sub *subscription) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for k := range s.by {
		if k.branch == key.branch && k.session == key.session && k.uri != key.uri {
			n++
		}
	}
	if n >= maxSubscriptions || ctx.Err() != nil {
		return false
	}
	if before, ok := s.by[key]; ok {
		before.forget()
		before.end()
	}
	sub.forget = context.AfterFunc(ctx, func() { s.drop(key) })
	if s.by == nil {
		s.by = map[subscriptionKey]*subscription{}
	}
	s.by[key] = sub
	return true
}

// drop ends a subscription; an unknown key has no effect.
func (s *subscriptions) drop(key subscriptionKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sub, ok := s.by[key]; ok {
		sub.forget() // else each subscription would leave a function registered on the client's context
		sub.end()
		delete(s.by, key)
	}
}

// of returns the subscriptions to a resource of a server.
func (s *subscriptions) of(from generation.Origin, uri string) (keys []subscriptionKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, sub := range s.by {
		if key.uri == uri && sub.from == from {
			keys = append(keys, key)
		}
	}
	return keys
}

func (s *subscriptions) all() map[subscriptionKey]generation.Origin {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[subscriptionKey]generation.Origin, len(s.by))
	for key, sub := range s.by {
		all[key] = sub.from
	}
	return all
}

// subscribe answers resources/subscribe and resources/unsubscribe, which only the older revisions have.
// Unsubscribing from what is not subscribed to is no error.
func (p *passthroughRequest) subscribe(ctx context.Context, shown *passthrough.Shown) reply {
	key := subscriptionKey{p.branch, p.m.from.id, p.m.uri}
	if p.m.method == mcp.MethodResourcesUnsubscribe {
		p.server.subscribed.drop(key)
		return p.done()
	}
	if refusal := p.subscribeTo(ctx, shown); refusal != nil {
		return p.refuse(refusal)
	}
	return p.done()
}

// subscribeTo subscribes the client of a request to its resource. A resource that the branch isn't shown
// can't be subscribed to.
func (p *passthroughRequest) subscribeTo(ctx context.Context, shown *passthrough.Shown) *rpcError {
	item, refusal := p.resource(shown)
	if refusal != nil {
		return refusal
	}
	if offer := shown.Offer(item.Server); offer == nil || !offer.Subscribe {
		return refuse(mcp.METHOD_NOT_FOUND, "the server of this resource takes no subscriptions")
	}
	_, refusal = p.ask(ctx, item, p.m.uri, "subscribe", upstream.Request{Method: mcp.MethodResourcesSubscribe, URI: p.m.uri})
	return refusal
}

// subscribed subscribes at the item's server, after the call decision has allowed it.
func (p *passthroughRequest) subscribed(ctx context.Context, item *passthrough.Item) error {
	server, ok := p.g.ServerOf(item)
	if !ok {
		return &registry.Error{Code: registry.Unavailable, Msg: "the server of this resource is not served any more"}
	}
	end, err := p.g.Upstream().Subscribe(ctx, item.Server, p.root, p.m.uri)
	if err != nil {
		return err
	}
	key := subscriptionKey{p.branch, p.m.from.id, p.m.uri}
	if !p.server.subscribed.put(key, p.m.from.ctx, &subscription{from: generation.OriginOf(server, p.root), end: end}) {
		end()
		return &registry.Error{Code: registry.RateLimited, Msg: "this session has as many subscriptions as it may have; give one up first"}
	}
	return nil
}

// done returns the empty result.
func (p *passthroughRequest) done() reply {
	return reply{status: 200, parts: [][]byte{beginReply(p.m.id), []byte("{}}")}}
}

// ResourcesUpdated notifies the subscribed clients of changed resources.
func (s *Server) ResourcesUpdated(updates []generation.ResourceUpdate) {
	for _, u := range updates {
		for _, key := range s.subscribed.of(u.From, u.Uri) {
			if key.branch.listeners.updated(key.session, u.Uri) {
				continue
			}
			// A client that has no stream open, or doesn't read it, misses the notification.
			_ = key.branch.mcp.SendNotificationToSpecificClient(key.session, mcp.MethodNotificationResourceUpdated, map[string]any{"uri": u.Uri})
		}
	}
}

// resubscribe drops the subscriptions whose branch or resource a generation doesn't show any more, and those
// whose resource now comes from another origin.
func (s *Server) resubscribe(g *generation.Generation) {
	for key, from := range s.subscribed.all() {
		path, ok := key.branch.path(g)
		if !ok {
			s.subscribed.drop(key)
			continue
		}
		item, _ := g.ShownPassthrough(s.Ctx, path, key.branch.caller.Principal).Resource(key.uri)
		if item != nil {
			if s, ok := g.ServerOf(item); ok && generation.OriginOf(s, key.branch.root) == from {
				continue
			}
		}
		s.Log.Info("a subscription ends, because its resource is not what it was", "branch", key.branch.name, "uri", registry.Shown(key.uri))
		s.subscribed.drop(key)
	}
}
