package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// In 2026-07-28 a server asks a client by a result: the client calls again with the answers (inputResponses)
// and with the state that it received (requestState). Each round is checked, decided on and recorded like any
// other call. The state is catalogd's own and contains the upstream's state (seal).

// roundState is what a state holds of the round that it was created in.
type roundState struct {
	Kinds  []string        `json:"kinds,omitempty"`
	State  json.RawMessage `json:"state,omitempty"`
	Origin string          `json:"origin,omitempty"`
	// Intent is the id of the intent that asked; empty for a tool without a side effect.
	Intent string `json:"intent,omitempty"`
	// Attempt is the attempt of the intent that asked.
	Attempt int `json:"attempt,omitempty"`
	// Held says that the call still runs here and waits for the answers; then State and Origin are empty.
	Held bool `json:"held,omitempty"`
}

// caller returns the listener for the caller of this era, with the abilities that the client declares.
func (e era) caller(to registry.Listener) registry.Listener {
	if e.modern {
		to.Able, to.Rounds = e.able(), true
	}
	return to
}

// turn answers a call of 2026-07-28, for any round. Calls of clients that have declared an ability run
// independently of the request, so that their tools may ask by requests; such a call takes release.
func (b *branch) turn(ctx context.Context, m *message, path *invoke.Path, req invoke.Request, release *func()) reply {
	of := subject{branch: b.name, principal: req.Principal.Name, tool: req.Tool, dialect: string(req.Dialect)}
	kept, n, err := b.round(m, &of)
	if err != nil {
		return b.fail(m.id, true, refuse(mcp.INVALID_PARAMS, "%v", err))
	}
	req.Listener.Round, req.Intent, req.Attempt = m.round(kept), kept.Intent, kept.Attempt
	call, state, refusal := b.hold(ctx, path, req, of, kept.Held, n, release)
	if refusal != nil {
		return b.fail(m.id, true, refusal)
	}
	if state == "" { // the call has ended
		b.server.Called(call)
	}
	if call.Status == registry.Waiting && state == "" {
		state = b.remember(m, of, call.Result.Input, call.Intent)
	}
	switch {
	case call.Status == registry.Waiting:
		return b.asks(m, call, state)
	case call.Err != nil && call.Err.Code == registry.CapabilityMissing:
		return b.fail(m.id, true, incapable(call.Err, call))
	}
	return b.called(m, call, true)
}

// hold runs a call, or resumes the one that waits for the state n. It returns the ended call, or a waiting
// one with the state for its client.
func (b *branch) hold(ctx context.Context, path *invoke.Path, req invoke.Request, of subject, waits bool, n nonce, release *func()) (*registry.Call, string, *rpcError) {
	if !waits && !b.server.holds(req.Listener.Able) {
		ended := path.Call(ctx, req)
		return &ended, "", nil
	}
	var h *pendingCall
	var in *registry.Input
	var state string
	if waits {
		var refusal *rpcError
		if h, refusal = b.resume(n); refusal != nil {
			return nil, "", refusal
		}
		if again := path.Again(ctx, req); again.Err != nil {
			h.end(context.Canceled)
			return &again, "", nil
		}
		in, state = b.continuePending(ctx, h, req.Listener, of)
	} else {
		of.arguments = digest(req.Arguments)
		h = b.pending.run(ctx, path.Generation, req.Listener, *release, func(ctx context.Context, h *pendingCall, to registry.Listener) {
			req.ID, req.Listener = h.id, to
			h.call = path.Call(ctx, req)
		})
		*release = func() {}
		in, state = b.awaitPending(ctx, h, of)
	}
	if in == nil {
		return &h.call, "", nil
	}
	return h.waits(in), state, nil
}

// remember returns the state for a round that ended with the questions in; intent is empty for a call without
// one.
func (b *branch) remember(m *message, of subject, in *registry.Input, intent string) string {
	of.arguments = digest(m.arguments)
	state, _ := b.seal.close(of, encodeJSON(roundState{Kinds: in.Kinds, State: in.State, Origin: in.Origin, Intent: intent, Attempt: in.Attempt}))
	return state
}

// round returns the round that a message begins, with what was kept of the previous one; nil for a first
// round.
func (m *message) round(kept roundState) *registry.Round {
	if m.responses == nil && m.state == nil {
		return nil
	}
	return &registry.Round{Responses: m.responses, Kinds: kept.Kinds, State: kept.State, Origin: kept.Origin}
}

// round reads the inputResponses and requestState of a call. Answers without a state are accepted: they
// answer questions that the client expects.
func (b *branch) round(m *message, of *subject) (kept roundState, n nonce, err error) {
	if err := checkResponses(m.responses); err != nil {
		return kept, n, err
	}
	if m.state == nil {
		return kept, n, nil
	}
	if m.state[0] != '"' {
		return kept, n, errors.New("params.requestState must be a string")
	}
	of.arguments = digest(m.arguments)
	body, n, err := b.seal.open(*of, str(m.state))
	if err != nil {
		return kept, n, err
	}
	if err := json.Unmarshal(body, &kept); err != nil {
		panic("mcpserver: a state that was unsealed must decode: " + err.Error())
	}
	return kept, n, nil
}

func checkResponses(responses json.RawMessage) error {
	if responses == nil {
		return nil
	}
	if responses[0] != '{' {
		return errors.New("params.inputResponses must be an object")
	}
	var failed error
	_ = members(responses, nil, func(key, value []byte) {
		if value[0] != '{' {
			failed = fmt.Errorf("params.inputResponses: the answer to %s must be an object", registry.Shown(string(key)))
		}
	})
	return failed
}

// asks returns an InputRequiredResult. The requests are the tool's own bytes.
func (b *branch) asks(m *message, call *registry.Call, state string) reply {
	out := append(beginReply(m.id), `{"resultType":"input_required"`...)
	if requests := call.Result.Input.Requests; requests != nil {
		out = append(out, `,"inputRequests":`...)
		out = append(out, requests...)
	}
	out = append(out, `,"requestState":"`...)
	out = append(out, state...)
	out = append(out, `","_meta":{`...)
	out = appendMeta(out, call.Result.Meta, call)
	out = append(out, ',')
	out = append(out, b.server.serverInfo...)
	return reply{status: 200, parts: [][]byte{append(out, "}}}"...)}}
}

// incapable returns the error that lists the capabilities which the client must declare. call is nil for a prompt or
// a resource.
func incapable(err *registry.Error, call *registry.Call) *rpcError {
	data := map[string]any{"requiredCapabilities": err.Needs}
	if call != nil {
		data[metaCall] = callData(call)
	}
	return &rpcError{Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: err.Msg, Data: data}
}

// encodeJSON returns v, which is plain data, as JSON without HTML escapes.
func encodeJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("mcpserver: plain data always encodes: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// canonicalJSON returns one spelling for all equivalent JSON values: sorted members, no white space, strings
// unescaped. Numbers keep their spelling.
func canonicalJSON(raw json.RawMessage) []byte {
	v, err := strictjson.Decode(raw, strictjson.Options{AllowUnpaired: true})
	if err != nil {
		panic("mcpserver: a scanned message must be JSON: " + err.Error())
	}
	return strictjson.AppendSorted(nil, v)
}
