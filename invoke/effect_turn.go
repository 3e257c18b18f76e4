package invoke

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/internal/tracing"
	"github.com/catalogd/catalogd/registry"
)

// openTurn is the intent.Begin for a call whose caller waits.
func (e *submission) openTurn(ctx context.Context, in intent.Intent) intent.Turn {
	return e.effects.openTurn(tracing.Beside(ctx, e.trace), in, e.call, e.to.listener())
}

// Begin is the intent.Begin for an intent without a waiting caller.
func (x *Effects) Begin(ctx context.Context, in intent.Intent) intent.Turn {
	return x.openTurn(ctx, in, callContext{}, registry.Listener{})
}

// openTurn compares an intent with the generation that serves now, and asks for the release decision; if the
// policy or the principal has changed since the call, it asks for the call decision first.
func (x *Effects) openTurn(ctx context.Context, in intent.Intent, before callContext, to registry.Listener) (t intent.Turn) {
	t.End = func() {}
	defer func() {
		if r := recover(); r != nil {
			t.Refused, t.Execute = &registry.Error{
				Code: registry.Internal,
				Msg:  "internal error; the operator's log has it as intent " + in.ID,
				Err:  fmt.Errorf("panic: %v", r),
			}, nil
		}
	}()
	effector, err := x.Effector(ctx)
	if err != nil {
		t.Refused, t.Undecided = unstaged(in.Tool, err), true
		return t
	}
	p, who, release, err := x.Now(in, before.caller)
	if err != nil {
		t.Refused = &registry.Error{Code: registry.Denied, Msg: err.Error() + ". Nothing was run"}
		return t
	}
	t.End = release
	call := p.newCall(Request{ID: in.ID, Tool: p.View.Declared().Shown(in.Tool), Principal: who})
	call.Declared = in.Tool
	ctx = forCall(ctx, &call)
	entry := p.View.Declares(in.Tool)
	if entry == nil || entry.Fingerprint() != in.Fingerprint || entry.Effect() != registry.Write {
		t.Refused = &registry.Error{
			Code: registry.ToolChanged,
			Msg: fmt.Sprintf(
				"tool %q has changed since it was called: its declaration, its locked definition, or what it may reach. Nothing was run; call it again",
				call.Tool,
			),
		}
		return t
	}
	args, violations, err := entry.Contract().Recheck(ctx, in.Arguments)
	if err != nil || violations != nil || args.Digest() != in.Digest {
		t.Refused, t.Undecided = &registry.Error{
			Code: registry.Unavailable,
			Msg:  "the arguments could not be checked again. Nothing was run",
			Err:  err,
		}, err != nil
		return t
	}
	call.Arguments = args
	answer := before.answer
	if before.policy != p.Policy || before.caller == nil || !same(*before.caller, who) {
		if answer = p.askAgain(ctx, &call, entry, who, args); !answer.Allow {
			t.Refused, t.Undecided = refused(ctx, call.Tool, answer)
			return t
		}
		if t.Approval = stillToApprove(in, answer.RequireApproval); t.Approval != nil {
			t.Expires = answer.RequireApproval.Expires
			if in.State != intent.Staged {
				t.Approval, t.Refused = nil, &registry.Error{
					Code: registry.Denied,
					Msg:  "the policy has changed and requires another approval than the one given. Nothing was run; call again",
				}
			}
			return t
		}
	}
	released := p.release(ctx, &call, entry, who, args, in, effector.Now())
	if !released.Allow {
		t.Refused, t.Undecided = refused(ctx, call.Tool, released)
		return t
	}
	t.Timeout = timeout(entry, answer)
	trace := ctx
	t.Execute = func(ctx context.Context, a attempt.Attempt) intent.Ran {
		ctx, span := tracing.Start(tracing.Beside(forCall(ctx, &call), trace), "attempt", tracing.Internal)
		defer span.End()
		span.Set("catalogd.intent", in.ID)
		return p.execute(
			ctx,
			&call,
			Request{Tool: call.Tool, Principal: who, Listener: to.Within(answer.Relay, answer.Hosts)},
			entry,
			args,
			a,
		)
	}
	return t
}

// same reports whether policies see the same principal.
func same(a, b decision.Principal) bool {
	return a.Name == b.Name && a.Admin == b.Admin && a.Local == b.Local && slices.Equal(a.Groups, b.Groups)
}

// stillToApprove returns the approval that is required and was not given; nil if there is none.
func stillToApprove(in intent.Intent, asked *decision.Approval) *intent.Approval {
	if asked == nil {
		return nil
	}
	want := approval(asked)
	if given := in.Approval; given != nil && given.By != "" && slices.Equal(given.Groups, want.Groups) &&
		given.Self == want.Self {
		return nil
	}
	return want
}

// refused returns the error for an intent that the policy does not release, and whether the decision is still
// open.
func refused(ctx context.Context, tool string, d decision.Decision) (_ *registry.Error, undecided bool) {
	if d.Code == decision.PolicyTimeout || Withdrawn(ctx, d) {
		return &registry.Error{
			Code:     registry.Timeout,
			Decision: string(d.Code),
			Msg:      fmt.Sprintf("the policy did not decide in time on the execution of %q", tool),
		}, true
	}
	return &registry.Error{
		Code:     registry.Denied,
		Decision: string(d.Code),
		Msg:      denial(tool, d) + ". Nothing was run",
	}, false
}

