package intent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/internal/intent/internal/grant"
	"github.com/catalogd/catalogd/registry"
)

// life is one intent that this process executes, from its place in the queue to its end.
type life struct {
	id     string
	of     of
	begin  Begin
	turn   *turn
	leave  func()
	taken  bool            // by Run, which takes it again as long as it is released
	asleep context.Context // ends with a withdrawal
	wake   context.CancelCauseFunc

	mu    sync.Mutex
	in    Intent // as it is written down
	begun bool   // an attempt is being written down, or was: nothing can be withdrawn
	// unclear: nobody knows what came of an attempt before this one, so that a later one that fails does not
	// tell.
	unclear bool
	tries   int // how often this process has attempted it
	ran     *Ran
	outcome *Ran          // what came of it and may not be written down yet; nil where nothing was run
	err     error         // why it could not be written down what becomes of it
	done    chan struct{} // closed when it has ended, or waits for its caller's input
	back    *time.Timer   // ends the wait for that input
}

// withdrawal is why an intent is taken back before it has begun, and which person did, if one did.
type withdrawal struct{ by, why string }

func (w *withdrawal) Error() string {
	switch {
	case w.by == "":
		return w.why
	case w.why == "":
		return w.by + " cancelled it"
	}
	return w.by + " cancelled it: " + w.why
}

var errWithdrawn = &withdrawal{why: "its caller withdrew it"}

// newLife is the life of an intent; leave is called when that has ended.
func newLife(in Intent, begin Begin, server string, leave func()) *life {
	l := &life{
		id:      in.ID,
		of:      of{in.Branch, in.Principal, in.Tool, server},
		begin:   begin,
		leave:   leave,
		in:      in,
		unclear: in.unclear(),
		done:    make(chan struct{}),
	}
	l.asleep, l.wake = context.WithCancelCause(context.Background())
	return l
}

// unclear reports whether nobody knows what came of an attempt that was made in another life of the intent.
func (in *Intent) unclear() (yes bool) {
	for i, step := range in.History {
		switch step.State {
		case Unknown:
			yes = true
		case Released: // after an attempt, which the record says nothing sure of
			yes = yes || i > 0 && in.History[i-1].State == Attempted
		case Succeeded, Failed: // also by a person, who has found out
			yes = false
		}
	}
	return yes
}

// record is the intent as it is written down.
func (l *life) record() Intent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.in
}

// withdraw takes back what has not begun, and reports whether it could.
func (l *life) withdraw(why error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun || l.in.State.Ended() {
		return false
	}
	l.wake(why)
	return true
}

// resume takes the answers to what the tool has asked, and reports whether it waits for any.
func (l *life) resume(begin Begin) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.in.State != AwaitingInput || l.back == nil || !l.back.Stop() {
		return false
	}
	l.back, l.begin, l.ran, l.done = nil, begin, nil, make(chan struct{})
	return true
}

// away ends the wait for input, and reports whether there was one.
func (l *life) away() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.back != nil && l.back.Stop()
}

// run executes an intent, as often as it may be, until it has ended or asks for input.
func (e *Effector) run(l *life) {
	for turns := 0; ; turns++ {
		err := l.turn.wait(l.asleep)
		again := false
		if err == nil {
			again = e.attempt(l)
			l.turn.end()
		} else {
			e.withdrawn(l, err)
		}
		if !again {
			e.rest(l)
			return
		}
		delay := min(e.cfg.Limits.Backoff<<min(turns, 16), e.cfg.Limits.MaxBackoff)
		select {
		case <-time.After(delay/2 + rand.N(delay/2+1)):
		case <-l.asleep.Done():
		case <-e.life.Done():
		}
		l.turn = e.turns.queue(l.of)
	}
}

// withdrawn ends an intent that was taken back, or whose process ends, before it has begun.
func (e *Effector) withdrawn(l *life, why error) {
	step := Step{State: Cancelled, Why: why.Error()}
	var w *withdrawal
	if errors.As(why, &w) && w.by != "" {
		step.By, step.Why = w.by, w.why
	}
	e.unrun(l, step, &registry.Error{
		Code: registry.Cancelled, Unsent: true, Msg: "the call was withdrawn before it was executed: " + why.Error() + ". Nothing was run",
	})
}

