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

// link is one upstream, or one branch's part of it, over all its sessions. At most one session takes new calls, and at most one attempt to make one
// runs.
type link struct {
	up Upstream
	// branch is whose calls it carries where branches are kept apart; else empty.
	branch   string
	root     string
	cfg      Config
	log      *slog.Logger
	target   trust.Target
	problems problem.List
	gate     *gate
	breaker  *breaker
	tally    *tally
	// redirect decides on redirects; nil follows none.
	redirect atomic.Pointer[func(context.Context, trust.Target) error]
	// life ends with the link: attempts to connect stop, and calls that still run fail.
	life context.Context
	end  context.CancelFunc
	// work counts attempts, and sessions that have not ended.
	work sync.WaitGroup
	// legacy remembers that the last session was of an older era, so that a child is not asked for the modern protocol
	// again: some don't answer, which costs seconds, and some end. Only an attempt touches it.
	legacy bool

	// declared is the identity of what is declared and trusted, key that of the link: with the branch. refs are the pool's,
	// under its lock.
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

// attempt is one try to connect. err is written before done closes.
type attempt struct {
	done chan struct{}
	err  *registry.Error
	// blamed is set by the first call that fails for it.
	blamed atomic.Bool
	// queued is set while it waits for other branches' processes to end.
	queued atomic.Bool
}

// newLink makes a link without a key, a gate and a tally, which are the pool's to give.
func newLink(up Upstream, branch, root string, cfg Config) *link {
	l := &link{up: up, branch: branch, root: root, cfg: cfg, state: Idle, since: time.Now()}
	l.log = cfg.Logger.With("server", up.Server.Name, "trust", up.Trust.Name())
	if branch != "" {
		l.log = l.log.With("branch", branch)
	}
	l.breaker = newBreaker(cfg, l.log)
	l.life, l.end = context.WithCancel(context.Background())
	return l
}

// unavailable is the error of a call that did not happen.
func (l *link) unavailable(err error, format string, args ...any) *registry.Error {
	return &registry.Error{
		Code: registry.Unavailable,
		Msg:  fmt.Sprintf("server %q is unavailable: %s", l.up.Server.Name, fmt.Sprintf(format, args...)),
		Err:  err,
	}
}

// unauthorized is the error of a call that the server refuses for want of credentials that it accepts.
func (l *link) unauthorized(err error, msg string) *registry.Error {
	return &registry.Error{Code: registry.Unauthorized, Msg: fmt.Sprintf("server %q refuses access: %s", l.up.Server.Name, msg), Err: err}
}

// failure is the error of calls for which there is no connection, because of f.
func (l *link) failure(f *failure) *registry.Error {
	if f.code == registry.Unauthorized {
		return l.unauthorized(f.err, f.msg)
	}
	return l.unavailable(f.err, "%s", f.msg)
}

func (l *link) call(ctx context.Context, tool string, args json.RawMessage, to registry.Listener) (r *registry.Result, err error) {
	err = l.exchange(ctx, to, func(ctx context.Context, s *session) (err error) {
		if l.cfg.Watch.Admit != nil && l.up.Server.Discover != nil {
			if err := l.cfg.Watch.Admit(l.up.Server, tool); err != nil {
				return err
			}
		}
		r, err = s.call(ctx, tool, args, to)
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

// exchange sends one request within the server's limits. The errors of request are those of session.ask, or a
// *registry.Error of what was not sent, which is returned as it is.
func (l *link) exchange(ctx context.Context, to registry.Listener, request func(context.Context, *session) error) error {
	if l.problems.HasErrors() {
		return l.unavailable(nil, "%s", l.problems[0].Message)
	}
	if to.Round != nil && to.Round.Origin != "" && to.Round.Origin != l.origin() {
		return &registry.Error{Code: registry.BindingFailed, Msg: fmt.Sprintf("server %q was declared otherwise since it asked for input; call again from the start", l.up.Server.Name)}
	}
	if err := l.enter(); err != nil {
		return err
	}
	defer l.leave()
	if limit := l.up.Server.CallTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.life, func() { cancel(errClosing) })()

	if l.up.Server.HTTP != nil {
		if l.breaker.open() { // no use to wait for a turn
			return l.refuse(gobreaker.ErrOpenState)
		}
		if !l.gate.turn(ctx) {
			return l.ended(ctx, l.busy())
		}
		defer l.gate.leave()
	}
	done, refused := l.breaker.allow()
	if refused != nil {
		return l.refuse(refused)
	}
	verdict := errNoVerdict
	defer func() { done(verdict) }()
	l.tally.calls.Add(1)
	verdict, err := l.send(ctx, request)
	if verdict == errFault {
		l.tally.failures.Add(1)
	}
	return err
}

// send sends one request, and says beside its outcome what that says of the server.
func (l *link) send(ctx context.Context, request func(context.Context, *session) error) (verdict, err error) {
	for first := true; ; first = false {
		s, blame, err := l.connected(ctx)
		if err != nil {
			return verdictOn(blame), err
		}
		err = request(ctx, s)
		s.calls.Done()
		var unsent *registry.Error
		if errors.As(err, &unsent) {
			return errNoVerdict, unsent
		}
		var f *failure
		if errors.As(err, &f) {
			if f.drop {
				l.drop(s, f)
			}
			if f.forgotten && first {
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

// judge says what the failure of a call on s, which is f, says of the server, and since when it fails.
func (l *link) judge(s *session, f *failure, failed *registry.Error) error {
	switch {
	case f == nil || failed.Code == registry.Cancelled || f.unsent && !f.drop || l.life.Err() != nil:
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
	case f.drop: // what it sent closed its connection
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

// ended is the error of a call whose time was up, or whose caller has gone; what says where it stood.
func (l *link) ended(ctx context.Context, what string) *registry.Error {
	e := &registry.Error{Code: registry.Timeout, Msg: fmt.Sprintf("server %q did not answer in time: %s", l.up.Server.Name, what)}
	switch {
	case context.Cause(ctx) == errClosing:
		return l.unavailable(nil, "%v", errClosing)
	case errors.Is(ctx.Err(), context.Canceled):
		e.Code, e.Msg = registry.Cancelled, fmt.Sprintf("the call of server %q was given up: %s", l.up.Server.Name, what)
	}
	return e
}

func (l *link) callError(ctx context.Context, err error) *registry.Error {
	var f *failure
	if !errors.As(err, &f) {
		return &registry.Error{Code: registry.Internal, Msg: fmt.Sprintf("the call of server %q could not be made", l.up.Server.Name), Err: err}
	}
	if f.code == "" { // the context has ended
		return l.ended(ctx, f.msg)
	}
	msg := f.msg
	if f.outcome != "" {
		msg += "; " + f.outcome
	}
	switch f.code {
	case registry.Unavailable:
		return l.unavailable(f.err, "%s", msg)
	case registry.Unauthorized:
		return l.unauthorized(f.err, msg)
	}
	return &registry.Error{Code: f.code, Msg: fmt.Sprintf("server %q: %s", l.up.Server.Name, msg), Err: f.err, Needs: f.needs}
}

func (l *link) enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drained != nil || l.life.Err() != nil {
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

// rest ends the session of a link without calls, and reports whether it will end.
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

// answered says that the connection works, or did: a server that ends right behind its answer may be lost before this is
// said of it. What is known of the loss stays then, as the first failure in a row.
func (l *link) answered(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != s && l.lastErr != nil {
		l.failures, l.retryAt = min(l.failures, 1), time.Time{}
		return
	}
	l.failures, l.lastErr, l.down, l.retryAt = 0, nil, time.Time{}, time.Time{}
}

// connected is a session to send one call on, counted in session.calls; it makes the connection where there is none.
// blame says of an error that this call is the first to fail for the attempt that it is about.
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

// warm begins to connect where nothing stands in the way, and waits for nothing.
func (l *link) warm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.problems.HasErrors() || l.drained != nil || l.life.Err() != nil || l.session != nil || l.attempt != nil || time.Until(l.retryAt) > 0 {
		return
	}
	l.begin()
}

// begin starts an attempt. It needs the lock.
func (l *link) begin() *attempt {
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
	case l.life.Err() != nil:
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
	return nil, l.begin(), nil
}

// enterState needs the lock.
func (l *link) enterState(s State) { l.state, l.since = s, time.Now() }

// connect runs one attempt.
func (l *link) connect(a *attempt) {
	if l.branch != "" && l.up.Server.Stdio != nil {
		a.queued.Store(true)
		ctx, cancel := within(l.life, l.up.Server.CallTimeout)
		mine := l.gate.process(ctx, l, a)
		cancel()
		if !mine {
			l.giveUp(a)
			return
		}
		a.queued.Store(false)
	}
	ctx, cancel := within(l.life, l.connectTime())
	s, err := l.dial(ctx)
	cancel()
	if err != nil {
		l.gate.ended(a)
	} else {
		if err = l.look(l.life, s); err != nil {
			s.close()
			l.gate.ended(a)
		}
	}
	if err == nil {
		l.hear(s)
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(a.done)
	l.attempt = nil
	if err != nil {
		a.err = l.failure(err)
		l.failed(a.err)
		if l.life.Err() == nil {
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
		s.watch(l.life)
		l.drop(s, s.lost)
		s.calls.Wait()
		s.close()
		l.gate.ended(a)
	})
}

// hear begins to hear what a server says outside of calls. It waits, for a short time, for a stream on which a server of an
// older era could ask during the first call.
func (l *link) hear(s *session) {
	if updated := l.cfg.Watch.Updated; updated != nil {
		s.hearing.mu.Lock()
		s.hearing.updated = func(uri string) { updated(l.up.Server, l.branch, uri) }
		s.hearing.mu.Unlock()
	}
	tried, cancel := context.WithTimeout(l.life, openTime)
	s.listens.Go(func() { l.listen(s, cancel) })
	if s.web != nil && !mcp.IsModernProtocol(s.version) {
		<-tried.Done()
	}
}

// connectTime is how long an attempt may take: starting a process takes no time to speak of, reaching an address does.
func (l *link) connectTime() time.Duration {
	if l.up.Server.Stdio != nil {
		return l.up.Server.InitializeTimeout
	}
	return l.up.Server.ConnectTimeout + l.up.Server.InitializeTimeout
}

// within bounds ctx; no limit is none.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}

// giveUp ends an attempt that has waited in vain for another branch's process to end. That is not the server's fault.
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

// failed notes a failure and when the next attempt may begin. It needs the lock.
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

// fault notes why the server fails, and returns what err says of it now, too: since when, which is the first failure after
// the last answered call. It needs the lock.
func (l *link) fault(err *registry.Error) string {
	if l.down.IsZero() {
		l.down = time.Now()
	}
	since := "; unavailable since " + l.down.UTC().Format(time.RFC3339)
	err.Msg += since
	l.lastErr = err
	return since
}

// drop takes s out of use; it is closed once its last call has ended. f says why, nil where the link ends. A session that
// was dropped already is left alone.
func (l *link) drop(s *session, f *failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != s {
		return
	}
	l.session = nil
	s.retire()
	switch {
	case l.life.Err() != nil:
		return
	case f == nil || f.forgotten:
		l.enterState(Idle)
		return
	}
	err := l.failure(f)
	l.failed(err)
	l.log.Warn("upstream lost", "reason", err.Msg, "detail", detail(err))
}

// drain waits for the calls in flight, and ends the link.
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
	case <-l.life.Done():
	}
	l.abort()
}

// abort ends the link now, and returns when nothing of it runs any more.
func (l *link) abort() {
	l.mu.Lock() // so that no attempt begins between the look at life and the wait
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
	case l.problems.HasErrors():
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
