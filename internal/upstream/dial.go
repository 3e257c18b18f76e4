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
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/registry"
)

const (
	// exitWait is how long a child may take to exit once its standard input is closed, and how long to wait
	// for its exit status once it has closed its standard output.
	exitWait = time.Second
	// outputTail is the maximum size of the tail of a child's standard error in an error for the model,
	// detailSize in one for the operator, in bytes.
	outputTail, detailSize = 400, 4 << 10
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
		// The child exited during the probe. Some older servers do that at any message but initialize.
		s, f = l.dialStdio(ctx, mcp.LATEST_LEGACY_PROTOCOL_VERSION, "")
	}
	l.legacy = f == nil && !mcp.IsModernProtocol(s.version)
	return s, f
}

// dialStdio starts the child. first is the protocol version requested first, empty for the newest; pinned, if
// set, is the only acceptable one.
func (l *link) dialStdio(ctx context.Context, first, pinned string) (*session, *failure) {
	stdio := l.up.Server.Stdio
	env := make(map[string]secret.Value, len(stdio.Env))
	for name, v := range stdio.Env {
		env[name] = secret.Value(v)
	}
	// session.close ends the child with a grace period, so no context does.
	private := l.private(env)
	says := newStderrLog(l.log, private)
	proc, err := egress.Start(context.Background(), l.up.Trust, l.target, egress.Command{
		Root: l.root, Args: stdio.Args, Env: env, Owner: l.owner(), Homes: l.cfg.Homes, Stderr: says,
	})
	if err != nil {
		return nil, &failure{code: registry.Unavailable, msg: clip(err.Error(), 500), err: err}
	}
	c := newChild(proc, l.cfg.MaxAnswer, private, l.log)
	c.says = says
	given := l.secretMask()
	s := newSession(c.pipe, l.cfg, l.log, func() *secret.Masker { return given })
	s.child = c
	c.pipe.onNotification = func(method string, params json.RawMessage) { s.onMessage("", method, given.JSON(params)) }
	c.pipe.answered = s.router.end
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

// owner names the owner of the child's private directory: where the server isolates branches, each branch's
// child has its own.
func (l *link) owner() string {
	owner := "server " + l.up.Server.Name
	if l.branch != "" {
		owner += " branch " + l.branch
	}
	return owner
}

// private masks, in a child's standard error, what the child was given: its secrets, and the variables passed
// on from the daemon's environment, which may be secrets too.
func (l *link) private(env map[string]secret.Value) *secret.Masker {
	var passed []string
	for _, v := range egress.Variables(l.up.Trust, l.target) {
		if v.From == egress.FromDaemon {
			passed = append(passed, os.Getenv(v.Name))
		}
	}
	return secret.MaskerFor(env, l.root, passed...)
}

func (l *link) dialHTTP(ctx context.Context) (*session, *failure) {
	refuse := func(msg string) (*session, *failure) {
		return nil, &failure{code: registry.Unavailable, msg: msg}
	}
	trusted, err := egress.Client(l.up.Trust, l.target, egress.ClientConfig{
		ConnectTimeout: l.up.Server.ConnectTimeout, Idle: l.gate.limit, Redirect: l.redirects,
	})
	if err != nil {
		return refuse(clip(err.Error(), 500))
	}
	once, err := egress.Client(l.up.Trust, l.target, egress.ClientConfig{ConnectTimeout: l.up.Server.ConnectTimeout, Once: true})
	if err != nil {
		return refuse(clip(err.Error(), 500))
	}
	w := newWeb(trusted, once, *l.up.Server.HTTP, l.headers, l.cfg.MaxAnswer)
	s := newSession(w, l.cfg, l.log, l.secretMask)
	s.web = w
	s.ignored = func() { l.tally.ignored.Add(1) }
	x, err := s.negotiate(ctx, l.up.Server.Protocol, probeTime(l.connectTime()))
	if err == nil {
		return s, nil
	}
	s.close()
	private := l.secretMask()
	var disagree negotiationError
	switch redirect := redirected(err); {
	case ctx.Err() != nil:
		if x.status == 0 && !x.sent.Load() && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return refuse(notReached)
		}
		return refuse(noHandshake(ctx))
	case errors.As(err, &disagree):
		return refuse(private.Replace(disagree.msg))
	case redirect != nil:
		return refuse(private.Replace(redirect.Error()))
	case x.status == 0 && timedOut(err):
		return refuse(notReached)
	case x.status == 0:
		return refuse(plain(err, private))
	case x.tooLarge():
		return refuse(tooLargeError{l.cfg.MaxAnswer}.Error())
	case denied(x.status):
		return nil, explainAccess(x, w.address).masked(private)
	case x.status >= 300 && x.status != http.StatusBadRequest:
		return refuse(private.Replace(explainStatus(x)))
	}
	return refuse(negotiation(err, private))
}

