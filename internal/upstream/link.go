package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/sony/gobreaker/v2"

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

// attempt is one connection attempt. err is written before done closes.
type attempt struct {
	done chan struct{}
	err  *registry.Error
	// blamed is set by the first call that fails because of it.
	blamed atomic.Bool
	// queued is set while it waits for other branches' processes to end.
	queued atomic.Bool
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

// call runs a tool; key is the idempotency key of a call with a side effect.
func (l *link) call(ctx context.Context, tool string, args json.RawMessage, key string, to registry.Listener) (r *registry.Result, err error) {
	err = l.exchange(ctx, key != "", to, func(ctx context.Context, s *session) (err error) {
		if l.cfg.Watch.Admit != nil && l.up.Server.Discover != nil {
			if err := l.cfg.Watch.Admit(l.up.Server, tool); err != nil {
				return err
			}
		}
		r, err = s.call(ctx, tool, args, key, to)
		return err
	})
	if err != nil {
		return nil, err
	}
	if r.Input != nil {
		r.Input.Origin = l.origin()
	}
	return r, nil
}

// exchange sends one request within the server's limits, and never retries one with a side effect (once). The
// errors of request are those of session.ask, or a *registry.Error for a request that was not sent.
func (l *link) exchange(ctx context.Context, once bool, to registry.Listener, request func(context.Context, *session) error) error {
	if len(l.problems) > 0 {
		return unsentError(l.unavailable(nil, "%s", l.problems[0].Message))
	}
	if to.Round != nil && to.Round.Origin != "" && to.Round.Origin != l.origin() {
		return unsentError(&registry.Error{Code: registry.BindingFailed, Msg: fmt.Sprintf("server %q has a new declaration since it asked for input; start the call again", l.up.Server.Name)})
	}
	if err := l.enter(); err != nil {
		return unsentError(err)
	}
	defer l.leave()
	if limit := l.up.Server.CallTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(errClosing) })()

	if l.up.Server.HTTP != nil {
		if l.breaker.open() { // waiting for a turn would be useless
			return unsentError(l.refuse(gobreaker.ErrOpenState))
		}
		if !l.gate.turn(ctx) {
			return unsentError(l.ended(ctx, l.busy()))
		}
		defer l.gate.leave()
	}
	done, refused := l.breaker.allow()
	if refused != nil {
		return unsentError(l.refuse(refused))
	}
	verdict := errNoVerdict
	defer func() { done(verdict) }()
	l.tally.calls.Add(1)
	verdict, err := l.send(ctx, once, request)
	if verdict == errFault {
		l.tally.failures.Add(1)
	}
	return err
}

// send sends one request, and returns its outcome with a verdict on the server for the breaker. Where the
// server has forgotten the session, a new session is made and the request sent on it, unless the request has
// a side effect (once).
func (l *link) send(ctx context.Context, once bool, request func(context.Context, *session) error) (verdict, err error) {
	for first := true; ; first = false {
		s, blame, err := l.connected(ctx)
		if err != nil {
			return verdictOn(blame), unsentError(err)
		}
		err = request(ctx, s)
		s.calls.Done()
		var unsent *registry.Error
		if errors.As(err, &unsent) {
			return errNoVerdict, unsentError(unsent)
		}
		var f *failure
		if errors.As(err, &f) {
			if f.drop {
				l.drop(s, f)
			}
			if f.forgotten && first && !once {
				continue
			}
		}
		if err != nil {
			failed := l.callError(ctx, err)
			return l.judge(s, f, failed), failed
		}
		l.answered(s)
		return nil, nil
	}
}

// judge returns the breaker's verdict on the server for f, the failure of a call on s, and adds to the error
// since when the server fails.
func (l *link) judge(s *session, f *failure, failed *registry.Error) error {
	switch {
	case f == nil || failed.Code == registry.Cancelled || f.unsent && !f.drop || l.ctx.Err() != nil:
		return errNoVerdict
	case failed.Code == registry.Timeout:
		l.mu.Lock()
		l.fault(l.unavailable(nil, "it did not answer a call in time"))
		l.mu.Unlock()
		return errFault
	case failed.Code == registry.Unavailable || failed.Code == registry.Unauthorized:
		l.mu.Lock()
		failed.Msg += l.fault(l.failure(f))
		l.mu.Unlock()
		return verdictOn(!f.drop || !s.blamed.Swap(true))
	case f.drop: // its own message broke the connection
		return verdictOn(!s.blamed.Swap(true))
	}
	l.answered(s) // a refusal is an answer, too
	return nil
}

