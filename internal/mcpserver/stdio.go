package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/registry"
)

// Stdio serves one branch, as the operator, to one client that writes one message per line to in and reads
// one per line from out; nothing else is written to out. It returns when in ends, after the calls in flight
// (for at most Limits.Drain); when ctx ends; when the reader of out has closed it; or with an error when out can't
// be written, or is not read any more at the end. A branch that is removed meanwhile answers errors until it
// exists again.
func (s *Server) Stdio(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	root, ok := s.Root(name, token.Operator())
	if !ok {
		g, release := s.Pin()
		defer release()
		return g.UnknownBranch(name)
	}
	return s.attach(ctx, name, root, token.Operator(), in, out)
}

// StdioBearer is Stdio for the bearer of a token. It also returns when the token is revoked, expires or
// changes. For a branch that the token doesn't open it returns the error of an unknown branch.
func (s *Server) StdioBearer(ctx context.Context, secret, name string, in io.Reader, out io.Writer) error {
	t := s.Tokens.Find(secret)
	if t == nil {
		s.RecordRefused(decision.TokenInvalid, name, nil, "", "")
		return errTokenNotGood
	}
	root, ok := s.Root(name, token.Bearer(t))
	if !ok {
		who := token.Bearer(t).Principal
		s.RecordRefused(decision.UnknownBranch, name, &who, "", "")
		g, release := s.Pin()
		defer release()
		return g.UnknownBranchFor(name, who, token.Bearer(t).MayOpen)
	}
	err := s.attach(ctx, name, root, token.Bearer(t), in, out)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		return errTokenNotGood // the token was valid at the start
	}
	return err
}

var errTokenNotGood = errors.New("the token is not good: it is mistyped, expired, revoked, or was never made here")

// attach serves a branch on a pair of streams to a caller.
func (s *Server) attach(ctx context.Context, name, root string, c token.Caller, in io.Reader, out io.Writer) error {
	b := s.newBranch(name, root, c)
	defer func() {
		b.end()
		b.pending.wait()
	}()
	g, release := s.Pin()
	if path, ok := b.path(g); ok {
		b.advertisedView = path.View.Digest()
	}
	release()
	s.mu.Lock()
	s.stdioBranches[b] = true
	good := s.authorized(b)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.stdioBranches, b)
	}()
	if !good {
		return errTokenNotGood // the token was revoked meanwhile
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.ctx, func() {
		if s.Ctx.Err() == nil { // the caller's token is no longer valid
			cancel()
		}
	})()
	client := &stdio{branch: b, session: newStdioSession(), out: &lineWriter{w: out, broken: make(chan struct{})}}
	if err := b.mcp.RegisterSession(ctx, client.session); err != nil {
		return err
	}
	defer b.mcp.UnregisterSession(ctx, client.session.SessionID())
	client.listening, client.endListening = context.WithCancel(ctx)
	client.pump.Go(func() { client.notify(client.listening) })
	// A write to a client that doesn't read can't be cancelled, so shutdown waits for it only for a limited
	// time. A blocked write ends when out is closed, at the latest with the process.
	ended := make(chan error, 1)
	go func() { ended <- client.run(ctx, cancel, in) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(s.Limits.WriteTime)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return fmt.Errorf("the client does not read, and its last answers were not written within %s: %w", s.Limits.WriteTime, ctx.Err())
	}
}

// stdio is one client of Stdio.
type stdio struct {
	branch  *branch
	session *stdioSession // of the older eras
	out     *lineWriter
	inflight
	questions serverRequests

	calls sync.WaitGroup
	pump  sync.WaitGroup
	// listening is cancelled to end the subscriptions, which would otherwise never end.
	listening    context.Context
	endListening context.CancelFunc
}

