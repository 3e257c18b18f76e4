package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
)

const (
	// strayLines caps the consecutive lines that are not messages; more end the connection.
	strayLines = 10_000
	// queued caps the messages waiting for a child that reads slowly.
	queued = 64
)

var (
	errStreamEnded = errors.New("it closed its standard output")
	errClosed      = errors.New("its connection is closed")
)

// tooLargeError reports that one message, or one answer, exceeded the cap.
type tooLargeError struct{ limit int64 }

func (e tooLargeError) Error() string {
	return fmt.Sprintf("it sent more than %d bytes in one answer", e.limit)
}

// pipe carries messages over a child's standard input and output, one JSON-RPC message per line (MCP
// 2025-11-25, Transports, stdio). It caps the length of a line, never blocks a caller beyond its context when
// the child does not read, and records why the connection ended. A line may be a batch of messages
// (2025-03-26).
//
// A child's protocol violations affect nothing else: lines that are not messages are counted and dropped,
// responses to no pending request are dropped, and the child's own requests are refused (a ping is answered)
// except those that asks takes.
type pipe struct {
	in  io.WriteCloser
	out io.Reader
	max int64
	log *slog.Logger
	// onNotification receives each notification of the child, and answered the id of each response, in the order in
	// which they came, from the single reading goroutine. They are set before start and must not block.
	onNotification func(method string, params json.RawMessage)
	answered       func(id string)
	// ignored is called for each message and line that is dropped; nil counts none.
	ignored func()
	// asks returns a function that handles a request of the child; nil where it is refused. It is called as
	// onNotification is, the function it returns in a goroutine of its own.
	asks func(id json.RawMessage, method string, params json.RawMessage) func() *response

	writes chan *outgoing
	mu     sync.Mutex
	asked  map[string]chan *response
	ending sync.Once
	done   chan struct{}
	cause  error // written before done closes
	loops  sync.WaitGroup
}

type outgoing struct {
	ctx   context.Context
	line  []byte
	taken atomic.Bool // by the writer, before the first byte is sent, or by the caller that abandons it
}

func newPipe(in io.WriteCloser, out io.Reader, limit int64, log *slog.Logger) *pipe {
	return &pipe{
		in: in, out: out, max: limit, log: log,
		writes: make(chan *outgoing, queued),
		asked:  make(map[string]chan *response),
		done:   make(chan struct{}),
	}
}

// start begins to read and to write.
func (p *pipe) start() {
	p.loops.Go(p.write)
	p.loops.Go(func() { p.end(p.read()) })
}

// close ends the connection. The loops end when the child's streams do, so the owner ends the child and then
// calls wait.
func (p *pipe) close() { p.end(errClosed) }

func (p *pipe) wait() { p.loops.Wait() }

func (p *pipe) end(cause error) {
	p.ending.Do(func() {
		p.cause = cause
		close(p.done)
		// Already closed where the child has ended; most servers take this as the request to end.
		_ = p.in.Close()
	})
}

func (p *pipe) message(ctx context.Context, v any) (*outgoing, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // arguments go out as they came
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode a message: %w", err)
	}
	return &outgoing{ctx: ctx, line: b.Bytes()}, nil
}

// request sends one request and waits for its answer, the end of ctx or the end of the connection.
func (p *pipe) request(ctx context.Context, x *exchange, req request) (*response, error) {
	msg, err := p.message(ctx, req)
	if err != nil {
		return nil, err
	}
	answer := make(chan *response, 1)
	p.mu.Lock()
	p.asked[x.id] = answer
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.asked, x.id)
		p.mu.Unlock()
	}()

	if err := p.send(ctx, msg); err != nil {
		return nil, notSent{err}
	}
	select {
	case resp := <-answer:
		return resp, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-p.done:
		select {
		case resp := <-answer: // it came just before the end
			return resp, nil
		default:
		}
		err = p.cause
	}
	if msg.taken.CompareAndSwap(false, true) { // so that the writer leaves it
		err = notSent{err}
	}
	return nil, err
}

// notSent marks a failure before any byte of the request went out.
type notSent struct{ error }

func (e notSent) Unwrap() error { return e.error }

