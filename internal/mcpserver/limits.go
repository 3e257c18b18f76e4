package mcpserver

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

const (
	// MaxHeaderBytes is the maximum size of a request's headers in bytes.
	MaxHeaderBytes = 32 << 10
)

// limit caps how many of something are open at once.
type limit struct {
	open atomic.Int64
	max  int64
}

// take counts one more until leave is called; ok is false if the limit is reached.
func (l *limit) take() (leave func(), ok bool) {
	if l.open.Add(1) > l.max {
		l.open.Add(-1)
		return nil, false
	}
	return func() { l.open.Add(-1) }, true
}

// enter is take, and answers 503 if the limit is reached.
func (l *limit) enter(w http.ResponseWriter) (leave func(), ok bool) {
	if leave, ok = l.take(); !ok {
		overLimit(w, http.StatusServiceUnavailable)
	}
	return leave, ok
}

// gate limits concurrency, with a short queue: a burst waits briefly, and what would wait longer is refused
// and may be retried.
type gate struct {
	places chan struct{}
	queue  limit
	wait   time.Duration
}

func newGate(l Limits) gate {
	return gate{places: make(chan struct{}, l.Calls), queue: limit{max: int64(l.Queue)}, wait: l.QueueWait}
}

// effectsGate returns a gate without a queue: calls of effects queue in the effector.
func effectsGate(l Limits) gate { return gate{places: make(chan struct{}, l.Effects)} }

// gateOf returns the gate that a message must pass.
func (b *branch) gateOf(m *message) *gate {
	if m.method != mcp.MethodToolsCall {
		return &b.calls
	}
	g, release := b.server.Pin()
	defer release()
	path, ok := b.path(g)
	if !ok {
		return &b.calls
	}
	return b.gateOfTool(path, *m.name)
}

// gateOfTool returns the gate that a call of a tool must pass.
func (b *branch) gateOfTool(path *invoke.Path, tool string) *gate {
	if e := path.View.Find(tool); e != nil && e.Effect() != registry.Read {
		return &b.effects
	}
	return &b.calls
}

func (g *gate) leave() { <-g.places }

// try takes a slot if one is free; leave returns it.
func (g *gate) try() bool {
	select {
	case g.places <- struct{}{}:
		return true
	default:
		return false
	}
}

// enter takes a slot, and waits up to g.wait for one if the queue isn't full.
func (g *gate) enter(ctx context.Context) bool {
	if g.try() {
		return true
	}
	done, ok := g.queue.take()
	if !ok {
		return false
	}
	defer done()
	late := time.NewTimer(g.wait)
	defer late.Stop()
	select {
	case g.places <- struct{}{}:
		return true
	case <-late.C:
	case <-ctx.Done():
	}
	return false
}

// overLimit answers a request that was not run because a limit is reached: 429 for too many calls, 503 for
// too many sessions or streams.
func overLimit(w http.ResponseWriter, status int) {
	w.Header().Set("Retry-After", "1")
	WriteError(w, status, "this branch is as busy as it may be; nothing was run")
}
