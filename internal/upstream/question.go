package upstream

import (
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

// replyTime caps how long an HTTP server may take to accept the answer to its request.
const replyTime = 30 * time.Second

const (
	// maxQuestions is how many requests of one server may wait for their answers at once; further ones are
	// refused.
	maxQuestions = 16
	// refusalRate and refusalBurst limit the refusals and ping answers sent to an HTTP server, per second and
	// at once: each is an HTTP request.
	refusalRate, refusalBurst = 2, 16
)

// relayable is the client capabilities declared to a server of an older protocol version, for one connection
// serves every client and every call. Whether a request is relayed is decided for each call; one that isn't
// is answered with "method not found".
func relayable() mcp.ClientCapabilities {
	var c mcp.ClientCapabilities
	c.Elicitation = &mcp.ElicitationCapability{}
	c.Sampling = &mcp.SamplingCapability{}
	c.Roots = &struct {
		ListChanged bool `json:"listChanged,omitempty"`
	}{}
	return c
}

// questioned handles a request of an HTTP server on the stream of the request on, and sends the answer.
// Requests that are not relayed are refused, up to refusalRate; beyond it they get no answer.
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
		// A server that doesn't accept the answer gets none; its call ends at its timeout.
		if resp, err := s.web.post(ctx, s.web.client, answer, nil); err == nil {
			drain(resp)
		}
	})
}

// pipeQuestion is question for a child, whose requests name no call: they belong to the only running call.
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

// question finds the call that a server's request belongs to, and returns the call's context and a function
// that asks its client; nil where the client may not be asked.
func (s *session) question(on string, id json.RawMessage, method string, params json.RawMessage) (context.Context, func(context.Context) *response) {
	q := registry.Question{Method: method, Params: params}
	call, ok := s.router.asker(on)
	if !ok || !call.Takes(q) || !utf8.Valid(params) || len(params) > 0 && params[0] != '{' {
		return nil, nil
	}
	q.Params = s.secretMask().JSON(params)
	s.router.pages.open(q.Page(), call.Completed)
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
