package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/reach"
	"github.com/catalogd/catalogd/registry"
)

const (
	// farewell is how long a child may take to end by itself once its standard input is closed, and how long its exit
	// status is waited for when it closed its standard output.
	farewell = time.Second
	// lastWords is how much of a child's standard error stands in an error for the model; the operator's has detailSize.
	lastWords, detailSize = 400, 4 << 10
)

// dial makes a session within ctx.
func (l *link) dial(ctx context.Context) (*session, *failure) {
	if l.up.Server.HTTP != nil {
		return l.dialHTTP(ctx)
	}
	pinned := l.up.Server.Protocol
	if pinned != "" {
		return l.dialStdio(ctx, pinned, pinned)
	}
	first := ""
	if l.legacy {
		first = mcp.LATEST_LEGACY_PROTOCOL_VERSION
	}
	s, f := l.dialStdio(ctx, first, "")
	if f != nil && first == "" && f.drop && ctx.Err() == nil {
		// The child ended while it was asked. Some older servers do that at any message but initialize.
		s, f = l.dialStdio(ctx, mcp.LATEST_LEGACY_PROTOCOL_VERSION, "")
	}
	l.legacy = f == nil && !mcp.IsModernProtocol(s.version)
	return s, f
}

// dialStdio starts the child. first is the version that it is asked for first, empty for the newest, and pinned the only
// one that is agreed to.
func (l *link) dialStdio(ctx context.Context, first, pinned string) (*session, *failure) {
	stdio := l.up.Server.Stdio
	env := make(map[string]reach.Value, len(stdio.Env))
	for name, v := range stdio.Env {
		env[name] = reach.Value(v)
	}
	// The session ends the child, gently, so no context does.
	private := l.private(env)
	says := newMurmur(l.log, private)
	proc, err := reach.Start(context.Background(), l.up.Trust, l.target, reach.Command{Root: l.root, Args: stdio.Args, Env: env, Stderr: says})
	if err != nil {
		return nil, &failure{code: registry.Unavailable, msg: clip(err.Error(), 500), err: err}
	}
	c := newChild(proc, l.cfg.MaxAnswer, private, l.log)
	c.says = says
	given := l.veil()
	s := newSession(c.pipe, l.cfg, l.log, func() veil { return given })
	s.child = c
	c.pipe.heard = func(method string, params json.RawMessage) { s.hear("", method, given.json(params)) }
	c.pipe.answered = s.hearing.end
	s.ignored = func() { l.tally.ignored.Add(1) }
	c.pipe.ignored = s.drop
	c.pipe.asks = s.pipeQuestion
	c.pipe.start()
	if first != "" && !mcp.IsModernProtocol(first) {
		_, err = s.initialize(ctx, first, pinned)
	} else {
		_, err = s.negotiate(ctx, pinned, probeTime(l.up.Server.InitializeTimeout))
	}
	if err != nil {
		f := c.refused(ctx, err)
		s.close()
		return nil, f
	}
	return s, nil
}

// private masks in a child's standard error what it was given: its secrets, and what was passed on to it, which may be
// secrets too.
func (l *link) private(env map[string]reach.Value) *strings.Replacer {
	var passed []string
	for _, name := range l.up.Trust.Env() {
		passed = append(passed, os.Getenv(name))
	}
	return reach.Mask(env, l.root, passed...)
}

func (l *link) dialHTTP(ctx context.Context) (*session, *failure) {
	refuse := func(msg string) (*session, *failure) {
		return nil, &failure{code: registry.Unavailable, msg: msg}
	}
	trusted, err := reach.Client(l.up.Trust, l.target, reach.ClientConfig{
		ConnectTimeout: l.up.Server.ConnectTimeout, Idle: l.gate.limit, Redirect: l.redirects,
	})
	if err != nil {
		return refuse(clip(err.Error(), 500))
	}
	w := newWeb(trusted, *l.up.Server.HTTP, l.headers, l.cfg.MaxAnswer)
	s := newSession(w, l.cfg, l.log, l.veil)
	s.web = w
	s.ignored = func() { l.tally.ignored.Add(1) }
	x, err := s.negotiate(ctx, l.up.Server.Protocol, probeTime(l.connectTime()))
	if err == nil {
		return s, nil
	}
	s.close()
	var disagree negotiationError
	switch redirect := redirected(err); {
	case ctx.Err() != nil:
		if x.status == 0 && !x.sent.Load() && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return refuse(notReached)
		}
		return refuse(noHandshake(ctx))
	case errors.As(err, &disagree):
		return refuse(l.veil().text(disagree.msg))
	case redirect != nil:
		return refuse(redirect.Error())
	case x.status == 0 && timedOut(err):
		return refuse(notReached)
	case x.status == 0:
		return refuse(plain(err, l.veil()))
	case x.tooLarge():
		return refuse(tooLargeError{l.cfg.MaxAnswer}.Error())
	case denied(x.status):
		return nil, explainAccess(x, w.address)
	case x.status >= 300 && x.status != http.StatusBadRequest:
		return refuse(explainStatus(x))
	}
	return refuse(negotiation(err, l.veil()))
}

