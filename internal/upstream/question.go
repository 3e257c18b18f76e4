package upstream

import (
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

// replyTime is how long an HTTP server may take to accept the answer to a request of its own.
const replyTime = 30 * time.Second

const (
	// maxQuestions is how many requests of one server may wait for their answers at once; further ones are
	// refused.
	maxQuestions = 16
	// refusalRate and refusalBurst bound how many requests of an HTTP server are refused, or pings answered,
	// in a second and at once: each is a request of ours.
	refusalRate, refusalBurst = 2, 16
)

// relayable is what a server of an older era is told that the client can do, for one connection serves every
// client and every call. Whether a request is relayed is decided for each call; one that isn't is answered
// with "method not found".
func relayable() mcp.ClientCapabilities {
	var c mcp.ClientCapabilities
	c.Elicitation = &mcp.ElicitationCapability{}
	c.Sampling = &mcp.SamplingCapability{}
	c.Roots = &struct {
		ListChanged bool `json:"listChanged,omitempty"`
	}{}
	return c
}

// questioned takes what an HTTP server asks on the stream of the request on, and sends the answer. What is
// not relayed is refused as long as the server does not ask faster than anybody needs to; further requests
// get no answer.
func (s *session) questioned(on string, id json.RawMessage, method string, params json.RawMessage) {
	call, ask := s.question(on, id, method, params)
	if ask != nil && s.questions.Add(1) > maxQuestions {
		s.questions.Add(-1)
		ask = nil
	}
	if ask == nil && !s.refusals.Allow() {
		s.drop()
		return
	}
	s.notices.Go(func() {
		answer := refusal(id, method)
		if ask != nil {
			answer = ask(call)
			s.questions.Add(-1)
		}
		ctx, done := context.WithTimeout(context.Background(), replyTime)
		defer done()
		// A server that doesn't take the answer goes without; its call ends at its limit of time.
		if resp, err := s.web.post(ctx, answer, nil); err == nil {
			drain(resp)
		}
	})
}

// pipeQuestion is question for a child, whose requests name no call: they belong to the call that runs alone.
func (s *session) pipeQuestion(id json.RawMessage, method string, params json.RawMessage) func() *response {
	call, ask := s.question("", id, method, params)
	if ask == nil {
		return nil
	}
	if s.questions.Add(1) > maxQuestions {
		s.questions.Add(-1)
		return nil
	}
	return func() *response {
		defer s.questions.Add(-1)
		return ask(call)
	}
}

// question finds the call that a request of the server's belongs to, and returns the call's context and what
// asks its client; nil where that may not be asked.
func (s *session) question(on string, id json.RawMessage, method string, params json.RawMessage) (context.Context, func(context.Context) *response) {
	q := registry.Question{Method: method, Params: params}
	call, ok := s.hearing.asker(on)
	if !ok || !call.Takes(q) || !utf8.Valid(params) || len(params) > 0 && params[0] != '{' {
		return nil, nil
	}
	q.Params = s.veil().json(params)
	s.hearing.pages.open(q.Page(), call.Completed)
	return call.ctx, func(ctx context.Context) *response {
		reply := call.Ask(ctx, q)
		if reply.Error == nil {
			return resultResponse(id, reply.Result)
		}
		var e rpcError
		if err := json.Unmarshal(reply.Error, &e); err != nil {
			return errorResponse(id, mcp.INTERNAL_ERROR, "the client's error can't be read")
		}
		return &response{JSONRPC: mcp.JSONRPC_VERSION, ID: id, Error: &e}
	}
}
