package registry

import (
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/catalogd/catalogd/contract"
)

// Status is the status of a call.
type Status string

const (
	// Running means that the call has not ended.
	Running Status = "running"
	// Waiting means that the tool has asked its caller for input; the caller may call again with the answers.
	Waiting Status = "waiting"
	// Accepted means that the call is recorded as an intent and its effect has not ended; the result is a
	// handle.
	Accepted Status = "accepted"
	// Succeeded means that there is a result without IsError.
	Succeeded Status = "succeeded"
	// Failed means that there is a result with IsError, or an error after the tool may have run.
	Failed Status = "failed"
	// Rejected means that the call was refused before anything ran, for example as unknown, invalid or
	// denied.
	Rejected Status = "rejected"
)

// Statuses returns all of them.
func Statuses() []Status {
	return []Status{Running, Waiting, Accepted, Succeeded, Failed, Rejected}
}

// Call is the record of one call: the request, the decision and the outcome. It is complete, and does not
// change any more, once Status is not Running.
type Call struct {
	ID string
	// Branch is the declared branch, and Session the conversation branch below it; empty if there is none.
	Branch    string
	Session   string
	Tool      string
	Principal string
	// Declared is the tool's name in the catalog, where Tool is the name by which the branch shows it; empty
	// if the branch has no such tool.
	Declared   string
	Generation string
	// Arguments are the checked arguments; zero if the call was rejected before the check.
	Arguments contract.Args
	Status    Status
	Start     time.Time
	Duration  time.Duration
	// Intent is the id of the intent that the call staged or found; empty if there is none.
	Intent string
	// Decision is the outcome of the call decision: "allowed", or the code of the denial; empty if it was not
	// asked for.
	Decision string
	// Reasons are the decision's reasons for a denial.
	Reasons []string
	// Retries is how often a request of the call was sent again.
	Retries int
	// Exactly one of Result and Err is set once the call has ended.
	Result *Result
	Err    *Error
}

// NewCallID returns 16 random bytes in hex.
func NewCallID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand, Go 1.24)
	var id [32]byte
	hex.Encode(id[:], b[:])
	return string(id[:])
}

// End completes the call with a result or an error; the other one is nil.
func (c *Call) End(result *Result, err *Error) {
	c.Duration = time.Since(c.Start)
	c.Result, c.Err = result, err
	switch {
	case err == nil && result.Input != nil:
		c.Status = Waiting
	case err == nil && result.Handle:
		c.Status = Accepted
	case err == nil && result.IsError:
		c.Status = Failed
	case err == nil:
		c.Status = Succeeded
	case err.Code == UnknownTool, err.Code == InvalidArguments, err.Code == Denied, err.Code == RateLimited, err.Code == EffectorRequired,
		err.Code == ToolChanged, err.Code == IdempotencyConflict, err.Code == IntentsUnavailable, err.Code == Overloaded,
		err.Code == ApprovalRefused, err.Code == ApprovalExpired:
		c.Status = Rejected
	case err.Code == ProcessorFailed && err.Unsent:
		c.Status = Rejected
	default:
		c.Status = Failed
	}
}
