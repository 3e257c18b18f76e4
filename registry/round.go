package registry

import "encoding/json"

// Input is what a tool wants to know from its caller before it goes on (MCP 2026-07-28, multi round-trip
// requests): the caller calls again with the same arguments, the answers and the state.
type Input struct {
	// Requests are the tool's requests under names of its own, an object as it came; nil where it only wants
	// to be called again.
	Requests json.RawMessage
	// Kinds are those of the requests (Question.Kind), sorted, each once.
	Kinds []string
	// State is what the tool's server wants back with the answers, a string as it came; nil where it gave
	// none.
	State json.RawMessage
	// Origin names the very connection that asked. A server that was declared otherwise meanwhile gets
	// neither the state nor the answers.
	Origin string
}

// OwnApproval is the kind of a question of catalogd's own (Question.Approval), which no policy relays.
const OwnApproval = "approval"

// Round is what a caller calls again with. The zero Round has answers to nothing.
type Round struct {
	// Responses are the caller's answers by the names of the requests, an object as it came; nil for none.
	Responses json.RawMessage
	// Kinds, State and Origin are those of the Input that is answered. Origin is empty where the caller was
	// not asked before: then the answers are what it expects to be asked.
	Kinds  []string
	State  json.RawMessage
	Origin string
}

// Abilities are the capabilities that a caller has declared, by the kind of question that they are for, each
// an object as it came.
type Abilities map[string]json.RawMessage

// Capabilities are the abilities that an object of client capabilities declares.
func Capabilities(declared json.RawMessage) Abilities {
	var all map[string]json.RawMessage
	if json.Unmarshal(declared, &all) != nil {
		return nil // no object, which whoever reads the whole message refuses
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

// Answers reports whether the caller has declared that it answers such a question. An elicitation capability
// that names no mode is for forms.
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
