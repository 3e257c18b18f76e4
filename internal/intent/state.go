package intent

import "slices"

// State is where an intent stands.
type State string

const (
	// Staged: written down; nothing has been decided about its release.
	Staged State = "staged"
	// AwaitingApproval: a person has to approve it first.
	AwaitingApproval State = "awaiting_approval"
	// Released: it may be executed, and waits for its turn.
	Released State = "released"
	// Attempted: its effect may have begun.
	Attempted State = "attempted"
	// AwaitingInput: the tool has asked its caller for input, and waits for it.
	AwaitingInput State = "awaiting_input"

	// Succeeded: the tool answered that it did what it was asked.
	Succeeded State = "succeeded"
	// Failed: the tool answered that it did not, or nothing was ever sent to it.
	Failed State = "failed"
	// Unknown: nobody knows whether the tool did what it was asked. A person ends that (Resolve), or retries.
	Unknown State = "unknown"
	// Refused: the policy, or a change of the tool, forbids it. Nothing was run.
	Refused State = "refused"
	// Cancelled: its caller, an operator or the end of its process withdrew it. Nothing was run.
	Cancelled State = "cancelled"
	// Expired: nobody approved it in time. Nothing was run.
	Expired State = "expired"
)

// next are the states that may follow each. What is not named here can't happen: Store refuses it.
var next = map[State][]State{
	"":               {Staged, AwaitingApproval},
	Staged:           {AwaitingApproval, Released, Attempted, Refused, Cancelled},
	AwaitingApproval: {Released, Refused, Cancelled, Expired},
	// Unknown and Failed: an attempt was made, and before the next one the process ended or the policy
	// changed its mind.
	Released: {Attempted, Refused, Cancelled, Expired, Unknown, Failed},
	// Released again: nothing was sent, or the tool may be repeated. Refused or Cancelled would say that
	// nothing was run.
	Attempted:     {AwaitingInput, Succeeded, Failed, Unknown, Released},
	AwaitingInput: {Attempted, Unknown},
	// A person alone goes on from these.
	Failed:  {Released},
	Unknown: {Released, Succeeded, Failed},
}

// States are all states, in the order of an intent's life.
func States() []State {
	return []State{Staged, AwaitingApproval, Released, Attempted, AwaitingInput, Succeeded, Failed, Unknown, Refused, Cancelled, Expired}
}

// MayBecome reports whether a state may follow s.
func (s State) MayBecome(to State) bool { return slices.Contains(next[s], to) }

// Ended reports whether nothing more happens by itself.
func (s State) Ended() bool {
	switch s {
	case Succeeded, Failed, Unknown, Refused, Cancelled, Expired:
		return true
	}
	return false
}

// Begun reports whether the effect may have begun while the intent has not ended.
func (s State) Begun() bool { return s == Attempted || s == AwaitingInput }
