package mcpserver

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

// subscriptionFilter is the notifications that a client of 2026-07-28 requests (subscriptions/listen) or is
// granted.
type subscriptionFilter struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
}

func (f subscriptionFilter) empty() bool {
	return !f.Tools && !f.Prompts && !f.Resources && len(f.URIs) == 0
}

func (f *subscriptionFilter) hears(method mcp.MCPMethod) bool {
	switch method {
	case mcp.MethodNotificationToolsListChanged:
		return f.Tools
	case mcp.MethodNotificationPromptsListChanged:
		return f.Prompts
	case mcp.MethodNotificationResourcesListChanged:
		return f.Resources
	}
	return false
}

var filterKeys = [][]byte{
	[]byte("toolsListChanged"), []byte("promptsListChanged"), []byte("resourcesListChanged"), []byte("resourceSubscriptions"),
}

// readFilter parses params.notifications.
func (m *message) readFilter() (f subscriptionFilter, refusal *rpcError) {
	if m.notifications == nil || m.notifications[0] != '{' {
		return f, refuse(mcp.INVALID_PARAMS, "params.notifications must be an object")
	}
	if err := members(m.notifications, filterKeys, func(_, _ []byte) {}); err != nil {
		return f, refuse(mcp.INVALID_REQUEST, "params.notifications: %v", err)
	}
	if json.Unmarshal(m.notifications, &f) != nil {
		return f, refuse(mcp.INVALID_PARAMS, "params.notifications must have true or false for each list, and a list of URIs as "+
			"resourceSubscriptions")
	}
	slices.Sort(f.URIs)
	if f.URIs = slices.Compact(f.URIs); len(f.URIs) > maxSubscriptions {
		return f, refuse(mcp.INVALID_PARAMS, "resourceSubscriptions has more than %d URIs", maxSubscriptions)
	}
	return f, nil
}

// maxEvents is the maximum number of notifications that wait for a slow client; further ones are dropped.
const maxEvents = 100

// listeners are the open subscriptions/listen requests of a branch. The zero value is ready to use.
type listeners struct {
	mu sync.Mutex
	by map[string]*listener
}

// listener is one open subscriptions/listen request.
type listener struct {
	// tag is the member of _meta that identifies the subscription in each of its messages.
	tag    string
	hears  subscriptionFilter
	events chan []byte
}

func (ls *listeners) add(id string, l *listener) (remove func()) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.by == nil {
		ls.by = map[string]*listener{}
	}
	ls.by[id] = l
	return func() {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		delete(ls.by, id)
	}
}

// changed notifies the listeners that subscribed to changes of a list.
func (ls *listeners) changed(method mcp.MCPMethod) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.by {
		if l.hears.hears(method) {
			l.add(method, "")
		}
	}
}

// updated notifies one listener of a changed resource, and reports whether that listener exists.
func (ls *listeners) updated(id, uri string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l, ok := ls.by[id]
	if ok {
		l.add(mcp.MethodNotificationResourceUpdated, `"uri":`+string(encodeJSON(uri))+",")
	}
	return ok
}

// add queues a notification; more are the members of its params before _meta.
func (l *listener) add(method mcp.MCPMethod, more string) {
	select {
	case l.events <- notification(method, `{`+more+`"_meta":{`+l.tag+`}}`):
	default: // a client that doesn't read misses it
	}
}

// notify notifies all clients of a branch that a list has changed.
func (b *branch) notify(method mcp.MCPMethod) {
	b.mcp.SendNotificationToAllClients(string(method), nil)
	b.listeners.changed(method)
}

// listen answers subscriptions/listen: it acknowledges the granted filter, writes notifications until ctx
// ends, and returns the final response. If nothing is granted it returns at once.
func (b *branch) listen(ctx context.Context, m *message, write func([]byte)) reply {
	wants, refusal := m.readFilter()
	if refusal != nil {
		return b.fail(m.id, true, refusal)
	}
	l := &listener{tag: `"` + mcp.MetaKeySubscriptionID + `":` + string(m.id), events: make(chan []byte, maxEvents)}
	id := "listen-" + registry.NewCallID()
	ctx, end := context.WithCancel(ctx)
	defer end() // ends its resource subscriptions, too
	has := b.has(ctx)
	l.hears = subscriptionFilter{
		Tools: wants.Tools, Prompts: wants.Prompts && has.prompts, Resources: wants.Resources && has.resources,
	}
	defer b.listeners.add(id, l)()
	l.hears.URIs = b.subscribeAll(ctx, m, &client{id, ctx}, wants.URIs)
	granted := `{"notifications":` + string(encodeJSON(l.hears)) + `,"_meta":{` + l.tag + `}}`
	write(notification(mcp.MethodNotificationSubscriptionsAcknowledged, granted))
	for !l.hears.empty() && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case e := <-l.events:
			write(e)
		}
	}
	for len(l.events) > 0 {
		write(<-l.events)
	}
	last := `{"resultType":"complete","_meta":{` + l.tag + `,` + b.server.serverInfo + `}}}`
	return reply{status: 200, parts: [][]byte{beginReply(m.id), []byte(last)}}
}

// subscribeAll subscribes a client to resources, and returns the URIs that were allowed and could be
// subscribed to, sorted.
func (b *branch) subscribeAll(ctx context.Context, m *message, to *client, uris []string) (done []string) {
	if len(uris) == 0 {
		return nil
	}
	g, release := b.server.Pin()
	defer release()
	path, ok := b.path(g)
	if !ok {
		return nil
	}
	g.AwaitPassthrough(ctx, b.root)
	declared := path.View.Declared()
	shown := g.ShownPassthrough(ctx, path, b.caller.Principal)
	var (
		mu  sync.Mutex
		all sync.WaitGroup
	)
	for _, uri := range uris {
		all.Go(func() {
			defer func() {
				if thrown := recover(); thrown != nil {
					b.server.Panicked(string(m.method), thrown)
				}
			}()
			p := &passthroughRequest{
				branch: b, g: g, path: path, declared: declared, modern: true,
				m: &message{id: m.id, method: mcp.MethodResourcesSubscribe, uri: uri, from: to},
			}
			if p.subscribeTo(ctx, shown) == nil {
				mu.Lock()
				done = append(done, uri)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.Sort(done)
	return done
}
