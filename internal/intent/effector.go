package intent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/registry"
)

// Limits keep effects from using up the process, and one branch from holding up the others. Zero fields have
// the default.
type Limits struct {
	// Queue caps the intents of one branch that have been staged and have not ended, 1,000; those that wait
	// for an approval are counted apart, by the same number.
	Queue int
	// Running caps what is executed at once, 128; Tool that of one tool, 32, and Server that of one upstream
	// server, 64.
	Running, Tool, Server int
	// Retries caps how often a repeatable tool is attempted again, 3.
	Retries int
	// Backoff is what the first of these waits, 1 s, each further one twice as long as the one before and at
	// most MaxBackoff (30 s), with a jitter of a half.
	Backoff, MaxBackoff time.Duration
	// Away is how long a caller that was asked for input may be away, 10 min.
	Away time.Duration
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Queue: cmp.Or(
			l.Queue,
			1000,
		), Running: cmp.Or(l.Running, 128), Tool: cmp.Or(l.Tool, 32), Server: cmp.Or(l.Server, 64),
		Retries: cmp.Or(
			l.Retries,
			3,
		), Backoff: cmp.Or(l.Backoff, time.Second), MaxBackoff: cmp.Or(l.MaxBackoff, 30*time.Second),
		Away: cmp.Or(l.Away, 10*time.Minute),
	}
}

// EffectorConfig is what an Effector works with.
type EffectorConfig struct {
	Store *Store
	// Begin begins a turn of an intent that was not submitted to this process, or whose caller has gone: one
	// that was approved, or that a person retries.
	Begin Begin
	// Server names the upstream server whose tool such an intent is for; empty for none.
	Server func(Intent) string
	// Moved is called with each step after its commit; nil for none. It must not block.
	Moved  func(Intent, Step)
	Log    *slog.Logger
	Limits Limits
}

// Effector executes intents: it alone makes attempts, each after the Store has written down that it does. All
// methods are safe for concurrent use. Close must be called.
type Effector struct {
	cfg   EffectorConfig
	turns *turns
	life  context.Context // ends what is executed
	end   context.CancelCauseFunc

	looks chan struct{} // has one element when there may be something to execute

	mu      sync.Mutex
	lives   map[string]*life
	kept    map[string]bool // approved, and about to be executed by their callers
	lost    map[string]*Ran // what has become of them could not be written down, nil for nothing
	closing bool
	running sync.WaitGroup
}

// NewEffector makes an effector on an open store. It executes what is submitted; Run has it execute what was
// approved too.
func NewEffector(cfg EffectorConfig) *Effector {
	cfg.Limits = cfg.Limits.withDefaults()
	e := &Effector{
		cfg:   cfg,
		turns: newTurns(cfg.Limits),
		looks: make(chan struct{}, 1),
		lives: map[string]*life{},
		kept:  map[string]bool{},
		lost:  map[string]*Ran{},
	}
	e.life, e.end = context.WithCancelCause(context.Background())
	return e
}

// Begin begins a turn: it pins the generation that serves now, holds the intent against it, and asks whether
// the intent may be executed now. Turn.End must be called.
type Begin func(ctx context.Context, in Intent) Turn

// Turn is the answer to that.
type Turn struct {
	// Refused says why it may not be executed; nil where it may.
	Refused *registry.Error
	// Undecided says that nobody knows yet, so that it is asked again: Refused says why.
	Undecided bool
	// Approval is what a person has to approve first after all, until Expires from now; nil for nothing.
	Approval *Approval
	Expires  time.Duration
	// Timeout bounds one attempt.
	Timeout time.Duration
	// Execute runs the tool once.
	Execute func(context.Context, attempt.Attempt) Ran
	// End releases what the turn pins.
	End func()
}

// Ran is what came of one attempt.
type Ran struct {
	// State is Succeeded, Failed, Unknown or AwaitingInput.
	State State
	// Unsent: nothing has left this process (with Failed).
	Unsent bool
	// Result or Err are what the caller is to see: what the result decision let out, what the tool asks
	// (AwaitingInput), or why there is neither. Why says in one line why the state is Unknown or Failed.
	Result *registry.Result
	Err    *registry.Error
	Why    string
}

// outcome is what of it is kept.
func (r Ran) outcome() Outcome {
	o := Outcome{Result: r.Result}
	if r.Err != nil {
		o.Code, o.Message = r.Err.Code, r.Err.Msg
	}
	return o
}

// Submission is a call of a tool with a side effect that may be executed as far as the call decision goes.
type Submission struct {
	// Intent is what is to be written down. Its State is AwaitingApproval where it has an Approval, else
	// Staged.
	Intent Intent
	Begin  Begin
	// Server is the upstream server whose tool it is; empty for none.
	Server string
	// Wait is how long Submit waits for its end; Waits is called every ProgressEvery meanwhile, nil where
	// nobody hears it. Busy reports whether the caller is being asked something: the wait is not over before
	// it has answered.
	Wait  time.Duration
	Waits func(State)
	Busy  func() bool
}

// ProgressEvery is the interval of the progress notifications to a caller that waits.
const ProgressEvery = 10 * time.Second

