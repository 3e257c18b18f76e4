package intent

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/registry"
)

// Limits are the limits of an Effector. A zero field means the default.
type Limits struct {
	// Queue is the maximum number of intents of one branch that are staged and not ended, by default 1,000.
	// Intents that wait for an approval are counted separately, with the same maximum.
	Queue int
	// Running is the maximum number of intents executed at once, by default 128; Tool that of one tool (32),
	// and Server that of one upstream server (64).
	Running, Tool, Server int
	// Retries is the maximum number of further attempts of a repeatable tool, by default 3.
	Retries int
	// Backoff is the delay before the first retry, by default 1 s. It doubles with each retry up to
	// MaxBackoff (30 s). The actual delay is random between half of that and all of it.
	Backoff, MaxBackoff time.Duration
	// Away is how long an intent waits for input from its caller, by default 10 min.
	InputTimeout time.Duration
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
		InputTimeout: cmp.Or(l.InputTimeout, 10*time.Minute),
	}
}

// EffectorConfig configures an Effector. Store, Begin, Server and Log are required.
type EffectorConfig struct {
	Store *Store
	// Begin begins the turns of intents for which no Submission waits: those that a person has approved or
	// retries.
	Begin Begin
	// Server returns the name of the upstream server of such an intent's tool; empty if it has none.
	Server func(Intent) string
	// Moved is called with each step after its commit; it may be nil. It must not block.
	Moved  func(Intent, Step)
	Log    *slog.Logger
	Limits Limits
}

// Effector executes intents. Only it makes attempts, each after the Store has committed the state Attempted.
// All methods are safe for concurrent use. Close must be called before the Store is closed.
type Effector struct {
	cfg   EffectorConfig
	turns *turns
	ctx   context.Context // cancelled to abort running attempts
	end   context.CancelCauseFunc

	wakeups chan struct{} // has one element if there may be something for Run to execute

	mu           sync.Mutex
	executions   map[string]*execution
	approvedHere map[string]bool // approved by ApproveSubmitted, which executes them itself
	lost         map[string]*Ran // their last change could not be committed; nil if nothing was run
	closing      bool
	running      sync.WaitGroup
}

// NewEffector makes an effector on an open store. It executes the intents that are submitted to it; approved
// and retried intents are executed while Run runs.
func NewEffector(cfg EffectorConfig) *Effector {
	cfg.Limits = cfg.Limits.withDefaults()
	e := &Effector{
		cfg:          cfg,
		turns:        newTurns(cfg.Limits),
		wakeups:      make(chan struct{}, 1),
		executions:   map[string]*execution{},
		approvedHere: map[string]bool{},
		lost:         map[string]*Ran{},
	}
	e.ctx, e.end = context.WithCancelCause(context.Background())
	return e
}

// Begin begins a turn of an intent: it pins the generation that serves now, compares the intent with it, and
// asks for the release decision. The caller must call Turn.End.
type Begin func(ctx context.Context, in Intent) Turn

// Turn is what Begin returns: whether an intent may be executed now, and how.
type Turn struct {
	// Refused is the reason not to execute the intent; nil if it may be executed.
	Refused *registry.Error
	// Undecided says that the release decision could not be made yet, for the reason in Refused. The effector
	// asks again after the backoff.
	Undecided bool
	// Approval is an approval that the release decision requires; nil if it requires none. It expires after
	// Expires from now.
	Approval *Approval
	Expires  time.Duration
	// Timeout is the time limit of one attempt.
	Timeout time.Duration
	// Execute runs the tool once.
	Execute func(context.Context, attempt.Attempt) Ran
	// End releases the generation.
	End func()
}

// Ran is the outcome of one attempt.
type Ran struct {
	// State is Succeeded, Failed, Unknown or AwaitingInput.
	State State
	// Unsent says, with Failed, that nothing was sent to the tool.
	Unsent bool
	// Result is the tool's result after the result decision, or the input that the tool asks for
	// (AwaitingInput). Err is the error if there is no Result. Why is the reason for Unknown or Failed, in
	// one line.
	Result *registry.Result
	Err    *registry.Error
	Why    string
}

// outcome returns the part of r that the store keeps.
func (r Ran) outcome() Outcome {
	o := Outcome{Result: r.Result}
	if r.Err != nil {
		o.Code, o.Message = r.Err.Code, r.Err.Msg
	}
	return o
}