func (s *stdio) run(ctx context.Context, cancel context.CancelFunc, in io.Reader) error {
	// A read of in can't be cancelled; the goroutine ends with in, at the latest with the process. It also
	// times the drain after in has ended, because this goroutine may be blocked on a client that doesn't
	// read.
	next := make(chan line)
	go func() {
		readLines(in, next, ctx.Done())
		late := time.AfterFunc(s.branch.server.Limits.Drain, cancel)
		<-ctx.Done()
		late.Stop()
	}()
	defer s.pump.Wait()
	defer s.endListening()
	for {
		select {
		case <-ctx.Done():
			s.calls.Wait()
			return ctx.Err()
		case <-s.out.broken:
			cancel()
			s.calls.Wait()
			if err := s.out.failure(); !errors.Is(err, syscall.EPIPE) {
				return err
			}
			return nil // the client has closed out, as many clients do to end
		case l, ok := <-next:
			if !ok {
				s.calls.Wait()
				return nil
			}
			if l.err != nil {
				cancel()
				s.calls.Wait()
				return fmt.Errorf("read a message: %w", l.err)
			}
			s.handle(ctx, l)
		}
	}
}

func (s *stdio) handle(ctx context.Context, l line) {
	defer func() {
		if p := recover(); p != nil {
			s.refuse(nil, s.branch.server.Panicked("a message", p))
		}
	}()
	if l.tooLong {
		s.refuse(nil, refuse(mcp.INVALID_REQUEST, "a message is at most 4 MiB"))
		return
	}
	if len(bytes.TrimSpace(l.data)) == 0 {
		return
	}
	m, refusal := scan(l.data)
	if refusal != nil {
		s.branch.malformed(m)
		s.refuse(m.id, refusal)
		return
	}
	e := eraOf(m, "")
	if !e.modern {
		m.from = &client{s.session.SessionID(), s.listening}
	}
	if m.method == mcp.MethodInitialize && m.id != nil {
		s.questions.declared(abilities(m.params), s.branch.later(s.session.SessionID()))
	}
	switch {
	case m.method == "":
		s.questions.answered(m) // ignored if no request waits for it any more
	case m.method == mcp.MethodNotificationCancelled && m.id == nil:
		if m.requestID != nil {
			s.cancel(m.requestID)
		}
	case mayBlock(m):
		s.background(ctx, m, e)
	default:
		// All other messages are answered synchronously and so in order: initialize before what follows it.
		s.answer(ctx, m, e)
	}
}

// background answers a message that may take long.
func (s *stdio) background(ctx context.Context, m *message, e era) {
	// If this loop waited for a slot, it could not read the client's cancellations, which free slots.
	place := s.branch.placeOf(m)
	if err := place.try(); err != nil {
		s.branch.recordRefused(decision.TooManyCalls, m)
		var full *registry.Error
		errors.As(err, &full) // try returns no other error
		s.refuse(m.id, refuseOverloaded(full))
		return
	}
	if m.method == mcp.MethodSubscriptionsListen {
		ctx = s.listening
	}
	ctx, done := s.track(ctx, m.id)
	work := func() {
		defer place.leave()
		defer done()
		s.answer(ctx, m, e)
	}
	if m.method == mcp.MethodSubscriptionsListen {
		s.pump.Go(work)
		return
	}
	s.calls.Go(work)
}

func (s *stdio) answer(ctx context.Context, m *message, e era) {
	if !answeredHere(m) {
		s.forward(ctx, m, e)
		return
	}
	var refusal *rpcError
	if e.modern {
		refusal = e.checkRequest()
	} else if !s.session.Initialized() {
		refusal = refuse(mcp.INVALID_REQUEST, "begin with initialize")
	}
	if refusal != nil {
		s.branch.malformed(m)
		s.refuse(m.id, refusal)
		return
	}
	if m.method == mcp.MethodSubscriptionsListen {
		if last := s.branch.listen(ctx, m, func(n []byte) { s.out.write(n) }); ctx.Err() == nil {
			s.out.write(last.parts...)
		}
		return
	}
	var to registry.Listener
	notices := &notificationQueue{write: func(n []byte) { s.out.write(n) }}
	if countsAsCall(m) {
		to = e.caller(e.wants(s.session.GetLogLevel()).listener(notices))
		if !e.modern {
			to.Client = s
			s.questions.by(notices, &to)
		}
	}
	r := s.branch.answer(ctx, m, e.modern, to)
	s.branch.relayed(m, notices.end())
	if cancelled(ctx) {
		return
	}
	s.out.write(r.parts...)
}