// redirects is reach.ClientConfig's Redirect.
func (l *link) redirects(ctx context.Context, to trust.Target) error {
	decide := l.redirect.Load()
	if decide == nil {
		return errors.New("no redirect is followed here")
	}
	return (*decide)(ctx, to)
}

// headers are the declared ones, their secrets read now.
func (l *link) headers() (http.Header, error) {
	h := make(http.Header, len(l.up.Server.HTTP.Headers))
	for name, v := range l.up.Server.HTTP.Headers {
		value, err := reach.Value(v).Resolve(l.root)
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", name, err)
		}
		if strings.ContainsAny(value, "\r\n\x00") {
			return nil, fmt.Errorf("header %s: the value holds a line end or a NUL, which no header can carry", name)
		}
		h.Set(name, value)
	}
	return h, nil
}

func noHandshake(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "it did not complete the MCP handshake within its initializeTimeout"
	}
	return "the connection was given up"
}

const notReached = "it could not be reached within its connectTimeout"

// timedOut reports whether dialling took longer than it may.
func timedOut(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// negotiation words a failed handshake, in which the server's own words may stand.
func negotiation(err error, private veil) string {
	var disagree negotiationError
	if errors.As(err, &disagree) {
		return private.text(disagree.msg)
	}
	return "the MCP handshake failed: " + plain(err, private)
}

// child is a server's process with the pipe to it.
type child struct {
	proc    *reach.Process
	pipe    *pipe
	private *strings.Replacer
	says    *murmur
	// gone closes when the connection has ended and why is known.
	gone chan struct{}
	why  *failure
	once sync.Once
}

func newChild(proc *reach.Process, limit int64, private *strings.Replacer, log *slog.Logger) *child {
	c := &child{proc: proc, pipe: newPipe(proc.Stdin, proc.Stdout, limit, log), private: private, gone: make(chan struct{})}
	go func() {
		<-c.pipe.done
		c.why = c.reason()
		close(c.gone)
	}()
	return c
}

// reason is why the connection ended.
func (c *child) reason() *failure {
	f := &failure{code: registry.Unavailable, msg: c.pipe.cause.Error(), drop: true}
	if c.pipe.cause != errStreamEnded {
		var large tooLargeError
		if errors.As(c.pipe.cause, &large) {
			f.code = registry.OutputTooLarge
		}
		f.msg += ", so its connection was closed"
		return f
	}
	exited := time.NewTimer(farewell)
	defer exited.Stop()
	select {
	case <-c.proc.Done():
		f.msg = "it ended with " + c.proc.Wait().String()
	case <-exited.C:
	}
	if tail := strings.TrimSpace(c.private.Replace(c.proc.Stderr())); tail != "" {
		f.err = fmt.Errorf("standard error ends with: %s", tail[max(0, len(tail)-detailSize):])
		f.msg += "; its last words: " + clip(lastLines(tail), lastWords)
	}
	return f
}

// lastLines is the end of s, from the beginning of a line where one is in reach.
func lastLines(s string) string {
	if len(s) <= lastWords {
		return s
	}
	s = s[len(s)-lastWords:]
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return s[i+1:]
	}
	return strings.ToValidUTF8(s, "")
}

// refused is why the handshake failed with err.
func (c *child) refused(ctx context.Context, err error) *failure {
	select {
	case <-c.pipe.done:
		<-c.gone
		return c.why
	default:
	}
	if ctx.Err() != nil {
		f := &failure{code: registry.Unavailable, msg: noHandshake(ctx), err: err}
		if tail := strings.TrimSpace(c.private.Replace(c.proc.Stderr())); tail != "" {
			f.msg += "; its last words: " + clip(lastLines(tail), lastWords)
		}
		return f
	}
	return &failure{code: registry.Unavailable, msg: negotiation(err, veil{c.private})}
}

// explain is what an error of the pipe means.
func (c *child) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	select {
	case <-c.gone:
	case <-ctx.Done():
		return &failure{msg: "its connection broke, and " + outcomeUnknown, err: err}
	}
	f := *c.why
	f.outcome = outcomeUnknown
	var unsent notSent
	if errors.As(err, &unsent) {
		f.outcome = nothingSent
	}
	return &f
}

// close ends the child with its group, and the goroutines of its pipe.
func (c *child) close() {
	c.once.Do(func() {
		c.pipe.close() // ends standard input, at which most servers end by themselves
		bye := time.NewTimer(farewell)
		defer bye.Stop()
		select {
		case <-c.proc.Done():
		case <-bye.C:
		}
		c.proc.Stop()
		c.proc.Stdout.Close()
		c.pipe.wait()
		<-c.gone
		c.says.end()
	})
}
