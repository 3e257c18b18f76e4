package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"golang.org/x/time/rate"

	"github.com/catalogd/catalogd/internal/paramheader"
	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/internal/tracing"
	"github.com/catalogd/catalogd/registry"
)

const (
	// cancelTime caps the attempt to notify a server of a cancelled call.
	cancelTime = 2 * time.Second
	// maxBlocks caps the content blocks of one result, which a client shows one by one; Config.MaxAnswer caps
	// its bytes.
	maxBlocks = 50_000
	// unsolicitedRate and unsolicitedBurst limit how many unused messages are read from a server, per second and at once:
	// without a limit an endless stream of them would keep a processor busy. Its other messages wait behind
	// them.
	unsolicitedRate, unsolicitedBurst = 5000, 10_000

	// The known outcomes of a failed call.
	outcomeUnknown = "the outcome of the call is unknown"
	nothingRun     = "nothing was run"
	nothingSent    = "nothing was sent"
)

// failure is why a request has no result. msg has no subject: it follows the server's name.
type failure struct {
	code registry.ErrorCode // empty: the caller's context has ended
	msg  string
	err  error // for the operator; may be nil
	// outcome describes what is known of the call, as opposed to the connection.
	outcome string
	// unsent reports that nothing of the request was sent, so the server is not to blame.
	unsent bool
	// known is the outcome of a call with a side effect: empty means registry.OutcomeUnclear.
	known registry.Outcome
	// drop reports that the session can't be used any more.
	drop bool
	// forgotten reports that the server has rejected the request because it doesn't know the session: nothing
	// was run.
	forgotten bool
	// rpc is the code of the server's JSON-RPC error; 0 for any other failure.
	rpc int
	// needs are the capabilities that the client lacks, for CapabilityMissing.
	needs registry.Abilities
}

func (f *failure) Error() string { return f.msg }
func (f *failure) Unwrap() error { return f.err }

// wire carries the messages of a session.
type wire interface {
	// request sends a request and waits for what answers it, or the end of ctx. Over HTTP there may be
	// neither an answer nor an error; the exchange has the status.
	request(ctx context.Context, x *exchange, req request) (*response, error)
	notify(ctx context.Context, n notification) error
	close()
}

// session is one negotiated connection: a child process, or an HTTP session.
type session struct {
	wire  wire
	child *child // stdio
	web   *web   // http

	info       mcp.Implementation
	version    string
	limit      int64
	secretMask func() *secret.Masker
	router     router
	mirror     mirror
	level      level
	log        *slog.Logger
	// ignored is called for each message of the server that is dropped.
	ignored func()

	// server is the server's reported identity; toolless reports that it declares no tools among its
	// capabilities.
	server   mcp.Implementation
	toolless bool
	// has are the capabilities that it declares.
	has mcp.ServerCapabilities
	// offered is the digest of its last offer; only link.look and link.follow use it.
	offered [sha256.Size]byte
	// listening reports that change notifications are received as they happen.
	listening atomic.Bool

	ids *ids
	// questions counts the server's requests that wait for their answers.
	questions atomic.Int64
	// refusals limits the refusals sent to a server, unsolicited the unused messages read from it.
	refusals, unsolicited *rate.Limiter
	// calls counts calls on the session. It is added to under the link's lock while the session is the
	// link's.
	calls sync.WaitGroup
	// listens counts the readers of the stream outside of calls; it is added to before the session is the
	// link's.
	listens sync.WaitGroup
	// notices counts cancellation notifications and answers to the server's requests in flight.
	notices sync.WaitGroup
	retired chan struct{}
	retire  func()
	// blamed is set by the first call that fails because the session was lost.
	blamed atomic.Bool
	// lost is why a child's session ended by itself; watch writes it, drop reads it after.
	lost *failure
}

func newSession(w wire, cfg Config, log *slog.Logger, private func() *secret.Masker) *session {
	s := &session{
		wire: w, log: log, secretMask: private, limit: cfg.MaxAnswer, ids: newIDs(),
		info:        mcp.Implementation{Name: "catalogd", Version: cfg.Version},
		retired:     make(chan struct{}),
		refusals:    rate.NewLimiter(refusalRate, refusalBurst),
		unsolicited: rate.NewLimiter(unsolicitedRate, unsolicitedBurst),
	}
	s.mirror.asking = make(chan struct{}, 1)
	s.router.changed, s.router.forwards = make(chan struct{}, 1), make(chan struct{}, 1)
	s.retire = sync.OnceFunc(func() { close(s.retired) })
	return s
}

