package upstream

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// gate bounds what is open to one server at once: its calls over HTTP, and its processes where each branch has one of
// its own (Server.Isolate). The links of an isolated server's branches share a gate, so that the limit is the server's.
type gate struct {
	limit int
	// links is how many share it; the pool's, under its lock.
	links int
	// turns holds a token for each call at an HTTP server that runs.
	turns chan struct{}
	// waiting counts the calls that wait for a turn, and the links that wait for a process.
	waiting atomic.Int64

	mu sync.Mutex
	// running are the attempts whose process runs, or is about to, with their links.
	running map[*attempt]*link
	// changed closes when running gets smaller or a link of it has no call any more.
	changed chan struct{}
}

func newGate(up Upstream) *gate {
	g := &gate{limit: max(up.Server.MaxConnections, 1), running: map[*attempt]*link{}, changed: make(chan struct{})}
	if granted := up.Trust.MaxConnections(); granted > 0 {
		g.limit = min(g.limit, granted)
	}
	g.turns = make(chan struct{}, g.limit)
	return g
}

// turn waits until one more call may run, which leave ends. It returns false at the end of ctx.
func (g *gate) turn(ctx context.Context) bool {
	select {
	case g.turns <- struct{}{}:
		return true
	default:
	}
	g.waiting.Add(1)
	defer g.waiting.Add(-1)
	select {
	case g.turns <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (g *gate) leave() { <-g.turns }

// process waits until an attempt of l's may start a process, which ended gives back. Where the limit is reached, a link that has no call
// gives up its own, and connects again when it is called. It returns false at the end of ctx.
func (g *gate) process(ctx context.Context, l *link, a *attempt) bool {
	g.waiting.Add(1)
	defer g.waiting.Add(-1)
	for {
		g.mu.Lock()
		if len(g.running) < g.limit {
			g.running[a] = l
			g.mu.Unlock()
			return true
		}
		for _, other := range g.running {
			if other.rest() {
				break
			}
		}
		changed := g.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// ended says that an attempt came to nothing, or that what it made has ended.
func (g *gate) ended(a *attempt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.running[a]; ok {
		delete(g.running, a)
		g.signal()
	}
}

// idle says that l has no call any more.
func (g *gate) idle() {
	if g.waiting.Load() == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.signal()
}

// signal needs the lock.
func (g *gate) signal() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// busy is what a call says that waited in vain.
func (l *link) busy() string {
	g, what := l.gate, "connections were"
	if l.up.Server.Stdio != nil {
		what = "processes were"
	}
	limits := fmt.Sprintf("maxConnections of the server's declaration is %d", l.up.Server.MaxConnections)
	if granted := l.up.Trust.MaxConnections(); granted > 0 {
		limits += fmt.Sprintf(", max_connections of trust entry %q is %d", l.up.Trust.Name(), granted)
	}
	return fmt.Sprintf("all of its %d %s busy, calls that wait for one: %d, and nothing was sent; to raise the limit: %s, and the lower one counts",
		g.limit, what, max(g.waiting.Load(), 1), limits)
}