// Answer is what a caller is answered.
type Answer struct {
	// Intent is the record as it stands.
	Intent Intent
	// Ran is what came of it just now; nil where that is for the record (Intent.Outcome) to say, or not known
	// yet.
	Ran *Ran
	// Err says that the store could not be written: what has not begun will not, and what has ended is known
	// to nobody.
	Err error
	// Found: it is the intent of an earlier call.
	Found bool
}

// Submit writes an intent down and has it executed. It returns when that has ended or asks its caller for input, when the
// wait is over, or at once where a person has to approve it first; the Answer's intent says which. A caller whose ctx ends
// withdraws what has not begun, and leaves alone what has.
//
// The error is ErrQueueFull, a ConflictError, a StoreError or that the process ends: nothing was run and nothing will be.
func (e *Effector) Submit(ctx context.Context, s Submission) (Answer, error) {
	branch := s.Intent.Branch
	if err := e.turns.enter(branch); err != nil {
		return Answer{}, err
	}
	leave := sync.OnceFunc(func() { e.turns.leave(branch) })
	if s.Intent.State == AwaitingApproval {
		n, err := e.cfg.Store.Waiting(ctx, branch)
		if err == nil && n >= e.cfg.Limits.Queue {
			err = ErrQueueFull
		}
		if err != nil {
			leave()
			return Answer{}, err
		}
	}
	s.Intent.Owner = e.cfg.Store.Owner()
	in, made, err := e.cfg.Store.Stage(ctx, s.Intent)
	if err != nil {
		leave()
		return Answer{}, err
	}
	if !made {
		leave()
		return e.Attend(ctx, in, s), nil
	}
	for _, step := range in.History {
		e.moved(in, step)
	}
	if in.State == AwaitingApproval {
		leave()
		return Answer{Intent: in}, nil
	}
	l, err := e.begin(newLife(in, s.Begin, s.Server, leave))
	if err != nil {
		return Answer{}, err
	}
	return e.wait(ctx, l, s, false), nil
}

// ApproveSubmitted approves an intent for the caller that has submitted it, and goes on as Submit does. After
// an error, which is one of Approve, the Answer's intent is as that has left it.
func (e *Effector) ApproveSubmitted(ctx context.Context, id string, by Person, s Submission) (Answer, error) {
	e.mu.Lock()
	e.kept[id] = true // from Run
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.kept, id)
		e.mu.Unlock()
	}()
	in, err := e.Approve(ctx, id, by, "")
	if err != nil || in.State != Released {
		return Answer{Intent: in}, err
	}
	l, err := e.begin(newLife(in, s.Begin, s.Server, func() {}))
	if err != nil { // the process ends; another executes what was approved
		return e.hand(in, false), nil
	}
	return e.wait(ctx, l, s, false), nil
}

// Now is the time of the store, which no change of the clock moves.
func (e *Effector) Now() time.Time { return e.cfg.Store.Now() }

// Continue goes on with an intent whose tool has asked its caller for input: begin's turn brings the answers.
// Like Submit it returns when that has ended. The error of one that waits for nothing here is ErrNotWaiting.
func (e *Effector) Continue(ctx context.Context, id string, s Submission) (Answer, error) {
	e.mu.Lock()
	l := e.lives[id]
	e.mu.Unlock()
	if l == nil || !l.resume(s.Begin) {
		return Answer{}, ErrNotWaiting
	}
	l.turn = e.turns.queue(l.of)
	e.running.Go(func() { e.run(l) })
	return e.wait(ctx, l, s, false), nil
}

// ErrNotWaiting is the error for input that no intent waits for.
var ErrNotWaiting = errors.New("the call that waited for these answers has ended")

// begin has an intent executed that is written down as staged or released, and is this owner's.
func (e *Effector) begin(l *life) (*life, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		l.leave()
		return nil, errEnding
	}
	if running := e.lives[l.id]; running != nil {
		l.leave()
		return running, nil
	}
	e.lives[l.id] = l
	l.turn = e.turns.queue(l.of)
	e.running.Go(func() { e.run(l) })
	return l, nil
}

func (e *Effector) forget(l *life) {
	e.mu.Lock()
	delete(e.lives, l.id)
	e.mu.Unlock()
	l.leave()
}

// Running counts the intents that this process executes or is to execute.
func (e *Effector) Running() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.lives)
}

// Pause has nothing begin until it is called with false; what has begun goes on.
func (e *Effector) Pause(paused bool) { e.turns.pause(paused) }

// Paused reports whether nothing begins.
func (e *Effector) Paused() bool {
	e.turns.mu.Lock()
	defer e.turns.mu.Unlock()
	return e.turns.paused
}

// Close withdraws what has not begun, and waits for what has until ctx ends; what has not ended by then is
// broken off, and its outcome is written down as unknown.
func (e *Effector) Close(ctx context.Context) {
	e.mu.Lock()
	if e.closing {
		e.mu.Unlock()
		e.running.Wait()
		return
	}
	e.closing = true
	for _, l := range e.lives {
		if l.away() {
			e.running.Go(func() { e.abandon(l, "the tool asked its caller for input, and its process ended") })
		}
	}
	e.mu.Unlock()
	e.turns.close()
	ended := make(chan struct{})
	go func() { e.running.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		e.end(errEnding)
		<-ended
	}
	e.end(nil)
}

func (e *Effector) moved(in Intent, step Step) {
	if e.cfg.Moved != nil {
		in.State = step.State
		e.cfg.Moved(in, step)
	}
}
