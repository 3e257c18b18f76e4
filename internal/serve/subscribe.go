package serve

import (
	"context"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/internal/forward"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

// maxSubscriptions is how many resources one client can subscribe to.
const maxSubscriptions = 100

// client is to whom updates of resources go: the session of an older revision that a message came from, or a
// subscriptions/listen of 2026-07-28.
type client struct {
	id  string
	ctx context.Context // ends with the client
}

// subscriptions are the resources that clients have subscribed to. They outlive generations: with each, what a branch is not shown any more is dropped, and what another server has now is
// subscribed to there. The zero value is ready.
type subscriptions struct {
	mu sync.Mutex
	by map[subscriptionKey]*subscription
}

type subscriptionKey struct {
	branch  *branch
	session string
	uri     string
}

// subscription is one client's; from is the server that was asked.
type subscription struct {
	from origin
	end  func()
	// forget takes back what waits for the end of the client's session.
	forget func() bool
}

// put keeps a subscription in the place of an older one of the same client; false where the client has too many, or has
// gone.
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

// drop ends a subscription; of one that there is not, it does nothing.
func (s *subscriptions) drop(key subscriptionKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sub, ok := s.by[key]; ok {
		sub.forget() // or a client that comes and goes leaves something behind each time
		sub.end()
		delete(s.by, key)
	}
}

// of are the clients that want to hear of a resource of a server.
func (s *subscriptions) of(from origin, uri string) (keys []subscriptionKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, sub := range s.by {
		if key.uri == uri && sub.from == from {
			keys = append(keys, key)
		}
	}
	return keys
}

func (s *subscriptions) all() map[subscriptionKey]origin {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[subscriptionKey]origin, len(s.by))
	for key, sub := range s.by {
		all[key] = sub.from
	}
	return all
}

// subscribe answers resources/subscribe and resources/unsubscribe, which only the older revisions have. Ending what there is
// not is no error.
func (p *passing) subscribe(ctx context.Context, shown *forward.Shown) reply {
	key := subscriptionKey{p.branch, p.m.from.id, p.m.uri}
	if p.m.method == mcp.MethodResourcesUnsubscribe {
		p.front.subscribed.drop(key)
		return p.done()
	}
	if refusal := p.subscribeTo(ctx, shown); refusal != nil {
		return p.refuse(refusal)
	}
	return p.done()
}

// subscribeTo subscribes the client of a request to its resource. What could not be read can't be subscribed to.
func (p *passing) subscribeTo(ctx context.Context, shown *forward.Shown) *rpcError {
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

// subscribed has the server tell of updates; what was asked stands behind the call decision.
func (p *passing) subscribed(ctx context.Context, item *forward.Item) error {
	server, ok := p.g.serverOf(item)
	if !ok {
		return &registry.Error{Code: registry.Unavailable, Msg: "the server of this resource is not served any more"}
	}
	end, err := p.g.upstream.Subscribe(ctx, item.Server, p.name, p.m.uri)
	if err != nil {
		return err
	}
	key := subscriptionKey{p.branch, p.m.from.id, p.m.uri}
	if !p.front.subscribed.put(key, p.m.from.ctx, &subscription{from: originOf(server, p.name), end: end}) {
		end()
		return &registry.Error{Code: registry.RateLimited, Msg: "this session has as many subscriptions as it may have; give one up first"}
	}
	return nil
}

// done is the empty result.
func (p *passing) done() reply {
	return reply{status: 200, parts: [][]byte{begin(p.m.id), []byte("{}}")}}
}

// serverOf is the declaration of an item's server.
func (g *Generation) serverOf(item *forward.Item) (registry.Server, bool) {
	for _, s := range g.forwarding() {
		if s.Name == item.Server {
			return s, true
		}
	}
	return registry.Server{}, false
}

// Updated tells the clients that subscribed to them of resources that are others than before.
func (f *Front) Updated(updates []ResourceUpdate) {
	for _, u := range updates {
		for _, key := range f.subscribed.of(u.from, u.uri) {
			if key.branch.listeners.updated(key.session, u.uri) {
				continue
			}
			// A client that has no stream open, or reads none, misses it.
			_ = key.branch.mcp.SendNotificationToSpecificClient(key.session, mcp.MethodNotificationResourceUpdated, map[string]any{"uri": u.uri})
		}
	}
}

// resubscribe goes through what is subscribed to after a generation or what servers pass on has changed.
func (f *Front) resubscribe(g *Generation) {
	for key, from := range f.subscribed.all() {
		path, ok := key.branch.path(g)
		if !ok {
			f.subscribed.drop(key)
			continue
		}
		item, _ := g.shown(f.ctx, path.View.Declared(), key.branch.caller.principal).Resource(key.uri)
		if item != nil {
			if s, ok := g.serverOf(item); ok && originOf(s, key.branch.name) == from {
				continue
			}
		}
		f.Log.Info("a subscription ends, because its resource is not what it was", "branch", key.branch.name, "uri", registry.Shown(key.uri))
		f.subscribed.drop(key)
	}
}
