package decision

import (
	"strings"
	"time"

	"github.com/catalogd/catalogd/problem"
)

// Attempted is the point of events about attempts, which catalogd refused itself. It is no decision point: no
// policy was asked.
const Attempted Point = "attempt"

// AttemptCode says why an attempt was refused that never became a call. The list is closed. Attempts that did
// have the call's own code (registry.ErrorCode): unknown_tool, invalid_arguments, rate_limited,
// effector_required.
type AttemptCode string

const (
	// TokenMissing: the request shows no token, and one is needed.
	TokenMissing AttemptCode = "token_missing"
	// TokenInvalid: the token is mistyped, expired, revoked, or was never made here.
	TokenInvalid AttemptCode = "token_invalid"
	// AdminRequired: the token is good, and is not an admin's.
	AdminRequired AttemptCode = "admin_required"
	// ForeignOrigin: Host or Origin is not this server's, as where a web page causes a request.
	ForeignOrigin AttemptCode = "foreign_origin"
	// UnknownBranch: there is no branch of that name, or none that the token opens.
	UnknownBranch AttemptCode = "unknown_branch"
	// UnknownSession: the session was never begun by this caller, or has ended.
	UnknownSession AttemptCode = "unknown_session"
	// InvalidMessage: the message names a tool, prompt or resource, and breaks a rule of the protocol.
	InvalidMessage AttemptCode = "invalid_message"
	// UnknownItem: the branch has no prompt or resource of that name that it may see.
	UnknownItem AttemptCode = "unknown_item"
	// TooManyCalls: too many calls run at once.
	TooManyCalls AttemptCode = "too_many_calls"
)

// Attempt is what was asked for. It never holds arguments or a token.
type Attempt struct {
	// Branch, Method and Name are as they were asked for, but for what NewAttempt does to them; empty where
	// none was read. Name is a tool's or prompt's name, or a resource's URI.
	Branch string `json:"branch"`
	Method string `json:"method"`
	Name   string `json:"name"`
	// Hidden: the catalog has a tool of that name, which this caller does not see through the branch.
	Hidden bool `json:"hidden"`
	// Principal is absent where nobody knows who it was.
	Principal *Principal `json:"principal,omitempty"`
}

// longestName is how many bytes of a name that a client made up are kept; a name that can be declared has at
// most 63.
const longestName = 128

// NewAttempt is the event of an attempt that ended now; code is an AttemptCode or a registry.ErrorCode. Names
// are cut to 128 bytes, and characters that nobody sees are escaped.
func NewAttempt(id, code string, a Attempt) Event {
	for _, name := range []*string{&a.Branch, &a.Method, &a.Name} {
		if len(*name) > longestName {
			*name = strings.ToValidUTF8((*name)[:longestName], "") + "..."
		}
		*name = problem.Printable(*name)
	}
	e := Event{
		ID: id, Time: time.Now(), Point: Attempted, Input: a,
		Decision: Decision{Point: Attempted, Code: ReasonCode(code)},
	}
	if a.Principal != nil {
		e.Principal = a.Principal.Name
	}
	return e
}