func verdictOn(blame bool) error {
	if blame {
		return errFault
	}
	return errNoVerdict
}

// errClosing is the cause of contexts that end because the pool does.
var errClosing = errors.New("catalogd closes its connections")

// ended is the error of a call that timed out or whose caller cancelled it; what describes its progress.
func (l *link) ended(ctx context.Context, what string) *registry.Error {
	e := &registry.Error{Code: registry.Timeout, Msg: fmt.Sprintf("server %q did not answer in time: %s", l.up.Server.Name, what)}
	switch {
	case context.Cause(ctx) == errClosing:
		return l.unavailable(nil, "%v", errClosing)
	case errors.Is(ctx.Err(), context.Canceled):
		e.Code, e.Msg = registry.Cancelled, fmt.Sprintf("the call of server %q was cancelled: %s", l.up.Server.Name, what)
	}
	return e
}

func (l *link) callError(ctx context.Context, err error) *registry.Error {
	var f *failure
	if !errors.As(err, &f) {
		return &registry.Error{Code: registry.Internal, Msg: fmt.Sprintf("the call of server %q could not be made", l.up.Server.Name), Err: err}
	}
	if f.code == "" { // the context has ended
		return mark(l.ended(ctx, f.msg), f.known)
	}
	msg := f.msg
	if f.outcome != "" {
		msg += "; " + f.outcome
	}
	switch f.code {
	case registry.Unavailable:
		return mark(l.unavailable(f.err, "%s", msg), f.known)
	case registry.Unauthorized:
		return mark(l.unauthorized(f.err, msg), f.known)
	}
	return mark(&registry.Error{Code: f.code, Msg: fmt.Sprintf("server %q: %s", l.up.Server.Name, msg), Err: f.err, Needs: f.needs}, f.known)
}

func (l *link) enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drained != nil || l.ctx.Err() != nil {
		return l.unavailable(nil, "its generation was closed")
	}
	l.calls++
	return nil
}

func (l *link) leave() {
	l.mu.Lock()
	l.calls--
	last := l.calls == 0
	if last && l.drained != nil {
		close(l.drained)
	}
	l.mu.Unlock()
	if last {
		l.gate.idle()
	}
}

// rest closes the session of a link without calls, and reports whether it will end.
func (l *link) rest() bool {
	l.mu.Lock()
	s := l.session
	ends := s != nil && l.calls == 0
	l.mu.Unlock()
	if ends {
		l.drop(s, nil)
	}
	return ends
}

// answered records that the connection works, or did: a server that exits right after its answer may be lost
// before this is called. The recorded loss is then kept, as the first failure in a row.
func (l *link) answered(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != s && l.lastErr != nil {
		l.failures, l.retryAt = min(l.failures, 1), time.Time{}
		return
	}
	l.failures, l.lastErr, l.down, l.retryAt = 0, nil, time.Time{}, time.Time{}
}

// connected returns a session to send one call on, counted in session.calls; it connects where there is no
// session. blame reports that this call is the first to fail because of the attempt that the error is about.
func (l *link) connected(ctx context.Context) (_ *session, blame bool, err error) {
	for {
		s, a, err := l.sessionOrAttempt()
		if err != nil {
			return nil, false, err
		}
		if s != nil {
			return s, false, nil
		}
		select {
		case <-a.done:
			if a.err != nil {
				return nil, !a.blamed.Swap(true), a.err
			}
		case <-ctx.Done():
			what := "the connection was still being made, and nothing was sent"
			if a.queued.Load() {
				what = l.busy()
			}
			return nil, false, l.ended(ctx, what)
		}
	}
}

// warm starts to connect where nothing prevents it, and does not wait.
func (l *link) warm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.problems) > 0 || l.drained != nil || l.ctx.Err() != nil || l.session != nil || l.attempt != nil || time.Until(l.retryAt) > 0 {
		return
	}
	l.startAttempt()
}

// startAttempt starts to connect. It must be called with the lock held.
func (l *link) startAttempt() *attempt {
	a := &attempt{done: make(chan struct{})}
	l.attempt = a
	l.enterState(Connecting)
	l.work.Go(func() { l.connect(a) })
	return a
}

