package intent

import (
	"context"
	"errors"
	"time"
)

// wait waits until the intent has ended or asks for input, until s.Wait is over, or until ctx ends. If ctx
// ends, the intent is withdrawn, unless it has begun or belongs to an earlier call (found).
func (e *Effector) wait(ctx context.Context, l *execution, s Submission, found bool) Answer {
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
			case <-done: // both became ready at once
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

func (l *execution) answer(found bool) Answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Answer{Intent: l.in, Ran: l.ran, Err: l.err, Found: found}
}

// Attend waits, as Submit does, for an intent of an earlier call, whichever process executes it.
func (e *Effector) Attend(ctx context.Context, in Intent, s Submission) Answer {
	e.mu.Lock()
	l := e.executions[in.ID]
	e.mu.Unlock()
	if l != nil && l.record().State != AwaitingInput {
		return e.wait(ctx, l, s, true)
	}
	if in.State == AwaitingApproval {
		return e.hand(in, true)
	}
	now, err := e.Await(ctx, in, s.Wait)
	if err != nil { // the intent exists all the same, and may be executed
		e.cfg.Log.Error(
			"can't read an intent for which a caller waits",
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

// Hand records that the caller is given a handle of the intent: until the intent has ended, the same call
// again returns this intent (Store.Stage).
func (e *Effector) Hand(got Answer) Answer { return e.hand(got.Intent, got.Found) }

// Await waits until the intent has ended, but at most for d and until ctx ends, and returns its current
// record. The error is a *StoreError.
func (e *Effector) Await(ctx context.Context, in Intent, d time.Duration) (Intent, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for !in.State.Ended() && ctx.Err() == nil {
		var done <-chan struct{}
		e.mu.Lock()
		if l := e.executions[in.ID]; l != nil {
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
		case <-time.After(time.Second): // another waiter may have received the element of Changed
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

// hand records that the caller is given a handle, and returns the current intent. It returns the intent even
// if that can't be recorded, because the intent exists and may be executed.
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
		var owned *OwnedError // another process executes it; it was found by its key, which still identifies it
		if err != nil && !errors.As(err, &owned) {
			e.cfg.Log.Error(
				"can't record that the caller of an intent was given a handle",
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
