package invoke

import (
	"context"
	"fmt"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/registry"
)

// answered returns the answer to the caller: the result or error of this call's attempt, a handle, or the
// stored outcome.
func (p *Path) answered(
	ctx context.Context,
	call *registry.Call,
	req Request,
	entry *registry.Entry,
	args contract.Args,
	got intent.Answer,
) (*registry.Result, *registry.Error) {
	in := p.named(got.Intent)
	switch {
	case got.Err != nil && (in.State.Begun() || in.Attempts > 0):
		return nil, &registry.Error{Code: registry.OutcomeUnknown, Err: got.Err, Msg: fmt.Sprintf(
			"the outcome of the call could not be recorded, so it counts as unknown; the operator's log says why. Don't call again before somebody has checked what intent %s has done",
			in.ID,
		)}
	case got.Err != nil:
		return nil, unstaged(call.Tool, got.Err)
	case got.Ran != nil && !got.Found && got.Ran.State == intent.AwaitingInput: // a repeated call gets a handle
		return asking(got.Ran.Result, in.Attempts), nil
	case got.Ran != nil && !got.Found && got.Ran.Err != nil:
		return nil, withIntent(in, false, got.Ran.Err)
	case got.Ran != nil && !got.Found:
		return got.Ran.Result, nil
	case !in.State.Ended():
		return handle(in), nil
	}
	return p.stored(ctx, call, req, entry, args, in)
}

// asking returns the result by which an attempt asks its caller.
func asking(result *registry.Result, attempt int) *registry.Result {
	out, input := *result, *result.Input
	input.Attempt, out.Input = attempt, &input
	return &out
}

// stored returns the recorded outcome of an intent, after a new result decision.
func (p *Path) stored(
	ctx context.Context,
	call *registry.Call,
	req Request,
	entry *registry.Entry,
	args contract.Args,
	in intent.Intent,
) (*registry.Result, *registry.Error) {
	switch {
	case in.Code != "":
		return nil, withIntent(in, true, &registry.Error{Code: in.Code, Msg: in.Message})
	case in.Result != nil:
		return p.judge(ctx, call, req, entry, args, in.Result)
	case in.ResultBytes > 0:
		return stateResult(
			in,
			fmt.Sprintf(
				"it succeeded; its result of %d bytes (%s) was too large to be stored",
				in.ResultBytes,
				in.ResultDigest,
			),
		), nil
	}
	return stateResult(in, "it "+string(in.State)+": "+in.Message), nil
}

// withIntent returns a copy of err with the intent's id and state in its message. found says that the intent
// is that of an earlier call.
func withIntent(in intent.Intent, found bool, err *registry.Error) *registry.Error {
	out := *err
	if found {
		out.Msg = fmt.Sprintf("the call is that of intent %s, which is %s: %s", in.ID, in.State, err.Msg)
	}
	if in.State == intent.Unknown {
		out.Code = registry.OutcomeUnknown
		out.Msg = fmt.Sprintf(
			"the side effect may or may not have happened (intent %s); don't call again before somebody has checked. What is known: %s",
			in.ID,
			err.Msg,
		)
	}
	return &out
}

// named returns an intent with the name by which the branch shows its tool. A stored intent has the one in the
// catalog, so that a rename neither repeats an effect nor hides from an approver what it is.
func (p *Path) named(in intent.Intent) intent.Intent {
	in.Tool = p.View.Declared().Shown(in.Tool)
	return in
}

// handle returns the result for a caller while the effect has not ended.
func handle(in intent.Intent) *registry.Result {
	result := stateResult(in, "")
	result.Handle = true
	return result
}

// stateResult returns a result with the state of an intent, in the form of a handle. An empty message gets
// one that fits the state.
func stateResult(in intent.Intent, says string) *registry.Result {
	h := registry.Handle{ID: in.ID, State: string(in.State), Tool: in.Tool, Message: says}
	switch {
	case says != "":
	case in.State == intent.AwaitingApproval:
		h.Message = fmt.Sprintf(
			"intent %s: %s. Do not call again; call intent_get with this id for the outcome",
			in.ID,
			approvalMessage(in),
		)
	default:
		h.Message = fmt.Sprintf(
			"intent %s: the call was accepted and has not ended yet. Do not call again; call intent_get with this id for the outcome",
			in.ID,
		)
	}
	return h.Result()
}

// approvalMessage returns the text for an intent that waits for an approval.
func approvalMessage(in intent.Intent) string {
	says := "somebody has to approve this call first"
	if r := in.Approval.Reason; r != "" {
		says += ": " + r
	}
	if len(in.Approval.Groups) > 0 {
		says += " (group " + strings.Join(in.Approval.Groups, " or ") + ")"
	}
	return says
}

// Kept returns the stored result of an intent for a principal, after a new result decision; nil if none is
// stored. The error says why the result is withheld, for example because the principal no longer sees the
// tool.
func (p *Path) Kept(
	ctx context.Context,
	who decision.Principal,
	in intent.Intent,
) (result *registry.Result, withheld *registry.Error) {
	if in.Result == nil {
		return nil, nil
	}
	call := registry.Call{ID: in.ID, Branch: in.Branch, Session: in.Session, Tool: in.Tool}
	defer recovering(&call, &withheld)
	return p.released(ctx, Request{Principal: who}, in)
}
