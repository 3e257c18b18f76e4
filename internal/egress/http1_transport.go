package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	// maxIdle is how many unused connections one http1Transport keeps.
	maxIdle = 64
	// maxInterim is how many informational responses (1xx) may precede the final one.
	maxInterim = 5
)

// http1Transport speaks HTTP/1.1 in the clear to one host, on the caller's goroutine: it writes the request
// to a connection and reads the response from it. http.Transport hands each request to one goroutine and
// takes its response from another; BENCHMARKS.md compares the two. The bytes are net/http's: Request.Write
// writes them and ReadResponse reads them.
//
// A connection is reused only if its last response was read to the end and announced no close, and if nothing
// is readable on it: neither its end nor bytes that answer no request. A request whose context ends closes
// its connection. Expect: 100-continue and upgrades are not supported.
type http1Transport struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	// turns holds a token for each connection in use; nil means no cap.
	turns chan struct{}

	mu     sync.Mutex
	idle   []*http1Conn // the one that was used last is the last
	expiry *time.Timer  // closes those that were not used for idleTime; nil until there is one
}

// http1Conn is one connection, with its buffers.
type http1Conn struct {
	net.Conn
	host string
	in   *bufio.Reader
	out  *bufio.Writer
	// left is how many bytes may still be read.
	left int64
	used time.Time
}

// Read reads from the connection, at most what is left.
func (l *http1Conn) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLongHeader
	}
	n, err := l.Conn.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

var (
	errLongHeader         = errors.New("the head of the answer is too long")
	errTooManyInterim     = errors.New("too many informational answers before the final one")
	errSwitchingProtocols = errors.New("the answer is a 101, which switches protocols, and was not requested")
)

// RoundTrip is http.RoundTripper's. It follows the request's context to the end of the answer's body.
func (s *http1Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	ctx := req.Context()
	if s.turns != nil {
		select {
		case s.turns <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	resp, err := s.roundTrip(req)
	if err != nil {
		s.leave()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return resp, err
}

func (s *http1Transport) leave() {
	if s.turns != nil {
		<-s.turns
	}
}

// roundTrip sends the request over an idle connection, or a new one. It retries once, over a new connection,
// only when an idle one turns out to be closed before anything came back, and the request is a GET or HEAD
// without a body, which may be repeated (RFC 9110, 9.2.2).
func (s *http1Transport) roundTrip(req *http.Request) (*http.Response, error) {
	if l := s.takeIdle(req.URL.Host); l != nil {
		resp, silent, err := s.send(l, req)
		if !silent || req.Context().Err() != nil || req.Method != http.MethodGet && req.Method != http.MethodHead || req.ContentLength != 0 {
			return resp, err
		}
	}
	host := req.URL.Host
	if req.URL.Port() == "" {
		host = net.JoinHostPort(req.URL.Hostname(), "80")
	}
	conn, err := s.dial(req.Context(), "tcp", host)
	if err != nil {
		return nil, err
	}
	l := &http1Conn{Conn: conn, host: req.URL.Host}
	l.in, l.out = bufio.NewReader(l), bufio.NewWriter(conn)
	resp, _, err := s.send(l, req)
	return resp, err
}

// send sends the request over one connection. silent says that it failed before a byte of an answer came.
func (s *http1Transport) send(l *http1Conn, req *http.Request) (resp *http.Response, silent bool, err error) {
	stop := context.AfterFunc(req.Context(), func() { l.Close() })
	l.left = maxResponseHeader
	// A server may answer and hang up before it has read everything, so an answer counts for more than a
	// failure to send.
	sendErr := req.Write(l.out)
	if sendErr == nil {
		sendErr = l.out.Flush()
	}
	_, err = l.in.Peek(1)
	silent = err != nil
	for interim := 0; err == nil; interim++ {
		resp, err = http.ReadResponse(l.in, req)
		switch {
		case err != nil:
		case resp.StatusCode == http.StatusSwitchingProtocols:
			err = errSwitchingProtocols
		case resp.StatusCode >= 200:
			l.left = math.MaxInt64
			body := &responseBody{ReadCloser: resp.Body, ctx: req.Context(), from: s, line: l, stop: stop, reusable: sendErr == nil && !resp.Close}
			if resp.Body == http.NoBody {
				body.end(true)
			} else {
				resp.Body = body
			}
			return resp, false, nil
		case interim == maxInterim:
			err = errTooManyInterim
		}
	}
	stop()
	l.Close()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if silent && sendErr != nil {
		err = sendErr
	}
	return nil, silent, err
}

// answer is the body of an answer, which holds its connection until it has been read or is closed.
type responseBody struct {
	io.ReadCloser
	ctx      context.Context // the request's
	from     *http1Transport
	line     *http1Conn
	stop     func() bool
	reusable bool
	once     sync.Once
}

func (a *responseBody) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil {
		a.end(err == io.EOF)
		if err != io.EOF && a.ctx.Err() != nil {
			err = context.Cause(a.ctx)
		}
	}
	return n, err
}

// Close ends the response; the connection is closed unless the body was read to its end.
func (a *responseBody) Close() error {
	a.end(false)
	return nil
}

func (a *responseBody) end(complete bool) {
	a.once.Do(func() {
		// Where stop is too late, the context has ended and closes the connection.
		if a.stop() && complete && a.reusable {
			a.from.putIdle(a.line)
		} else {
			a.line.Close()
		}
		a.from.leave()
	})
}

// takeIdle removes and returns an idle connection to host that can be reused; nil where there is none.
func (s *http1Transport) takeIdle(host string) *http1Conn {
	for {
		s.mu.Lock()
		i := len(s.idle) - 1
		for i >= 0 && s.idle[i].host != host {
			i--
		}
		if i < 0 {
			s.mu.Unlock()
			return nil
		}
		l := s.idle[i]
		s.idle = slices.Delete(s.idle, i, i+1)
		s.mu.Unlock()
		if l.isReusable() {
			return l
		}
		l.Close()
	}
}

// isReusable reports whether the connection is open, with nothing to read on it.
func (l *http1Conn) isReusable() bool {
	conn, ok := l.Conn.(syscall.Conn)
	if !ok || l.in.Buffered() > 0 {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	reusable := false
	err = raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		reusable = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	})
	return reusable && err == nil
}

func (s *http1Transport) putIdle(l *http1Conn) {
	l.used = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) == maxIdle {
		l.Close()
		return
	}
	s.idle = append(s.idle, l)
	if s.expiry == nil {
		s.expiry = time.AfterFunc(idleTime, s.expire)
	}
}

// expire closes connections that were idle for idleTime, and schedules itself again while some are left.
func (s *http1Transport) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = slices.DeleteFunc(s.idle, func(l *http1Conn) bool {
		old := time.Since(l.used) >= idleTime
		if old {
			l.Close()
		}
		return old
	})
	if len(s.idle) == 0 {
		s.expiry = nil
		return
	}
	s.expiry.Reset(idleTime)
}

// CloseIdleConnections drops the connections that are open and unused.
func (s *http1Transport) CloseIdleConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.idle {
		l.Close()
	}
	s.idle = nil
	if s.expiry != nil {
		s.expiry.Stop()
		s.expiry = nil
	}
}