func (l *link) sessionOrAttempt() (*session, *attempt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ctx.Err() != nil:
		return nil, nil, l.unavailable(nil, "%v", errClosing)
	case l.session != nil:
		l.session.calls.Add(1)
		return l.session, nil, nil
	case l.attempt != nil:
		return nil, l.attempt, nil
	}
	if wait := time.Until(l.retryAt); wait > 0 {
		e := *l.lastErr
		e.Msg = fmt.Sprintf("%s (next attempt in %s)", e.Msg, wait.Round(time.Millisecond))
		return nil, nil, &e
	}
	return nil, l.startAttempt(), nil
}

// enterState must be called with the lock held.
func (l *link) enterState(s State) { l.state, l.since = s, time.Now() }

// connect runs one attempt.
func (l *link) connect(a *attempt) {
	if l.branch != "" && l.up.Server.Stdio != nil {
		a.queued.Store(true)
		ctx, cancel := within(l.ctx, l.up.Server.CallTimeout)
		mine := l.gate.process(ctx, l, a)
		cancel()
		if !mine {
			l.giveUp(a)
			return
		}
		a.queued.Store(false)
	}
	ctx, cancel := within(l.ctx, l.connectTime())
	s, err := l.dial(ctx)
	cancel()
	if err != nil {
		l.gate.ended(a)
	} else {
		if err = l.look(l.ctx, s); err != nil {
			s.close()
			l.gate.ended(a)
		}
	}
	if err == nil {
		l.startListening(s)
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(a.done)
	l.attempt = nil
	if err != nil {
		a.err = l.failure(err)
		l.failed(a.err)
		if l.ctx.Err() == nil {
			l.log.Warn("upstream not connected", "reason", a.err.Msg, "detail", detail(a.err))
		}
		return
	}
	l.session = s
	l.tally.connects.Add(1)
	l.enterState(Ready)
	l.log.Info("upstream connected", "transport", s.transport(), "protocol", s.version, "pid", s.pid())
	if l.watched() {
		l.work.Go(func() { l.follow(s) })
	}
	if l.forwards() {
		l.work.Go(func() { l.followForwards(s) })
	}
	l.work.Go(func() {
		s.watch(l.ctx)
		l.drop(s, s.lost)
		s.calls.Wait()
		s.close()
		l.gate.ended(a)
	})
}

// startListening starts to receive notifications outside of calls. It waits briefly for the stream on which a server of
// an older protocol version could send requests during the first call.
func (l *link) startListening(s *session) {
	if updated := l.cfg.Watch.Updated; updated != nil {
		s.router.mu.Lock()
		s.router.updated = func(uri string) { updated(l.up.Server, l.branch, uri) }
		s.router.mu.Unlock()
	}
	tried, cancel := context.WithTimeout(l.ctx, openTime)
	s.listens.Go(func() { l.listen(s, cancel) })
	if s.web != nil && !mcp.IsModernProtocol(s.version) {
		<-tried.Done()
	}
}

// connectTime is the limit of an attempt: the time to start a process is negligible, the time to reach an
// address is not.
func (l *link) connectTime() time.Duration {
	if l.up.Server.Stdio != nil {
		return l.up.Server.InitializeTimeout
	}
	return l.up.Server.ConnectTimeout + l.up.Server.InitializeTimeout
}

// within adds a timeout to ctx; a limit of zero adds none.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}

// giveUp abandons an attempt that timed out waiting for another branch's process to end. The server is not
// blamed.
func (l *link) giveUp(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempt = nil
	l.enterState(Idle)
	a.err = l.unavailable(nil, "%s", l.busy())
	a.blamed.Store(true)
	close(a.done)
}

func detail(e *registry.Error) string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// failed records a failure and when the next attempt may begin. It must be called with the lock held.
func (l *link) failed(err *registry.Error) {
	l.enterState(Failed)
	l.fault(err)
	if l.failures++; l.failures < 2 {
		return // the first failure may be an accident
	}
	pause := l.cfg.MaxBackoff
	if doublings := l.failures - 2; doublings < 20 {
		pause = min(pause, l.cfg.Backoff<<doublings)
	}
	l.retryAt = time.Now().Add(pause)
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
