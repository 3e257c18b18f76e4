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

// execution is one intent that this process executes, from its place in the queue to its end.
type execution struct {
	id        string
	key       limitKey
	begin     Begin
	turn      *turn
	leave     func()
	taken     bool            // claimed by Run, which claims it again while it is released
	cancelled context.Context // ends with a withdrawal
	cancel    context.CancelCauseFunc

	mu    sync.Mutex
	in    Intent // as committed
	begun bool   // an attempt is being committed, or was: the intent can't be withdrawn any more
	// unclear: the outcome of an earlier attempt is not known, so a later failure doesn't prove that there
	// was no effect.
	unclear bool
	tries   int // attempts by this process
	ran     *Ran
	outcome *Ran          // the outcome, committed or not; nil if nothing was run
	err     error         // why the last change could not be committed
	done    chan struct{} // closed when the intent has ended or waits for its caller's input
	back    *time.Timer   // limits the wait for that input
}

// withdrawal is the reason why an intent is cancelled before it has begun, and the person who cancelled it,
// if one did.
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

// newExecution makes the execution of an intent; leave is called when it ends.
func newExecution(in Intent, begin Begin, server string, leave func()) *execution {
	l := &execution{
		id:      in.ID,
		key:     limitKey{in.Branch, in.Principal, in.Tool, server},
		begin:   begin,
		leave:   leave,
		in:      in,
		unclear: in.unclear(),
		done:    make(chan struct{}),
	}
	l.cancelled, l.cancel = context.WithCancelCause(context.Background())
	return l
}

// unclear reports whether the outcome of an attempt in the record is not known.
func (in *Intent) unclear() (yes bool) {
	for i, step := range in.History {
		switch step.State {
		case Unknown:
			yes = true
		case Released: // after an attempt without a recorded outcome
			yes = yes || i > 0 && in.History[i-1].State == Attempted
		case Succeeded, Failed: // also if a person has resolved it
			yes = false
		}
	}
	return yes
}

// record returns the intent as committed.
func (l *execution) record() Intent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.in
}

// withdraw cancels the intent unless its effect has begun, and reports whether it did.
func (l *execution) withdraw(why error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun || l.in.State.Ended() {
		return false
	}
	l.cancel(why)
	return true
}

// resume ends the wait for input with the answers to what an attempt asked, and reports whether there was such a wait.
func (l *execution) resume(begin Begin, asked int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.in.State != AwaitingInput || l.in.Attempts != asked || l.back == nil || !l.back.Stop() {
		return false
	}
	l.back, l.begin, l.ran, l.done = nil, begin, nil, make(chan struct{})
	return true
}

// away ends the wait for input without answers, and reports whether there was such a wait.
func (l *execution) away() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.back != nil && l.back.Stop()
}

// run executes an intent, with retries, until it has ended or asks for input.
func (e *Effector) run(l *execution) {
	for turns := 0; ; turns++ {
		err := l.turn.wait(l.cancelled)
		again := false
		if err == nil {
			again = e.attempt(l)
			l.turn.end()
		} else {
			e.withdrawn(l, err)
		}
		if !again {
			e.parkOrForget(l)
			return
		}
		delay := min(e.cfg.Limits.Backoff<<min(turns, 16), e.cfg.Limits.MaxBackoff)
		select {
		case <-time.After(delay/2 + rand.N(delay/2+1)):
		case <-l.cancelled.Done():
		case <-e.ctx.Done():
		}
		l.turn = e.turns.queue(l.key)
	}
}

// withdrawn ends an intent that was withdrawn, or whose process shuts down, before it has begun.
func (e *Effector) withdrawn(l *execution, why error) {
	step := Step{State: Cancelled, Why: why.Error()}
	var w *withdrawal
	if errors.As(why, &w) && w.by != "" {
		step.By, step.Why = w.by, w.why
	}
	e.endWithoutAttempt(l, step, &registry.Error{
		Code: registry.Cancelled, Unsent: true, Msg: "the call was withdrawn before it was executed: " + why.Error() + ". Nothing was run",
	})
}

