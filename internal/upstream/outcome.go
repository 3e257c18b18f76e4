package upstream

import (
	"errors"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/httpstatus"
	"github.com/catalogd/catalogd/registry"
)

// The known outcomes of a call without a result. docs/bindings.md has the table.

// Codes of JSON-RPC errors by which SDKs report that they stopped waiting for an answer, or lost the
// connection to their peer. Under a status of 400 and above, both are also used for an unknown session.
const (
	connectionClosed = -32000
	requestTimeout   = -32001
)

// unsent reports whether a request with this error never left this process. For a call with a side effect
// that must be proven; for any other it is enough that its header was not written.
func (s *session) unsent(x *exchange, err error) bool {
	var queued notSent
	var proven *egress.UnsentError
	if errors.As(err, &queued) || errors.As(err, &proven) {
		return true
	}
	return s.child == nil && !x.once && !x.sent.Load()
}

// knownOfStatus returns the outcome implied by a status without a JSON-RPC message.
func (s *session) knownOfStatus(status int) registry.Outcome {
	if s.forgets(status) && s.web.sessionID() != "" {
		return registry.OutcomeUnsent // a server may end a session, and must answer so then (2025-11-25, Session Management)
	}
	switch known := httpstatus.Of(status); {
	case status == http.StatusInternalServerError, status == http.StatusServiceUnavailable:
		return registry.OutcomeUnclear // a failing tool is reported in a JSON-RPC message
	case known == registry.OutcomeFailed:
		return known
	}
	return registry.OutcomeUnclear // a 2xx without the message is half an answer
}

// knownOfError returns the outcome implied by a JSON-RPC error with an HTTP status, 0 for none.
func (s *session) knownOfError(e *rpcError, id string, status int) registry.Outcome {
	refusedByStatus := status >= 300 && s.knownOfStatus(status) == registry.OutcomeFailed
	switch {
	case status >= 300 && !refusedByStatus:
		return registry.OutcomeUnclear
	case mcp.IsModernProtocol(s.version) && (e.Code == mcp.HEADER_MISMATCH || e.Code == mcp.UNSUPPORTED_PROTOCOL_VERSION):
		return registry.OutcomeUnsent // it is rejected by its header, before the body is read
	case refusedByStatus:
		return registry.OutcomeFailed
	case e.Code == connectionClosed, e.Code == requestTimeout:
		return registry.OutcomeUnclear
	case id == "" && e.Code != mcp.PARSE_ERROR && e.Code != mcp.INVALID_REQUEST:
		return registry.OutcomeUnclear // it doesn't say that it is about this request
	}
	return registry.OutcomeFailed
}

// words describes a known outcome in an error message.
func words(known registry.Outcome) string {
	switch known {
	case registry.OutcomeUnsent, registry.OutcomeFailed:
		return nothingRun
	}
	return outcomeUnknown
}

// mark adds the known outcome to the error of a call.
func mark(e *registry.Error, known registry.Outcome) *registry.Error {
	e.Unsent = known == registry.OutcomeUnsent
	if known == registry.OutcomeSucceeded || known == registry.OutcomeFailed {
		e.Answered = known
	}
	return e
}

// unsentError marks err as that of a call that was not sent. The calls that wait for a connection share its
// error, so it is copied.
func unsentError(err error) error {
	var e *registry.Error
	if !errors.As(err, &e) {
		return err
	}
	c := *e
	return mark(&c, registry.OutcomeUnsent)
}
