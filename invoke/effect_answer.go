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

// answered is what a caller is answered.
func (p *Path) answered(
	ctx context.Context,
	call *registry.Call,
	req Request,
	entry *registry.Entry,
	args contract.Args,
	got intent.Answer,
) (*registry.Result, *registry.Error) {
	in := got.Intent
	switch {
	case got.Err != nil && (in.State.Begun() || in.Attempts > 0):
		return nil, &registry.Error{Code: registry.OutcomeUnknown, Err: got.Err, Msg: fmt.Sprintf(
			"the outcome of the call could not be written down, so it counts as unknown; the operator's log says why. Don't call again before somebody has looked what intent %s has done",
			in.ID,
		)}
	case got.Err != nil:
		return nil, unstaged(call.Tool, got.Err)
	case got.Ran != nil && !got.Found && got.Ran.State == intent.AwaitingInput: // whoever comes later was asked nothing
		return got.Ran.Result, nil
	case got.Ran != nil && !got.Found && got.Ran.Err != nil:
		return nil, told(in, false, got.Ran.Err)
	case got.Ran != nil && !got.Found:
		return got.Ran.Result, nil
	case !in.State.Ended():
		return handle(in), nil
	}
	return p.stored(ctx, call, req, entry, args, in)
}

// stored is the outcome of an intent as it is written down, which the result decision is asked about again.
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
		return nil, told(in, true, &registry.Error{Code: in.Code, Msg: in.Message})
	case in.Result != nil:
		return p.judge(ctx, call, req, entry, args, in.Result)
	case in.ResultBytes > 0:
		return noted(
			in,
			fmt.Sprintf(
				"it succeeded; its result of %d bytes (%s) was too large to be kept",
				in.ResultBytes,
				in.ResultDigest,
			),
		), nil
	}
	return noted(in, "it "+string(in.State)+": "+in.Message), nil
}

// told is an error that says what a caller has to know of the intent as well.
func told(in intent.Intent, found bool, err *registry.Error) *registry.Error {
	told := *err
	if found {
		told.Msg = fmt.Sprintf("the call is that of intent %s, which is %s: %s", in.ID, in.State, err.Msg)
	}
	if in.State == intent.Unknown {
		told.Code = registry.OutcomeUnknown
		told.Msg = fmt.Sprintf(
			"nobody knows whether the side effect has happened (intent %s); don't call again before somebody has looked. What is known: %s",
			in.ID,
			err.Msg,
		)
	}
	return &told
}

// handle is what a caller is answered while the effect has not ended.
func handle(in intent.Intent) *registry.Result {
	result := noted(in, "")
	result.Handle = true
	return result
}

// noted is a result that says how an intent is, in the form of a handle.
func noted(in intent.Intent, says string) *registry.Result {
	h := registry.Handle{ID: in.ID, State: string(in.State), Tool: in.Tool, Message: says}
	switch {
	case says != "":
	case in.State == intent.AwaitingApproval:
		h.Message = fmt.Sprintf(
			"intent %s: %s. Do not call again; ask intent_get with this id how it went",
			in.ID,
			approvalMessage(in),
		)
	default:
		h.Message = fmt.Sprintf(
			"intent %s: the call was accepted and has not ended yet. Do not call again; ask intent_get with this id how it went",
			in.ID,
		)
	}
	return h.Result()
}

// approvalMessage says what an intent waits for.
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

// Kept is the result that an intent's record has, as far as the result decision lets it out now to a
// principal; nil where the record has none. The error says why it is withheld. A tool that the principal does
// not see any more shows nothing.
func (p *Path) Kept(
	ctx context.Context,
	who decision.Principal,
	in intent.Intent,
) (result *registry.Result, withheld *registry.Error) {
	if in.Result == nil {
		return nil, nil
	}
	call := registry.Call{ID: in.ID, Branch: in.Branch, Tool: in.Tool}
	defer recovering(&call, &withheld)
	return p.released(ctx, Request{Principal: who}, in)
}
