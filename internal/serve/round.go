package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// A client of 2026-07-28 is asked by a result: it calls again with the answers (inputResponses) and what it was given to
// keep (requestState). Each such round is a call like any other, checked, decided and recorded anew. What the client keeps
// is a state of ours, with the upstream's own state inside (seal).

// remembered is what a state holds of the round that it was made in.
type remembered struct {
	Kinds  []string        `json:"kinds,omitempty"`
	State  json.RawMessage `json:"state,omitempty"`
	Origin string          `json:"origin,omitempty"`
	// Held says that the call still runs here and waits for the answers; then there is neither state nor origin.
	Held bool `json:"held,omitempty"`
}

// caller is a listener for the caller of a call of this era, with what it declares.
func (e era) caller(to registry.Listener) registry.Listener {
	if e.modern {
		to.Able, to.Rounds = e.able(), true
	}
	return to
}

// turn answers a call of 2026-07-28, whichever round it is. Calls of clients that can be asked anything run by themselves, so
// that their tools may ask by requests; release is taken over from the caller where one does.
func (b *branch) turn(ctx context.Context, m *message, path *invoke.Path, req invoke.Request, release *func()) reply {
	of := subject{branch: b.name, principal: req.Principal.Name, tool: req.Tool, dialect: string(req.Dialect)}
	kept, n, err := b.round(m, &of)
	if err != nil {
		return b.fail(m.id, true, refuse(mcp.INVALID_PARAMS, "%v", err))
	}
	req.Listener.Round = m.round(kept)
	call, state, refusal := b.hold(ctx, path, req, of, kept.Held, n, release)
	if refusal != nil {
		return b.fail(m.id, true, refusal)
	}
	if state == "" { // it has ended
		b.front.metrics.called(call)
	}
	if call.Status == registry.Waiting && state == "" {
		state = b.remember(m, of, call.Result.Input)
	}
	switch {
	case call.Status == registry.Waiting:
		return b.asks(m, call, state)
	case call.Err != nil && call.Err.Code == registry.CapabilityMissing:
		return b.fail(m.id, true, incapable(call.Err))
	}
	return b.called(m, call, true)
}

// hold runs a call, or goes on with the one that waits for the state n. It returns how it ended, or with a state that it
// waits for its client.
func (b *branch) hold(ctx context.Context, path *invoke.Path, req invoke.Request, of subject, waits bool, n nonce, release *func()) (*registry.Call, string, *rpcError) {
	if !waits && len(req.Listener.Able) == 0 {
		ended := path.Call(ctx, req)
		return &ended, "", nil
	}
	var h *heldCall
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
		in, state = b.goOn(ctx, h, req.Listener, of)
	} else {
		of.arguments = digest(req.Arguments)
		h = b.held.run(ctx, path.Generation, req.Listener, *release, func(ctx context.Context, h *heldCall, to registry.Listener) {
			req.ID, req.Listener = h.id, to
			h.call = path.Call(ctx, req)
		})
		*release = func() {}
		in, state = b.attend(ctx, h, of)
	}
	if in == nil {
		return &h.call, "", nil
	}
	return h.waits(in), state, nil
}

// remember is the state of a round that has ended with in.
func (b *branch) remember(m *message, of subject, in *registry.Input) string {
	of.arguments = digest(m.arguments)
	state, _ := b.seal.close(of, encodeJSON(remembered{Kinds: in.Kinds, State: in.State, Origin: in.Origin}))
	return state
}

// round is the round that a message begins, after the one that is remembered; nil for a first one.
func (m *message) round(kept remembered) *registry.Round {
	if m.responses == nil && m.state == nil {
		return nil
	}
	return &registry.Round{Responses: m.responses, Kinds: kept.Kinds, State: kept.State, Origin: kept.Origin}
}

// round reads what a call says of the round before it. Answers without a state are taken: they are to questions that the
// client expects.
func (b *branch) round(m *message, of *subject) (kept remembered, n nonce, err error) {
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
		panic("serve: a state that was opened is one of ours: " + err.Error())
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

// asks is an InputRequiredResult. The requests are the tool's own bytes.
func (b *branch) asks(m *message, call *registry.Call, state string) reply {
	out := append(begin(m.id), `{"resultType":"input_required"`...)
	if requests := call.Result.Input.Requests; requests != nil {
		out = append(out, `,"inputRequests":`...)
		out = append(out, requests...)
	}
	out = append(out, `,"requestState":"`...)
	out = append(out, state...)
	out = append(out, `","_meta":{`...)
	out = appendMeta(out, call.Result.Meta, call)
	out = append(out, ',')
	out = append(out, b.front.serverInfo...)
	return reply{status: 200, parts: [][]byte{append(out, "}}}"...)}}
}

// incapable is the error that names the capabilities which a client would have to declare.
func incapable(e *registry.Error) *rpcError {
	return &rpcError{Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: e.Msg,
		Data: map[string]registry.Abilities{"requiredCapabilities": e.Needs}}
}

// encodeJSON is v as JSON whose strings stay as they are; v is plain data.
func encodeJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("serve: plain data always encodes: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// canonicalJSON is one spelling of all that means the same: members in order, no white space, strings unescaped. Numbers
// stay as they are.
func canonicalJSON(raw json.RawMessage) []byte {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		panic("serve: what has passed the scan is JSON: " + err.Error())
	}
	return encodeJSON(v)
}