// forward passes a message to mcp-go. A modern request has no session.
func (s *stdio) forward(ctx context.Context, m *message, e era) {
	var session server.ClientSession
	if !e.modern {
		session = s.session
	}
	s.write(s.handOver(ctx, m, session))
}

// handOver returns mcp-go's answer to a message, nil if it has none.
func (s *stdio) handOver(ctx context.Context, m *message, session server.ClientSession) (response any) {
	defer func() {
		if p := recover(); p != nil {
			e := s.branch.server.Panicked(string(m.method), p)
			if m.id != nil {
				response = json.RawMessage(encodeError(m.id, e))
			}
		}
	}()
	if session != nil {
		ctx = s.branch.mcp.WithContext(ctx, session)
	}
	return s.branch.mcp.HandleMessage(ctx, m.body)
}

// notify writes the notifications of the older eras' session until ctx ends.
func (s *stdio) notify(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-s.session.notifications:
			s.write(n)
		}
	}
}

// write encodes and writes a message; nil writes nothing.
func (s *stdio) write(v any) {
	if v == nil {
		return
	}
	out, err := json.Marshal(v)
	if err != nil {
		s.branch.server.Log.Error("a message could not be encoded", "error", err)
		return
	}
	s.out.write(out)
}

func (s *stdio) refuse(id json.RawMessage, e *rpcError) { s.out.write(encodeError(id, e)) }

// lineWriter writes one message per line, each as a whole. After the first failed write it writes nothing
// more.
type lineWriter struct {
	mu     sync.Mutex
	w      io.Writer
	err    error
	broken chan struct{}
}

func (l *lineWriter) write(parts ...[]byte) {
	line := append(appendLine(make([]byte, 0, length(parts)+1), parts), '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	if _, err := l.w.Write(line); err != nil {
		l.err = fmt.Errorf("write a message: %w", err)
		close(l.broken)
	}
}

func (l *lineWriter) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// line is one line as read; if tooLong, data is empty.
type line struct {
	data    []byte
	tooLong bool
	err     error
}

// readLines sends each line of in until in ends, then closes next. A line that is too long is skipped and
// reported.
func readLines(in io.Reader, next chan<- line, stop <-chan struct{}) {
	defer close(next)
	r := bufio.NewReaderSize(in, 64<<10)
	send := func(l line) bool {
		select {
		case next <- l:
			return true
		case <-stop:
			return false
		}
	}
	for {
		l, err := readLine(r)
		if (len(l.data) > 0 || l.tooLong) && !send(l) {
			return
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			send(line{err: err})
			return
		}
	}
}

func readLine(r *bufio.Reader) (l line, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(l.data)+len(part) > maxMessage+1 {
			l = line{tooLong: true}
		}
		if !l.tooLong {
			l.data = append(l.data, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l, err
		}
	}
}

// stdioSession is mcp-go's ClientSession for a stdio client.
type stdioSession struct {
	id            string
	notifications chan mcp.JSONRPCNotification
	initialized   atomic.Bool
	level         atomic.Value // mcp.LoggingLevel
}

func newStdioSession() *stdioSession {
	s := &stdioSession{id: "stdio-" + registry.NewCallID(), notifications: make(chan mcp.JSONRPCNotification, 100)}
	s.level.Store(firstLevel)
	return s
}

func (s *stdioSession) SessionID() string { return s.id }

func (s *stdioSession) Initialize() { s.initialized.Store(true) }

func (s *stdioSession) Initialized() bool { return s.initialized.Load() }

func (s *stdioSession) SetLogLevel(level mcp.LoggingLevel) { s.level.Store(level) }

func (s *stdioSession) GetLogLevel() mcp.LoggingLevel { return s.level.Load().(mcp.LoggingLevel) }

func (s *stdioSession) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.notifications }

var _ server.SessionWithLogging = (*stdioSession)(nil)
