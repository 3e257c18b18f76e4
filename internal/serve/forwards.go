package serve

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/forward"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// forwardWait is how long a list waits for a server that has not been asked yet. What comes later is told by a
// list_changed.
const forwardWait = 5 * time.Second

// passed is what a server passes on, as far as it has been asked. It stays while the server is down.
type passed struct {
	offer *forward.Offer // nil before the first answer
	// err is why it could not be asked last; nil after an answer.
	err error
	// told is closed at the next answer or error.
	told chan struct{}
}

// origin is where something is passed on from: a server by its digest, and the branch whose connection it is where the
// server keeps branches apart.
type origin struct{ server, branch string }

func originOf(s registry.Server, branch string) origin {
	if s.Isolate != registry.ByBranch {
		branch = ""
	}
	return origin{s.Digest, branch}
}

// passes takes what a server passes on, or why that isn't known.
func (l *Live) passes(s registry.Server, branch string, f upstream.Forwarded, err error) {
	var offer *forward.Offer
	if err == nil {
		lists := forward.Lists{Resources: f.Resources, Templates: f.Templates, Prompts: f.Prompts}
		offer = forward.Read(s.Name, s.Prefix, lists, f.Subscribe, f.Complete)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.passing(originOf(s, branch))
	close(p.told)
	p.told, p.err = make(chan struct{}), err
	if offer != nil && (p.offer == nil || p.offer.Digest != offer.Digest) {
		p.offer = offer
		signal(l.forwarded)
	}
}

// passing needs the lock.
func (l *Live) passing(from origin) *passed {
	p, ok := l.passed[from]
	if !ok {
		p = &passed{told: make(chan struct{})}
		l.passed[from] = p
	}
	return p
}

// forwarding are the trusted servers of the generation that pass something on, in the order of their names.
func (g *Generation) forwarding() []registry.Server {
	var servers []registry.Server
	if g.made.build == nil {
		return nil
	}
	for _, s := range g.made.build.Servers {
		if _, trusted := g.servers[s.Name]; trusted && len(s.Forward) > 0 {
			servers = append(servers, s)
		}
	}
	slices.SortFunc(servers, func(a, b registry.Server) int { return strings.Compare(a.Name, b.Name) })
	return servers
}

// forwards reports whether a server of that digest is among the forwarding ones; a nil generation has none.
func (g *Generation) forwards(server string) bool {
	return g != nil && slices.ContainsFunc(g.forwarding(), func(s registry.Server) bool { return s.Digest == server })
}

// askForwards has every server asked that passes something on and has not answered yet, and waits until each has, or could
// not be asked, but no longer than forwardWait; for one that could not be asked before, a fifth of that.
func (g *Generation) askForwards(ctx context.Context, branch string) {
	if g.live == nil {
		return
	}
	var asking sync.WaitGroup
	for _, s := range g.forwarding() {
		g.live.mu.Lock()
		p := g.live.passing(originOf(s, branch))
		known, told, wait := p.offer != nil, p.told, forwardWait
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
					g.live.passes(s, branch, upstream.Forwarded{}, err)
				}
				return
			}
			select {
			case <-told:
			case <-ctx.Done():
			}
		})
	}
	asking.Wait()
}

// shown is what a branch is shown of what is known now. It is decided once for each state of the offers.
func (g *Generation) shown(ctx context.Context, branch *registry.Branch, principal decision.Principal) *forward.Shown {
	offers := g.offers(branch.Name)
	if len(offers) == 0 {
		return forward.Show(nil, nil)
	}
	var state strings.Builder
	for _, o := range offers {
		state.WriteString(o.Digest)
	}
	key := forwardKey{branch.Name, g.engine.ListClaims(principal)}
	g.passing.mu.Lock()
	known, ok := g.passing.by[key]
	g.passing.mu.Unlock()
	if ok && known.state == state.String() {
		return known.shown
	}
	answers := g.decideForwards(ctx, branch, principal, offers)
	shown := forward.Show(offers, func(i *forward.Item) bool { return answers[i] })
	for _, w := range shown.Withheld {
		g.log.Warn("a branch is not shown what could be of two servers", "branch", branch.Name, "server", w.Server, "kind", w.Kind, "name", w.Name, "uri", w.URI, "reason", w.Reason)
	}
	if ctx.Err() == nil { // else some decisions were broken off
		g.passing.mu.Lock()
		if len(g.passing.by) >= maxForwards || g.passing.by == nil { // what comes then begins anew
			g.passing.by = map[forwardKey]forwardShown{}
		}
		g.passing.by[key] = forwardShown{state.String(), shown}
		g.passing.mu.Unlock()
	}
	return shown
}

