package intent

import "slices"

// State is a state of an intent.
type State string

const (
	// Staged means that the intent is recorded; the release decision is still to come.
	Staged State = "staged"
	// AwaitingApproval means that a person has to approve it first.
	AwaitingApproval State = "awaiting_approval"
	// Released means that it is approved, retried or repeatable, and waits for its turn. The release decision is
	// made before each attempt.
	Released State = "released"
	// Attempted means that the effect may have begun.
	Attempted State = "attempted"
	// AwaitingInput means that the tool has asked the caller for input and waits for it.
	AwaitingInput State = "awaiting_input"

	// Succeeded means that the tool reported success. This and the following states end an intent.
	Succeeded State = "succeeded"
	// Failed means that the tool reported failure, or that no request was ever sent to it.
	Failed State = "failed"
	// Unknown means that the effect may or may not have happened. A person resolves or retries the intent.
	Unknown State = "unknown"
	// Refused means that the policy, or a change of the tool, forbids it. Nothing was run.
	Refused State = "refused"
	// Cancelled means that the caller or an operator cancelled it, or that its process ended. Nothing was
	// run.
	Cancelled State = "cancelled"
	// Expired means that the approval was not given in time. Nothing was run.
	Expired State = "expired"
)

// next has the states that may follow each state; Store refuses all other transitions.
var next = map[State][]State{
	"":               {Staged, AwaitingApproval},
	Staged:           {AwaitingApproval, Released, Attempted, Refused, Cancelled},
	AwaitingApproval: {Released, Refused, Cancelled, Expired},
	// Unknown and Failed follow Released if an attempt was made, and the process ended or the policy refused
	// before the next one.
	Released: {Attempted, Refused, Cancelled, Expired, Unknown, Failed},
	// Released follows Attempted if nothing was sent or the tool is repeatable. Refused and Cancelled don't
	// follow, because they mean that nothing was run.
	Attempted:     {AwaitingInput, Succeeded, Failed, Unknown, Released},
	AwaitingInput: {Attempted, Unknown},
	// Only a person makes these transitions.
	Failed:  {Released},
	Unknown: {Released, Succeeded, Failed},
}

// States returns all states, in the order of an intent's life.
func States() []State {
	return []State{Staged, AwaitingApproval, Released, Attempted, AwaitingInput, Succeeded, Failed, Unknown, Refused, Cancelled, Expired}
}

// MayBecome reports whether a state may follow s.
func (s State) MayBecome(to State) bool { return slices.Contains(next[s], to) }

// Ended reports whether the state is final unless a person retries or resolves the intent.
func (s State) Ended() bool {
	switch s {
	case Succeeded, Failed, Unknown, Refused, Cancelled, Expired:
		return true
	}
	return false
}

// Begun reports whether the effect may have begun while the intent has not ended.
func (s State) Begun() bool { return s == Attempted || s == AwaitingInput }
