package daemon

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/catalogd/catalogd/internal/progress"
)

// A daemon runs one build at a time. A build that runs when the files change gets some time to end, because
// most end soon and the next one reuses their work; then it is superseded, that is cancelled. A build that
// doesn't end after it was cancelled is abandoned: it can't change anything any more, and while maxAbandoned
// of them run, no build is started.
const (
	// supersedeAfter doubles with each build that is superseded in a row, up to maxSupersede, so that files
	// which change continuously are still built now and then.
	supersedeAfter = 2 * time.Second
	maxSupersede   = time.Minute
	// cancelTime is how long a cancelled build may take to end before it is abandoned.
	cancelTime   = 2 * time.Second
	maxAbandoned = 2
	// stuckAfter is how long a build may run before it is reported as stuck.
	stuckAfter = 30 * time.Second
)

// builds are the builds of a daemon. The zero value is ready to use.
type builds struct {
	mu         sync.Mutex
	running    *build
	abandoned  map[*build]bool // cancelled, but still running
	superseded int             // number in a row
}

// build is one build in progress.
type build struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the next build may begin
	since  time.Time
	digest atomic.Pointer[string] // digest of the files; nil before they are read
	meter  *progress.Meter

	committed bool // it may swap, and can't be abandoned any more; guarded by builds.mu
}

// reads records the digest of the files that the build reads.
func (a *build) reads(digest string) { a.digest.Store(&digest) }

var errSuperseded = errors.New("newer files came")

// take starts a build as soon as no other runs. newer reports whether the files differ from those of a
// digest: a running build of outdated files is superseded. take returns an error only when ctx ends.
func (as *builds) take(ctx context.Context, newer func(digest string) bool) (context.Context, *build, error) {
	for {
		as.mu.Lock()
		running := as.running
		if err := ctx.Err(); err != nil {
			as.mu.Unlock()
			return ctx, nil, err
		}
		if running == nil {
			a := &build{done: make(chan struct{}), since: time.Now()}
			ctx, a.meter = progress.With(ctx)
			ctx, a.cancel = context.WithCancelCause(ctx)
			progress.Begin(ctx, "reading the files", "")
			as.running = a
			as.mu.Unlock()
			return ctx, a, nil
		}
		grace := min(supersedeAfter<<min(as.superseded, 10), maxSupersede)
		as.mu.Unlock()
		wait := time.NewTimer(max(grace-time.Since(running.since), grace/4))
		select {
		case <-running.done:
		case <-ctx.Done():
		case <-wait.C:
			if digest := running.digest.Load(); digest == nil || newer(*digest) {
				running.cancel(errSuperseded)
			}
		}
		wait.Stop()
	}
}

// run executes the build's work and then lets the next build start. Work that doesn't end after ctx has ended
// is abandoned, and ok is false.
func (as *builds) run(ctx context.Context, a *build, work func() Outcome) (o Outcome, ok bool) {
	ended := make(chan Outcome, 1)
	go func() {
		defer as.ended(a)
		ended <- work()
	}()
	defer a.cancel(nil)
	select {
	case o = <-ended:
		return o, true
	case <-ctx.Done():
	}
	late := time.NewTimer(cancelTime)
	defer late.Stop()
	for {
		select {
		case o = <-ended:
			return o, true
		case <-late.C:
			if as.abandon(a) {
				return Outcome{}, false
			}
		}
	}
}

// ended lets the next build start.
func (as *builds) ended(a *build) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if delete(as.abandoned, a); as.running == a {
		as.running = nil
		close(a.done)
	}
}

// abandon abandons a build; it returns false if the build has committed or ended.
func (as *builds) abandon(a *build) bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	if a.committed || as.running != a {
		return false
	}
	if as.abandoned == nil {
		as.abandoned = map[*build]bool{}
	}
	as.abandoned[a] = true
	as.running = nil
	close(a.done)
	return true
}

// commit reports whether the build may swap: it was not abandoned, and can't be from now on.
func (as *builds) commit(a *build) bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	a.committed = as.running == a
	return a.committed
}

// count counts the builds that were superseded in a row.
func (as *builds) count(superseded bool) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if superseded {
		as.superseded++
	} else {
		as.superseded = 0
	}
}

// full reports whether maxAbandoned builds are abandoned.
func (as *builds) full() bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	return len(as.abandoned) >= maxAbandoned
}

// status returns the state of the builds; nil if none runs.
func (as *builds) status() *BuildStatus {
	as.mu.Lock()
	defer as.mu.Unlock()
	s := &BuildStatus{Abandoned: len(as.abandoned)}
	if a := as.running; a != nil {
		at := a.meter.Step()
		s.Since, s.Step, s.StepSince = &a.since, at.What, &at.Since
		s.Stuck = time.Since(a.since) > stuckAfter
	} else if s.Abandoned == 0 {
		return nil
	}
	return s
}