// parkOrForget wakes the callers that wait, and removes the intent if it has ended. One that asks for input stays for
// at most Limits.InputTimeout; it ends at once if the process is shutting down, as no answer can arrive then.
func (e *Effector) parkOrForget(l *execution) {
	e.mu.Lock()
	l.mu.Lock()
	asks, done := l.in.State == AwaitingInput && l.in.Owner == e.cfg.Store.Owner() && l.err == nil, l.done
	if asks && !e.closing {
		l.back = time.AfterFunc(e.cfg.Limits.InputTimeout, func() {
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

// abandon ends an intent that waits for input that will not come.
func (e *Effector) abandon(l *execution, why string) {
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

// attempt takes one turn, and reports whether another is needed.
func (e *Effector) attempt(l *execution) (again bool) {
	in := l.record()
	ctx, cancel := context.WithCancelCause(e.ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.cancelled, func() { cancel(context.Cause(l.cancelled)) })()
	t := l.begin(ctx, in)
	defer t.End()
	switch {
	case l.cancelled.Err() != nil && !in.State.Begun():
		return true // the wait for the next turn finds it withdrawn
	case t.Undecided:
		e.cfg.Log.Warn("an intent can't be decided on yet", "intent", l.id, "tool", in.Tool, "error", t.Refused)
		return true
	case t.Refused != nil && in.State.Begun():
		e.finish(l, Ran{State: Unknown, Err: t.Refused, Why: "the policy no longer allows it to continue: " + t.Refused.Msg})
		return false
	case t.Refused != nil:
		e.endWithoutAttempt(l, Step{State: Refused, Why: t.Refused.Msg}, t.Refused)
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
	withdrawn := l.cancelled.Err() != nil && !in.State.Begun()
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
		e.ctx.Err() == nil {
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

// outgoingKey returns the idempotency key that is sent with each attempt.
func (in *Intent) outgoingKey() string {
	if in.Key != "" {
		return in.Key
	}
	return in.ID
}

// execute runs one attempt within its time limit. After a panic the outcome is Unknown.
func (e *Effector) execute(t Turn, a attempt.Attempt) (ran Ran) {
	ctx, cancel := context.WithTimeoutCause(e.ctx, t.Timeout, registry.ErrTimeLimit)
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

// finish commits the outcome of an attempt, before any caller is answered.
func (e *Effector) finish(l *execution, ran Ran) {
	c := Change{Steps: []Step{{State: ran.State, Why: ran.Why}}}
	if ran.State != AwaitingInput {
		o := ran.outcome()
		c.Outcome = &o
	}
	e.logCause(l, ran.Err)
	l.mu.Lock()
	l.outcome = &ran
	l.mu.Unlock()
	if e.write(l, c) {
		l.mu.Lock()
		l.ran = &ran
		l.mu.Unlock()
	}
}

// logCause logs the cause of an error, which callers don't see.
func (e *Effector) logCause(l *execution, err *registry.Error) {
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
			l.key.tool,
			"code",
			err.Code,
			"error",
			err.Err,
		)
	}
}

// endWithoutAttempt ends an intent without another attempt. If there was an attempt before, the state becomes Unknown.
func (e *Effector) endWithoutAttempt(l *execution, step Step, err *registry.Error) {
	e.logCause(l, err)
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

// write changes the record and reports whether it did. It fails if another process has changed the state or continues
// an intent that waited for input here, or if the store returns an error; the commit of an outcome is retried for about
// two seconds.
func (e *Effector) write(l *execution, c Change) bool {
	in := l.record()
	var err error
	elsewhere := func() bool {
		var moved *MovedError
		var owned *OwnedError
		return errors.As(err, &moved) || in.State == AwaitingInput && errors.As(err, &owned)
	}
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		err = e.cfg.Store.Change(context.Background(), l.id, in.State, c)
		if err == nil || elsewhere() || !in.State.Begun() || wait > time.Second {
			break
		}
		time.Sleep(wait)
	}
	if elsewhere() {
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
			"a change of an intent could not be committed",
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
	if c.Owner != nil {
		l.in.Owner = *c.Owner
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
