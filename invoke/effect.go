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

// Effects is how calls of tools with a side effect are executed: written down first, by the effector, on the path that the
// branch has when their turn comes. It outlives generations.
type Effects struct {
	// Effector is the one that executes; its error says why no call can be written down.
	Effector func(context.Context) (*intent.Effector, error)
	// Now is the path that the intent's branch has now for its principal, as that is now; release gives it up. vouched is who
	// has called, where this process knows. The error says why there is none: a branch that is gone, a token that was
	// revoked.
	Now func(in intent.Intent, vouched *decision.Principal) (path *Path, who decision.Principal, release func(), err error)
	// Wait is how long a call waits for its effect from when it came; then it is answered with a handle.
	Wait time.Duration
}

// effect has a call of a tool with a side effect written down and executed.
func (p *Path) effect(
	ctx context.Context,
	call *registry.Call,
	req Request,
	entry *registry.Entry,
	args contract.Args,
	answer decision.Decision,
) (*registry.Result, *registry.Error) {
	if p.Effects == nil {
		return nil, keepsNone(fmt.Sprintf("tool %q has a side effect", call.Tool))
	}
	key, err := idempotencyKey(req, entry, args)
	if err != nil {
		return nil, err
	}
	effector, unavailable := p.Effects.Effector(ctx)
	if unavailable != nil {
		return nil, unstaged(call.Tool, unavailable)
	}
	e := &effect{
		effects:  p.Effects,
		effector: effector,
		known:    known{p.Policy, answer, &req.Principal},
		to:       newRelay(req.Listener),
	}
	defer e.to.close()
	s := intent.Submission{
		Begin: e.begin, Server: entry.Server(), Wait: max(0, p.Effects.Wait-time.Since(call.Start)), Waits: e.to.waiting, Busy: e.to.busy,
		Intent: intent.Intent{
			ID: call.ID, Branch: call.Branch, Tool: call.Tool, Principal: call.Principal, Credential: req.Credential,
			Arguments: args.JSON(), Digest: args.Digest(), Print: entry.Print(), Policy: p.Policy, Generation: p.Generation,
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
		if got, failed = effector.Continue(ctx, req.Intent, s); errors.Is(failed, intent.ErrNotWaiting) {
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

// ended is what has become of an intent that waits for no answers any more. Its effect may have happened, so that its caller is
// not to call again.
func (e *effect) ended(ctx context.Context, req Request, s intent.Submission) (intent.Answer, error) {
	in, err := e.effector.Get(ctx, req.Intent, intent.Person{Name: req.Principal.Name, Credential: req.Credential})
	if err != nil {
		return intent.Answer{}, errors.Join(intent.ErrNotWaiting, err)
	}
	return e.effector.Attend(ctx, in, s), nil
}

func approval(a *decision.Approval) *intent.Approval {
	return &intent.Approval{Groups: a.Groups, Reason: a.Reason, Self: a.Self}
}

// keepsNone is the error of a process without a store of intents.
func keepsNone(what string) *registry.Error {
	return &registry.Error{
		Code: registry.EffectorRequired, Unsent: true,
		Msg: what + ", and this process keeps no intents (--intents): it runs no such tool. Nothing was run",
	}
}

// idempotencyKey is the key that a call has: that of its declaration where that makes one, else the caller's.
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
				"tool %q makes its own idempotency key of its arguments; call it without one",
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

// unstaged is why a call was not written down. Nothing was run.
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
			Code:   registry.Overloaded,
			Unsent: true,
			Msg:    "too many calls of this branch with side effects wait already; nothing was run. Try again later",
		}
	case errors.Is(err, intent.ErrNotWaiting):
		return &registry.Error{
			Code: registry.OutcomeUnknown,
			Err:  err,
			Msg:  intent.ErrNotWaiting.Error() + ", and how can't be told. Don't call again before somebody has looked; intent_list says which calls of yours there are",
		}
	case errors.Is(err, context.Canceled):
		return &registry.Error{
			Code:   registry.Cancelled,
			Unsent: true,
			Msg:    "the call was cancelled before it was written down. Nothing was run",
		}
	}
	return &registry.Error{
		Code: registry.IntentsUnavailable, Unsent: true, Err: err,
		Msg: fmt.Sprintf(
			"the call of %q could not be written down, so nothing was run; the operator's log says why",
			tool,
		),
	}
}

// effect is a call whose intent is executed while its caller listens.
type effect struct {
	effects  *Effects
	effector *intent.Effector
	known    known
	to       *relay
}

// known is what a policy answered to the call decision, and who has called.
type known struct {
	policy string
	answer decision.Decision
	caller *decision.Principal
}