// rest tells whoever waits how it stands, and forgets what has ended. When the process ends nobody can come
// back.
func (e *Effector) rest(l *life) {
	e.mu.Lock()
	l.mu.Lock()
	asks, done := l.in.State == AwaitingInput && l.err == nil, l.done
	if asks && !e.closing {
		l.back = time.AfterFunc(e.cfg.Limits.Away, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			if !e.closing { // else Close, or the next start, ends it
				e.running.Go(
					func() { e.abandon(l, "the tool asked its caller for input, and the caller did not come back") },
				)
			}
		})
	}
	ending := e.closing
	l.mu.Unlock()
	e.mu.Unlock()
	switch {
	case !asks:
		e.forget(l)
	case ending:
		e.abandon(l, "the tool asked its caller for input, and its process ended")
	}
	close(done)
}

// abandon ends an intent that waits for input, which nobody will bring.
func (e *Effector) abandon(l *life, why string) {
	l.mu.Lock()
	l.back, l.ran = nil, nil
	l.mu.Unlock()
	e.write(
		l,
		Change{
			Steps:   []Step{{State: Unknown, Why: why}},
			Outcome: &Outcome{Code: registry.OutcomeUnknown, Message: why},
		},
	)
	e.forget(l)
}

// attempt has one turn. It reports whether there is to be another.
func (e *Effector) attempt(l *life) (again bool) {
	in := l.record()
	ctx, cancel := context.WithCancelCause(e.life)
	defer cancel(nil)
	defer context.AfterFunc(l.asleep, func() { cancel(context.Cause(l.asleep)) })()
	t := l.begin(ctx, in)
	defer t.End()
	switch {
	case l.asleep.Err() != nil && !in.State.Begun():
		return true // where it is seen to be withdrawn
	case t.Undecided:
		e.cfg.Log.Warn("an intent can't be decided on yet", "intent", l.id, "tool", in.Tool, "error", t.Refused)
		return true
	case t.Refused != nil && in.State.Begun():
		e.finish(l, Ran{State: Unknown, Err: t.Refused, Why: "the policy lets it go on no more: " + t.Refused.Msg})
		return false
	case t.Refused != nil:
		e.unrun(l, Step{State: Refused, Why: t.Refused.Msg}, t.Refused)
		return false
	case t.Approval != nil:
		expires := e.cfg.Store.Now().Add(t.Expires)
		e.write(
			l,
			Change{
				Steps:    []Step{{State: AwaitingApproval, Why: t.Approval.Reason}},
				Approval: t.Approval,
				Expires:  &expires,
			},
		)
		return false
	}
	l.mu.Lock()
	withdrawn := l.asleep.Err() != nil && !in.State.Begun()
	l.begun = !withdrawn
	l.mu.Unlock()
	if withdrawn {
		return true
	}
	steps := []Step{{State: Attempted}}
	if in.State == Staged {
		steps = []Step{{State: Released}, {State: Attempted}}
	}
	owner := e.cfg.Store.Owner()
	if !e.write(l, Change{Steps: steps, Owner: &owner}) {
		return false
	}
	before := in.State
	in = l.record()
	l.turn.start()
	a := attempt.New(
		grant.New(),
		attempt.Of{Intent: in.ID, Number: in.Attempts, Tool: in.Tool, Digest: in.Digest, Key: in.outgoingKey()},
	)
	ran := e.execute(t, a)
	l.tries++
	if ran.Unsent && before == AwaitingInput { // the rounds before it were sent
		ran.State, ran.Unsent = Unknown, false
	}
	l.unclear = l.unclear || ran.State == Unknown
	if ran.State != AwaitingInput && in.Repeatable && (ran.Unsent || ran.State == Unknown) &&
		l.tries <= e.cfg.Limits.Retries &&
		e.life.Err() == nil {
		return e.write(
			l,
			Change{
				Steps: []Step{
					{State: Released, Why: fmt.Sprintf("attempt %d: %s; it may be repeated", in.Attempts, ran.Why)},
				},
			},
		)
	}
	if ran.State == Failed && l.unclear {
		ran.State, ran.Why = Unknown, "an attempt before this one may have had the effect: "+ran.Why
	}
	e.finish(l, ran)
	return false
}

// outgoingKey is the idempotency key that goes out with each attempt.
func (in *Intent) outgoingKey() string {
	if in.Key != "" {
		return in.Key
	}
	return in.ID
}

