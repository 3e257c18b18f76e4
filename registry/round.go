package registry

import "encoding/json"

// Input is the input that a tool needs from its caller before it can answer (multi round-trip requests of MCP
// 2026-07-28). The caller calls again with the same arguments, its answers and the state.
type Input struct {
	// Requests is an unchanged JSON object of the tool's requests by names that the server chooses; nil if
	// the server only wants to be called again.
	Requests json.RawMessage
	// Kinds are the kinds of the requests (Question.Kind), sorted and without duplicates.
	Kinds []string
	// State is the unchanged JSON string that the server wants back with the answers; nil if there is none.
	State json.RawMessage
	// Origin identifies the connection that asked. State and answers are not sent to a server whose
	// declaration has changed since.
	Origin string
	// Attempt is which attempt of an intent asked, from 1 on; 0 for a tool without a side effect. The answers
	// begin the attempt after it and no other, so they are sent once.
	Attempt int
}

// OwnApproval is the kind of catalogd's own question (Question.Approval), which policies don't relay.
const OwnApproval = "approval"

// Round is a further round of a call. The zero Round answers nothing.
type Round struct {
	// Responses is the unchanged JSON object of the caller's answers by the names of the requests; nil if
	// there are none.
	Responses json.RawMessage
	// Kinds, State and Origin are those of the answered Input. Origin is empty if the caller was not asked
	// before and sends answers to questions that it expects.
	Kinds  []string
	State  json.RawMessage
	Origin string
}

// Abilities are the client capabilities that a caller has declared, as unchanged JSON objects by
// Question.Kind.
type Abilities map[string]json.RawMessage

// Capabilities reads the Abilities from an MCP object of client capabilities.
func Capabilities(declared json.RawMessage) Abilities {
	var all map[string]json.RawMessage
	if json.Unmarshal(declared, &all) != nil {
		return nil // not an object; the reader of the whole message refuses it
	}
	var able Abilities
	for _, kind := range []string{"elicitation", "sampling", "roots"} {
		if c := all[kind]; len(c) > 0 && c[0] == '{' {
			if able == nil {
				able = Abilities{}
			}
			able[kind] = c
		}
	}
	return able
}

// Answers reports whether the caller has declared the capability that a question needs. An elicitation
// capability without a mode means forms.
func (a Abilities) Answers(q Question) bool {
	declared, ok := a[q.Kind()]
	if !ok || q.Kind() != "elicitation" {
		return ok
	}
	var modes map[string]json.RawMessage
	if json.Unmarshal(declared, &modes) != nil {
		return false
	}
	address, err := q.Address()
	if address != "" || err != nil {
		return modes["url"] != nil
	}
	return modes["form"] != nil || modes["url"] == nil
}
