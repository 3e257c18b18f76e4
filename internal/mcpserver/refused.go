package mcpserver

import (
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/registry"
)

// RecordRefused counts and logs a request that was refused before it became a call. method and name are as
// requested; who is nil for an unknown caller.
func (s *Server) RecordRefused(code decision.AttemptCode, branch string, who *decision.Principal, method, name string) {
	s.recordRefusedCall("", code, branch, who, method, name)
}

// recordRefusedCall is RecordRefused for a call that has an id already; empty is none.
func (s *Server) recordRefusedCall(
	call string, code decision.AttemptCode, branch string, who *decision.Principal, method, name string,
) {
	s.Refused(code)
	g, release := s.Pin()
	defer release()
	id := registry.NewCallID()
	if call != "" {
		id = call + "-attempt"
	}
	e := decision.NewAttempt(id, string(code), decision.Attempt{Branch: branch, Method: method, Name: name, Principal: who})
	e.Call = call
	g.LogDecision(e)
}

// recordRefused records a refused request of the branch's caller. m is nil if no message was read.
func (b *branch) recordRefused(code decision.AttemptCode, m *message) {
	var method, name string
	if m != nil {
		method, name = string(m.method), m.subject()
	}
	b.server.RecordRefused(code, b.name, &b.caller.Principal, method, name)
}

// malformed records a refused message that names a tool, prompt or resource.
func (b *branch) malformed(m *message) {
	if m.subject() != "" {
		b.recordRefused(decision.InvalidMessage, m)
	}
}
