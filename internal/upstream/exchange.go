package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// exchange is one request to a server with everything that belongs to it: over HTTP what came of it and the
// streams that answer it, resumed ones included.
type exchange struct {
	// id is the request's, as key has it; empty for a stream that answers no request.
	id string
	// heard takes the notifications on the request's streams; nil where nobody listens.
	heard func(method string, params json.RawMessage)
	// ignored is called for each message on the streams that is dropped; nil where nobody counts.
	ignored func()
	// asked takes the requests of the server's on the request's streams; nil where nobody answers.
	asked func(id json.RawMessage, method string, params json.RawMessage)

	// status is that of the answer to the request, redirects followed, 0 before it.
	status     int
	retryAfter string
	// challenge is the first WWW-Authenticate of the answer.
	challenge string
	// sent is set once the request's headers went out: from then on the server may have run the call.
	sent atomic.Bool
	// left is how many bytes the server may still answer, limit what it began with.
	left, limit int64
}

func newExchange(id string, limit int64) *exchange {
	return &exchange{id: id, limit: limit, left: limit}
}

// context is ctx for the request, whose sending it notes.
func (x *exchange) context(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { x.sent.Store(true) }})
}

// took notes what the answer's head says.
func (x *exchange) took(resp *http.Response) {
	x.status = resp.StatusCode
	x.retryAfter = resp.Header.Get("Retry-After")
	x.challenge = resp.Header.Get("WWW-Authenticate")
}

// tooLarge reports whether the server's answer passed the cap.
func (x *exchange) tooLarge() bool { return x.left < 0 }

// bound is the body of an answer, which ends with an error when the exchange has passed its cap.
func (x *exchange) bound(body io.Reader) io.Reader { return &bounded{body, x} }

type bounded struct {
	io.Reader
	x *exchange
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.x.tooLarge() {
		return 0, tooLargeError{b.x.limit}
	}
	n, err := b.Reader.Read(p)
	if b.x.left -= int64(n); b.x.left < 0 {
		return 0, tooLargeError{b.x.limit}
	}
	return n, err
}

// errNoResponse is an answer that is no response of JSON-RPC.
var errNoResponse = errors.New("it is no response of JSON-RPC")

// take takes what one event of a stream holds, a message or a batch of them (2025-03-26), and returns the
// response if it is there. What answers another request, or is no message, is dropped.
func (x *exchange) take(data []byte) (answer *response) {
	if !bytes.HasPrefix(data, []byte("[")) {
		return x.one(data)
	}
	var batch []json.RawMessage
	if json.Unmarshal(data, &batch) != nil {
		return x.one(data) // which drops it
	}
	for _, one := range batch {
		if r := x.one(one); r != nil && answer == nil {
			answer = r
		}
	}
	return answer
}

func (x *exchange) one(data []byte) *response {
	var m message
	if json.Unmarshal(data, &m) == nil {
		switch {
		case m.answers() && x.id != "" && key(m.ID) == x.id:
			return m.response()
		case m.asks() && x.asked != nil:
			x.asked(m.ID, *m.Method, m.Params)
			return nil
		case m.notifies():
			if x.heard != nil {
				x.heard(*m.Method, m.Params)
			}
			return nil
		}
	}
	if x.ignored != nil {
		x.ignored()
	}
	return nil
}

// document is the response in a whole JSON document: one message, which may answer another request, or be an
// error without an id; or a batch, as in take.
func (x *exchange) document(data []byte) (*response, error) {
	data = bytes.TrimSpace(withoutBOM(data))
	if bytes.HasPrefix(data, []byte("[")) {
		if answer := x.take(data); answer != nil {
			return answer, nil
		}
		return nil, errNoResponse
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	if m.Method != nil {
		return nil, errNoResponse
	}
	return m.response(), nil
}
