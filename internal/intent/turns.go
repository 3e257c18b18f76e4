package intent

import (
	"context"
	"errors"
	"sync"
)

// ErrQueueFull is the error for one intent more of a branch than may wait there for their turn.
var ErrQueueFull = errors.New("too many intents of the branch wait for their turn")

// errEnding is why no turn is given any more: the effector ends.
var errEnding = errors.New("the process ends")

// turns lets intents be executed: so many at once in all, of each tool and of each server, and fairly among
// branches. Those of one branch, principal and tool start in the order in which they were queued. All methods
// are safe for concurrent use.
type turns struct {
	limits Limits

	mu       sync.Mutex
	branches []*lane        // those with somebody waiting, the one whose turn is next first
	places   map[string]int // how many of each branch have entered
	running  int
	tools    map[string]int // how many of each tool run
	servers  map[string]int // and of each server
	last     map[of]*turn   // who was given a turn last and has not started
	paused   bool
	ending   bool
}

// lane are the intents of one branch that wait, in their order.
type lane struct {
	branch  string
	waiting []*turn
}

// turn is one intent's wait for its turn, and then its turn.
type turn struct {
	all     *turns
	of      of
	given   chan struct{}   // closed when it is this one's turn
	before  <-chan struct{} // closed when whoever starts before has; nil where nobody does
	started chan struct{}   // closed when it has started, or will not
	starts  sync.Once
}

// of is what the limits count by, and whose intents start in order.
type of struct{ branch, principal, tool, server string }

func newTurns(l Limits) *turns {
	return &turns{limits: l, places: map[string]int{}, tools: map[string]int{}, servers: map[string]int{}, last: map[of]*turn{}}
}

// enter keeps a place in the queue of a branch, which leave gives up; ErrQueueFull where there is none.
func (t *turns) enter(branch string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ending:
		return errEnding
	case t.places[branch] >= t.limits.Queue:
		return ErrQueueFull
	}
	t.places[branch]++
	return nil
}

func (t *turns) leave(branch string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.places[branch]--; t.places[branch] == 0 {
		delete(t.places, branch)
	}
}

// queue asks for a turn, which is to be waited for, and then ended.
func (t *turns) queue(o of) *turn {
	w := &turn{all: t, of: o, given: make(chan struct{}), started: make(chan struct{})}
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

// wait returns when it is w's turn, which end then ends. Its error is the cause of ctx, or that the effector
// ends; there is no turn to end then.
func (w *turn) wait(ctx context.Context) error {
	t := w.all
	select {
	case <-w.given:
	case <-ctx.Done():
		t.mu.Lock()
		waited := t.unqueue(w)
		t.mu.Unlock()
		if !waited { // it was given this moment
			w.end()
		}
		return context.Cause(ctx)
	}
	t.mu.Lock()
	ending := t.ending
	t.mu.Unlock()
	if ending {
		w.end()
		return errEnding
	}
	return nil
}

// start returns when w may start: the one before it has.
func (w *turn) start() {
	if w.before != nil {
		<-w.before
	}
	w.starts.Do(func() { close(w.started) })
}

// join, unqueue, give and grant need the lock.
func (t *turns) join(w *turn) {
	for _, l := range t.branches {
		if l.branch == w.of.branch {
			l.waiting = append(l.waiting, w)
			return
		}
	}
	t.branches = append(t.branches, &lane{branch: w.of.branch, waiting: []*turn{w}})
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

// give gives turns as long as there is room: each branch in turn the first of its intents whose tool and
// server have room.
func (t *turns) give() {
	if t.paused {
		return
	}
	for tried := 0; tried < len(t.branches) && t.running < t.limits.Running; {
		l := t.branches[0]
		next := -1
		for i, w := range l.waiting {
			if t.tools[w.of.tool] < t.limits.Tool && (w.of.server == "" || t.servers[w.of.server] < t.limits.Server) {
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

// grant makes it w's turn.
func (t *turns) grant(w *turn) {
	t.running++
	t.tools[w.of.tool]++
	if w.of.server != "" {
		t.servers[w.of.server]++
	}
	if last := t.last[w.of]; last != nil {
		w.before = last.started
	}
	t.last[w.of] = w
	close(w.given)
}

// end ends a turn that was given; what waits behind it may start.
func (w *turn) end() {
	w.starts.Do(func() {
		if w.before == nil {
			close(w.started)
			return
		}
		go func() { // what waits behind does not overtake what is before
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
	if t.tools[w.of.tool]--; t.tools[w.of.tool] == 0 {
		delete(t.tools, w.of.tool)
	}
	if w.of.server != "" {
		if t.servers[w.of.server]--; t.servers[w.of.server] == 0 {
			delete(t.servers, w.of.server)
		}
	}
	t.give()
}

// forget drops a turn that has started, or will not, as the one that the next has to wait for.
func (t *turns) forget(w *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-w.started:
		if t.last[w.of] == w {
			delete(t.last, w.of)
		}
	default: // it is forgotten once what is before it has started
	}
}

// pause has nothing begin until it is called with false.
func (t *turns) pause(paused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = paused
	t.give()
}

// close refuses every turn from now on, those that are waited for included.
func (t *turns) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending = true
	for _, l := range t.branches {
		for _, w := range l.waiting {
			t.grant(w) // and wait says that it is none
		}
	}
	t.branches = nil
}