// onMessage handles a notification of the server, and drop counts a message that is dropped. Both block where
// there are too many unused messages.
func (s *session) onMessage(on, method string, params json.RawMessage) {
	if !s.router.route(on, method, params) {
		s.slow()
	}
}

func (s *session) drop() {
	if s.ignored != nil {
		s.ignored()
	}
	s.slow()
}

func (s *session) slow() {
	if s.unsolicited.Allow() {
		return
	}
	pause := time.NewTimer(s.unsolicited.Reserve().Delay())
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-s.retired:
	}
}

// probeTime limits the probe for the modern protocol, which some older servers don't answer, so that enough
// time is left for the older handshake.
func probeTime(connect time.Duration) time.Duration {
	limit := 5 * time.Second
	if connect > 0 {
		limit = min(limit, connect/2)
	}
	return limit
}

// watch returns when the session is to be closed: its child has ended, it was dropped, or life is over.
func (s *session) watch(life context.Context) {
	var ended <-chan struct{}
	if s.child != nil {
		ended = s.child.ended
	}
	select {
	case <-life.Done():
	case <-s.retired:
	case <-ended:
		s.lost = s.child.why
	}
}

// close ends the session and its goroutines.
func (s *session) close() {
	s.retire()
	s.listens.Wait()
	if s.child != nil {
		s.child.close()
		s.notices.Wait()
		return
	}
	s.notices.Wait()
	s.wire.close()
}

func (s *session) transport() string {
	if s.child != nil {
		return "stdio"
	}
	return "http"
}

func (s *session) pid() int {
	if s.child == nil {
		return 0
	}
	return s.child.proc.Pid()
}

// params are the params of any request; a method uses some of them.
type params struct {
	Meta          map[string]any          `json:"_meta,omitempty"`
	Name          string                  `json:"name,omitempty"`
	URI           string                  `json:"uri,omitempty"`
	Ref           *Ref                    `json:"ref,omitempty"`
	Argument      json.RawMessage         `json:"argument,omitempty"`
	Context       json.RawMessage         `json:"context,omitempty"`
	Arguments     json.RawMessage         `json:"arguments,omitempty"`
	Cursor        string                  `json:"cursor,omitempty"`
	Level         string                  `json:"level,omitempty"`
	Notifications *mcp.SubscriptionFilter `json:"notifications,omitempty"`
	// InputResponses and RequestState are those of a later round.
	InputResponses json.RawMessage `json:"inputResponses,omitempty"`
	RequestState   json.RawMessage `json:"requestState,omitempty"`
	// mirrored are the arguments that are also sent in headers.
	mirrored []paramheader.Param
	// key is the idempotency key of a call with a side effect, which is sent at most once; empty for any
	// other request.
	key string
}

// metaKey is the member of _meta that carries the idempotency key of a call.
const metaKey = "catalogd/idempotencyKey"

// request builds a request, with the members that 2026-07-28 requires in each, and the span in ctx.
func (s *session) request(ctx context.Context, method mcp.MCPMethod, p params, to registry.Listener) (request, error) {
	p.Meta = map[string]any{}
	req := request{JSONRPC: mcp.JSONRPC_VERSION, ID: s.ids.next(), Method: string(method)}
	tracing.Inject(ctx, func(key, value string) { p.Meta[key] = value })
	if p.key != "" {
		p.Meta[metaKey], req.once = p.key, true
	}
	if to.Progress != nil {
		// The caller's own token may equal another caller's, so the request's id replaces it.
		p.Meta["progressToken"] = req.ID
	}
	if mcp.IsModernProtocol(s.version) {
		p.Meta[mcp.MetaKeyProtocolVersion] = s.version
		p.Meta[mcp.MetaKeyClientCapabilities] = capabilities(to)
		p.Meta[mcp.MetaKeyClientInfo] = s.info
		if to.Message != nil {
			p.Meta[mcp.MetaKeyLogLevel] = to.Level
		}
		named, err := json.Marshal(params{Name: p.Name, URI: p.URI})
		if err != nil {
			return req, err
		}
		req.header = http.Header{}
		for name, value := range mcp.StandardHeaders(s.version, method, named) {
			req.header.Set(name, value)
		}
		paramheader.Headers(req.header, p.mirrored, p.Arguments)
	}
	req.Params = p
	return req, nil
}

