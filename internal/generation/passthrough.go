package generation

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/passthrough"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// forwardWait is how long a list waits for a server that has not answered yet. Later items are announced by
// list_changed.
const forwardWait = 5 * time.Second

// passthroughLists holds the passthrough items of a server, as far as known. It is kept while the server is
// down.
type passthroughLists struct {
	offer *passthrough.Offer // nil before the first answer
	// err is the error of the last request; nil after an answer.
	err error
	// updated is closed at the next answer or error.
	updated chan struct{}
}

// Origin is the source of a passthrough item: a server by its digest, and the branch whose connection it is
// if the server isolates by branch.
type Origin struct{ server, branch string }

// OriginOf returns the origin of what a server offers to a branch.
func OriginOf(s registry.Server, branch string) Origin {
	if s.Isolate != registry.ByBranch {
		branch = ""
	}
	return Origin{s.Digest, branch}
}

// passthroughListed stores the passthrough items of a server, or the error of requesting them.
func (l *Live) passthroughListed(s registry.Server, branch string, f upstream.Forwarded, err error) {
	var offer *passthrough.Offer
	if err == nil {
		lists := passthrough.Lists{Resources: f.Resources, Templates: f.Templates, Prompts: f.Prompts}
		offer = passthrough.Read(s.Name, s.Prefix, lists, f.Subscribe, f.Complete)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.passthroughOf(OriginOf(s, branch))
	close(p.updated)
	p.updated, p.err = make(chan struct{}), err
	if offer != nil && (p.offer == nil || p.offer.Digest != offer.Digest) {
		p.offer = offer
		Signal(l.PassthroughChanged)
	}
}

// passthroughOf returns the entry of an origin, created on first use. l.mu must be held.
func (l *Live) passthroughOf(from Origin) *passthroughLists {
	p, ok := l.passed[from]
	if !ok {
		p = &passthroughLists{updated: make(chan struct{})}
		l.passed[from] = p
	}
	return p
}

// PassthroughServers returns the trusted servers of the generation that forward anything, sorted by name.
func (g *Generation) PassthroughServers() []registry.Server {
	var servers []registry.Server
	if g.inputs.build == nil {
		return nil
	}
	for _, s := range g.inputs.build.Servers {
		if _, trusted := g.servers[s.Name]; trusted && len(s.Forward) > 0 {
			servers = append(servers, s)
		}
	}
	slices.SortFunc(servers, func(a, b registry.Server) int { return strings.Compare(a.Name, b.Name) })
	return servers
}

// passesThrough reports whether a server of that digest is among PassthroughServers; a nil generation has
// none.
func (g *Generation) passesThrough(server string) bool {
	return g != nil && slices.ContainsFunc(g.PassthroughServers(), func(s registry.Server) bool { return s.Digest == server })
}

// AwaitPassthrough requests the items of every passthrough server that has not answered yet, and waits until
// each has answered or failed, but no longer than forwardWait; a fifth of that if the last request failed.
func (g *Generation) AwaitPassthrough(ctx context.Context, branch string) {
	if g.live == nil {
		return
	}
	var asking sync.WaitGroup
	for _, s := range g.PassthroughServers() {
		g.live.mu.Lock()
		p := g.live.passthroughOf(OriginOf(s, branch))
		known, updated, wait := p.offer != nil, p.updated, forwardWait
		if p.err != nil {
			wait = forwardWait / 5
		}
		g.live.mu.Unlock()
		if known {
			continue
		}
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			if err := g.upstream.Reach(ctx, s.Name, branch); err != nil {
				if ctx.Err() == nil {
					g.live.passthroughListed(s, branch, upstream.Forwarded{}, err)
				}
				return
			}
			select {
			case <-updated:
			case <-ctx.Done():
			}
		})
	}
	asking.Wait()
}

