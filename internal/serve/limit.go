package serve

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// limit caps how many of something are open at once.
type limit struct {
	open atomic.Int64
	max  int64
}

// take counts one more until leave is called, if there is room.
func (l *limit) take() (leave func(), ok bool) {
	if l.open.Add(1) > l.max {
		l.open.Add(-1)
		return nil, false
	}
	return func() { l.open.Add(-1) }, true
}

// enter is take that answers 503 where there is no room.
func (l *limit) enter(w http.ResponseWriter) (leave func(), ok bool) {
	if leave, ok = l.take(); !ok {
		overLimit(w, http.StatusServiceUnavailable)
	}
	return leave, ok
}

// gate is a limit with a short queue before it: a burst waits a moment, and what would wait longer is told to come back.
type gate struct {
	places chan struct{}
	queue  limit
	wait   time.Duration
}

func newGate(l FrontLimits) gate {
	return gate{places: make(chan struct{}, l.Calls), queue: limit{max: int64(l.Queue)}, wait: l.QueueWait}
}

func (g *gate) leave() { <-g.places }

// try takes a place that is free now; leave gives it back.
func (g *gate) try() bool {
	select {
	case g.places <- struct{}{}:
		return true
	default:
		return false
	}
}

// enter takes a place, waiting for one where the queue has room.
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

// overLimit is the answer to what was not run for want of room: 429 to one call too many, 503 where the branch as a whole
// is full.
func overLimit(w http.ResponseWriter, status int) {
	w.Header().Set("Retry-After", "1")
	writeError(w, status, "this branch is as busy as it may be; nothing was run")
}
