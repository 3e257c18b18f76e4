package upstream

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/catalogd/catalogd/registry"
)

// breaker is the circuit breaker of a server: after Config.BreakAfter failures in a row it opens, and calls
// fail at once. After Config.MaxBackoff, one call is let through (half-open); an answer closes the breaker, a
// failure opens it again.
//
// A failure is a call for which the server is to blame: it found no connection or lost it, was answered with
// a status that shows a fault, or timed out without an answer. One event counts once, however many calls it
// fails. An answer is any response that shows that the server works, including a tool's failure and a
// refusal. Calls that allow no verdict, such as cancelled ones, count as neither.
type breaker struct {
	steps *gobreaker.TwoStepCircuitBreaker[struct{}]
	// until is when an open breaker lets a call through, in nanoseconds of Unix time; 0 while it is closed.
	until atomic.Int64
}

// The verdicts of a call on its server; nil means that it answers.
var (
	errFault     = errors.New("the server failed a call")
	errNoVerdict = errors.New("the call says nothing of the server")
)

func newBreaker(cfg Config, log *slog.Logger) *breaker {
	b := &breaker{}
	b.steps = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1,
		Timeout:     cfg.MaxBackoff,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= cfg.BreakAfter },
		IsExcluded:  func(err error) bool { return errors.Is(err, errNoVerdict) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch to {
			case gobreaker.StateOpen:
				b.until.Store(time.Now().Add(cfg.MaxBackoff).UnixNano())
				log.Warn("upstream breaker open: calls fail at once", "before", from.String(), "for", cfg.MaxBackoff)
			case gobreaker.StateClosed:
				b.until.Store(0)
				log.Info("upstream breaker closed: calls are answered again")
			}
		},
	})
	return b
}

// allow lets a call through, which then reports its verdict to done, or returns why not.
func (b *breaker) allow() (done func(verdict error), refused error) { return b.steps.Allow() }

// state returns closed, open or half-open.
func (b *breaker) state() string { return b.steps.State().String() }

func (b *breaker) open() bool { return b.steps.State() == gobreaker.StateOpen }

// retryAt returns when an open breaker lets a call through; zero where it is not open.
func (b *breaker) retryAt() time.Time {
	if n := b.until.Load(); n != 0 && b.open() {
		return time.Unix(0, n)
	}
	return time.Time{}
}

// refuse returns the error of a call that the breaker did not let through.
func (l *link) refuse(refused error) *registry.Error {
	l.tally.refused.Add(1)
	l.mu.Lock()
	last := l.lastErr
	l.mu.Unlock()
	why := "it failed its last calls"
	if last != nil {
		why = last.Msg
	}
	when := "one call is trying now whether it is back"
	if errors.Is(refused, gobreaker.ErrOpenState) {
		when = fmt.Sprintf("it failed %d times in a row; next attempt in %s", l.cfg.BreakAfter, max(0, time.Until(l.breaker.retryAt())).Round(time.Millisecond))
	}
	return &registry.Error{Code: registry.Unavailable, Msg: fmt.Sprintf("%s (nothing was sent: %s)", why, when)}
}
