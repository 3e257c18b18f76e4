package intent

import (
	"context"
	"errors"
	"sync"
)

// ErrNotWaiting is the error of Continue for an intent that does not wait for these answers.
var ErrNotWaiting = errors.New("the call that waited for these answers has ended")

// Continue continues an intent whose tool has asked its caller for input in the attempt asked, counted from 1; the turn
// that s.Begin begins sends the answers. It returns when Submit would. If the intent waits at another process, this one
// becomes its owner first: of all processes that get the answers, one sends them, once.
//
// The error is ErrNotWaiting if the intent does not wait for the answers to that attempt, wraps ErrUnknown if
// the store has no such intent, and is else that of Submit. After an error nothing was run.
func (e *Effector) Continue(ctx context.Context, id string, asked int, s Submission) (Answer, error) {
	e.mu.Lock()
	l := e.executions[id]
	e.mu.Unlock()
	if l != nil && l.resume(s.Begin, asked) {
		l.turn = e.turns.queue(l.key)
		e.running.Go(func() { e.run(l) })
		return e.wait(ctx, l, s, false), nil
	}
	if in, err := e.cfg.Store.Get(ctx, id); err != nil {
		return Answer{}, err
	} else if !in.waitsFor(asked, e.cfg.Store.Owner()) {
		return Answer{}, ErrNotWaiting
	}
	branch, principal := s.Intent.Branch, s.Intent.Principal
	if err := e.turns.enter(branch, principal); err != nil {
		return Answer{}, err
	}
	leave := sync.OnceFunc(func() { e.turns.leave(branch, principal) })
	in, err := e.cfg.Store.TakeOver(ctx, id, asked)
	if err != nil {
		leave()
		return Answer{}, err
	}
	if l != nil && l.away() { // it waited here before, and was continued elsewhere since
		e.forget(l)
	}
	l = newExecution(in, s.Begin, s.Server, leave)
	l.begun = true
	if l, err = e.enqueue(l); err != nil {
		return Answer{}, err // Recover makes it Unknown when this process has ended
	}
	return e.wait(ctx, l, s, false), nil
}

// waitsFor reports whether an intent waits at another process than self for the answers to what the attempt asked.
func (in *Intent) waitsFor(asked int, self string) bool {
	return in.State == AwaitingInput && in.Attempts == asked && in.Owner != self
}

// TakeOver makes this process the owner of an intent that waits at another one for the answers to what its
// attempt asked, and returns it. The other one, alive or dead, can't continue it then. The error is
// ErrNotWaiting if it does not wait for them, or waits here, and wraps ErrUnknown if there is no such intent.
func (s *Store) TakeOver(ctx context.Context, id string, asked int) (Intent, error) {
	return s.own(ctx, "take over", id, AwaitingInput, func(b *batch, ch *change, in Intent) error {
		if !in.waitsFor(asked, s.Owner()) {
			return ErrNotWaiting
		}
		b.write(ch, "", true)
		return nil
	})
}
