package upstream

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

// attempt is one connection attempt. err is written before done closes.
type attempt struct {
	done chan struct{}
	err  *registry.Error
	// blamed is set by the first call that fails because of it.
	blamed atomic.Bool
	// queued is set while it waits for other branches' processes to end.
	queued atomic.Bool
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
