package registry

import (
	"context"
	"encoding/json"
	"slices"
)

// Listener hears what a tool says while it runs. Its functions are called in the order in which the tool
// spoke and never after the call has returned. They must not block: many calls can share the connection that
// they are called from.
type Listener struct {
	// Progress takes the params of a progress notification without their token, an object of at least one
	// member. Nil where the caller asked for no progress.
	Progress func(params json.RawMessage)
	// Message takes the params of a log message of Level (MCP's names, "debug" to "emergency") or above. Nil
	// where the caller asked for none.
	Message func(params json.RawMessage)
	Level   string
	// Ask takes a request of the tool's server to the caller and returns what answers it. Unlike the others
	// it waits, until ctx ends at the latest, and can be called by several goroutines. Nil where nothing can
	// be asked of the caller.
	Ask func(ctx context.Context, q Question) Reply
	// Completed takes the params of notifications/elicitation/complete, for a page that the caller was asked
	// to open. Unlike the others it may be called after the call has returned. Nil where nobody hears it.
	Completed func(params json.RawMessage)
	// Branch is the branch whose call it is; the path of the call sets it. A server that keeps branches apart
	// (Server.Isolate) is called on that branch's connection.
	Branch string
	// Client is the same comparable value for all calls of one session of a client of the older revisions, to
	// which log messages are the session's; nil where each is one call's.
	Client any
	// Able is what the caller has declared that it answers.
	Able Abilities
	// Rounds says that the caller takes a Result with Input, and Round is what it calls again with; nil in a
	// first round.
	Rounds bool
	Round  *Round
	// Relay is what the call decision lets through to the caller, and Hosts are those whose pages a question
	// may ask the person to open; the path of the call sets both.
	Relay, Hosts []string
}

// Question is a request of an upstream server to the client, Reply what answers it: exactly one of its fields
// is set. Params, Result and Error (a JSON-RPC error object) are as they came.
type (
	Question struct {
		Method string
		Params json.RawMessage
		// Approval: it is catalogd's own, whether the caller approves its call.
		Approval bool
	}
	Reply struct{ Result, Error json.RawMessage }
)

// Kind is what a question must be allowed as in the output relay of the call decision; empty for one that is
// never relayed.
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

// Within is the listener as far as the call decision allows it.
func (l Listener) Within(relay, hosts []string) Listener {
	l.Relay, l.Hosts = relay, hosts
	if !slices.Contains(relay, "logging") {
		l.Message, l.Level = nil, ""
	}
	return l
}

// Permits reports whether the call decision lets a question through to the caller. One that asks the person
// to open a page names an https address at a host of Hosts; nothing of ours ever opens it.
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