// execute runs the tool once and returns the outcome.
func (p *Path) execute(
	ctx context.Context,
	call *registry.Call,
	req Request,
	entry *registry.Entry,
	args contract.Args,
	a attempt.Attempt,
) intent.Ran {
	req.Listener.Branch, req.Listener.Call, req.Listener.Principal = call.Branch, call.ID, call.Principal
	result, err := invoked(ctx, entry, func(ctx context.Context) (*registry.Result, error) {
		return entry.Execute(ctx, a, args, req.Listener)
	})
	if err != nil {
		failed := maskSecrets(entry, args, asError(ctx, err))
		ran := intent.Ran{State: intent.Unknown, Err: failed, Why: failed.Msg}
		switch registry.OutcomeOf(nil, failed) {
		case registry.OutcomeUnsent:
			ran.State, ran.Unsent = intent.Failed, true
		case registry.OutcomeFailed:
			ran.State = intent.Failed
		case registry.OutcomeSucceeded:
			ran.State = intent.Succeeded
		}
		return ran
	}
	ran := intent.Ran{State: intent.Unknown, Why: "the answer is not the tool's, or is incomplete"}
	switch registry.OutcomeOf(result, nil) {
	case registry.OutcomeFailed:
		ran.State, ran.Why = intent.Failed, "the tool answered with an error"
	case registry.OutcomeSucceeded:
		ran.State, ran.Why = intent.Succeeded, ""
	}
	if result.Input != nil {
		ran.State, ran.Why = intent.AwaitingInput, ""
	}
	// The result decision and the result's contract don't change the outcome, and have their own time limit.
	after, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), afterwards, registry.ErrTimeLimit)
	defer cancel()
	ran.Result, ran.Err = p.finished(after, call, req, entry, args, result)
	if ran.State == intent.Unknown && ran.Err == nil {
		ran.Result, ran.Err = nil, &registry.Error{
			Code: registry.OutcomeUnknown,
			Msg:  strings.TrimSpace(text(ran.Result)),
		}
	}
	return ran
}

// finished is finish with panics turned into an error, because the tool has run.
func (p *Path) finished(
	ctx context.Context,
	call *registry.Call,
	req Request,
	entry *registry.Entry,
	args contract.Args,
	answer *registry.Result,
) (_ *registry.Result, failed *registry.Error) {
	defer recovering(call, &failed)
	return p.finish(ctx, call, req, entry, args, answer)
}

// afterwards is the time limit for everything after the tool has run.
const afterwards = 30 * time.Second

// askAgain asks for the call decision again, without counting the call.
func (p *Path) askAgain(
	ctx context.Context,
	call *registry.Call,
	entry *registry.Entry,
	who decision.Principal,
	args contract.Args,
) decision.Decision {
	in := decision.CallInput{Tool: PolicyTool(entry), Principal: who, Arguments: args.JSON(), Time: time.Now().UTC()}
	if p.Counted {
		in.Rate = p.Rates.rate(call)
	}
	return p.Each(decision.Call, call.ID+"-again", func(b decision.Branch, id string) decision.Decision {
		in.Branch = b
		asked := time.Now()
		answer := p.Decide(ctx, in)
		p.decided(entry, call, decision.Event{
			ID: id, Point: decision.Call, Input: in, Decision: answer, Time: asked, Took: time.Since(asked),
		})
		return answer
	})
}

// release asks for the release decision. now is the time of the store's clock.
func (p *Path) release(
	ctx context.Context,
	call *registry.Call,
	entry *registry.Entry,
	who decision.Principal,
	args contract.Args,
	in intent.Intent,
	now time.Time,
) decision.Decision {
	input := decision.ReleaseInput{
		Tool: PolicyTool(entry), Principal: who, Arguments: args.JSON(), Time: time.Now().UTC(),
		Intent: policyIntent(in, p.Policy, now),
	}
	ctx, span := tracing.Start(ctx, "decide release", tracing.Internal)
	defer span.End()
	id := fmt.Sprintf("%s-release-%d", call.ID, in.Attempts+1)
	answer := p.Each(decision.Release, id, func(b decision.Branch, id string) decision.Decision {
		input.Branch = b
		asked := time.Now()
		answer := p.Release(ctx, input)
		p.decided(entry, call, decision.Event{
			ID: id, Point: decision.Release, Input: input, Decision: answer, Time: asked, Took: time.Since(asked),
		})
		return answer
	})
	span.Set("catalogd.decision", string(answer.Code))
	return answer
}

// policyIntent returns the form of an intent that policies see.
func policyIntent(in intent.Intent, policy string, now time.Time) decision.Intent {
	seen := decision.Intent{
		ID: in.ID, Staged: in.Staged.UTC(), Age: max(0, int(now.Sub(in.Staged).Seconds())), Attempt: in.Attempts + 1,
		Repeatable: in.Repeatable, Keyed: in.Key != "", PolicyChanged: in.Policy != policy,
	}
	if a := in.Approval; a != nil && a.By != "" {
		groups := append([]string{}, a.Groups...)
		seen.Approval = &decision.IntentApproval{
			Asked: decision.AskedApproval{Groups: groups, Reason: a.Reason, Self: a.Self},
			By:    decision.Approver{Name: a.By, Groups: append([]string{}, a.ByGroups...)}, At: a.At.UTC(),
		}
	}
	return seen
}