// notify queues one notification; once queued it is sent even if ctx ends.
func (p *pipe) notify(ctx context.Context, n notification) error {
	msg, err := p.message(context.WithoutCancel(ctx), n)
	if err != nil {
		return err
	}
	return p.send(ctx, msg)
}

func (p *pipe) send(ctx context.Context, msg *outgoing) error {
	select {
	case <-p.done:
		return p.cause
	case <-ctx.Done():
		return ctx.Err()
	case p.writes <- msg:
		return nil
	}
}

// write is the only writer. A request whose caller has stopped waiting is not sent any more.
func (p *pipe) write() {
	for {
		select {
		case <-p.done:
			return
		case msg := <-p.writes:
			if msg.ctx.Err() != nil {
				continue // whoever waits for its answer abandons it
			}
			if !msg.taken.CompareAndSwap(false, true) {
				continue
			}
			if _, err := p.in.Write(msg.line); err != nil {
				// The reader sees the end too, and what the child said before it; a child that only stopped
				// reading fails its calls by their deadlines.
				return
			}
		}
	}
}

func (p *pipe) read() error {
	r := bufio.NewReaderSize(p.out, 32<<10)
	stray := 0
	for {
		line, err := readLine(r, p.max)
		var large tooLargeError
		if errors.As(err, &large) {
			return err
		}
		if err != nil {
			return errStreamEnded // or its reading was ended, after the child
		}
		if p.receive(line) {
			stray = 0
			continue
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		p.drop()
		if stray++; stray == 1 {
			p.log.Warn("upstream writes to standard output what is no MCP message; it is ignored", "bytes", len(line))
		}
		if stray > strayLines {
			return fmt.Errorf("it wrote %d lines to standard output that are no MCP messages", stray)
		}
	}
}

// readLine is one line of at most limit bytes, without its end.
func readLine(r *bufio.Reader, limit int64) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if int64(len(line)+len(part)) > limit {
			return nil, tooLargeError{limit}
		}
		line = append(line, part...)
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(line) > 0:
			return line, nil
		case err != nil:
			return nil, err
		}
		return bytes.TrimRight(line, "\r\n"), nil
	}
}

// receive handles one line and reports whether it held a message.
func (p *pipe) receive(line []byte) (held bool) {
	line = withoutBOM(line)
	if bytes.HasPrefix(line, []byte("[")) {
		all, err := batch(line)
		if err != nil {
			return false
		}
		for _, one := range all {
			held = p.take(one) || held
		}
		return held
	}
	return p.take(line)
}

// take handles one message, and reports whether it was one.
func (p *pipe) take(one []byte) bool {
	var m message
	if len(one) == 0 || one[0] != '{' || m.read(one) != nil {
		return false
	}
	switch {
	case m.answers():
		id := key(m.ID)
		p.mu.Lock()
		answer, ok := p.asked[id]
		delete(p.asked, id)
		p.mu.Unlock()
		if !ok {
			p.drop()
			p.log.Debug("upstream answers what was not asked, or not any more; it is ignored", "id", clip(string(m.ID), 80))
			break
		}
		if p.answered != nil {
			p.answered(id)
		}
		answer <- m.response()
	case m.asks():
		p.question(m.ID, *m.Method, m.Params)
	case m.notifies() && p.onNotification != nil:
		p.onNotification(*m.Method, m.Params)
	case !m.notifies():
		p.drop()
	}
	return true
}

func (p *pipe) drop() {
	if p.ignored != nil {
		p.ignored()
	}
}

// question handles a request of the server.
func (p *pipe) question(id json.RawMessage, method string, params json.RawMessage) {
	if p.asks != nil {
		if ask := p.asks(id, method, params); ask != nil {
			p.loops.Go(func() { p.reply(ask()) })
			return
		}
	}
	p.reply(refusal(id, method))
}

// reply answers a request of the server. The answer is dropped when the queue is full.
func (p *pipe) reply(answer *response) {
	msg, err := p.message(context.Background(), answer)
	if err != nil {
		return // an id always encodes: it was decoded from JSON
	}
	select {
	case p.writes <- msg:
	default:
	}
}
