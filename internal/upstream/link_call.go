package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/catalogd/catalogd/registry"
)

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
