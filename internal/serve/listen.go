package serve

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

// subscriptionFilter is what a client of 2026-07-28 wants to hear (subscriptions/listen), or does hear.
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

// readFilter reads params.notifications.
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

// maxEvents is how many notifications wait for a client that reads slowly; further ones are dropped.
const maxEvents = 100

// listeners are the open subscriptions/listen of a branch. The zero value is ready.
type listeners struct {
	mu sync.Mutex
	by map[string]*listener
}

// listener is one of them.
type listener struct {
	// tag says in each of its messages which one it is.
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

// changed notifies the listeners of a list.
func (ls *listeners) changed(method mcp.MCPMethod) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.by {
		if l.hears.hears(method) {
			l.add(method, "")
		}
	}
}

// updated notifies one listener of a changed resource, and reports whether there is that listener.
func (ls *listeners) updated(id, uri string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l, ok := ls.by[id]
	if ok {
		l.add(mcp.MethodNotificationResourceUpdated, `"uri":`+string(encodeJSON(uri))+",")
	}
	return ok
}

// add has a notification written that has these members before its _meta.
func (l *listener) add(method mcp.MCPMethod, more string) {
	select {
	case l.events <- notification(method, `{`+more+`"_meta":{`+l.tag+`}}`):
	default: // a client that reads nothing misses it
	}
}

// notify notifies all clients of a branch of a changed list.
func (b *branch) notify(method mcp.MCPMethod) {
	b.mcp.SendNotificationToAllClients(string(method), nil)
	b.listeners.changed(method)
}

// listen answers subscriptions/listen: it acknowledges what the client will hear, writes that until ctx ends, and returns
// the last answer.
func (b *branch) listen(ctx context.Context, m *message, write func([]byte)) reply {
	wants, refusal := m.readFilter()
	if refusal != nil {
		return b.fail(m.id, true, refusal)
	}
	l := &listener{tag: `"` + mcp.MetaKeySubscriptionID + `":` + string(m.id), events: make(chan []byte, maxEvents)}
	id := "listen-" + registry.NewCallID()
	ctx, end := context.WithCancel(ctx)
	defer end() // its subscriptions, too
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
	last := `{"resultType":"complete","_meta":{` + l.tag + `,` + b.front.serverInfo + `}}}`
	return reply{status: 200, parts: [][]byte{begin(m.id), []byte(last)}}
}

// subscribeAll subscribes a client to resources, and returns the URIs of those for which that was allowed and could be
// done.
func (b *branch) subscribeAll(ctx context.Context, m *message, to *client, uris []string) (done []string) {
	if len(uris) == 0 {
		return nil
	}
	g, release := b.front.Pin()
	defer release()
	path, ok := b.path(g)
	if !ok {
		return nil
	}
	g.askForwards(ctx, b.name)
	declared := path.View.Declared()
	shown := g.shown(ctx, declared, b.caller.principal)
	var (
		mu  sync.Mutex
		all sync.WaitGroup
	)
	for _, uri := range uris {
		all.Go(func() {
			defer func() {
				if thrown := recover(); thrown != nil {
					b.front.panicked(string(m.method), thrown)
				}
			}()
			p := &passing{
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
