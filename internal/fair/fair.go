// Package fair shares places, of which there is a fixed number, among those who want them: the calls that a daemon
// runs at once, or its worker processes.
//
// A place is taken for a Key: the branch, the principal and the tool of a call. Limits cap the places of all, of one
// branch, and of one principal or one tool on a branch. Whoever gets no place may wait for one. A place that becomes
// free goes to the principal who has the fewest, then to the one who was served longest ago, then likewise to one of
// its branches, and last in the order of arrival. So one who asks a lot waits behind himself, and nobody else does.
//
// The longest line of a principal also pays where a queue is full: its last one is refused in favour of whoever has
// a shorter one.
package fair

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Key says for whom a place is. Its zero value is a user like any other.
type Key struct{ Branch, Principal, Tool string }

// Limits cap places. Zero means that there is no such cap.
type Limits struct {
	// Total caps the places of all, AllOfPrincipal those of one principal on all branches.
	Total, AllOfPrincipal int
	// Branch caps the places of one branch, Principal those of one principal on one branch, and Tool those of one
	// tool on one branch. Keys without a tool don't count towards Tool.
	Branch, Principal, Tool int
	// Queue caps how many wait for a place of one branch; zero lets nobody wait, and a negative value everybody.
	Queue int
}

// Limit names one of Limits.
type Limit string

// What refuses a place.
const (
	Total          Limit = "total"
	AllOfPrincipal Limit = "principal_total"
	Branch         Limit = "branch"
	Principal      Limit = "principal"
	Tool           Limit = "tool"
)

// FullError says that a place was not to be had.
type FullError struct {
	// Limit is the cap that was reached, and Max its value.
	Limit Limit
	Max   int
	// Waited is how long a place was waited for; zero if the queue was full, or is not there.
	Waited time.Duration
}

func (e *FullError) Error() string { return "the limit " + string(e.Limit) + " is reached" }

// ErrClosed is the error of closed Places.
var ErrClosed = errors.New("the places have been closed")

// Places are the places. All methods are safe for concurrent use.
type Places struct {
	limits Limits

	mu      sync.Mutex
	total   int
	users   map[user]use  // of principals on all branches (branch "") and on one; only those with places or waiters
	byName  map[name]int  // places in use by branch (tool "") and by tool of a branch
	waiting []*waiter     // in the order of arrival
	served  uint64        // counts the places given
	closed  chan struct{} // nil until Close; closed when all places are free then
}

type user struct {
	principal, branch string
	whole             bool // of the principal on all branches
}

type name struct {
	branch, tool string
	whole        bool // of the branch, with all its tools
}

// use is what a user has. served is when, in places given, it was given the last one.
type use struct {
	places, waiting int
	served          uint64
}

type waiter struct {
	key     Key
	outcome chan error // gets one element: nil for a place, or a FullError
}

// New returns Places of which all are free.
func New(l Limits) *Places {
	return &Places{limits: l, users: map[user]use{}, byName: map[name]int{}}
}

// Try takes a place if one is free, and waits for none. The error is a FullError or ErrClosed.
func (p *Places) Try(k Key) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.try(k)
}

// try is Try. A place that is free for k is one that nobody waits for: those who wait lack another one.
func (p *Places) try(k Key) error {
	if p.closed != nil {
		return ErrClosed
	}
	if full := p.full(k); full != nil {
		return full
	}
	p.give(k)
	return nil
}

// Take takes a place, and waits up to wait for one, or as long as ctx does if wait is 0. The error is a FullError,
// ErrClosed or that of ctx. After nil, Release must be called with the same key.
func (p *Places) Take(ctx context.Context, k Key, wait time.Duration) error {
	w, err := p.enter(k)
	if w == nil {
		return err
	}
	var late <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case err := <-w.outcome:
		return err
	case <-late:
		return p.leave(w, func() error {
			full := p.full(k)
			full.Waited = wait
			return full
		})
	case <-ctx.Done():
		return p.leave(w, ctx.Err)
	}
}

// enter takes a place, for which both results are nil, or queues.
func (p *Places) enter(k Key) (*waiter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.try(k)
	if err == nil || err == ErrClosed || !p.roomToWait(k) {
		return nil, err
	}
	w := &waiter{k, make(chan error, 1)}
	p.waiting = append(p.waiting, w)
	p.count(k, func(u *use) { u.waiting++ })
	return w, nil
}

// leave ends the waiting of w, and returns the error that why gives. If w was given its outcome meanwhile, that
// counts.
func (p *Places) leave(w *waiter, why func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case err := <-w.outcome:
		return err
	default:
	}
	err := why()
	p.unqueue(slices.Index(p.waiting, w))
	return err
}

// Taken returns how many places are taken.
func (p *Places) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}