// maxForwards is for how many branches and kinds of principals a generation keeps what they are shown.
const maxForwards = 256

// forwardCache holds what is shown, by branch and what the list decision reads of the principal.
type forwardCache struct {
	mu sync.Mutex
	by map[forwardKey]forwardShown
}

type forwardKey struct{ branch, claims string }

type forwardShown struct {
	state string // the digests of the offers
	shown *forward.Shown
}

// offers are what is known of what the forwarding servers have for a branch.
func (g *Generation) offers(branch string) (offers []*forward.Offer) {
	if g.live == nil {
		return nil
	}
	servers := g.forwarding()
	g.live.mu.Lock()
	defer g.live.mu.Unlock()
	for _, s := range servers {
		if p := g.live.passed[originOf(s, branch)]; p != nil && p.offer != nil {
			offers = append(offers, p.offer)
		}
	}
	return offers
}

// decideForwards asks the list decision about every item, on all cores. One that fails hides its item and no other.
func (g *Generation) decideForwards(ctx context.Context, branch *registry.Branch, principal decision.Principal, offers []*forward.Offer) map[*forward.Item]bool {
	allowed := map[*forward.Item]bool{}
	var (
		mu     sync.Mutex
		asking sync.WaitGroup
		next   = make(chan *forward.Item)
	)
	for range runtime.GOMAXPROCS(0) {
		asking.Go(func() {
			for i := range next {
				in := decision.ListInput{Branch: invoke.PolicyBranch(*branch), Tool: noTool(), Principal: principal}
				in.Resource, in.Prompt = g.policyItem(i, "", "list")
				d := g.engine.List(ctx, in)
				mu.Lock()
				allowed[i] = d.Allow
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
	return allowed
}

// noTool is the tool of a question about something else.
func noTool() decision.Tool { return decision.Tool{Tags: []string{}} }

// policyItem is an item as a policy sees it; uri is the URI that is read through a template, empty where none is.
func (g *Generation) policyItem(i *forward.Item, uri, action string) (*decision.Resource, *decision.Prompt) {
	trust := g.servers[i.Server].Name()
	switch i.Kind {
	case forward.Prompt:
		return nil, &decision.Prompt{Name: i.Name, Server: i.Server, Trust: trust, Action: action}
	case forward.Template:
		return &decision.Resource{Name: i.Name, URI: uri, Template: i.URI, Server: i.Server, Trust: trust, Action: action}, nil
	}
	return &decision.Resource{Name: i.Name, URI: i.URI, Server: i.Server, Trust: trust, Action: action}, nil
}

// ForwardStatus is what a server passes on, as /status shows it.
type ForwardStatus struct {
	// Resources, Templates and Prompts count what the server has.
	Resources int `json:"resources"`
	Templates int `json:"templates"`
	Prompts   int `json:"prompts"`
	// Known is false before the server was asked. Error is why it could not be asked last; what is known stays.
	Known bool   `json:"known"`
	Error string `json:"error,omitempty"`
	// Withheld is shown to nobody, Colliding not to the branches that it stands under.
	Withheld  []forward.Withheld            `json:"withheld,omitempty"`
	Colliding map[string][]forward.Withheld `json:"colliding,omitempty"`
}

// forwardStatus is nil for a server that passes nothing on.
func (g *Generation) forwardStatus(server string) *ForwardStatus {
	servers := g.forwarding()
	n := slices.IndexFunc(servers, func(s registry.Server) bool { return s.Name == server })
	if n < 0 || g.live == nil {
		return nil
	}
	s := &ForwardStatus{}
	g.live.mu.Lock()
	for from, p := range g.live.passed { // several where the server keeps branches apart; what each has is much alike
		if from.server != servers[n].Digest {
			continue
		}
		if p.err != nil {
			s.Error = p.err.Error()
		}
		if p.offer != nil && !s.Known {
			s.Known, s.Withheld = true, p.offer.Withheld
			s.Resources, s.Templates, s.Prompts = p.offer.Count(forward.Resource), p.offer.Count(forward.Template), p.offer.Count(forward.Prompt)
		}
	}
	g.live.mu.Unlock()
	g.passing.mu.Lock()
	known := maps.Clone(g.passing.by)
	g.passing.mu.Unlock()
	for key, of := range known {
		for _, w := range of.shown.Withheld {
			if w.Server != server {
				continue
			}
			if s.Colliding == nil {
				s.Colliding = map[string][]forward.Withheld{}
			}
			s.Colliding[key.branch] = append(s.Colliding[key.branch], w)
		}
	}
	return s
}

// unknownItem words the answer for what a branch isn't shown: hidden and missing are the same.
func unknownItem(what, name string) string {
	return fmt.Sprintf("unknown %s %q", what, registry.Shown(name))
}
