package upstream

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// link is one upstream, or one branch's connection to it, over all its sessions. At most one session takes
// new calls, and at most one connection attempt runs.
type link struct {
	up Upstream
	// branch is the branch whose calls it carries, where the server isolates branches; else empty.
	branch   string
	root     string
	cfg      Config
	log      *slog.Logger
	target   trust.Target
	problems problem.List
	gate     *gate
	breaker  *breaker
	tally    *tally
	// redirect decides on redirects; where it is nil no redirect is followed.
	redirect atomic.Pointer[func(context.Context, trust.Target) error]
	// ctx is cancelled when the link ends: connection attempts stop, and calls in flight fail.
	ctx context.Context
	end context.CancelFunc
	// work counts attempts, and sessions that have not ended.
	work sync.WaitGroup
	// legacy records that the last session used an older protocol version, so that a child is not probed for
	// the modern one again: some don't answer, which costs seconds, and some exit. Only an attempt uses it.
	legacy bool

	// declared identifies the declaration and its trust, key the link: declared plus the branch. refs is
	// guarded by the pool's lock.
	declared, key string
	refs          int

	mu         sync.Mutex
	state      State
	since      time.Time
	lastErr    *registry.Error
	session    *session
	attempt    *attempt
	failures   int       // in a row, without an answered call between them
	down       time.Time // the first of them
	retryAt    time.Time
	calls      int
	drained    chan struct{}    // made by drain; closes when no call is left
	noisy      [2]time.Duration // the pause between two questions of a noisy server, for tools and for what is passed on; else 0
	subscribed subscriptions
}

// newLink makes a link without a key, a gate and a tally; the pool sets those.
func newLink(up Upstream, branch, root string, cfg Config) *link {
	l := &link{up: up, branch: branch, root: root, cfg: cfg, state: Idle, since: time.Now()}
	l.log = cfg.Logger.With("server", up.Server.Name, "trust", up.Trust.Name())
	if branch != "" {
		l.log = l.log.With("branch", branch)
	}
	l.breaker = newBreaker(cfg, l.log)
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// unavailable is the error of a call that was not made.
func (l *link) unavailable(err error, format string, args ...any) *registry.Error {
	return &registry.Error{
		Code: registry.Unavailable,
		Msg:  fmt.Sprintf("server %q is unavailable: %s", l.up.Server.Name, fmt.Sprintf(format, args...)),
		Err:  err,
	}
}

// unauthorized is the error of a call whose credentials the server does not accept.
func (l *link) unauthorized(err error, msg string) *registry.Error {
	return &registry.Error{Code: registry.Unauthorized, Msg: fmt.Sprintf("server %q refuses access: %s", l.up.Server.Name, msg), Err: err}
}

// failure is the error of calls that have no connection because of f.
func (l *link) failure(f *failure) *registry.Error {
	if f.code == registry.Unauthorized {
		return l.unauthorized(f.err, f.msg)
	}
	return l.unavailable(f.err, "%s", f.msg)
}

func detail(e *registry.Error) string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// fault records why the server fails, and returns err's message with the time of the first failure since the
// last answered call. It must be called with the lock held.
func (l *link) fault(err *registry.Error) string {
	if l.down.IsZero() {
		l.down = time.Now()
	}
	since := "; unavailable since " + l.down.UTC().Format(time.RFC3339)
	err.Msg += since
	l.lastErr = err
	return since
}

// drop retires s; it is closed once its last call has ended. f is the reason, nil where the link ends. A
// session that was dropped already is ignored.
func (l *link) drop(s *session, f *failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != s {
		return
	}
	l.session = nil
	s.retire()
	switch {
	case l.ctx.Err() != nil:
		return
	case f == nil || f.forgotten:
		l.enterState(Idle)
		return
	}
	err := l.failure(f)
	l.failed(err)
	l.log.Warn("upstream lost", "reason", err.Msg, "detail", detail(err))
}

// drain waits for the calls in flight, and then ends the link.
func (l *link) drain() {
	l.mu.Lock()
	drained := make(chan struct{})
	l.drained = drained
	l.enterState(Draining)
	if l.calls == 0 {
		close(drained)
	}
	l.mu.Unlock()
	select {
	case <-drained:
	case <-l.ctx.Done():
	}
	l.abort()
}

// abort ends the link at once, and returns when nothing of it runs any more.
func (l *link) abort() {
	l.mu.Lock() // so that no attempt begins between the look at ctx and the wait
	l.end()
	l.mu.Unlock()
	l.work.Wait()
}

func (l *link) status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := Status{
		Server: l.up.Server.Name, Branch: l.branch, Transport: "http", State: l.state, Since: l.since, Trust: l.up.Trust.Name(),
		MaxConnections: l.gate.limit, Calls: l.calls, Waiting: int(l.gate.waiting.Load()),
		Breaker: l.breaker.state(), RetryAt: l.breaker.retryAt(), tally: l.tally,
	}
	if l.up.Server.Stdio != nil {
		st.Transport = "stdio"
	}
	if st.Transport == "stdio" && l.branch == "" {
		st.MaxConnections = 1 // one process for all
	}
	if l.session != nil {
		st.Protocol, st.Pid = l.session.version, l.session.pid()
	}
	switch {
	case l.lastErr != nil:
		st.LastError = l.lastErr.Msg
	case len(l.problems) > 0:
		st.State, st.LastError = Failed, l.problems[0].Message
	}
	if l.drained != nil {
		st.State = Draining
	}
	if pause := max(l.noisy[0], l.noisy[1]); pause > 0 && l.session != nil {
		st.Notice = fmt.Sprintf("it says again and again that what it offers has changed, and it has not; it is asked once in %s", pause)
	}
	return st
}
