package registry

import (
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/catalogd/catalogd/contract"
)

// Status is the state of a call.
type Status string

const (
	// Running: begun, without an end.
	Running Status = "running"
	// Waiting: the tool asks its caller for input; the caller may call again.
	Waiting Status = "waiting"
	// Accepted: the call is written down, and its effect has not ended: the result is a handle.
	Accepted Status = "accepted"
	// Succeeded: a result that is no error.
	Succeeded Status = "succeeded"
	// Failed: a result that is an error, or none.
	Failed Status = "failed"
	// Rejected: nothing was run: unknown, invalid or denied.
	Rejected Status = "rejected"
)

// Call is the event of one call: what was asked, what was decided, what came of it. It is complete when
// Status is not Running and is not changed afterwards.
type Call struct {
	ID         string
	Branch     string
	Tool       string
	Principal  string
	Generation string
	// Arguments are the checked arguments; zero where the call was rejected before.
	Arguments contract.Args
	Status    Status
	Start     time.Time
	Duration  time.Duration
	// Intent is the id of the intent that the call staged, or found; empty where it is about none.
	Intent string
	// Decision is what the call decision answered: "allowed", or the code of its denial; empty where it
	// wasn't asked.
	Decision string
	// Reasons are the decision's reasons for a denial.
	Reasons []string
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

// End completes the call.
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
	default:
		c.Status = Failed
	}
}