// ShownPassthrough returns the known passthrough items that a branch shows a principal. It is decided once
// per state of the offers.
func (g *Generation) ShownPassthrough(ctx context.Context, path *invoke.Path, principal decision.Principal) *passthrough.Shown {
	branch := path.View.Declared()
	offers := g.offers(branch.Name)
	if len(offers) == 0 {
		return passthrough.Show(nil, nil)
	}
	var state strings.Builder
	for _, o := range offers {
		state.WriteString(o.Digest)
	}
	key := passthroughKey{branch.Name, g.engine.ListClaims(principal)}
	if asked := path.Asked(decision.List); len(asked) > 1 {
		key.branch = ""
		for _, b := range asked {
			key.branch += fmt.Sprintf("%q", b.Branch)
		}
	}
	if known, ok := g.passing.Get(key); ok && known.state == state.String() {
		return known.shown
	}
	answers, complete := g.decidePassthrough(ctx, path, principal, offers)
	shown := passthrough.Show(offers, func(i *passthrough.Item) bool { return answers[i] })
	for _, w := range shown.Withheld {
		g.log.Warn("a branch is not shown what could be of two servers", "branch", branch.Name, "server", w.Server, "kind", w.Kind, "name", w.Name, "uri", w.URI, "reason", w.Reason)
	}
	if ctx.Err() == nil && complete { // else some decisions were cancelled or timed out
		g.passing.Put(key, shownPassthrough{state.String(), shown})
	}
	return shown
}

// maxForwards caps the pairs of branch and claims for which a generation caches what is shown.
const maxForwards = 256

// passthroughKey is a branch, and what the list decision reads of the principal.
type passthroughKey struct{ branch, claims string }

type shownPassthrough struct {
	state string // the digests of the offers
	shown *passthrough.Shown
}

// offers returns the known offers of the passthrough servers to a branch.
func (g *Generation) offers(branch string) (offers []*passthrough.Offer) {
	if g.live == nil {
		return nil
	}
	servers := g.PassthroughServers()
	g.live.mu.Lock()
	defer g.live.mu.Unlock()
	for _, s := range servers {
		if p := g.live.passed[OriginOf(s, branch)]; p != nil && p.offer != nil {
			offers = append(offers, p.offer)
		}
	}
	return offers
}

// decidePassthrough requests the list decision about every item, on all cores. A failure hides its item only;
// complete is false if a decision timed out, and is to be requested again.
func (g *Generation) decidePassthrough(ctx context.Context, path *invoke.Path, principal decision.Principal, offers []*passthrough.Offer) (allowed map[*passthrough.Item]bool, complete bool) {
	allowed, complete = map[*passthrough.Item]bool{}, true
	var (
		mu     sync.Mutex
		asking sync.WaitGroup
		next   = make(chan *passthrough.Item)
	)
	for range runtime.GOMAXPROCS(0) {
		asking.Go(func() {
			for i := range next {
				in := decision.ListInput{Tool: NoTool(), Principal: principal}
				in.Resource, in.Prompt = g.PolicyItem(i, "", "list")
				d := path.Each(decision.List, "", func(b decision.Branch, _ string) decision.Decision {
					in.Branch = b
					return g.shows(ctx, i, in)
				})
				g.failures.note(ctx, g.log, d, aboutCall(in.Branch, in.Tool, in.Resource, in.Prompt))
				mu.Lock()
				allowed[i] = d.Allow
				complete = complete && d.Code != decision.PolicyTimeout
				mu.Unlock()
			}
		})
	}
	for _, o := range offers {
		for _, i := range o.Items {
			next <- i
		}
	}
	close(next)
	asking.Wait()
	return allowed, complete
}

// shows returns the list decision about an item. What is read through a template is unknown until it is
// requested.
func (g *Generation) shows(ctx context.Context, i *passthrough.Item, in decision.ListInput) decision.Decision {
	if i.Kind == passthrough.Template {
		return g.engine.List(ctx, in)
	}
	return listed(ctx, g.engine, in)
}

