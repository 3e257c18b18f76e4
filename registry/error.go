package registry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/catalogd/catalogd/contract"
)

// ErrorCode is the machine-readable reason why a call has no result. The list is closed.
type ErrorCode string

const (
	// UnknownTool means that the branch shows no tool of that name. A hidden and a missing tool get the same
	// error.
	UnknownTool ErrorCode = "unknown_tool"
	// InvalidArguments means that the arguments violate the tool's contract; Violations has the details.
	InvalidArguments ErrorCode = "invalid_arguments"
	// Denied means that the call decision denied the call.
	Denied ErrorCode = "denied"
	// EffectorRequired means that the tool has a side effect, and that this path has no effector to run it.
	EffectorRequired ErrorCode = "effector_required"
	// BindingFailed means that the binding could not run.
	BindingFailed ErrorCode = "binding_failed"
	// Unavailable means that the tool's upstream server can't be reached now.
	Unavailable ErrorCode = "unavailable"
	// Unauthorized means that the tool's server requires credentials that it did not get, or refused those it
	// got.
	Unauthorized ErrorCode = "unauthorized"
	// Timeout means that the time limit of the tool or of the decision was exceeded.
	Timeout ErrorCode = "timeout"
	// Cancelled means that the caller cancelled the call, or that a deadline of the caller's own passed.
	Cancelled ErrorCode = "cancelled"
	// ResultInvalid means that the tool's result does not match its declared result.
	ResultInvalid ErrorCode = "result_invalid"
	// OutputTooLarge means that the tool's output exceeded its size limit.
	OutputTooLarge ErrorCode = "output_too_large"
	// ProcessorFailed means that what runs before or after tools failed: the jq program pre or post of the tool, or a Go
	// function of the program (Processor).
	ProcessorFailed ErrorCode = "processor_failed"
	// CapabilityMissing means that the tool needs client capabilities that the caller has not declared; Needs
	// has them.
	CapabilityMissing ErrorCode = "client_capability_missing"
	// RateLimited means that the caller has exceeded a rate limit of the policy.
	RateLimited ErrorCode = "rate_limited"
	// ResultDenied means that the tool has run and the result decision withheld its result.
	ResultDenied ErrorCode = "result_denied"
	// OutcomeUnknown means that the side effect of the tool may or may not have happened.
	OutcomeUnknown ErrorCode = "outcome_unknown"
	// ToolChanged means that the tool's declaration, lock or trust has changed since the call, so it was not
	// executed.
	ToolChanged ErrorCode = "tool_changed"
	// IdempotencyConflict means that the idempotency key was used with other arguments before.
	IdempotencyConflict ErrorCode = "idempotency_conflict"
	// IntentsUnavailable means that the intent of the call could not be recorded, so it was not executed.
	IntentsUnavailable ErrorCode = "intents_unavailable"
	// Overloaded means that too many calls run or wait; Limit says whose.
	Overloaded ErrorCode = "overloaded"
	// ApprovalRefused means that a person refused the approval.
	ApprovalRefused ErrorCode = "approval_refused"
	// ApprovalExpired means that the approval was not given in time.
	ApprovalExpired ErrorCode = "approval_expired"
	// Internal means a fault of catalogd itself.
	Internal ErrorCode = "internal"
)

// ErrTimeLimit is the cause (context.Cause) of the end of a context by a time limit of the tool or of catalogd. A
// deadline without it is the caller's own, and not blamed on the tool.
var ErrTimeLimit = errors.New("the time limit of the call was exceeded")

// CallersDeadline reports whether a context has ended by a deadline of the caller's own.
func CallersDeadline(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) && !errors.Is(context.Cause(ctx), ErrTimeLimit)
}

// Error is the reason why a call has no result.
type Error struct {
	Code ErrorCode
	// Msg is for the model: what went wrong and what to do. It has no secrets and no names that the branch
	// can't see.
	Msg string
	// Err is for the operator's log and never shown to a client. It is nil if it would add nothing to Msg.
	Err error
	// Unsent says that nothing was run: either nothing of the call has left this process (no program was
	// started, no byte was sent), or the receiver's protocol guarantees that it was not processed, as for an
	// MCP session that has ended. If neither Unsent nor Answered is set, the tool may have had its effect.
	Unsent bool
	// Answered is OutcomeSucceeded or OutcomeFailed if the tool has answered but there is no result to show,
	// for example because it is too large; else empty.
	Answered Outcome
	// Decision is the code of the decision that denied (decision.ReasonCode), for Denied, ResultDenied and a
	// Timeout of a decision; else empty.
	Decision string
	// Limit is the limit that was reached, for Overloaded and RateLimited: docs/operations.md lists them. RetryAfter is
	// when the same call may be made again; zero where waiting would not help.
	Limit      string
	RetryAfter time.Duration
	// Violations are the violations for InvalidArguments.
	Violations []contract.Violation
	// Nearest are similar names of visible tools, for UnknownTool.
	Nearest []string
	// Needs are the capabilities that the caller would have to declare, for CapabilityMissing.
	Needs Abilities
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: %s", e.Code, e.Msg)
	}
	return fmt.Sprintf("%s: %s: %v", e.Code, e.Msg, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Seconds returns a duration in whole seconds, rounded up, as the header Retry-After has it.
func Seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// listedTools is the maximum number of tools that the error for an unknown name lists.
const listedTools = 20

// unknownTool returns the error for a name that a view doesn't have. It says which visible names are near, or which there
// are if none is.
func unknownTool(name string, nearest, visible []string) *Error {
	msg := fmt.Sprintf("unknown tool %q", Shown(name))
	switch {
	case len(nearest) > 0:
		msg += "; did you mean " + quotedNames(nearest, " or ") + "?"
	case len(visible) > listedTools:
		msg += fmt.Sprintf("; the tools are %s and %d more", quotedNames(visible[:listedTools], ", "), len(visible)-listedTools)
	case len(visible) > 0:
		msg += "; the tools are " + quotedNames(visible, ", ")
	default:
		msg += "; there are no tools here"
	}
	return &Error{Code: UnknownTool, Msg: msg, Nearest: nearest}
}

func quotedNames(names []string, separator string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, separator)
}

// maxShown is the maximum number of bytes of an unknown name in messages. Declared names have at most 63.
const maxShown = 128

// Shown returns a tool's name for an answer or a log. It truncates names over 128 bytes, which only a client
// can have made up, so that a client can't fill the log.
func Shown(name string) string {
	if len(name) <= maxShown {
		return name
	}
	return strings.ToValidUTF8(name[:maxShown], "") + "..."
}
