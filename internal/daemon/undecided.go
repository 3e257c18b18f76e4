package daemon

import (
	"slices"
	"sync"
	"time"

	"github.com/catalogd/catalogd/problem"
)

// Timed-out decisions are retried after firstRetry, and then after twice as long each time, up to maxRetry,
// until they are made.
const (
	firstRetry = time.Second
	maxRetry   = time.Minute
)

// retryTimer schedules these retries. The zero value is ready to use.
type retryTimer struct {
	mu    sync.Mutex
	timer *time.Timer // nil if no retry is scheduled
	wait  time.Duration
}

// scheduleRetry schedules a retry if anything is undecided. afresh restarts the backoff.
func (d *Daemon) scheduleRetry(afresh bool) {
	d.retry.mu.Lock()
	defer d.retry.mu.Unlock()
	serving := d.current.Load()
	if serving == nil || d.cfg.Once || d.ctx.Err() != nil {
		return
	}
	if afresh || len(serving.Undecided()) == 0 && !d.timedOut() {
		d.retry.wait = 0
	}
	if d.retry.timer != nil {
		d.retry.timer.Stop()
		d.retry.timer = nil
	}
	if len(serving.Undecided()) > 0 || d.timedOut() {
		d.retry.wait = min(max(2*d.retry.wait, firstRetry), maxRetry)
		d.retry.timer = time.AfterFunc(d.retry.wait, d.retryUndecided)
	}
}

// timedOut reports whether timed-out decisions were among the errors that refused the newest files.
func (d *Daemon) timedOut() bool {
	failed := d.failed.Load()
	return failed != nil && slices.ContainsFunc(failed.Problems, func(p problem.Problem) bool {
		return p.Code == problem.PolicyTimeout && p.Severity == problem.Error
	})
}

func (d *Daemon) retryUndecided() {
	if d.timedOut() {
		d.Reload(d.ctx)
	} else {
		d.reconsider(false)
	}
}
