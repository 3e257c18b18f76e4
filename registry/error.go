package registry

import (
	"fmt"
	"strings"

	"github.com/catalogd/catalogd/contract"
)

// ErrorCode says, for programs, why a call has no result. The list is closed.
type ErrorCode string

const (
	// UnknownTool: the branch has no tool of that name that it may see. Hidden and missing are the same.
	UnknownTool ErrorCode = "unknown_tool"
	// InvalidArguments: the arguments violate the tool's contract; Violations says how.
	InvalidArguments ErrorCode = "invalid_arguments"
	// Denied: the call decision refused.
	Denied ErrorCode = "denied"
	// EffectorRequired: the tool has a side effect, and nothing may run it but the effector.
	EffectorRequired ErrorCode = "effector_required"
	// BindingFailed: the binding could not run.
	BindingFailed ErrorCode = "binding_failed"
	// Unavailable: what the tool needs (an upstream server) can't be reached now.
	Unavailable ErrorCode = "unavailable"
	// Unauthorized: the server that the tool needs asks for credentials that it has not got, or refuses those
	// it got.
	Unauthorized ErrorCode = "unauthorized"
	// Timeout: the tool's or the decision's time was up.
	Timeout ErrorCode = "timeout"
	// Cancelled: the caller cancelled the call.
	Cancelled ErrorCode = "cancelled"
	// ResultInvalid: the tool answered, but not what its declared result allows.
	ResultInvalid ErrorCode = "result_invalid"
	// OutputTooLarge: the tool answered more than its cap.
	OutputTooLarge ErrorCode = "output_too_large"
	// CapabilityMissing: the tool needs an answer of a kind that the caller hasn't declared it gives; Needs
	// names them.
	CapabilityMissing ErrorCode = "client_capability_missing"
	// RateLimited: the caller has made as many calls as the policy lets it make in a time.
	RateLimited ErrorCode = "rate_limited"
	// ResultDenied: the tool has run, and the result decision withheld what it answered.
	ResultDenied ErrorCode = "result_denied"
	// OutcomeUnknown: the tool has a side effect, and nobody knows whether it happened.
	OutcomeUnknown ErrorCode = "outcome_unknown"
	// ToolChanged: the tool is declared, locked or trusted otherwise than when the call was made, so it was
	// not executed.
	ToolChanged ErrorCode = "tool_changed"
	// IdempotencyConflict: the key of the call was used for other arguments before.
	IdempotencyConflict ErrorCode = "idempotency_conflict"
	// IntentsUnavailable: the call could not be written down, so it was not executed.
	IntentsUnavailable ErrorCode = "intents_unavailable"
	// Overloaded: too many calls of the branch wait already.
	Overloaded ErrorCode = "overloaded"
	// ApprovalRefused: a person refused what had to be approved.
	ApprovalRefused ErrorCode = "approval_refused"
	// ApprovalExpired: nobody approved it in time.
	ApprovalExpired ErrorCode = "approval_expired"
	// Internal: a fault of catalogd itself.
	Internal ErrorCode = "internal"
)

// Error is why a call has no result.
type Error struct {
	Code ErrorCode
	// Msg is for the model: what went wrong and what to do, without secrets and without names that the branch
	// can't see.
	Msg string
	// Err is for the operator's log; it is never shown to a client. Nil where Msg says it all.
	Err error
	// Unsent says that nothing was run: nothing of the call has left this process (no program was started, no
	// byte was sent), or its receiver refused it unread by a rule of their protocol, such as an MCP session
	// that has ended. Without Unsent and Answered, an error of a running tool says nothing of whether the
	// tool did what it was asked.
	Unsent bool
	// Answered is OutcomeSucceeded or OutcomeFailed where the tool has answered and there is no result to
	// show of it, such as one that is too large; else empty.
	Answered Outcome
	// Decision is the code of the decision that refused (decision.ReasonCode), for Denied, ResultDenied and a
	// Timeout of a decision; else empty.
	Decision string
	// Violations are set for InvalidArguments.
	Violations []contract.Violation
	// Nearest holds names that were perhaps meant, for UnknownTool: visible ones only.
	Nearest []string
	// Needs are the capabilities that the caller would have to declare, each an object, for
	// CapabilityMissing.
	Needs Abilities
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: %s", e.Code, e.Msg)
	}
	return fmt.Sprintf("%s: %s: %v", e.Code, e.Msg, e.Err)
}

// Unwrap is the operator's error.
func (e *Error) Unwrap() error { return e.Err }

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

// maxShown is how many bytes of a name that nobody knows are repeated; a name that can be declared has at
// most 63.
const maxShown = 128

// Shown is a tool's name as it may stand in an answer or a log: what a client made up is cut, so that it
// can't fill either.
func Shown(name string) string {
	if len(name) <= maxShown {
		return name
	}
	return strings.ToValidUTF8(name[:maxShown], "") + "..."
}
