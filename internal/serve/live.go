package serve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/catalogd/catalogd/internal/lock"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

// Live is what the servers offer, as far as they have been asked, and which of it may be called. It closes the gap between
// the moment in which a server offers something else and the generation that hides it: Admit refuses at once. A nil Live
// knows nothing and admits everything. It is safe for concurrent use.
type Live struct {
	mu     sync.Mutex
	offers map[string]lock.Offer // by the server's digest
	// admitted is that of the serving generation, and of the one before, whose calls still run.
	admitted map[string]map[string]string
	// changed has one element when an offer is another than before.
	changed chan struct{}
	// passed is what servers pass on; forwarded has one element when something of it is another than
	// before.
	passed    map[origin]*passed
	forwarded chan struct{}
	// updates are the resources that servers have told of since updated was read, each once.
	updates map[ResourceUpdate]bool
	updated chan struct{}
}

// ResourceUpdate is a resource that its server says is another than before.
type ResourceUpdate struct {
	from origin
	uri  string
}

// maxUpdates is how many updates wait to be told; what comes while they do is dropped.
const maxUpdates = 10_000

func (l *Live) resourceUpdated(s registry.Server, branch, uri string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.updates) < maxUpdates {
		l.updates[ResourceUpdate{originOf(s, branch), uri}] = true
		signal(l.updated)
	}
}

func (l *Live) takeUpdates() []ResourceUpdate {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Collect(maps.Keys(l.updates))
	clear(l.updates)
	return all
}

// NewLive makes a Live that knows nothing.
func NewLive() *Live {
	return &Live{
		offers: map[string]lock.Offer{}, changed: make(chan struct{}, 1), passed: map[origin]*passed{}, forwarded: make(chan struct{}, 1),
		updates: map[ResourceUpdate]bool{}, updated: make(chan struct{}, 1),
	}
}

// Watch is what a pool tells.
func (l *Live) Watch() upstream.Watch {
	return upstream.Watch{Offered: l.offered, Admit: l.Admit, Forwarded: l.passes, Updated: l.resourceUpdated}
}

func (l *Live) offered(s registry.Server, o upstream.Offer) {
	offer := readTools(o)
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, ok := l.offers[s.Digest]; ok && old.Digest() == offer.Digest() {
		return
	}
	l.offers[s.Digest] = offer
	signal(l.changed)
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *Live) offer(server string) (lock.Offer, bool) {
	if l == nil {
		return lock.Offer{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	o, ok := l.offers[server]
	return o, ok
}

// Admit refuses a tool that is not offered as the serving generation lets it be called.
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

// admit takes over what a generation lets be called. What is known of servers that neither it nor the one before has is
// forgotten.
func (l *Live) admit(before, now *Generation) {
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
		if !before.forwards(from.server) && !now.forwards(from.server) {
			delete(l.passed, from)
		}
	}
}

// follow replaces the serving generation when a server offers something else, until the daemon ends.
func (d *Daemon) follow(l *Live) {
	for {
		select {
		case <-d.life.Done():
			return
		case <-l.forwarded:
			if d.cfg.Forwarded != nil {
				d.cfg.Forwarded()
			}
			continue
		case <-l.updated:
			if all := l.takeUpdates(); d.cfg.Updated != nil {
				d.cfg.Updated(all)
			}
			continue
		case <-l.changed:
		}
		if d.reconsider() {
			continue
		}
		// Meanwhile Admit refuses what may not be called.
		select {
		case <-d.life.Done():
			return
		case <-time.After(5 * time.Second):
			signal(l.changed)
		}
	}
}

// reconsider decides anew about what servers offer. The files are the same, so nothing is asked for adoption: a policy
// that could refuse would keep in use what is to be hidden. It reports whether that worked.
func (d *Daemon) reconsider() bool {
	d.reload.Lock()
	defer d.reload.Unlock()
	ctx, cancel := context.WithCancel(d.life)
	defer cancel()
	serving := d.current.Load()
	if d.life.Err() != nil {
		return true
	}
	next, problems := d.cfg.Builder.Rebuild(ctx, serving)
	if next == nil {
		if ctx.Err() == nil {
			d.cfg.Log.Error("what servers offer could not be decided on; their changed tools can't be called", "first", problems.Err())
		}
		return ctx.Err() != nil
	}
	next.since, next.adopted, next.read = serving.since, serving.adopted, serving.read
	next.Warnings = append(slices.Clone(serving.read), next.Warnings...).Sorted()
	changed := d.swap(serving, next)
	if len(next.quarantined) == 0 && len(changed) == 0 {
		d.cfg.Log.Debug("servers offer what is locked", "generation", next.ID)
		return true
	}
	d.cfg.Log.Info("servers offer something else", "generation", next.ID, "quarantined", len(next.quarantined), "changed", changed)
	return true
}
