package serve

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

	"github.com/catalogd/catalogd/registry"
)

// Stdio serves one branch to one client that writes a message a line to in and reads one a line from out; out carries
// nothing else. It returns when in ends, after the calls in flight (for at most the limit Drain); when ctx ends; when
// the reader of out has gone; or with an error when out can't be written, or is not read any more at the end. A branch
// that is removed meanwhile answers errors until it is back.
func (f *Front) Stdio(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	if err := f.named(name); err != nil {
		return err
	}
	return f.attach(ctx, name, operator(), in, out)
}

// StdioBearer is Stdio for the bearer of a token, in place of the operator. It also returns when the token is not good any
// more. A branch that the token doesn't open is one that there is not.
func (f *Front) StdioBearer(ctx context.Context, secret, name string, in io.Reader, out io.Writer) error {
	t := f.Tokens.Find(secret)
	if t == nil {
		return errTokenNotGood
	}
	if !t.Opens(name) || f.named(name) != nil {
		return &UnknownBranchError{Name: name}
	}
	err := f.attach(ctx, name, bearer(t), in, out)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		return errTokenNotGood // any more
	}
	return err
}

var errTokenNotGood = errors.New("the token is not good: it is mistyped, expired, revoked, or was never made here")

// attach serves a branch on a pair of streams to a caller.
func (f *Front) attach(ctx context.Context, name string, c caller, in io.Reader, out io.Writer) error {
	b := f.newBranch(name, c)
	defer func() {
		b.end()
		b.held.wait()
	}()
	g, release := f.Pin()
	if path, ok := b.path(g); ok {
		b.shown = path.View.Digest()
	}
	release()
	f.mu.Lock()
	f.attached[b] = true
	good := f.authorized(b)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.attached, b)
	}()
	if !good {
		return errTokenNotGood // since this moment
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.ctx, func() {
		if f.ctx.Err() == nil { // the caller may go on no more
			cancel()
		}
	})()
	s := &stdio{branch: b, session: newStdioSession(), out: &lines{w: out, broken: make(chan struct{})}}
	if err := b.mcp.RegisterSession(ctx, s.session); err != nil {
		return err
	}
	defer b.mcp.UnregisterSession(ctx, s.session.SessionID())
	s.listening, s.endListening = context.WithCancel(ctx)
	s.pump.Go(func() { s.notify(s.listening) })
	// A write to a client that reads nothing can't be stopped, so the end doesn't wait for it for ever: what is stuck in
	// one ends with out, at the latest with the process.
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx, cancel, in) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(f.Limits.WriteTime)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return fmt.Errorf("the client does not read, and its last answers were not written within %s: %w", f.Limits.WriteTime, ctx.Err())
	}
}

// stdio is one client of Stdio.
type stdio struct {
	branch  *branch
	session *stdioSession // of the older eras
	out     *lines
	inflight
	questions questions

	calls sync.WaitGroup
	pump  sync.WaitGroup
	// listening ends the subscriptions, which would otherwise never end.
	listening    context.Context
	endListening context.CancelFunc
}

func (s *stdio) run(ctx context.Context, cancel context.CancelFunc, in io.Reader) error {
	// A read of in can't be stopped; the goroutine ends with in, at the latest with the process. It times what is left to do
	// after that, because this one may be writing to a client that doesn't read.
	next := make(chan line)
	go func() {
		readLines(in, next, ctx.Done())
		late := time.AfterFunc(s.branch.front.Limits.Drain, cancel)
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
			return nil // nobody is there to be told, which is how many clients end
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
			s.refuse(nil, s.branch.front.panicked("a message", p))
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
		s.refuse(m.id, refusal)
		return
	}
	e := eraOf(m, "")
	if !e.modern {
		m.from = &client{s.session.SessionID(), s.listening}
	}
	if m.method == mcp.MethodInitialize && m.id != nil {
		s.questions.declared(m.params, s.branch.later(s.session.SessionID()))
	}
	switch {
	case m.method == "":
		s.questions.answered(m) // or nobody waits for it any more
	case m.method == mcp.MethodNotificationCancelled && m.id == nil:
		if m.requestID != nil {
			s.cancel(m.requestID)
		}
	case waits(m):
		s.background(ctx, m, e)
	default:
		// Everything else answers at once, so in order: initialize comes before what follows it.
		s.answer(ctx, m, e)
	}
}

// background answers a message that may take its time.
func (s *stdio) background(ctx context.Context, m *message, e era) {
	// A client on a pipe that waited here for a place could not cancel what holds the places.
	if !s.branch.calls.try() {
		s.refuse(m.id, refuse(mcp.INTERNAL_ERROR, "too many calls at once; nothing was run"))
		return
	}
	if m.method == mcp.MethodSubscriptionsListen {
		ctx = s.listening
	}
	ctx, done := s.begin(ctx, m.id)
	work := func() {
		defer s.branch.calls.leave()
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
	if !own(m) {
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
	notices := &relay{write: func(n []byte) { s.out.write(n) }}
	if runs(m) {
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

// forward hands a message to mcp-go. A modern request has no session.
func (s *stdio) forward(ctx context.Context, m *message, e era) {
	var session server.ClientSession
	if !e.modern {
		session = s.session
	}
	s.write(s.handOver(ctx, m, session))
}

// handOver is mcp-go's answer to a message, nil where it has none.
func (s *stdio) handOver(ctx context.Context, m *message, session server.ClientSession) (response any) {
	defer func() {
		if p := recover(); p != nil {
			e := s.branch.front.panicked(string(m.method), p)
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

// write writes a message; nil is none.
func (s *stdio) write(v any) {
	if v == nil {
		return
	}
	out, err := json.Marshal(v)
	if err != nil {
		s.branch.front.Log.Error("a message could not be encoded", "error", err)
		return
	}
	s.out.write(out)
}

func (s *stdio) refuse(id json.RawMessage, e *rpcError) { s.out.write(encodeError(id, e)) }

// lines writes a message a line, each whole. After the first failure it writes no more.
type lines struct {
	mu     sync.Mutex
	w      io.Writer
	err    error
	broken chan struct{}
}

func (l *lines) write(parts ...[]byte) {
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

func (l *lines) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// line is one line as it was read; tooLong has no data.
type line struct {
	data    []byte
	tooLong bool
	err     error
}

// readLines sends each line of in until in ends, then closes next. A line that is too long is read to its end and told.
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

// stdioSession is mcp-go's ClientSession for a client on a pipe.
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

func (s *stdioSession) SessionID() string                                   { return s.id }
func (s *stdioSession) Initialize()                                         { s.initialized.Store(true) }
func (s *stdioSession) Initialized() bool                                   { return s.initialized.Load() }
func (s *stdioSession) SetLogLevel(level mcp.LoggingLevel)                  { s.level.Store(level) }
func (s *stdioSession) GetLogLevel() mcp.LoggingLevel                       { return s.level.Load().(mcp.LoggingLevel) }
func (s *stdioSession) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.notifications }

var _ server.SessionWithLogging = (*stdioSession)(nil)
