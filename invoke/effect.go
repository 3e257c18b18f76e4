package invoke

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/registry"
)

// Effects executes calls of tools with side effects: an effector records the intent first and executes it on
// the Path that the branch has when the turn of the intent comes. Effects outlives generations.
type Effects struct {
	// Effector returns the effector; its error says why no intent can be recorded.
	Effector func(context.Context) (*intent.Effector, error)
	// Now returns the current Path of the intent's branch and the current principal; the caller must call
	// release. vouched is the authenticated caller if this process knows it, else nil. The error says why
	// there is no path, such as a removed branch or a revoked token.
	Now func(in intent.Intent, vouched *decision.Principal) (path *Path, who decision.Principal, release func(), err error)
	// Wait is the maximum time from the arrival of a call to its answer; if the effect takes longer, the
	// answer is a handle.
	Wait time.Duration
}

// submit stages an intent for a call of a tool with a side effect, and has it executed.
func (p *Path) submit(
	ctx context.Context,
	call *registry.Call,
	req Request,
	entry *registry.Entry,
	args contract.Args,
	answer decision.Decision,
) (*registry.Result, *registry.Error) {
	if p.Effects == nil {
		return nil, noStore(fmt.Sprintf("tool %q has a side effect", call.Tool))
	}
	key, err := idempotencyKey(req, entry, args)
	if err != nil {
		return nil, err
	}
	effector, unavailable := p.Effects.Effector(ctx)
	if unavailable != nil {
		return nil, unstaged(call.Tool, unavailable)
	}
	e := &submission{
		effects:  p.Effects,
		effector: effector,
		call:     callContext{p.Policy, answer, &req.Principal},
		to:       newRelay(req.Listener),
		trace:    ctx,
	}
	defer e.to.close()
	s := intent.Submission{
		Begin: e.openTurn, Server: entry.Server(), Wait: max(0, p.Effects.Wait-time.Since(call.Start)), Waits: e.to.waiting, Busy: e.to.busy,
		Intent: intent.Intent{
			ID: call.ID, Branch: call.Branch, Session: call.Session, Tool: call.Declared, Principal: call.Principal, Credential: req.Credential,
			Arguments: args.JSON(), Digest: args.Digest(), Fingerprint: entry.Fingerprint(), Policy: p.Policy, Generation: p.Generation,
			Key: key, Repeatable: entry.Declared().Idempotent, State: intent.Staged,
		},
	}
	if a := answer.RequireApproval; a != nil {
		s.Intent.State, s.Intent.Approval = intent.AwaitingApproval, approval(a)
		s.Intent.Expires = effector.Now().Add(a.Expires)
	}
	var got intent.Answer
	var failed error
	if req.Intent != "" {
		if got, failed = effector.Continue(ctx, req.Intent, req.Attempt, s); errors.Is(failed, intent.ErrNotWaiting) {
			got, failed = e.ended(ctx, req, s)
		}
	} else {
		got, failed = effector.Submit(ctx, s)
	}
	if failed != nil {
		return nil, unstaged(call.Tool, failed)
	}
	if got.Intent.State == intent.AwaitingApproval && !got.Found {
		got = e.approve(ctx, got, s, p.Log)
	}
	call.Intent = got.Intent.ID
	return p.answered(ctx, call, req, entry, args, got)
}

// ended returns the state of an intent that no longer waits for input. Its effect may have happened, so the
// caller must not call again.
func (e *submission) ended(ctx context.Context, req Request, s intent.Submission) (intent.Answer, error) {
	in, err := e.effector.Get(ctx, req.Intent, intent.Person{Name: req.Principal.Name, Credential: req.Credential})
	if err != nil {
		return intent.Answer{}, errors.Join(intent.ErrNotWaiting, err)
	}
	return e.effector.Attend(ctx, in, s), nil
}

func approval(a *decision.Approval) *intent.Approval {
	return &intent.Approval{Groups: a.Groups, Reason: a.Reason, Self: a.Self}
}

// noStore returns the error of a process without a store of intents.
func noStore(what string) *registry.Error {
	return &registry.Error{
		Code: registry.EffectorRequired, Unsent: true,
		Msg: what + ", and this process keeps no intents (--intents, in Go Config.Intents), so it can't run the tool. Nothing was run",
	}
}

// idempotencyKey returns the idempotency key of a call: the one that the declaration makes, else the
// caller's.
func idempotencyKey(req Request, entry *registry.Entry, args contract.Args) (string, *registry.Error) {
	declared, err := entry.IdempotencyKey(args)
	var known *registry.Error
	switch {
	case errors.As(err, &known):
		return "", known
	case err != nil:
		return "", &registry.Error{
			Code: registry.Internal,
			Msg:  "the idempotency key of the call can't be made",
			Err:  err,
		}
	case declared == "" && req.Key == "":
		return "", nil
	case declared != "" && req.Key != "" && declared != req.Key:
		return "", &registry.Error{
			Code: registry.InvalidArguments,
			Msg: fmt.Sprintf(
				"tool %q makes its own idempotency key from its arguments; call it without one",
				entry.Name(),
			),
		}
	case declared == "":
		declared = req.Key
	}
	if err := registry.CheckIdempotencyKey(declared); err != nil {
		return "", &registry.Error{
			Code: registry.InvalidArguments,
			Msg:  fmt.Sprintf("an idempotency key can't be %v", err),
		}
	}
	return declared, nil
}

// unstaged returns the error for a call that could not be staged. Nothing was run.
func unstaged(tool string, err error) *registry.Error {
	var conflict *intent.ConflictError
	switch {
	case errors.As(err, &conflict):
		return &registry.Error{
			Code:   registry.IdempotencyConflict,
			Unsent: true,
			Msg:    conflict.Error() + ". Nothing was run",
		}
	case errors.Is(err, intent.ErrQueueFull):
		return &registry.Error{
			Code:       registry.Overloaded,
			Limit:      "intents",
			RetryAfter: 5 * time.Second, // the queue is long
			Unsent:     true,
			Msg:        "too many calls of this branch with side effects wait already; nothing was run. Try again in 5 s",
		}
	case errors.Is(err, intent.ErrUnknown):
		return &registry.Error{
			Code:   registry.IntentsUnavailable,
			Unsent: true,
			Msg: fmt.Sprintf("the call of %q waits for these answers at another daemon, whose intents are not kept here. Nothing was run. "+
				"Send this very request again until it reaches that daemon; its operator can have both keep intents in one --intents directory", tool),
		}
	case errors.Is(err, intent.ErrNotWaiting):
		return &registry.Error{
			Code: registry.OutcomeUnknown,
			Err:  err,
			Msg:  intent.ErrNotWaiting.Error() + ", and its outcome is not known. Don't call again before somebody has checked; intent_list lists your calls",
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded): // of the caller
		return &registry.Error{
			Code:   registry.Cancelled,
			Unsent: true,
			Msg:    "the call was cancelled before it was recorded. Nothing was run",
		}
	}
	return &registry.Error{
		Code: registry.IntentsUnavailable, Unsent: true, Err: err,
		Msg: fmt.Sprintf(
			"the call of %q could not be recorded, so nothing was run; the operator's log says why",
			tool,
		),
	}
}

// submission is a call whose intent is executed while its caller waits.
type submission struct {
	effects  *Effects
	effector *intent.Effector
	call     callContext
	to       *relay
	trace    context.Context // of the call, for the spans of its attempts
}

// callContext is an earlier call decision, the policy that made it, and the caller.
type callContext struct {
	policy string
	answer decision.Decision
	caller *decision.Principal
}
