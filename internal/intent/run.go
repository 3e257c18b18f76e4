package intent

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/catalogd/catalogd/registry"
)

const (
	// recoverEvery is the interval of Recover.
	recoverEvery = 5 * time.Second
	// sweepEvery is the interval of Store.Sweep.
	sweepEvery = 10 * time.Minute
	// maxResumed is the number of running intents from which no more approved ones are claimed.
	maxResumed = 64
)

// Run executes intents that people approve or retry, ends those whose approval has expired or whose process
// has died, and removes old ones (Store.Sweep). It returns when ctx ends, and logs errors.
func (e *Effector) Run(ctx context.Context) {
	again, sweep := time.NewTicker(recoverEvery), time.NewTicker(sweepEvery)
	defer again.Stop()
	defer sweep.Stop()
	for {
		e.logged(ctx, "executing approved intents", e.resume(ctx))
		select {
		case <-ctx.Done():
			return
		case <-e.wakeups:
		case <-e.cfg.Store.Changed():
		case <-again.C:
			e.logged(ctx, "committing outcomes that could not be committed before", e.endLost(ctx))
			e.logged(ctx, "recovering intents of dead processes", e.Recover(ctx))
		case <-sweep.C:
			_, err := e.cfg.Store.Sweep(ctx)
			e.logged(ctx, "removing old intents", err)
		}
	}
}

// Recover ends intents of dead processes and intents whose approval has expired (Store.Recover).
func (e *Effector) Recover(ctx context.Context) error {
	left, err := e.cfg.Store.Recover(ctx)
	for _, in := range left {
		e.moved(in, in.History[len(in.History)-1])
	}
	return err
}

// endLost ends the intents whose last change the store could not commit: with the outcome of the attempt, as
// Cancelled if nothing was run, or as Unknown.
func (e *Effector) endLost(ctx context.Context) error {
	e.mu.Lock()
	lost := maps.Clone(e.lost)
	e.mu.Unlock()
	for id, ran := range lost {
		in, err := e.cfg.Store.Get(ctx, id)
		if err != nil {
			return err
		}
		const why = "its outcome could not be recorded"
		c := ended(Cancelled, registry.Cancelled, why+"; nothing was run")
		switch {
		case ran != nil && in.State.Begun():
			o := ran.outcome()
			c = Change{Steps: []Step{{State: ran.State, Why: ran.Why}}, Outcome: &o}
		case in.State.Begun() || in.Attempts > 0:
			c = ended(Unknown, registry.OutcomeUnknown, why)
		}
		if !in.State.Ended() {
			var moved *MovedError
			if err := e.cfg.Store.Change(ctx, id, in.State, c); err != nil && !errors.As(err, &moved) {
				return err
			} else if err == nil {
				e.moved(in, c.Steps[0])
			}
		}
		e.mu.Lock()
		delete(e.lost, id)
		e.mu.Unlock()
	}
	return nil
}

func (e *Effector) logged(ctx context.Context, doing string, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, errShutdown) {
		e.cfg.Log.Error("intents: "+doing, "error", err)
	}
}

// wakeRun wakes Run.
func (e *Effector) wakeRun() {
	select {
	case e.wakeups <- struct{}{}:
	default: // Run is to wake already
	}
}

// resume executes approved intents that this process may execute, within the limit of maxResumed.
func (e *Effector) resume(ctx context.Context) error {
	if e.Running() >= maxResumed {
		return nil // each that ends wakes Run
	}
	ids, err := e.cfg.Store.Executable(ctx, maxResumed)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if e.Running() >= maxResumed {
			return nil
		}
		if _, err := e.take(ctx, id); err != nil {
			var moved *MovedError
			var owned *OwnedError
			if !errors.As(err, &moved) && !errors.As(err, &owned) {
				return err
			}
		}
	}
	return nil
}

// take claims an approved intent and executes it in this process. If the intent runs here already, its life
// is returned; if another live process owns it, or ApproveSubmitted executes it, the error is an *OwnedError.
func (e *Effector) take(ctx context.Context, id string) (*execution, error) {
	e.mu.Lock()
	running, approvedHere := e.executions[id], e.approvedHere[id]
	_, lost := e.lost[id]
	e.mu.Unlock()
	switch {
	case running != nil:
		return running, nil
	case approvedHere || lost:
		return nil, &OwnedError{id, e.cfg.Store.Owner()}
	}
	in, err := e.cfg.Store.Claim(ctx, id)
	if err != nil {
		return nil, err
	}
	l := newExecution(in, e.cfg.Begin, e.cfg.Server(in), e.wakeRun)
	l.taken = true
	return e.enqueue(l)
}

// Resume executes an approved intent in this process and waits for at most wait, as `catalogd intents
// approve` does if no process serves the store. A *MovedError or *OwnedError says that another process
// executes the intent or has executed it.
func (e *Effector) Resume(ctx context.Context, id string, wait time.Duration) (Answer, error) {
	l, err := e.take(ctx, id)
	if err != nil {
		return Answer{}, err
	}
	return e.wait(ctx, l, Submission{Wait: wait}, true), nil
}