// Submission is a call of a tool with a side effect that the call decision has allowed.
type Submission struct {
	// Intent is the intent to stage. Its State is AwaitingApproval if it has an Approval, else Staged.
	Intent Intent
	Begin  Begin
	// Server is the upstream server of the tool; empty if it has none.
	Server string
	// Wait is how long Submit waits for the outcome. Waits is called every ProgressEvery while it waits; it
	// may be nil. Busy reports whether the caller is answering a question of the tool; while it does, Wait is
	// extended by a second at a time. It may be nil.
	Wait  time.Duration
	Waits func(State)
	Busy  func() bool
}

// ProgressEvery is the interval of the progress notifications to a caller that waits.
const ProgressEvery = 10 * time.Second

// Answer is the state of an intent when a call returns.
type Answer struct {
	// Intent is the current record.
	Intent Intent
	// Ran is the outcome of an attempt of this call; nil if the outcome is in the record (Intent.Outcome) or
	// not known yet.
	Ran *Ran
	// Err is an error of the store. An intent that had not begun will not; the outcome of one that had begun
	// could not be recorded.
	Err error
	// Found says that the intent is that of an earlier call.
	Found bool
}

// Submit stages an intent and executes it. It returns when the intent has ended or asks its caller for input,
// after s.Wait, or at once if a person has to approve it first; the state of the Answer's intent says which.
// If ctx ends, the intent is cancelled unless its effect has begun; then it continues without the caller.
//
// If the intent repeats an earlier call (Store.Stage), Submit waits for that intent instead and sets Found.
//
// The error is ErrQueueFull, a *ConflictError, a *StoreError, or says that the process is shutting down.
// After an error nothing was run and nothing will be.
func (e *Effector) Submit(ctx context.Context, s Submission) (Answer, error) {
	branch, principal := s.Intent.Branch, s.Intent.Principal
	if err := e.turns.enter(branch, principal); err != nil {
		return Answer{}, err
	}
	leave := sync.OnceFunc(func() { e.turns.leave(branch, principal) })
	if s.Intent.State == AwaitingApproval {
		all, own, err := e.cfg.Store.Waiting(ctx, branch, principal)
		if err == nil && !e.cfg.Limits.fits(all, own, principal) {
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
	l, err := e.enqueue(newExecution(in, s.Begin, s.Server, leave))
	if err != nil {
		return Answer{}, err
	}
	return e.wait(ctx, l, s, false), nil
}

// ApproveSubmitted approves an intent for the caller that submitted it, and continues as Submit does. The
// errors are those of Approve; the Answer's intent is then what Approve returned.
func (e *Effector) ApproveSubmitted(ctx context.Context, id string, by Person, s Submission) (Answer, error) {
	e.mu.Lock()
	e.approvedHere[id] = true // from Run
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.approvedHere, id)
		e.mu.Unlock()
	}()
	in, err := e.Approve(ctx, id, by, "")
	if err != nil || in.State != Released {
		return Answer{Intent: in}, err
	}
	l, err := e.enqueue(newExecution(in, s.Begin, s.Server, func() {}))
	if err != nil { // the process is shutting down; another one executes what was approved
		return e.hand(in, false), nil
	}
	return e.wait(ctx, l, s, false), nil
}

// Now returns the time of the store's clock (Store.Now).
func (e *Effector) Now() time.Time { return e.cfg.Store.Now() }

// enqueue starts to execute an intent that is staged or released and owned by this process.
func (e *Effector) enqueue(l *execution) (*execution, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		l.leave()
		return nil, errShutdown
	}
	if running := e.executions[l.id]; running != nil {
		l.leave()
		return running, nil
	}
	e.executions[l.id] = l
	l.turn = e.turns.queue(l.key)
	e.running.Go(func() { e.run(l) })
	return l, nil
}

func (e *Effector) forget(l *execution) {
	e.mu.Lock()
	delete(e.executions, l.id)
	e.mu.Unlock()
	l.leave()
}

// Running returns the number of intents that this process executes or has queued.
func (e *Effector) Running() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.executions)
}

// Pause stops (true) or resumes (false) giving turns to intents. Intents that have begun continue.
func (e *Effector) Pause(paused bool) { e.turns.pause(paused) }

// Paused reports whether the effector is paused.
func (e *Effector) Paused() bool {
	e.turns.mu.Lock()
	defer e.turns.mu.Unlock()
	return e.turns.paused
}

// Close cancels the intents that have not begun and waits for the others until ctx ends. Then it aborts those
// that still run; their outcome is recorded as Unknown.
func (e *Effector) Close(ctx context.Context) {
	e.mu.Lock()
	if e.closing {
		e.mu.Unlock()
		e.running.Wait()
		return
	}
	e.closing = true
	for _, l := range e.executions {
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
		e.end(errShutdown)
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
