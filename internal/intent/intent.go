// Package intent records and executes calls of tools with side effects, so that after a crash the record says
// for each side effect whether it may have happened, and none is repeated automatically unless its tool is
// declared repeatable.
//
// An Intent is the durable record of one such call. The Store (SQLite) keeps intents and is shared by all
// catalogd processes that open its folder. The Effector executes intents: it stages the intent before
// anything runs, waits for a turn, commits the state Attempted, runs the tool once with an attempt.Attempt
// (which only this package can make), commits the outcome, and only then answers the caller. Each process
// that opens the store is an owner of the intents it executes; Recover ends the intents of owners that no
// longer run: a begun one becomes Unknown, one that has not begun Cancelled.
//
// state.go has the states and their transitions, people.go the approvals, recover.go what follows a crash;
// docs/effects.md has the guarantees to users.
package intent

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/catalogd/catalogd/registry"
)

// Intent is the durable record of one requested side effect. A value is a copy of the record; changing it
// does not change the store.
type Intent struct {
	// ID is the id of the call that staged the intent: 32 hexadecimal digits.
	ID string `json:"id"`
	// Seq increases in the order in which intents were staged, independent of the clock.
	Seq int64 `json:"seq"`

	// Branch is the declared branch, on whose account the intent counts, and Session the conversation branch
	// below it that the call came through; empty if there is none.
	Branch  string `json:"branch"`
	Session string `json:"session,omitempty"`
	// Tool is the tool's name in the catalog.
	Tool string `json:"tool"`
	// Principal is the name of the caller.
	Principal string `json:"principal"`
	// Credential is the hash of the token of the call; empty for the local operator.
	Credential string `json:"-"`
	// Arguments are the arguments as the contract accepted them, and Digest is their digest. Calls of a tool
	// with secret arguments are never staged.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Digest    string          `json:"digest"`
	// Fingerprint is a digest of the tool's declaration, its locked definition and the trust through which it is
	// reached, as of staging. The intent is not executed if the tool's fingerprint has changed.
	Fingerprint string `json:"-"`
	// Policy is the digest of the policy that decided on the call, and Generation the id of the generation.
	Policy     string `json:"-"`
	Generation string `json:"generation"`
	// Key is the idempotency key, from the caller or the declaration; empty if there is none.
	Key string `json:"key,omitempty"`
	// Repeatable says that the tool is declared idempotent: another attempt has no further effect.
	Repeatable bool `json:"repeatable"`

	// State is the state that it is in.
	State State `json:"state"`
	// Owner is the name of the process that executes it; empty if any process may claim it.
	Owner string `json:"owner,omitempty"`
	// Attempts is the number of attempts that were begun.
	Attempts int `json:"attempts"`
	// Approval is the approval that the policy requires; nil if it requires none.
	Approval *Approval `json:"approval,omitempty"`
	// Handed says that the caller was given a handle in place of a result.
	Handed bool `json:"handed,omitempty"`

	// Staged and Ended are the times of the first state and of the last; Ended is zero until then.
	Staged time.Time `json:"staged"`
	Ended  time.Time `json:"ended,omitzero"`
	// Expires is the deadline for the approval; zero if there is none.
	Expires time.Time `json:"expires,omitzero"`

	// Outcome is zero until the intent has ended.
	Outcome
	// History has the states in order, the first one first.
	History []Step `json:"history"`
}

// Address returns the name of the branch that the call came through: the conversation branch, or else the declared
// one.
func (in Intent) Address() string { return cmp.Or(in.Session, in.Branch) }

// Outcome is the outcome of an intent as its caller may see it.
type Outcome struct {
	// Result is the tool's result after the result decision. It is nil if the tool returned none, if it was
	// withheld, or if it was larger than the store keeps.
	Result *registry.Result `json:"result,omitempty"`
	// ResultBytes is the size in bytes of a result that was too large, and ResultDigest its digest ("sha256:...").
	ResultBytes  int64  `json:"resultBytes,omitempty"`
	ResultDigest string `json:"resultDigest,omitempty"`
	// Code and Message are those of the call's error if there is no result.
	Code    registry.ErrorCode `json:"code,omitempty"`
	Message string             `json:"message,omitempty"`
}

// Step is one state of an intent's history.
type Step struct {
	// State is the state that was entered.
	State State `json:"state"`
	// At is when.
	At time.Time `json:"at"`
	// By is the name of the person who approved, refused, cancelled, retried or resolved the intent; empty if
	// the step was not a person's.
	By string `json:"by,omitempty"`
	// Why is the reason in one line; may be empty.
	Why string `json:"why,omitempty"`
}

// Approval is an approval that the policy requires before an intent is released (require_approval of the call
// decision).
type Approval struct {
	// Groups are the groups whose members may approve; one approval is enough.
	Groups []string `json:"groups"`
	// Reason is the policy's text for the approvers.
	Reason string `json:"reason,omitempty"`
	// Self says that the caller may approve too.
	Self bool `json:"self,omitempty"`
	// By is the name of the approver, ByGroups the approver's groups, At the time; empty until approved.
	By       string    `json:"by,omitempty"`
	ByGroups []string  `json:"byGroups,omitempty"`
	At       time.Time `json:"at,omitzero"`
}
