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
	// InvalidArguments: the arguments don't meet the tool's contract; Violations says how.
	InvalidArguments ErrorCode = "invalid_arguments"
	// Denied: the call decision refused.
	Denied ErrorCode = "denied"
	// EffectorRequired: the tool has a side effect, and nothing may run it but the effector.
	EffectorRequired ErrorCode = "effector_required"
	// BindingFailed: the binding could not run.
	BindingFailed ErrorCode = "binding_failed"
	// Unavailable: what the tool needs (an upstream server) can't be reached now.
	Unavailable ErrorCode = "unavailable"
	// Unauthorized: the server that the tool needs asks for credentials that it has not got, or refuses those it got.
	Unauthorized ErrorCode = "unauthorized"
	// Timeout: the tool's or the decision's time was up.
	Timeout ErrorCode = "timeout"
	// Cancelled: the caller gave up.
	Cancelled ErrorCode = "cancelled"
	// ResultInvalid: the tool answered, but not what its declared result allows.
	ResultInvalid ErrorCode = "result_invalid"
	// OutputTooLarge: the tool answered more than its cap.
	OutputTooLarge ErrorCode = "output_too_large"
	// CapabilityMissing: the tool needs an answer of a kind that the caller hasn't declared it gives; Needs names them.
	CapabilityMissing ErrorCode = "client_capability_missing"
	// RateLimited: the caller has made as many calls as the policy lets it make in a time.
	RateLimited ErrorCode = "rate_limited"
	// ResultDenied: the tool has run, and the result decision withheld what it answered.
	ResultDenied ErrorCode = "result_denied"
	// Internal: a fault of catalogd itself.
	Internal ErrorCode = "internal"
)

// Error is why a call has no result.
type Error struct {
	Code ErrorCode
	// Msg is for the model: what went wrong and what to do, without secrets and without names that the branch can't see.
	Msg string
	// Err is for the operator's log; it is never shown to a client. Nil where Msg says it all.
	Err error
	// Decision is the code of the decision that refused (decision.ReasonCode), for Denied and ResultDenied; else empty.
	Decision string
	// Violations are set for InvalidArguments.
	Violations []contract.Violation
	// Nearest holds names that were perhaps meant, for UnknownTool: visible ones only.
	Nearest []string
	// Needs are the capabilities that the caller would have to declare, each an object, for CapabilityMissing.
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

// unknownTool words the answer for a name that a view doesn't have.
func unknownTool(name string, nearest []string) *Error {
	msg := fmt.Sprintf("unknown tool %q", Shown(name))
	if len(nearest) > 0 {
		quoted := make([]string, len(nearest))
		for i, n := range nearest {
			quoted[i] = fmt.Sprintf("%q", n)
		}
		msg += "; did you mean " + strings.Join(quoted, " or ") + "?"
	}
	return &Error{Code: UnknownTool, Msg: msg, Nearest: nearest}
}

// maxShown is how many bytes of a name that nobody knows are repeated; a name that can be declared has at most 63.
const maxShown = 128

// Shown is a tool's name as it may stand in an answer or a log: what a client made up is cut, so that it can't fill either.
func Shown(name string) string {
	if len(name) <= maxShown {
		return name
	}
	return strings.ToValidUTF8(name[:maxShown], "") + "..."
}
