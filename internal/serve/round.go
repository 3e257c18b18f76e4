package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

// A client of 2026-07-28 is asked by a result: it calls again with the answers (inputResponses) and what it was given to
// keep (requestState). Each such round is a call like any other, checked, decided and recorded anew. What the client keeps
// is a state of ours, with the upstream's own state inside (seal).

// remembered is what a state holds of the round that it was made in.
type remembered struct {
	Kinds  []string        `json:"kinds,omitempty"`
	State  json.RawMessage `json:"state,omitempty"`
	Origin string          `json:"origin"`
}

// caller is a listener for the caller of a call of this era, with what it declares.
func (e era) caller(to registry.Listener) registry.Listener {
	if e.modern {
		to.Able, to.Rounds = e.able(), true
	}
	return to
}

// round is the round that a call begins; nil for the first one. Answers without a state are taken: they are to questions
// that the client expects.
func (b *branch) round(m *message, of *subject) (*registry.Round, error) {
	if m.responses == nil && m.state == nil {
		return nil, nil
	}
	if err := checkResponses(m.responses); err != nil {
		return nil, err
	}
	r := &registry.Round{Responses: m.responses}
	if m.state == nil {
		return r, nil
	}
	if m.state[0] != '"' {
		return nil, errors.New("params.requestState must be a string")
	}
	var err error
	if of.arguments, err = digest(m.arguments); err != nil {
		return nil, err
	}
	body, err := b.seal.open(*of, str(m.state))
	if err != nil {
		return nil, err
	}
	var kept remembered
	if err := json.Unmarshal(body, &kept); err != nil {
		return nil, fmt.Errorf("params.requestState: %w", err) // we made it
	}
	r.Kinds, r.State, r.Origin = kept.Kinds, kept.State, kept.Origin
	return r, nil
}

func checkResponses(responses json.RawMessage) error {
	if responses == nil {
		return nil
	}
	if responses[0] != '{' {
		return errors.New("params.inputResponses must be an object")
	}
	var failed error
	err := members(responses, nil, func(key, value []byte) {
		if value[0] != '{' {
			failed = fmt.Errorf("params.inputResponses: the answer to %s must be an object", registry.Shown(string(key)))
		}
	})
	return errors.Join(failed, err)
}

// appendInput writes an InputRequiredResult. The requests are the tool's own bytes.
func (b *branch) appendInput(out []byte, call *registry.Call, m *message, of subject) ([]byte, error) {
	in := call.Result.Input
	var err error
	if of.arguments, err = digest(m.arguments); err != nil {
		return nil, err
	}
	kept, err := encodeJSON(remembered{in.Kinds, in.State, in.Origin})
	if err != nil {
		return nil, err
	}
	out = append(out, `{"resultType":"input_required"`...)
	if in.Requests != nil {
		out = append(out, `,"inputRequests":`...)
		out = append(out, in.Requests...)
	}
	out = append(out, `,"requestState":"`...)
	out = append(out, b.seal.close(of, kept)...)
	out = append(out, `","_meta":{`...)
	out = appendMeta(out, call.Result.Meta, call)
	out = append(out, ',')
	out = append(out, b.front.serverInfo...)
	return append(out, "}}"...), nil
}

// incapable is the error that names the capabilities which a client would have to declare.
func incapable(e *registry.Error) *rpcError {
	return &rpcError{Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: e.Msg,
		Data: map[string]registry.Abilities{"requiredCapabilities": e.Needs}}
}

// encodeJSON is v as JSON whose strings stay as they are.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// canonicalJSON is one spelling of all that means the same: members in order, no white space, strings unescaped. Numbers
// stay as they are.
func canonicalJSON(raw json.RawMessage) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return encodeJSON(v)
}
