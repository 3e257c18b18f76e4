package registry

import (
	"context"
	"encoding/json"
	"slices"
)

// Listener receives the messages of a tool while it runs. Unless a field says otherwise, its functions are
// called in the order of the messages and never after the call has returned, and must not block, because many
// calls may share the connection. A nil function means that the caller does not want, or can't handle, such
// messages.
type Listener struct {
	// Progress receives the params of a progress notification without the token: an object of at least one
	// member.
	Progress func(params json.RawMessage)
	// Message receives the params of a log message of Level (MCP's names, "debug" to "emergency") or above.
	Message func(params json.RawMessage)
	Level   string
	// Ask sends a request of the tool's server to the caller and returns the reply. It blocks until then or
	// until ctx ends, and may be called concurrently.
	Ask func(ctx context.Context, q Question) Reply
	// Completed receives the params of notifications/elicitation/complete for a URL that the user was asked
	// to open. It may be called after the call has returned.
	Completed func(params json.RawMessage)
	// Retried is called on the goroutine of Invoke before a request is sent again.
	Retried func()
	// Branch is the name of the branch of the call; package invoke sets it. A server with Server.Isolate is
	// called on the connection of that branch. Call is the id of the call, or of its intent, and Principal the
	// name of the caller; package invoke sets both.
	Branch, Call, Principal string
	// Client is a comparable value that is the same for all calls of a session in the protocol revisions in
	// which log messages belong to the session; nil in those in which they belong to a call.
	Client any
	// Able are the client capabilities that the caller has declared.
	Able Abilities
	// Rounds says that the caller accepts a Result with Input. Round has the answers to it; nil in the first
	// round.
	Rounds bool
	Round  *Round
	// Relay are the kinds of messages that the call decision relays to the caller, and Hosts the hosts of
	// URLs that a question may ask the user to open. Package invoke sets both.
	Relay, Hosts []string
}

// Question is a request of an upstream server to the client, and Reply the reply: exactly one of its fields
// is set. Params, Result and Error (a JSON-RPC error object) are unchanged.
type (
	Question struct {
		Method string
		Params json.RawMessage
		// Approval says that it is catalogd's own question, whether the caller approves its call.
		Approval bool
	}
	Reply struct{ Result, Error json.RawMessage }
)

// Kind returns the kind that the call decision's relay must have for the question to be relayed; it is empty
// for a question that is never relayed.
func (q Question) Kind() string {
	switch q.Method {
	case "elicitation/create":
		return "elicitation"
	case "sampling/createMessage":
		return "sampling"
	case "roots/list":
		return "roots"
	}
	return ""
}

// Within returns the listener limited to what the call decision relays.
func (l Listener) Within(relay, hosts []string) Listener {
	l.Relay, l.Hosts = relay, hosts
	if !slices.Contains(relay, "logging") {
		l.Message, l.Level = nil, ""
	}
	return l
}

// Permits reports whether the call decision lets a question be relayed to the caller. A question that asks
// the user to open a URL also needs an https URL at one of Hosts. catalogd never opens it itself.
func (l Listener) Permits(q Question) bool {
	kind := q.Kind()
	if kind == "" || !slices.Contains(l.Relay, kind) {
		return false
	}
	address, err := q.Address()
	return err == nil && (address == "" || opens(address, l.Hosts))
}

// Takes reports whether a question may be asked of the caller while the tool runs.
func (l Listener) Takes(q Question) bool { return l.Ask != nil && l.Permits(q) }