// call runs one tool; key is that of a call with a side effect. Its errors are *failure, except for arguments
// that can't be encoded.
func (s *session) call(ctx context.Context, tool string, args json.RawMessage, key string, to registry.Listener) (*registry.Result, error) {
	if s.toolless {
		return nil, &failure{
			code: registry.Unavailable, msg: fmt.Sprintf("it declares no tools in its handshake (MCP %s)", s.version),
			outcome: nothingSent, known: registry.OutcomeUnsent,
		}
	}
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	p := params{Name: tool, Arguments: args, key: key}
	if s.mirrors() {
		var err error
		if p.mirrored, err = s.mirrored(ctx, tool, false); err != nil {
			return nil, err
		}
	}
	read := toolResult
	if key != "" {
		read = effectResult
	}
	return s.rounds(ctx, mcp.MethodToolsCall, p, to, read)
}

// ask sends one request and returns its result, with the server's secrets masked. Its errors are those of
// call.
func (s *session) ask(ctx context.Context, method mcp.MCPMethod, p params, to registry.Listener) (json.RawMessage, error) {
	req, err := s.request(ctx, method, p, to)
	if err != nil {
		return nil, err
	}
	x, private := newExchange(req.ID.String(), s.limit), s.secretMask()
	x.once = req.once
	x.onNotification = func(method string, params json.RawMessage) { s.onMessage(x.id, method, private.JSON(params)) }
	x.ignored = s.drop
	x.asked = func(id json.RawMessage, method string, params json.RawMessage) {
		s.questioned(x.id, id, method, params)
	}
	if speaks(method) {
		s.lower(ctx, to)
		s.router.begin(ctx, x.id, to)
		defer s.router.end(x.id)
	}
	resp, err := s.wire.request(ctx, x, req)
	if err != nil && ctx.Err() != nil {
		if s.unsent(x, err) {
			return nil, &failure{msg: nothingSent, err: err, unsent: true, known: registry.OutcomeUnsent}
		}
		s.cancel(ctx, req.ID)
		return nil, &failure{msg: "the request was sent, so the tool may still run there or have run", err: err}
	}
	if s.child != nil {
		err = s.child.explain(ctx, err)
	} else {
		err = s.explain(x, resp, err, private)
	}
	if err != nil {
		return nil, err
	}
	if resp.Error != nil {
		if f := unable(resp.Error, to); f != nil {
			f.known = s.knownOfError(resp.Error, key(resp.ID), x.status)
			return nil, f
		}
		refusal := refused(resp.Error, private)
		f := &failure{
			code: registry.BindingFailed, msg: refusal.Error(), rpc: resp.Error.Code,
			drop:  x.status == http.StatusBadRequest && s.lost400(resp.Error.Code),
			known: s.knownOfError(resp.Error, key(resp.ID), x.status),
		}
		if method != mcp.MethodToolsCall {
			f.err = refusal
		}
		return nil, f
	}
	return private.JSON(resp.Result), nil
}

// lost400 reports whether an error under the status 400 concerns the session and not only the request.
// 2026-07-28 uses that status for wrong arguments too, and has no sessions; there it can concern the protocol
// itself.
func (s *session) lost400(code int) bool {
	return !mcp.IsModernProtocol(s.version) || code == mcp.UNSUPPORTED_PROTOCOL_VERSION || code == mcp.HEADER_MISMATCH
}

// cancel notifies the server that a request was cancelled. Over HTTP in 2026-07-28 the end of the request's
// stream does so.
func (s *session) cancel(ctx context.Context, id mcp.RequestId) {
	if s.child == nil && mcp.IsModernProtocol(s.version) {
		return
	}
	n := notification{JSONRPC: mcp.JSONRPC_VERSION, Method: string(mcp.MethodNotificationCancelled), Params: struct {
		RequestID mcp.RequestId `json:"requestId"`
		Reason    string        `json:"reason"`
	}{id, ctx.Err().Error()}}
	s.notices.Go(func() {
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
		defer done()
		// Best effort: a late answer is dropped anyway.
		_ = s.wire.notify(ctx, n)
	})
}
