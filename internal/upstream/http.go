package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

// exchange is one request to an HTTP server with everything that belongs to it, resumed streams included. It travels in
// the context because mcp-go's transport stands between the two ends, and tells neither the status nor the cap.
type exchange struct {
	// id is the request's id as RequestId.String has it; empty while mcp-go's client negotiates with ids of its own.
	id string
	// heard takes the notifications on the request's streams; nil where nobody listens.
	heard func(method string, params json.RawMessage)
	// ignored is called for each message on the streams that is dropped; nil where nobody counts.
	ignored func()
	// status is that of the answer to the request, redirects followed, 0 before it. An answer to something else that is
	// sent meanwhile, such as the refusal of a request of the server's, doesn't count.
	status     atomic.Int32
	retryAfter atomic.Value // string
	// sent is set once the request's headers went out: from then on the server may have run the call.
	sent atomic.Bool
	// arrived is the answer to the request when mcp-go has yet to take it (session.send).
	arrived atomic.Pointer[http.Response]
	// begun is set by the first request of the exchange.
	begun atomic.Bool
	// left is how many bytes the server may still answer.
	left atomic.Int64
	// limit is what left began with.
	limit int64
	// asked takes the requests of the server's on the request's streams; nil where nobody answers.
	asked func(id mcp.RequestId, method string, params json.RawMessage)
}

func newExchange(id string, limit int64) *exchange {
	x := &exchange{id: id, limit: limit}
	x.left.Store(limit)
	return x
}

type exchangeKey struct{}

func (x *exchange) context(ctx context.Context) context.Context {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { x.sent.Store(true) }})
	return context.WithValue(ctx, exchangeKey{}, x)
}

// tooLarge reports whether the server's answer passed the cap.
func (x *exchange) tooLarge() bool { return x.left.Load() < 0 }

// front stands before the trusted client's transport: it adds the declared headers, whose secrets are read at each
// request, and keeps a server's answer within its bounds.
type front struct {
	base    http.RoundTripper
	headers func() (http.Header, error)
	limit   int64
}

func (f *front) RoundTrip(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok { // a notification, the end of a session: nobody waits for the answer's content
		x = newExchange("", f.limit)
	}
	if req.Method == http.MethodPost {
		if resp := x.arrived.Swap(nil); resp != nil {
			return resp, nil
		}
	}
	headers, err := f.headers()
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	if len(headers) > 0 {
		req = req.Clone(req.Context())
		maps.Copy(req.Header, headers)
	}
	resp, err := f.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	redirected := req.Response != nil
	if req.Method == http.MethodPost && (x.id == "" || !x.begun.Swap(true)) || redirected {
		x.status.Store(int32(resp.StatusCode))
		x.retryAfter.Store(resp.Header.Get("Retry-After"))
	}
	resp.Body = &bounded{resp.Body, x}
	if mediaType(resp) == "text/event-stream" {
		resp.Body = newEvents(resp.Body, x)
	}
	return resp, nil
}

// CloseIdleConnections is what http.Client.CloseIdleConnections asks for.
func (f *front) CloseIdleConnections() {
	if c, ok := f.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// bounded is a body that ends with an error when its exchange has passed the cap.
type bounded struct {
	io.ReadCloser
	x *exchange
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.x.tooLarge() {
		return 0, tooLargeError{b.x.limit}
	}
	n, err := b.ReadCloser.Read(p)
	if b.x.left.Add(-int64(n)) < 0 {
		return 0, tooLargeError{b.x.limit}
	}
	return n, err
}

// explainAccess is what a person can do about a 401 or 403: the message, and for the operator where the credentials come
// from. OAuth is not spoken.
func explainAccess(status int, declared registry.HTTPAddress) (msg string, operator error) {
	var names, secrets []string
	for _, name := range slices.Sorted(maps.Keys(declared.Headers)) {
		names = append(names, name)
		if ref := declared.Headers[name].Secret; ref != "" {
			secrets = append(secrets, name+" from "+ref)
		}
	}
	if len(secrets) > 0 {
		operator = fmt.Errorf("credentials sent: %s", strings.Join(secrets, ", "))
	}
	headers := strings.Join(names, ", ")
	switch {
	case status == http.StatusUnauthorized && len(names) == 0:
		return `401: it asks for credentials, and none are declared; get a token from it and declare a header, as in headers: Authorization: {secret: "env:NAME", prefix: "Bearer "} (a login by OAuth is not done for it)`, operator
	case status == http.StatusUnauthorized:
		return "401: it does not accept the credentials in its declared headers (" + headers + "), which may have expired; renew the secret that they refer to, which is read at each request", operator
	case len(names) == 0:
		return "403: it refuses, and no credentials are declared; declare a header with a token of it, or have this machine let in", operator
	}
	return "403: it knows the credentials in its declared headers (" + headers + ") and refuses; have it grant them what this needs, or use others", operator
}

// explainStatus is what a person can do about an answer that is not MCP.
func explainStatus(status int, retryAfter string) string {
	switch {
	case status == http.StatusNotFound:
		return "404: nothing answers at this path; check the url (a server of the old SSE transport can answer like this, which is not supported)"
	case status == http.StatusMethodNotAllowed:
		return "405: old SSE transport not supported; use the address of its streamable HTTP endpoint"
	case status == http.StatusTooManyRequests && retryAfter != "":
		return fmt.Sprintf("429: too many requests; it asks to wait (Retry-After: %.40s)", retryAfter)
	case status == http.StatusTooManyRequests:
		return "429: too many requests"
	case status >= 300 && status < 400:
		return fmt.Sprintf("%d: it redirects; declare the final address as url", status)
	case status >= 500:
		return fmt.Sprintf("%d %s: the server, or a proxy before it, has failed", status, http.StatusText(status))
	}
	return fmt.Sprintf("%d %s", status, http.StatusText(status))
}

var _ transport.Interface = (*pipe)(nil)
