package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
)

// exchange is one request to a server with its state: over HTTP the response's status and the streams that
// answer it, including resumed ones.
type exchange struct {
	// id is the request's id in the form of key; empty for a stream that answers no request.
	id string
	// onNotification receives the notifications on the request's streams; nil drops them.
	onNotification func(method string, params json.RawMessage)
	// ignored is called for each message on the streams that is dropped; nil counts none.
	ignored func()
	// asked receives the server's requests on the request's streams; nil drops them.
	asked func(id json.RawMessage, method string, params json.RawMessage)

	// once marks a request with a side effect: it is sent at most once.
	once bool
	// status is the HTTP status of the answer after redirects; 0 before there is one.
	status     int
	retryAfter string
	// location is the target of a redirect that was not followed; nil for any other answer.
	location *url.URL
	// challenge is the first WWW-Authenticate of the answer.
	challenge string
	// sent is set once the request's headers were written: from then on the server may have run the call.
	sent atomic.Bool
	// left is how many bytes of answer are still allowed, limit the initial number.
	left, limit int64
}

func newExchange(id string, limit int64) *exchange {
	return &exchange{id: id, limit: limit, left: limit}
}

// context returns ctx with a trace that records when the request is sent.
func (x *exchange) context(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { x.sent.Store(true) }})
}

// took records the header of the answer.
func (x *exchange) took(resp *http.Response) {
	x.status = resp.StatusCode
	x.retryAfter = resp.Header.Get("Retry-After")
	x.challenge = resp.Header.Get("WWW-Authenticate")
	if x.status >= 300 && x.status < 400 {
		x.location, _ = resp.Location() // an invalid URL counts as absent
	}
}

// tooLarge reports whether the server's answer exceeded the cap.
func (x *exchange) tooLarge() bool { return x.left < 0 }

// bound returns the body of an answer; reading it fails once the exchange has exceeded its cap.
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

// errNoResponse reports an answer that is not a JSON-RPC response.
var errNoResponse = errors.New("it is not a JSON-RPC response")

// take handles one event of a stream, a message or a batch of them (2025-03-26), and returns the response if
// the event contains it. Responses to other requests and invalid messages are dropped.
func (x *exchange) take(data []byte) (answer *response) {
	if !bytes.HasPrefix(data, []byte("[")) {
		return x.one(data)
	}
	all, err := batch(data)
	if err != nil {
		return x.one(data) // which drops it
	}
	for _, one := range all {
		if r := x.one(one); r != nil && answer == nil {
			answer = r
		}
	}
	return answer
}

func (x *exchange) one(data []byte) *response {
	var m message
	if m.read(data) == nil {
		switch {
		case m.answers() && x.id != "" && key(m.ID) == x.id:
			return m.response()
		case m.asks() && x.asked != nil:
			x.asked(m.ID, *m.Method, m.Params)
			return nil
		case m.notifies():
			if x.onNotification != nil {
				x.onNotification(*m.Method, m.Params)
			}
			return nil
		}
	}
	if x.ignored != nil {
		x.ignored()
	}
	return nil
}

// document reads the response from a whole JSON document: one message, which may answer another request, or
// be an error without an id; or a batch, as in take.
func (x *exchange) document(data []byte) (*response, error) {
	data = bytes.TrimSpace(withoutBOM(data))
	if bytes.HasPrefix(data, []byte("[")) {
		if answer := x.take(data); answer != nil {
			return answer, nil
		}
		return nil, errNoResponse
	}
	var m message
	if err := m.read(data); err != nil {
		return nil, err
	}
	if m.Method != nil {
		return nil, errNoResponse
	}
	return m.response(), nil
}
