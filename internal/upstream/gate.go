package upstream

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// gate limits concurrency for one server: its calls over HTTP, and its processes where each branch has its
// own (Server.Isolate). The links of an isolated server's branches share a gate, so that the limit applies to
// the whole server.
type gate struct {
	limit int
	// links is the number of links that share the gate; guarded by the pool's lock.
	links int
	// turns holds a token for each running call at an HTTP server.
	turns chan struct{}
	// waiting counts the calls that wait for a turn, and the links that wait for a process.
	waiting atomic.Int64

	mu sync.Mutex
	// running holds the attempts whose process runs or is about to start, with their links.
	running map[*attempt]*link
	// changed closes when running shrinks or when one of its links has no calls left.
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

// turn waits until one more call may run; leave ends that call's turn. It returns false when ctx ends first.
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

// process waits until an attempt of l may start a process; ended returns the slot. At the limit, a link
// without calls closes its own process, and reconnects at its next call. It returns false when ctx ends
// first.
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

// ended reports that an attempt failed, or that its session has ended.
func (g *gate) ended(a *attempt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.running[a]; ok {
		delete(g.running, a)
		g.signal()
	}
}

// idle reports that l has no calls left.
func (g *gate) idle() {
	if g.waiting.Load() == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.signal()
}

// signal must be called with the lock held.
func (g *gate) signal() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// busy is the message of a call that timed out while it waited for a turn or a process.
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
