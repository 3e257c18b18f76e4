package egress

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
)

// UnsentError is a failure before anything left this process: no program was started, and no byte of a
// request was sent.
type UnsentError struct{ Err error }

func (e *UnsentError) Error() string { return e.Err.Error() }

// Unwrap says what failed.
func (e *UnsentError) Unwrap() error { return e.Err }

// onceTransport sends each request at most once, for requests with a side effect (ClientConfig.Once).
//
// http.Transport's RoundTrip does not do that. Over HTTP/1.1 it repeats a request on another connection where
// a kept one turns out to be closed, if the method is GET, HEAD, OPTIONS or TRACE, or the request has an
// Idempotency-Key. Over HTTP/2 it repeats any request, up to seven times, that a server refuses
// (REFUSED_STREAM, GOAWAY, and PROTOCOL_ERROR as well) and whose body is empty or can be read anew. So each
// request gets an http.ClientConn, which is one connection with neither a pool above it nor a loop around it,
// and which ends with the answer. That the connection is new has a second use: a server that closes idle
// connections can't do so just when the request arrives, which nobody could tell from a request that was run
// and not answered.
type onceTransport struct {
	transport *http.Transport
	// turns holds a token for each connection; nil means no cap.
	turns chan struct{}
}

func newOnceTransport(transport *http.Transport, limit int) *onceTransport {
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		w := ctx.Value(sentKey{}).(*sentConn)
		w.Conn = conn
		return w, nil
	}
	transport.DisableKeepAlives = true // says Connection: close
	transport.DisableCompression = true
	transport.MaxConnsPerHost = 0 // counts pooled connections, and panics at the end of any other; turns holds the limit
	o := &onceTransport{transport: transport}
	if limit > 0 {
		o.turns = make(chan struct{}, limit)
	}
	return o
}

// RoundTrip is http.RoundTripper's. Its error is an *UnsentError where no byte of the request was sent.
func (o *onceTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	fail := func(err error, unsent bool) (*http.Response, error) {
		if req.Body != nil {
			req.Body.Close()
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if unsent {
			err = &UnsentError{err}
		}
		return nil, err
	}
	if o.turns != nil {
		select {
		case o.turns <- struct{}{}:
		case <-ctx.Done():
			return fail(ctx.Err(), true)
		}
	}
	port := req.URL.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[req.URL.Scheme]
	}
	out := &sentConn{}
	conn, err := o.transport.NewClientConn(
		context.WithValue(ctx, sentKey{}, out), req.URL.Scheme, net.JoinHostPort(req.URL.Hostname(), port),
	)
	if err != nil {
		o.leave()
		return fail(err, true)
	}
	out.watch()
	resp, err := conn.RoundTrip(req)
	if err != nil {
		unsent := out.stop()
		conn.Close()
		o.leave()
		return fail(err, unsent)
	}
	resp.Body = &closingBody{ReadCloser: resp.Body, end: sync.OnceFunc(func() {
		conn.Close()
		o.leave()
	})}
	return resp, nil
}

func (o *onceTransport) leave() {
	if o.turns != nil {
		<-o.turns
	}
}

// CloseIdleConnections does nothing, as no connection is kept.
func (o *onceTransport) CloseIdleConnections() {}

// sentKey is the key of a context's watched.
type sentKey struct{}

// sentConn is a connection that records whether anything was written to it since watch. Over TLS and HTTP/2
// the protocol's own frames count too, so it may report more than was sent of the request, never less.
type sentConn struct {
	net.Conn
	mu                         sync.Mutex
	watching, wrote, noFurther bool
}

func (w *sentConn) Write(p []byte) (int, error) {
	w.mu.Lock()
	refused := w.noFurther
	w.wrote = w.wrote || w.watching && !refused
	w.mu.Unlock()
	if refused {
		return 0, net.ErrClosed
	}
	return w.Conn.Write(p)
}

// Close refuses further writes and closes the connection.
func (w *sentConn) Close() error {
	w.stop()
	return w.Conn.Close()
}

// watch begins to record writes.
func (w *sentConn) watch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watching = true
}

// stop refuses further writes, and reports whether nothing was written since watch.
func (w *sentConn) stop() (unsent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noFurther = true
	return !w.wrote
}

// closingBody is the body of an answer, with which its connection ends.
type closingBody struct {
	io.ReadCloser
	end func()
}

func (b *closingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

func (b *closingBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}
