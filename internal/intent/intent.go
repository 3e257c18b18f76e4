// Package intent keeps side effects honest. A call of a tool with a side effect is written down as an Intent before
// anything is run (Store); the Effector alone executes it, with an attempt.Attempt that nobody else can make, and writes
// down what came of it before it answers. So after a crash it is known of every side effect whether it was begun, and
// one that may have happened is never repeated by itself.
//
// The states of an intent and what may follow what are in state.go; docs/effects.md has the guarantees.
package intent

import (
	"encoding/json"
	"time"

	"github.com/catalogd/catalogd/registry"
)

// Intent is the durable record of one requested side effect. It is a copy: changing it changes nothing.
type Intent struct {
	// ID is the intent's, 32 hexadecimal digits: that of the call which staged it.
	ID string `json:"id"`
	// Seq orders intents by when they were staged, whatever the clock said.
	Seq int64 `json:"seq"`

	Branch    string `json:"branch"`
	Tool      string `json:"tool"`
	Principal string `json:"principal"`
	// Credential names the token that the principal has shown, by its hash; empty for the local operator.
	Credential string `json:"-"`
	// Arguments are those that passed the contract, and Digest names them. A tool with secret arguments stages nothing.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Digest    string          `json:"digest"`
	// Print names the tool's declaration, what is locked of it, and through which trust it is reached, as they were when the
	// intent was staged. A tool whose print is another is not executed.
	Print string `json:"-"`
	// Policy names the policy that decided on the call, and Generation the generation.
	Policy     string `json:"-"`
	Generation string `json:"generation"`
	// Key is the caller's or the declaration's idempotency key; empty where there is none.
	Key string `json:"key,omitempty"`
	// Repeatable: the declaration says that repeating the call does no more than making it once.
	Repeatable bool `json:"repeatable"`

	State State `json:"state"`
	// Owner names the process that executes it; empty where whoever comes first does.
	Owner string `json:"owner,omitempty"`
	// Attempts counts how often its effect was begun.
	Attempts int `json:"attempts"`
	// Approval is what has to be, or was, approved; nil where the policy asked for none.
	Approval *Approval `json:"approval,omitempty"`
	// Handed: the caller was given a handle in place of a result.
	Handed bool `json:"handed,omitempty"`

	// Staged and Ended are when; Ended is zero before its end.
	Staged time.Time `json:"staged"`
	Ended  time.Time `json:"ended,omitzero"`
	// Expires is when an approval that nobody gave is too late; zero without one.
	Expires time.Time `json:"expires,omitzero"`

	// Outcome is what came of it; its zero value before the end.
	Outcome
	// History are its states, the first first.
	History []Step `json:"history"`
}

// Outcome is what came of an intent, as its caller may see it.
type Outcome struct {
	// Result is what the result decision let out of what the tool answered. It is nil where there was none, where it was
	// withheld, and where it was too large to be kept: ResultBytes and ResultDigest then say what it was.
	Result       *registry.Result `json:"result,omitempty"`
	ResultBytes  int64            `json:"resultBytes,omitempty"`
	ResultDigest string           `json:"resultDigest,omitempty"`
	// Code and Message say why there is no result, as a call's error would.
	Code    registry.ErrorCode `json:"code,omitempty"`
	Message string             `json:"message,omitempty"`
}

// Step is one state of an intent's history.
type Step struct {
	State State     `json:"state"`
	At    time.Time `json:"at"`
	// By is who brought it about, where a person did: an approval, a refusal, a cancellation, a retry, a resolution.
	By string `json:"by,omitempty"`
	// Why says so in one line, where there is something to say.
	Why string `json:"why,omitempty"`
}

// Approval is what the policy asks for before an intent may be released (the call decision's require_approval).
type Approval struct {
	// Groups are those whose members may approve; any one of them is enough.
	Groups []string `json:"groups"`
	// Reason is what the policy tells whoever is to approve.
	Reason string `json:"reason,omitempty"`
	// Self: the caller may approve as well.
	Self bool `json:"self,omitempty"`
	// By is who approved, ByGroups the approver's groups, and At when; empty before.
	By       string    `json:"by,omitempty"`
	ByGroups []string  `json:"byGroups,omitempty"`
	At       time.Time `json:"at,omitzero"`
}
