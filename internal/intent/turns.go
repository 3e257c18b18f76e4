package intent

import (
	"context"
	"errors"
	"sync"
)

// ErrQueueFull is the error of Submit if the branch already has Limits.Queue intents, or the principal its
// share of them.
var ErrQueueFull = errors.New("too many intents of the branch, or of the caller in it, wait for their turn")

// operator is the name of the local operator, decision.Local.
const operator = "local"

// fits reports whether a branch, of whose queue so many places are taken, has another one for a principal
// who has own of them: as long as the principal has fewer than are free. So one principal gets half of the
// queue at most, and a further one always finds a place while any is free. The local operator, who is
// everyone where there are no tokens, may take all.
func (l Limits) fits(taken, own int, principal string) bool {
	free := l.Queue - taken
	return free > 0 && (own < free || principal == operator)
}

// errShutdown is the error of everything that would start after Close.
var errShutdown = errors.New("the process is shutting down")

// turns schedules intents. It limits how many run at once in all, of each tool and of each server, and serves
// branches round-robin. Intents of one branch, principal, tool and server start in the order in which they
// were queued. All methods are safe for concurrent use, except where they require the lock.
type turns struct {
	limits Limits

	mu       sync.Mutex
	branches []*branchQueue            // the branches with waiting intents, the next one to serve first
	places   map[string]map[string]int // queue places in use, by branch and principal
	running  int
	tools    map[string]int     // running intents, by tool
	servers  map[string]int     // and by server
	last     map[limitKey]*turn // the turn that was granted last, until it has started
	paused   bool
	ending   bool
}

// branchQueue is the queue of one branch.
type branchQueue struct {
	branch  string
	waiting []*turn
}

// turn is the place of an intent in the queue, and then its permission to run.
type turn struct {
	all     *turns
	key     limitKey
	given   chan struct{}   // closed when the turn is granted
	before  <-chan struct{} // closed when the turn before it has started; nil if there is none
	started chan struct{}   // closed when it has started, or will not
	starts  sync.Once
}

// limitKey is what the limits count by. Intents with the same value start in order.
type limitKey struct{ branch, principal, tool, server string }

func newTurns(l Limits) *turns {
	return &turns{limits: l, places: map[string]map[string]int{}, tools: map[string]int{}, servers: map[string]int{}, last: map[limitKey]*turn{}}
}

// enter reserves a place in the queue of a branch for a principal until leave is called; ErrQueueFull if
// there is none.
func (t *turns) enter(branch, principal string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := 0
	for _, n := range t.places[branch] {
		taken += n
	}
	switch {
	case t.ending:
		return errShutdown
	case !t.limits.fits(taken, t.places[branch][principal], principal):
		return ErrQueueFull
	}
	if t.places[branch] == nil {
		t.places[branch] = map[string]int{}
	}
	t.places[branch][principal]++
	return nil
}

func (t *turns) leave(branch, principal string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.places[branch]
	if of[principal]--; of[principal] == 0 {
		delete(of, principal)
	}
	if len(of) == 0 {
		delete(t.places, branch)
	}
}

// queue queues an intent. The caller must call wait, and end if that succeeds.
func (t *turns) queue(o limitKey) *turn {
	w := &turn{all: t, key: o, given: make(chan struct{}), started: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ending {
		t.grant(w)
		return w
	}
	t.join(w)
	t.give()
	return w
}

// wait waits until the turn is granted. After an error, which is the cause of ctx or errShutdown, end must
// not be called.
func (w *turn) wait(ctx context.Context) error {
	t := w.all
	select {
	case <-w.given:
	case <-ctx.Done():
		t.mu.Lock()
		waited := t.unqueue(w)
		t.mu.Unlock()
		if !waited { // it was granted at the same moment
			w.end()
		}
		return context.Cause(ctx)
	}
	t.mu.Lock()
	ending := t.ending
	t.mu.Unlock()
	if ending {
		w.end()
		return errShutdown
	}
	return nil
}

// start waits until the turn before w has started, and then marks w as started.
func (w *turn) start() {
	if w.before != nil {
		<-w.before
	}
	w.starts.Do(func() { close(w.started) })
}

// join appends w to the queue of its branch. t.mu must be held by the callers of join, unqueue, give and
// grant.
func (t *turns) join(w *turn) {
	for _, l := range t.branches {
		if l.branch == w.key.branch {
			l.waiting = append(l.waiting, w)
			return
		}
	}
	t.branches = append(t.branches, &branchQueue{branch: w.key.branch, waiting: []*turn{w}})
}

func (t *turns) unqueue(w *turn) bool {
	for i, l := range t.branches {
		for j, other := range l.waiting {
			if other == w {
				l.waiting = append(l.waiting[:j], l.waiting[j+1:]...)
				if len(l.waiting) == 0 {
					t.branches = append(t.branches[:i], t.branches[i+1:]...)
				}
				return true
			}
		}
	}
	return false
}

// give grants turns within the limits. It goes round the branches, and grants in each the first intent whose
// tool and server are below their limits.
func (t *turns) give() {
	if t.paused {
		return
	}
	for tried := 0; tried < len(t.branches) && t.running < t.limits.Running; {
		l := t.branches[0]
		next := -1
		for i, w := range l.waiting {
			if t.tools[w.key.tool] < t.limits.Tool && (w.key.server == "" || t.servers[w.key.server] < t.limits.Server) {
				next = i
				break
			}
		}
		t.branches = append(t.branches[1:], l)
		if next < 0 {
			tried++
			continue
		}
		tried = 0
		t.grant(l.waiting[next])
		if l.waiting = append(l.waiting[:next], l.waiting[next+1:]...); len(l.waiting) == 0 {
			t.branches = t.branches[:len(t.branches)-1]
		}
	}
}

// grant grants w its turn.
func (t *turns) grant(w *turn) {
	t.running++
	t.tools[w.key.tool]++
	if w.key.server != "" {
		t.servers[w.key.server]++
	}
	if last := t.last[w.key]; last != nil {
		w.before = last.started
	}
	t.last[w.key] = w
	close(w.given)
}

// end ends a granted turn, so that the next one can be granted.
func (w *turn) end() {
	w.starts.Do(func() {
		if w.before == nil {
			close(w.started)
			return
		}
		go func() { // a later turn must not start before the ones before w
			<-w.before
			close(w.started)
			w.all.forget(w)
		}()
	})
	t := w.all
	t.forget(w)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	if t.tools[w.key.tool]--; t.tools[w.key.tool] == 0 {
		delete(t.tools, w.key.tool)
	}
	if w.key.server != "" {
		if t.servers[w.key.server]--; t.servers[w.key.server] == 0 {
			delete(t.servers, w.key.server)
		}
	}
	t.give()
}

// forget removes w from last once it has started or will not start.
func (t *turns) forget(w *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-w.started:
		if t.last[w.key] == w {
			delete(t.last, w.key)
		}
	default: // end calls forget again when the turn before it has started
	}
}

// pause stops (true) or resumes (false) granting turns.
func (t *turns) pause(paused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = paused
	t.give()
}

// close makes all present and later calls of wait and enter return errShutdown.
func (t *turns) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending = true
	for _, l := range t.branches {
		for _, w := range l.waiting {
			t.grant(w) // wait returns errShutdown
		}
	}
	t.branches = nil
}
