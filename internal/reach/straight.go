package reach

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
	// maxIdle is how many unused connections one straight keeps, as the http.Transport beside it does.
	maxIdle = 64
	// idleTime is how long it keeps them.
	idleTime = 90 * time.Second
	// maxAnswerHeader is how many bytes the head of an answer may have.
	maxAnswerHeader = 256 << 10
	// maxInterim is how many informational answers (1xx) may come before the final one.
	maxInterim = 5
)

// straight speaks HTTP/1.1 in the clear to one host: the caller's goroutine writes the request to a connection and reads
// the answer from it. http.Transport has two goroutines of its own for each connection, and handing a request to one and
// taking its answer from the other costs more than the call of a server on this machine itself. What is on the wire is
// net/http's all the same: Request.Write writes it and ReadResponse reads it.
//
// A connection is used again only when its last answer was read to the end and announced no close, and when nothing stands
// on it, neither an end nor bytes that nobody asked for. A request whose context ends closes its connection. Expect:
// 100-continue and upgrades are not supported.
type straight struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	// turns holds a token for each connection in use; nil where their number has no cap.
	turns chan struct{}

	mu    sync.Mutex
	idle  []*line     // the one that was used last is the last
	sweep *time.Timer // closes those that were not used for idleTime; nil until there is one
}

// line is one connection.
type line struct {
	net.Conn
	host string
	in   *bufio.Reader
	out  *bufio.Writer
	// left is how many bytes may still be read.
	left int64
	used time.Time
}

// Read is the connection's, within what is left.
func (l *line) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLongHead
	}
	n, err := l.Conn.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

var (
	errLongHead  = errors.New("the head of the answer is too long")
	errInterim   = errors.New("too many informational answers before the final one")
	errSwitching = errors.New("the answer switches protocols, which nobody asked for")
)

// RoundTrip is http.RoundTripper's. It follows the request's context to the end of the answer's body.
func (s *straight) RoundTrip(req *http.Request) (*http.Response, error) {
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
	resp, err := s.exchange(req)
	if err != nil {
		s.leave()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return resp, err
}

func (s *straight) leave() {
	if s.turns != nil {
		<-s.turns
	}
}

// exchange sends the request, over a new connection where there is none. It sends one again, over a new connection, only
// where that changes nothing: when a used one turns out to be closed before anything came back, and the request can be
// repeated (RFC 9110, 9.2.2).
func (s *straight) exchange(req *http.Request) (*http.Response, error) {
	if l := s.take(req.URL.Host); l != nil {
		resp, silent, err := s.over(l, req)
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
	l := &line{Conn: conn, host: req.URL.Host}
	l.in, l.out = bufio.NewReader(l), bufio.NewWriter(conn)
	resp, _, err := s.over(l, req)
	return resp, err
}

// over sends the request over one connection. silent says that it failed before a byte of an answer came.
func (s *straight) over(l *line, req *http.Request) (resp *http.Response, silent bool, err error) {
	stop := context.AfterFunc(req.Context(), func() { l.Close() })
	l.left = maxAnswerHeader
	// A server may answer and hang up before it has read everything, so an answer counts for more than a failure to send.
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
			err = errSwitching
		case resp.StatusCode >= 200:
			l.left = math.MaxInt64
			body := &answer{ReadCloser: resp.Body, ctx: req.Context(), from: s, line: l, stop: stop, reusable: sendErr == nil && !resp.Close}
			if resp.Body == http.NoBody {
				body.end(true)
			} else {
				resp.Body = body
			}
			return resp, false, nil
		case interim == maxInterim:
			err = errInterim
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
type answer struct {
	io.ReadCloser
	ctx      context.Context // the request's
	from     *straight
	line     *line
	stop     func() bool
	reusable bool
	once     sync.Once
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil {
		a.end(err == io.EOF)
		if err != io.EOF && a.ctx.Err() != nil {
			err = context.Cause(a.ctx)
		}
	}
	return n, err
}

// Close ends the answer; one that was not read to its end takes its connection with it.
func (a *answer) Close() error {
	a.end(false)
	return nil
}

func (a *answer) end(complete bool) {
	a.once.Do(func() {
		// Where stop is too late, the context has ended and closes the connection.
		if a.stop() && complete && a.reusable {
			a.from.keep(a.line)
		} else {
			a.line.Close()
		}
		a.from.leave()
	})
}

// take returns an idle connection to host that can be used; nil where there is none.
func (s *straight) take(host string) *line {
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
		if l.quiet() {
			return l
		}
		l.Close()
	}
}

// quiet reports whether the connection is open, with nothing to read on it.
func (l *line) quiet() bool {
	conn, ok := l.Conn.(syscall.Conn)
	if !ok || l.in.Buffered() > 0 {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	})
	return quiet && err == nil
}

func (s *straight) keep(l *line) {
	l.used = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) == maxIdle {
		l.Close()
		return
	}
	s.idle = append(s.idle, l)
	if s.sweep == nil {
		s.sweep = time.AfterFunc(idleTime, s.expire)
	}
}

// expire closes what was not used for idleTime, and comes again as long as something is kept.
func (s *straight) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = slices.DeleteFunc(s.idle, func(l *line) bool {
		old := time.Since(l.used) >= idleTime
		if old {
			l.Close()
		}
		return old
	})
	if len(s.idle) == 0 {
		s.sweep = nil
		return
	}
	s.sweep.Reset(idleTime)
}

// CloseIdleConnections drops the connections that are open and unused.
func (s *straight) CloseIdleConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.idle {
		l.Close()
	}
	s.idle = nil
	if s.sweep != nil {
		s.sweep.Stop()
		s.sweep = nil
	}
}