// Release returns a place that was taken for k.
func (p *Places) Release(k Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total--
	p.countName(k, -1)
	p.count(k, func(u *use) { u.places-- })
	if p.closed != nil && p.total == 0 {
		close(p.closed)
	}
	for {
		next := p.next()
		if next < 0 {
			return
		}
		w := p.waiting[next]
		p.unqueue(next)
		p.give(w.key)
		w.outcome <- nil
	}
}

// Close refuses everybody from now on, also who waits, and returns when all places have been released. It is called
// once.
func (p *Places) Close() {
	p.mu.Lock()
	p.closed = make(chan struct{})
	for len(p.waiting) > 0 {
		w := p.waiting[0]
		p.unqueue(0)
		w.outcome <- ErrClosed
	}
	if p.total == 0 {
		close(p.closed)
	}
	p.mu.Unlock()
	<-p.closed
}

// give takes a place for k. p.mu must be held.
func (p *Places) give(k Key) {
	p.served++
	p.total++
	p.countName(k, 1)
	p.count(k, func(u *use) { u.places, u.served = u.places+1, p.served })
}

// count changes what the users of a key have. p.mu must be held.
func (p *Places) count(k Key, change func(*use)) {
	for _, who := range [...]user{{k.Principal, "", true}, {k.Principal, k.Branch, false}} {
		u := p.users[who]
		change(&u)
		if u.places == 0 && u.waiting == 0 {
			delete(p.users, who)
			continue
		}
		p.users[who] = u
	}
}

func (p *Places) countName(k Key, n int) {
	for _, what := range [...]name{{k.Branch, "", true}, {k.Branch, k.Tool, false}} {
		if !what.whole && k.Tool == "" {
			continue
		}
		if p.byName[what] += n; p.byName[what] == 0 {
			delete(p.byName, what)
		}
	}
}

// full returns which cap keeps a key from another place, or nil; the narrowest cap first, as it is the one that the
// caller can do most about. p.mu must be held.
func (p *Places) full(k Key) *FullError {
	l := &p.limits
	reached := func(places, most int) bool { return most > 0 && places >= most }
	switch {
	case k.Tool != "" && reached(p.byName[name{k.Branch, k.Tool, false}], l.Tool):
		return &FullError{Limit: Tool, Max: l.Tool}
	case l.Principal > 0 && reached(p.users[user{k.Principal, k.Branch, false}].places, l.Principal):
		return &FullError{Limit: Principal, Max: l.Principal}
	case l.AllOfPrincipal > 0 && reached(p.users[user{k.Principal, "", true}].places, l.AllOfPrincipal):
		return &FullError{Limit: AllOfPrincipal, Max: l.AllOfPrincipal}
	case reached(p.byName[name{k.Branch, "", true}], l.Branch):
		return &FullError{Limit: Branch, Max: l.Branch}
	case reached(p.total, l.Total):
		return &FullError{Limit: Total, Max: l.Total}
	}
	return nil
}

// next returns the index of the waiter that gets the next place, or -1 if none of them can have one. p.mu must be
// held.
func (p *Places) next() int {
	best := -1
	for i, w := range p.waiting {
		if p.full(w.key) == nil && (best < 0 || p.before(w.key, p.waiting[best].key)) {
			best = i
		}
	}
	return best
}

// before reports whether a key is served before another, which arrived earlier. p.mu must be held.
func (p *Places) before(k, other Key) bool {
	for _, whole := range [...]bool{true, false} {
		a, b := user{k.Principal, k.Branch, whole}, user{other.Principal, other.Branch, whole}
		if whole {
			a.branch, b.branch = "", ""
		}
		x, y := p.users[a], p.users[b]
		switch {
		case x.places != y.places:
			return x.places < y.places
		case x.served != y.served:
			return x.served < y.served
		}
	}
	return false
}

// roomToWait reports whether k may wait. If the queue of its branch is full, the last waiter of the principal with
// the longest line is refused, if that line is longer than the one of k would be. p.mu must be held.
func (p *Places) roomToWait(k Key) bool {
	if p.limits.Queue <= 0 {
		return p.limits.Queue < 0
	}
	n, longest := 0, -1
	line := func(k Key) int { return p.users[user{k.Principal, k.Branch, false}].waiting }
	for i, w := range p.waiting {
		if w.key.Branch != k.Branch {
			continue
		}
		n++
		if longest < 0 || line(w.key) >= line(p.waiting[longest].key) {
			longest = i // the last of the longest line, as its waiters come in order
		}
	}
	if n < p.limits.Queue {
		return true
	}
	w := p.waiting[longest]
	if line(w.key) <= line(k)+1 {
		return false
	}
	p.unqueue(longest)
	w.outcome <- p.full(w.key)
	return true
}

// unqueue removes a waiter. p.mu must be held.
func (p *Places) unqueue(i int) {
	w := p.waiting[i]
	p.waiting = slices.Delete(p.waiting, i, i+1)
	p.count(w.key, func(u *use) { u.waiting-- })
}