// execute runs one attempt within its time. A panic below is unclear.
func (e *Effector) execute(t Turn, a attempt.Attempt) (ran Ran) {
	ctx, cancel := context.WithTimeout(e.life, t.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err := &registry.Error{
				Code: registry.Internal,
				Msg:  "internal error; the operator's log has it",
				Err:  fmt.Errorf("panic: %v\n%s", p, debug.Stack()),
			}
			ran = Ran{State: Unknown, Err: err, Why: "an internal error"}
		}
	}()
	return t.Execute(ctx, a)
}

// finish commits the outcome of an attempt before anybody is answered.
func (e *Effector) finish(l *life, ran Ran) {
	c := Change{Steps: []Step{{State: ran.State, Why: ran.Why}}}
	if ran.State != AwaitingInput {
		o := ran.outcome()
		c.Outcome = &o
	}
	e.told(l, ran.Err)
	l.mu.Lock()
	l.outcome = &ran
	l.mu.Unlock()
	if e.write(l, c) {
		l.mu.Lock()
		l.ran = &ran
		l.mu.Unlock()
	}
}

// told logs the cause of an error, which no caller gets.
func (e *Effector) told(l *life, err *registry.Error) {
	if err != nil && err.Err != nil {
		level := slog.LevelWarn
		if err.Code == registry.Internal {
			level = slog.LevelError
		}
		e.cfg.Log.Log(
			context.Background(),
			level,
			"an intent has no result",
			"intent",
			l.id,
			"tool",
			l.of.tool,
			"code",
			err.Code,
			"error",
			err.Err,
		)
	}
}

// unrun ends an intent that nothing was run of. Where an attempt was made before, that is not so, and nobody
// knows what came of it.
func (e *Effector) unrun(l *life, step Step, err *registry.Error) {
	e.told(l, err)
	if n := l.record().Attempts; n > 0 {
		err = &registry.Error{
			Code: registry.OutcomeUnknown,
			Msg:  fmt.Sprintf("it was not attempted again (attempts: %d): %s", n, step.Why),
		}
		step.State = Unknown
	}
	ran := Ran{State: step.State, Err: err, Why: step.Why}
	o := ran.outcome()
	if e.write(l, Change{Steps: []Step{step}, Outcome: &o}) {
		l.mu.Lock()
		l.ran = &ran
		l.mu.Unlock()
	}
}

// write changes the record, and reports whether it could: another process may have moved the intent, or the
// store may not take it. An outcome is retried for about two seconds before the caller is answered that it is
// unknown.
func (e *Effector) write(l *life, c Change) bool {
	in := l.record()
	var err error
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		err = e.cfg.Store.Change(context.Background(), l.id, in.State, c)
		var moved *MovedError
		if err == nil || errors.As(err, &moved) || !in.State.Begun() || wait > time.Second {
			break
		}
		time.Sleep(wait)
	}
	var moved *MovedError
	if errors.As(err, &moved) {
		var now Intent
		if now, err = e.cfg.Store.Get(context.Background(), l.id); err == nil {
			l.mu.Lock()
			l.in = now
			l.mu.Unlock()
			return false
		}
	}
	if err != nil && (in.State.Begun() || !l.taken) {
		e.mu.Lock()
		e.lost[l.id] = l.outcome
		e.mu.Unlock()
	}
	if err != nil {
		l.mu.Lock()
		l.err = err
		l.mu.Unlock()
		e.cfg.Log.Error(
			"an intent could not be written down",
			"intent",
			l.id,
			"tool",
			in.Tool,
			"state",
			in.State,
			"error",
			err,
		)
		return false
	}
	l.mu.Lock()
	passed := make([]Intent, 0, len(c.Steps))
	for _, step := range c.Steps {
		step.At = e.cfg.Store.Now()
		l.in.State = step.State
		l.in.History = append(l.in.History[:len(l.in.History):len(l.in.History)], step)
		if step.State == Attempted {
			l.in.Attempts++
		}
		if step.State.Ended() {
			l.in.Ended = step.At
		}
		passed = append(passed, l.in)
	}
	if c.Outcome != nil {
		l.in.Outcome = *c.Outcome
	}
	if c.Approval != nil {
		l.in.Approval = c.Approval
	}
	if c.Expires != nil {
		l.in.Expires = *c.Expires
	}
	l.mu.Unlock()
	for _, in := range passed {
		e.moved(in, in.History[len(in.History)-1])
	}
	return true
}
