package intent

import (
	"context"
	"errors"
	"time"
)

// wait waits for a life of this process as long as its caller does.
func (e *Effector) wait(ctx context.Context, l *life, s Submission, found bool) Answer {
	l.mu.Lock()
	done := l.done
	l.mu.Unlock()
	over := time.NewTimer(s.Wait)
	defer over.Stop()
	progress := time.NewTicker(ProgressEvery)
	defer progress.Stop()
	for {
		select {
		case <-done:
			return l.answer(found)
		case <-ctx.Done():
			if !found && l.withdraw(errWithdrawn) {
				<-done
				return l.answer(found)
			}
			return e.hand(l.record(), found)
		case <-over.C:
			if s.Busy != nil && s.Busy() {
				over.Reset(time.Second)
				continue
			}
			select {
			case <-done: // both at once
				return l.answer(found)
			default:
			}
			return e.hand(l.record(), found)
		case <-progress.C:
			if s.Waits != nil {
				s.Waits(l.record().State)
			}
		}
	}
}

func (l *life) answer(found bool) Answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Answer{Intent: l.in, Ran: l.ran, Err: l.err, Found: found}
}

// Attend waits for an intent of an earlier call, or one on which somebody else has decided, in whichever
// process it is executed.
func (e *Effector) Attend(ctx context.Context, in Intent, s Submission) Answer {
	e.mu.Lock()
	l := e.lives[in.ID]
	e.mu.Unlock()
	if l != nil && l.record().State != AwaitingInput {
		return e.wait(ctx, l, s, true)
	}
	if in.State == AwaitingApproval {
		return e.hand(in, true)
	}
	now, err := e.Await(ctx, in, s.Wait)
	if err != nil { // it is there all the same, and may be executed
		e.cfg.Log.Error(
			"an intent that a caller waits for can't be read",
			"intent",
			in.ID,
			"tool",
			in.Tool,
			"error",
			err,
		)
	}
	return e.hand(now, true)
}

// Hand writes down that the caller is given a handle of what it was answered: the same call again is that
// intent from now on, until it has ended.
func (e *Effector) Hand(got Answer) Answer { return e.hand(got.Intent, got.Found) }

// Await returns an intent when it has ended, and at the latest after d or at the end of ctx, as it then
// is. Its error is a StoreError.
func (e *Effector) Await(ctx context.Context, in Intent, d time.Duration) (Intent, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for !in.State.Ended() && ctx.Err() == nil {
		var done <-chan struct{}
		e.mu.Lock()
		if l := e.lives[in.ID]; l != nil {
			l.mu.Lock()
			if l.in.State != AwaitingInput {
				done = l.done
			}
			l.mu.Unlock()
		}
		e.mu.Unlock()
		select {
		case <-done:
		case <-e.cfg.Store.Changed():
		case <-time.After(time.Second): // another waiter has been told of the change
		case <-ctx.Done():
		}
		now, err := e.cfg.Store.Get(context.WithoutCancel(ctx), in.ID)
		if err != nil {
			return in, err
		}
		in = now
	}
	return in, nil
}

// hand answers with a handle: the intent as it is, and from now on the same call again is this one. Where
// that can't be written down the answer is the same, because the intent is there, and may be executed.
func (e *Effector) hand(in Intent, found bool) Answer {
	for !in.State.Ended() && !in.Handed {
		err := e.cfg.Store.Change(context.Background(), in.ID, in.State, Change{Handed: true})
		var moved *MovedError
		if errors.As(err, &moved) {
			var now Intent
			if now, err = e.cfg.Store.Get(context.Background(), in.ID); err == nil {
				in = now
				continue
			}
		}
		var owned *OwnedError // another process executes it; then it was found by its key, which goes on naming it
		if err != nil && !errors.As(err, &owned) {
			e.cfg.Log.Error(
				"it could not be written down that a handle was given",
				"intent",
				in.ID,
				"tool",
				in.Tool,
				"error",
				err,
			)
		}
		in.Handed = err == nil
		break
	}
	return Answer{Intent: in, Found: found}
}
