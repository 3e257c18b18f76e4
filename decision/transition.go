package decision

import "time"

// Transitioned is the point of events about intents, each of which has come into a state. It is no decision
// point: no policy was asked.
const Transitioned Point = "intent"

// Transition is an intent that has come into a state.
type Transition struct {
	Branch string `json:"branch"`
	Tool   string `json:"tool"`
	// Principal is the name of its caller.
	Principal string `json:"principal"`
	// Intent is its id, State the one that it is in, Attempt how often its effect was begun.
	Intent  string `json:"intent"`
	State   string `json:"state"`
	Attempt int    `json:"attempt"`
	// By is the person who brought it about, and Why what there is to say of it; both may be empty.
	By  string `json:"by"`
	Why string `json:"why"`
}

// NewTransition is the event of an intent that has come into a state. arguments is the digest of its own.
func NewTransition(id string, at time.Time, arguments string, t Transition) Event {
	return Event{
		ID: id, Call: t.Intent, Time: at, Point: Transitioned, Input: t, Arguments: arguments, Principal: t.Principal,
		Decision: Decision{Point: Transitioned, Code: ReasonCode(t.State)},
	}
}
