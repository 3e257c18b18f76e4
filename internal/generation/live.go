package generation

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

// Live holds what the servers offer, as far as known, and which of it may be called. It closes the gap
// between a change of a server's offer and the generation that hides the changed tool: Admit refuses at once.
// Its methods are safe for concurrent use.
type Live struct {
	mu     sync.Mutex
	offers map[string]lockfile.Offer // by the server's digest
	// admitted holds the tools of the serving generation, and of the previous one, whose calls may still run.
	admitted map[string]map[string]string
	// Changed holds one element when an offer has changed.
	Changed chan struct{}
	// passed holds the passthrough items of servers; PassthroughChanged holds one element when some have
	// changed.
	passed             map[Origin]*passthroughLists
	PassthroughChanged chan struct{}
	// updates are the resources that servers have reported as changed since the last TakeUpdates, without
	// duplicates; Updated holds one element when there are any.
	updates map[ResourceUpdate]bool
	Updated chan struct{}
}

// ResourceUpdate is a resource that its server has reported as changed.
type ResourceUpdate struct {
	From Origin
	Uri  string
}

// maxUpdates caps the updates that wait for TakeUpdates; further ones are dropped.
const maxUpdates = 10_000

func (l *Live) resourceUpdated(s registry.Server, branch, uri string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.updates) < maxUpdates {
		l.updates[ResourceUpdate{OriginOf(s, branch), uri}] = true
		Signal(l.Updated)
	}
}

// TakeUpdates returns and clears the reported resource updates.
func (l *Live) TakeUpdates() []ResourceUpdate {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Collect(maps.Keys(l.updates))
	clear(l.updates)
	return all
}

// NewLive returns an empty Live.
func NewLive() *Live {
	return &Live{
		offers: map[string]lockfile.Offer{}, Changed: make(chan struct{}, 1), passed: map[Origin]*passthroughLists{}, PassthroughChanged: make(chan struct{}, 1),
		updates: map[ResourceUpdate]bool{}, Updated: make(chan struct{}, 1),
	}
}

// Watch returns the callbacks for an upstream.Pool.
func (l *Live) Watch() upstream.Watch {
	return upstream.Watch{Offered: l.offered, Admit: l.Admit, Forwarded: l.passthroughListed, Updated: l.resourceUpdated}
}

func (l *Live) offered(s registry.Server, o upstream.Offer) {
	offer := readTools(o)
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, ok := l.offers[s.Digest]; ok && old.Digest() == offer.Digest() {
		return
	}
	l.offers[s.Digest] = offer
	Signal(l.Changed)
}

// Signal sends to c without blocking; c has a buffer of one.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *Live) offer(server string) (lockfile.Offer, bool) {
	if l == nil {
		return lockfile.Offer{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	o, ok := l.offers[server]
	return o, ok
}

// Admit returns an error for a tool whose offered definition is not the one that the serving generation
// admits.
func (l *Live) Admit(s registry.Server, tool string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	offered, ok := l.offers[s.Digest].Tools[tool]
	if may, listed := l.admitted[s.Digest][tool]; ok && listed && may == offered.Digest {
		return nil
	}
	return &registry.Error{Code: registry.Unavailable, Msg: fmt.Sprintf(
		"tool %q of server %q is quarantined: what the server offers now is not what is locked; `catalogd drift` shows the difference", tool, s.Name)}
}

// Adopt replaces the admitted tools by those of a generation and the one before. Offers of servers that
// neither has are dropped. A nil Live does nothing.
func (l *Live) Adopt(before, now *Generation) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.admitted = map[string]map[string]string{}
	for _, g := range []*Generation{before, now} {
		if g == nil {
			continue
		}
		for server, tools := range g.admitted {
			l.admitted[server] = tools
		}
	}
	for server := range l.offers {
		if _, ok := l.admitted[server]; !ok {
			delete(l.offers, server)
		}
	}
	for from := range l.passed {
		if !before.passesThrough(from.server) && !now.passesThrough(from.server) {
			delete(l.passed, from)
		}
	}
}
