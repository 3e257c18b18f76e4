package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/tracing"
	"github.com/catalogd/catalogd/registry"
)

const (
	// resumePause is the pause before a stream is resumed if the server asks for none, and resumeLeast the
	// shortest pause that it can ask for.
	resumePause, resumeLeast = time.Second, 10 * time.Millisecond
	// endTime caps the request that ends a session.
	endTime = 5 * time.Second
)

// web is the client's end of streamable HTTP: each message is a POST, which is answered by one JSON document
// or by an event stream (MCP, Transports). It is for one session.
type web struct {
	client *http.Client
	// once is for calls with a side effect: it sends each at most once.
	once    *http.Client
	address registry.HTTPAddress
	limit   int64
	// version and session are sent in the headers of each message: empty before they are agreed on. In
	// 2026-07-28 there are no sessions.
	version, session atomic.Value // string
}

func newWeb(
	trusted, once *http.Client, address registry.HTTPAddress, headers func() (http.Header, error), limit int64,
) *web {
	trusted.Transport = &credentials{trusted.Transport, headers}
	trusted.CheckRedirect = sameMethod(trusted.CheckRedirect)
	once.Transport = &credentials{once.Transport, headers}
	w := &web{client: trusted, once: once, address: address, limit: limit}
	w.version.Store("")
	w.session.Store("")
	return w
}

func (w *web) speaks() string    { return w.version.Load().(string) }
func (w *web) sessionID() string { return w.session.Load().(string) }

// credentials adds the declared headers, whose secrets are read at each request.
type credentials struct {
	base    http.RoundTripper
	headers func() (http.Header, error)
}

func (c *credentials) RoundTrip(req *http.Request) (*http.Response, error) {
	headers, err := c.headers()
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, &egress.UnsentError{Err: err}
	}
	if len(headers) > 0 {
		req = req.Clone(req.Context())
		maps.Copy(req.Header, headers)
	}
	return c.base.RoundTrip(req)
}

// CloseIdleConnections implements the interface that http.Client.CloseIdleConnections looks for.
func (c *credentials) CloseIdleConnections() {
	if base, ok := c.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// redirectError is a redirect that is not followed. to is as shown returns it.
type redirectError struct {
	status int
	to     string
	err    error
}

func (e *redirectError) Error() string {
	if e.to == "" {
		return fmt.Sprintf("%d: it redirects to something that is not an HTTP URL", e.status)
	}
	text := fmt.Sprintf("%d: it redirects to %s; declare that as url", e.status, clip(e.to, 200))
	if e.err != nil {
		text += fmt.Sprintf(" (%v)", e.err)
	}
	return text
}

func (e *redirectError) Unwrap() error { return e.err }

// sameMethod follows redirects that keep the method and the body (307, 308), as far as next does; one that
// would turn a message into a GET is refused.
func sameMethod(next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if req.Method != via[0].Method {
			turned := errors.New("it would turn the POST into a " + req.Method)
			return &redirectError{req.Response.StatusCode, shown(*req.URL), turned}
		}
		if next == nil {
			return nil
		}
		return next(req, via)
	}
}

