package mcpserver

import (
	"context"
	"errors"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// Call runs a call that came in another form than an MCP message, on the path and within the limits of those that did.
// req needs no Principal and no Credential: they are the caller's. ok is false if there is no such branch, or the caller
// may not open it. A call over a limit isn't run, and ends with registry.Overloaded.
func (s *Server) Call(ctx context.Context, c token.Caller, name string, req invoke.Request) (call registry.Call, ok bool) {
	b := s.branch(name, c)
	if b == nil {
		return call, false
	}
	req.Principal, req.Credential = c.Principal, c.Credential()
	refused := func(err *registry.Error) registry.Call {
		return registry.Call{Branch: b.root, Tool: req.Tool, Principal: c.Principal.Name, Status: registry.Rejected, Err: err}
	}
	defer func() {
		if p := recover(); p != nil {
			err := s.Panicked("call", p)
			call, ok = refused(&registry.Error{Code: registry.Internal, Msg: err.Message}), true
		}
	}()
	g, release := s.Pin()
	defer release()
	path, ok := b.path(g)
	if !ok {
		return call, false
	}
	place := b.placeOfTool(path, req.Tool)
	if err := place.enter(ctx); err != nil {
		var full *registry.Error
		if !errors.As(err, &full) {
			return path.Refuse(req, &registry.Error{Code: registry.Cancelled, Msg: "the caller cancelled the call; nothing was run", Unsent: true}), true
		}
		call = path.Refuse(req, full)
		s.recordRefusedCall(call.ID, decision.TooManyCalls, name, &c.Principal, "", req.Tool)
		return call, true
	}
	defer place.leave()
	ctx, span := s.Tracer.Request(ctx, "calls")
	defer span.End()
	span.Set("catalogd.branch", name)
	call = path.Call(ctx, req)
	s.Called(&call)
	return call, true
}

// NotBegun records a call that was not begun, because of err, and returns it with its id.
func (s *Server) NotBegun(c token.Caller, name string, req invoke.Request, err *registry.Error) registry.Call {
	req.Principal, req.Credential = c.Principal, c.Credential()
	g, release := s.Pin()
	defer release()
	if path, ok := g.PathFor(name, c.Principal); ok {
		return path.Refuse(req, err)
	}
	return registry.Call{ // the branch has ended meanwhile
		ID: registry.NewCallID(), Branch: name, Tool: req.Tool, Principal: c.Principal.Name, Status: registry.Rejected, Err: err,
	}
}