// NoTool returns the tool in the input of a decision about something else.
func NoTool() decision.Tool { return decision.Tool{Tags: []string{}} }

// PolicyItem returns an item as a policy sees it; uri is the URI that is read through a template, or empty.
func (g *Generation) PolicyItem(i *passthrough.Item, uri, action string) (*decision.Resource, *decision.Prompt) {
	trust := g.servers[i.Server].Name()
	switch i.Kind {
	case passthrough.Prompt:
		return nil, &decision.Prompt{Name: i.Name, Server: i.Server, Trust: trust, Action: action}
	case passthrough.Template:
		return &decision.Resource{Name: i.Name, URI: uri, Template: i.URI, Server: i.Server, Trust: trust, Action: action}, nil
	}
	return &decision.Resource{Name: i.Name, URI: i.URI, Server: i.Server, Trust: trust, Action: action}, nil
}

// ForwardStatus is the state of a server's passthrough items, as /status shows it.
type ForwardStatus struct {
	// Resources, Templates and Prompts count the server's items.
	Resources int `json:"resources"`
	Templates int `json:"templates"`
	Prompts   int `json:"prompts"`
	// Known is false until the server has answered. Error is that of the last request; known items are kept.
	Known bool   `json:"known"`
	Error string `json:"error,omitempty"`
	// Withheld is shown to no branch, Colliding not to the branches in its keys.
	Withheld  []passthrough.Withheld            `json:"withheld,omitempty"`
	Colliding map[string][]passthrough.Withheld `json:"colliding,omitempty"`
}

// ForwardStatus returns the status of a server; nil if it forwards nothing.
func (g *Generation) ForwardStatus(server string) *ForwardStatus {
	servers := g.PassthroughServers()
	n := slices.IndexFunc(servers, func(s registry.Server) bool { return s.Name == server })
	if n < 0 || g.live == nil {
		return nil
	}
	s := &ForwardStatus{}
	g.live.mu.Lock()
	for from, p := range g.live.passed { // one per branch if the server isolates by branch; their items are much alike
		if from.server != servers[n].Digest {
			continue
		}
		if p.err != nil {
			s.Error = p.err.Error()
		}
		if p.offer != nil && !s.Known {
			s.Known, s.Withheld = true, p.offer.Withheld
			s.Resources, s.Templates, s.Prompts = p.offer.Count(passthrough.Resource), p.offer.Count(passthrough.Template), p.offer.Count(passthrough.Prompt)
		}
	}
	g.live.mu.Unlock()
	for key, of := range g.passing.All() {
		for _, w := range of.shown.Withheld {
			if w.Server != server {
				continue
			}
			if s.Colliding == nil {
				s.Colliding = map[string][]passthrough.Withheld{}
			}
			s.Colliding[key.branch] = append(s.Colliding[key.branch], w)
		}
	}
	return s
}

// UnknownItem returns the error text for an item that a branch isn't shown, the same for hidden and missing
// items.
func UnknownItem(what, name string) string {
	return fmt.Sprintf("unknown %s %q", what, registry.Shown(name))
}

// HandlesPassthrough reports whether a trusted server forwards what the method is about.
func (g *Generation) HandlesPassthrough(method mcp.MCPMethod) bool {
	for _, s := range g.PassthroughServers() {
		switch {
		case method == mcp.MethodCompletionComplete,
			strings.HasPrefix(string(method), "resources/") && s.Forwards("resources"),
			strings.HasPrefix(string(method), "prompts/") && s.Forwards("prompts"):
			return true
		}
	}
	return false
}

// ServerOf returns the declaration of an item's server.
func (g *Generation) ServerOf(item *passthrough.Item) (registry.Server, bool) {
	for _, s := range g.PassthroughServers() {
		if s.Name == item.Server {
			return s, true
		}
	}
	return registry.Server{}, false
}