// shown returns a URL without its private parts, and an empty string for a URL that is not HTTP.
func shown(u url.URL) string {
	if u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// request sends one request and waits for its answer. An answer that is not a JSON-RPC response is an error,
// unless its HTTP status is one: then there is neither, and x has the status.
func (w *web) request(ctx context.Context, x *exchange, req request) (*response, error) {
	ctx = x.context(ctx)
	client := w.client
	if req.once {
		client = w.once
	}
	resp, err := w.post(ctx, client, req, req.header)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	x.took(resp)
	success := resp.StatusCode >= 200 && resp.StatusCode < 300
	if success && req.Method == string(mcp.MethodInitialize) {
		w.session.Store(resp.Header.Get(mcp.HeaderSessionID))
	}
	if success && mediaType(resp) == "text/event-stream" {
		return w.stream(ctx, x, resp)
	}
	var body bytes.Buffer
	if n := resp.ContentLength; n > 0 && n < 64<<10 { // who announces more has to send it first
		body.Grow(int(n) + bytes.MinRead)
	}
	if _, err := body.ReadFrom(x.bound(resp.Body)); err != nil {
		return nil, err
	}
	if success && body.Len() == 0 {
		return nil, fmt.Errorf("it answers %d %s and no message", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	answer, err := x.document(body.Bytes())
	if !success && (err != nil || answer.Error == nil) {
		return nil, nil // the status says what there is to say
	}
	return answer, err
}

// stream reads the answer from an event stream. Where the stream ends or breaks off before the answer, it is
// resumed from the last event with an id, which servers of the older eras set for that.
func (w *web) stream(ctx context.Context, x *exchange, resp *http.Response) (*response, error) {
	in := newEvents(x.bound(resp.Body), x.limit)
	for {
		answer, err := readAnswer(in, x)
		switch {
		case answer != nil:
			return answer, nil
		case in.lastID == "" || x.tooLarge() || ctx.Err() != nil || mcp.IsModernProtocol(w.speaks()):
			return nil, err
		}
		next, err := w.resume(ctx, in)
		if err != nil {
			return nil, err
		}
		defer next.Body.Close()
		again := newEvents(x.bound(next.Body), x.limit)
		again.lastID, again.retry, again.hasRetry = in.lastID, in.retry, in.hasRetry
		in = again
	}
}

// readAnswer reads a stream until the answer or its end.
func readAnswer(in *events, x *exchange) (*response, error) {
	for {
		data, err := in.next()
		if err == io.EOF {
			return nil, errors.New("its stream ended before the answer")
		}
		if err != nil {
			return nil, err
		}
		if answer := x.take(data); answer != nil {
			return answer, nil
		}
	}
}

// resume opens the rest of a stream, and retries while the server can't be reached.
func (w *web) resume(ctx context.Context, in *events) (*http.Response, error) {
	pause := resumePause
	if in.hasRetry {
		pause = max(in.retry, resumeLeast)
	}
	for ; ; pause = min(2*max(pause, resumePause/4), reopenMost) {
		if !sleep(ctx, pause) {
			return nil, ctx.Err()
		}
		resp, err := w.get(ctx, in.lastID)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			continue
		case resp.StatusCode == http.StatusOK && mediaType(resp) == "text/event-stream":
			return resp, nil
		}
		resp.Body.Close()
		if !busy(resp.StatusCode) {
			return nil, fmt.Errorf("its stream ended before the answer and can't be resumed: status %d", resp.StatusCode)
		}
	}
}

// busy reports whether a status means that a retry may succeed later.
func busy(status int) bool { return status == http.StatusTooManyRequests || status >= 500 }

// sleep waits, and returns false at the end of ctx.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// post sends a message with the headers of the session and those given.
func (w *web) post(ctx context.Context, client *http.Client, message any, more http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.address.URL, bytes.NewReader(encode(message)))
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, more)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	tracing.Inject(ctx, r.Header.Set)
	return w.do(client, r)
}

// get opens a stream of the older eras: the one outside of calls, or the rest of a stream after an event.
func (w *web) get(ctx context.Context, lastID string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.address.URL, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/event-stream")
	if lastID != "" {
		r.Header.Set(mcp.HeaderLastEventID, lastID)
	}
	return w.do(w.client, r)
}

func (w *web) do(client *http.Client, r *http.Request) (*http.Response, error) {
	version := w.speaks()
	if version != "" && r.Header.Get(mcp.HeaderProtocolVersion) == "" {
		r.Header.Set(mcp.HeaderProtocolVersion, version)
	}
	if id := w.sessionID(); id != "" {
		r.Header.Set(mcp.HeaderSessionID, id)
	}
	return client.Do(r)
}

// notify sends a notification. An error means that it could not be sent.
func (w *web) notify(ctx context.Context, n notification) error {
	resp, err := w.post(ctx, w.client, n, nil)
	if err != nil {
		return err
	}
	drain(resp)
	return nil // whatever the status: there is nothing to do about it, and what comes next has an answer
}

// drain reads a short unused body, so that its connection can be reused.
func drain(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	resp.Body.Close()
}

// close ends the session, as a courtesy: a server that ignores it will expire the session itself.
func (w *web) close() {
	if w.sessionID() != "" {
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		if r, err := http.NewRequestWithContext(ctx, http.MethodDelete, w.address.URL, nil); err == nil {
			if resp, err := w.do(w.client, r); err == nil {
				drain(resp)
			}
		}
	}
	w.client.CloseIdleConnections()
}

// mediaType returns the media type of an answer, empty where it has no valid one.
func mediaType(resp *http.Response) string {
	declared := resp.Header.Get("Content-Type")
	if declared == "application/json" || declared == "text/event-stream" {
		return declared
	}
	media, _, _ := mime.ParseMediaType(declared)
	return media
}