// redirects implements egress.ClientConfig.Redirect.
func (l *link) redirects(ctx context.Context, to trust.Target) error {
	decide := l.redirect.Load()
	if decide == nil {
		return errors.New("no redirect is followed here")
	}
	return (*decide)(ctx, to)
}

// headers returns the declared headers, with their secrets read at this moment.
func (l *link) headers() (http.Header, error) {
	h := make(http.Header, len(l.up.Server.HTTP.Headers))
	for name, v := range l.up.Server.HTTP.Headers {
		value, err := secret.Value(v).Resolve(l.root)
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

// timedOut reports whether err is a dial timeout.
func timedOut(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// negotiation is the message of a failed handshake; it may quote the server.
func negotiation(err error, private *secret.Masker) string {
	var disagree negotiationError
	if errors.As(err, &disagree) {
		return private.Replace(disagree.msg)
	}
	return "the MCP handshake failed: " + plain(err, private)
}

// child is a server's process with the pipe to it.
type child struct {
	proc    *egress.Process
	pipe    *pipe
	private *secret.Masker
	says    *stderrLog
	// ended closes when the connection has ended and why is set.
	ended chan struct{}
	why   *failure
	once  sync.Once
}

func newChild(proc *egress.Process, limit int64, private *secret.Masker, log *slog.Logger) *child {
	c := &child{proc: proc, pipe: newPipe(proc.Stdin, proc.Stdout, limit, log), private: private, ended: make(chan struct{})}
	go func() {
		<-c.pipe.done
		c.why = c.reason()
		close(c.ended)
	}()
	return c
}

// reason returns why the connection ended.
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
	exited := time.NewTimer(exitWait)
	defer exited.Stop()
	select {
	case <-c.proc.Done():
		f.msg = "it ended with " + c.proc.Wait().String()
	case <-exited.C:
	}
	if tail := strings.TrimSpace(c.private.Replace(c.proc.Stderr())); tail != "" {
		f.err = fmt.Errorf("standard error ends with: %s", tail[max(0, len(tail)-detailSize):])
		f.msg += "; its last output: " + clip(lastLines(tail), outputTail)
	}
	return f
}

// lastLines returns the end of s, from the beginning of a line where possible.
func lastLines(s string) string {
	if len(s) <= outputTail {
		return s
	}
	s = s[len(s)-outputTail:]
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return s[i+1:]
	}
	return strings.ToValidUTF8(s, "")
}

// refused returns why the handshake failed with err.
func (c *child) refused(ctx context.Context, err error) *failure {
	select {
	case <-c.pipe.done:
		<-c.ended
		return c.why
	default:
	}
	if ctx.Err() != nil {
		f := &failure{code: registry.Unavailable, msg: noHandshake(ctx), err: err}
		if tail := strings.TrimSpace(c.private.Replace(c.proc.Stderr())); tail != "" {
			f.msg += "; its last output: " + clip(lastLines(tail), outputTail)
		}
		return f
	}
	return &failure{code: registry.Unavailable, msg: negotiation(err, c.private)}
}

// explain converts an error of the pipe to a failure with its known outcome.
func (c *child) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	known, outcome := registry.OutcomeUnclear, outcomeUnknown
	var unsent notSent
	if errors.As(err, &unsent) {
		known, outcome = registry.OutcomeUnsent, nothingSent
	}
	select {
	case <-c.ended:
	case <-ctx.Done():
		return &failure{msg: "its connection broke, and " + outcome, err: err, known: known}
	}
	f := *c.why
	f.outcome, f.known = outcome, known
	return &f
}

// close ends the child's process group, and the goroutines of its pipe.
func (c *child) close() {
	c.once.Do(func() {
		c.pipe.close() // closes standard input, on which most servers exit
		bye := time.NewTimer(exitWait)
		defer bye.Stop()
		select {
		case <-c.proc.Done():
		case <-bye.C:
		}
		c.proc.Stop()
		c.proc.Stdout.Close()
		c.pipe.wait()
		<-c.ended
		c.says.end()
	})
}
