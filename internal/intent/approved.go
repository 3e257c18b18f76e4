package intent

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/catalogd/catalogd/registry"
)

const (
	// recoverEvery is how often it is looked for what dead owners left, and for what has expired.
	recoverEvery = 5 * time.Second
	// sweepEvery is how often what is too old is forgotten.
	sweepEvery = 10 * time.Minute
	// resumed is how many approved intents are taken over at once.
	resumed = 64
)

// Run executes what people approve and retry, ends what nobody approves in time and what dead processes left,
// and forgets what is too old, until ctx ends.
func (e *Effector) Run(ctx context.Context) {
	again, sweep := time.NewTicker(recoverEvery), time.NewTicker(sweepEvery)
	defer again.Stop()
	defer sweep.Stop()
	for {
		e.logged(ctx, "executing what was approved", e.resume(ctx))
		select {
		case <-ctx.Done():
			return
		case <-e.looks:
		case <-e.cfg.Store.Changed():
		case <-again.C:
			e.logged(ctx, "ending what could not be written down", e.endLost(ctx))
			e.logged(ctx, "ending what dead processes left", e.Recover(ctx))
		case <-sweep.C:
			_, err := e.cfg.Store.Sweep(ctx)
			e.logged(ctx, "forgetting old intents", err)
		}
	}
}

// Recover ends what dead processes left, and what nobody approved in time.
func (e *Effector) Recover(ctx context.Context) error {
	left, err := e.cfg.Store.Recover(ctx)
	for _, in := range left {
		e.moved(in, in.History[len(in.History)-1])
	}
	return err
}

// endLost ends what nobody executes any more because the store would not take what became of it: as it came
// out, or nothing was run, or nobody knows.
func (e *Effector) endLost(ctx context.Context) error {
	e.mu.Lock()
	lost := maps.Clone(e.lost)
	e.mu.Unlock()
	for id, came := range lost {
		in, err := e.cfg.Store.Get(ctx, id)
		if err != nil {
			return err
		}
		const why = "what became of it could not be written down"
		c := ended(Cancelled, registry.Cancelled, why+"; nothing was run")
		switch {
		case came != nil && in.State.Begun():
			o := came.outcome()
			c = Change{Steps: []Step{{State: came.State, Why: came.Why}}, Outcome: &o}
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
	if err != nil && ctx.Err() == nil && !errors.Is(err, errEnding) {
		e.cfg.Log.Error("intents: "+doing, "error", err)
	}
}

// look has Run look at once.
func (e *Effector) look() {
	select {
	case e.looks <- struct{}{}:
	default: // it will
	}
}

// resume executes what is approved and is for this process to execute, as far as there is room.
func (e *Effector) resume(ctx context.Context) error {
	if e.Running() >= resumed {
		return nil // those that end will have it look again
	}
	ids, err := e.cfg.Store.Executable(ctx, resumed)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if e.Running() >= resumed {
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

// take executes an approved intent in this process, unless it does already or another live one is to: then
// there is no life.
func (e *Effector) take(ctx context.Context, id string) (*life, error) {
	e.mu.Lock()
	running, kept := e.lives[id], e.kept[id]
	_, lost := e.lost[id]
	e.mu.Unlock()
	switch {
	case running != nil:
		return running, nil
	case kept || lost:
		return nil, &OwnedError{id, e.cfg.Store.Owner()}
	}
	in, err := e.cfg.Store.Claim(ctx, id)
	if err != nil {
		return nil, err
	}
	l := newLife(in, e.cfg.Begin, e.cfg.Server(in), e.look)
	l.taken = true
	return e.begin(l)
}

// Resume executes an approved intent here, for at most wait, as `catalogd intents approve` does where no
// process serves the store. A MovedError or OwnedError says that another process executes it, or has.
func (e *Effector) Resume(ctx context.Context, id string, wait time.Duration) (Answer, error) {
	l, err := e.take(ctx, id)
	if err != nil {
		return Answer{}, err
	}
	return e.wait(ctx, l, Submission{Wait: wait}, true), nil
}
