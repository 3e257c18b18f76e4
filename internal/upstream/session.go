package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"golang.org/x/time/rate"

	"github.com/catalogd/catalogd/internal/paramheader"
	"github.com/catalogd/catalogd/registry"
)

const (
	// cancelTime bounds the attempt to tell a server that a call was given up.
	cancelTime = 2 * time.Second
	// maxBlocks caps the content of one result, which a client shows block by block; Config.MaxAnswer caps
	// its bytes.
	maxBlocks = 50_000
	// strayRate and strayBurst bound how many messages that make no difference to anybody are read of a
	// server in a second, and at once: one that sends them without end would keep a processor busy. What it
	// sends else waits behind them.
	strayRate, strayBurst = 5000, 10_000

	// What is known of a call that failed.
	outcomeUnknown = "the outcome of the call is unknown"
	nothingRun     = "nothing was run"
	nothingSent    = "nothing was sent"
)

// failure is why a request has no result. msg has no subject: it follows the server's name.
type failure struct {
	code registry.ErrorCode // empty: the caller's context has ended
	msg  string
	err  error // for the operator; may be nil
	// outcome is what is known of the call, as opposed to the connection.
	outcome string
	// unsent says that nothing of the request went out.
	unsent bool
	// drop says that the session is of no more use.
	drop bool
	// forgotten says that the server has refused the request because it doesn't know the session: nothing was
	// run.
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

	info    mcp.Implementation
	version string
	limit   int64
	veil    func() veil
	hearing hearing
	mirror  mirror
	level   level
	log     *slog.Logger
	// ignored is called for each message of the server's that is dropped.
	ignored func()

	// server is who the server says it is; toolless says that it declares no tools among its capabilities.
	server   mcp.Implementation
	toolless bool
	// has is what it declares that it can do.
	has mcp.ServerCapabilities
	// offered names what it offered when it was asked last; only who asks (link.look) touches it.
	offered [sha256.Size]byte
	// listening says that the server tells of changes at once.
	listening atomic.Bool

	ids *ids
	// questions counts the requests of the server's that wait for their answers.
	questions atomic.Int64
	// refusals and strays bound what is answered and what is read of what a server sends for nothing.
	refusals, strays *rate.Limiter
	// calls counts calls on the session. It is added to under the link's lock while the session is the
	// link's.
	calls sync.WaitGroup
	// listens counts who hears the stream outside of calls; it is added to before the session is the link's.
	listens sync.WaitGroup
	// notices counts notifications of cancellation and answers to the server's requests under way.
	notices sync.WaitGroup
	retired chan struct{}
	retire  func()
	// blamed is set by the first call that fails because the session was lost.
	blamed atomic.Bool
	// lost is why a child's session ended by itself; watch writes it, drop reads it after.
	lost *failure
}

func newSession(w wire, cfg Config, log *slog.Logger, private func() veil) *session {
	s := &session{
		wire: w, log: log, veil: private, limit: cfg.MaxAnswer, ids: newIDs(),
		info:     mcp.Implementation{Name: "catalogd", Version: cfg.Version},
		retired:  make(chan struct{}),
		refusals: rate.NewLimiter(refusalRate, refusalBurst),
		strays:   rate.NewLimiter(strayRate, strayBurst),
	}
	s.mirror.asking = make(chan struct{}, 1)
	s.hearing.changed, s.hearing.forwards = make(chan struct{}, 1), make(chan struct{}, 1)
	s.retire = sync.OnceFunc(func() { close(s.retired) })
	return s
}

// hear takes a notification of the server's, and drop counts a message that is dropped. Both wait where there
// are too many that make no difference.
func (s *session) hear(on, method string, params json.RawMessage) {
	if !s.hearing.hear(on, method, params) {
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
	if s.strays.Allow() {
		return
	}
	pause := time.NewTimer(s.strays.Reserve().Delay())
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-s.retired:
	}
}

// probeTime bounds the question for the modern protocol, which some older servers don't answer, so that
// enough of the time to connect is left for the older handshake.
func probeTime(connect time.Duration) time.Duration {
	limit := 5 * time.Second
	if connect > 0 {
		limit = min(limit, connect/2)
	}
	return limit
}

// watch returns when the session is to be closed: its child has ended, it was dropped, or life is over.
func (s *session) watch(life context.Context) {
	var gone <-chan struct{}
	if s.child != nil {
		gone = s.child.gone
	}
	select {
	case <-life.Done():
	case <-s.retired:
	case <-gone:
		s.lost = s.child.why
	}
}

// close ends the session and what runs for it.
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

// params are those of a request, as far as its method has them.
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
	// InputResponses and RequestState are those of a further round.
	InputResponses json.RawMessage `json:"inputResponses,omitempty"`
	RequestState   json.RawMessage `json:"requestState,omitempty"`
	// mirrored are the arguments that travel in headers too.
	mirrored []paramheader.Param
}

// request is a request, with what 2026-07-28 asks to stand in each.
func (s *session) request(method mcp.MCPMethod, p params, to registry.Listener) (request, error) {
	p.Meta = map[string]any{}
	req := request{JSONRPC: mcp.JSONRPC_VERSION, ID: s.ids.next(), Method: string(method)}
	if to.Progress != nil {
		// The caller's own token may be another caller's too, so the request's id stands for it.
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

// call runs one tool. Its errors are *failure, but for arguments that can't be encoded.
func (s *session) call(ctx context.Context, tool string, args json.RawMessage, to registry.Listener) (*registry.Result, error) {
	if s.toolless {
		return nil, &failure{code: registry.Unavailable, msg: fmt.Sprintf("it declares no tools in its handshake (MCP %s)", s.version), outcome: nothingSent}
	}
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	p := params{Name: tool, Arguments: args}
	if s.mirrors() {
		var err error
		if p.mirrored, err = s.mirrored(ctx, tool, false); err != nil {
			return nil, err
		}
	}
	return s.rounds(ctx, mcp.MethodToolsCall, p, to, toolResult)
}

// ask sends one request and returns the result that answers it, without the server's secrets. Its errors are
// those of call.
func (s *session) ask(ctx context.Context, method mcp.MCPMethod, p params, to registry.Listener) (json.RawMessage, error) {
	req, err := s.request(method, p, to)
	if err != nil {
		return nil, err
	}
	x, private := newExchange(req.ID.String(), s.limit), s.veil()
	x.heard = func(method string, params json.RawMessage) { s.hear(x.id, method, private.json(params)) }
	x.ignored = s.drop
	x.asked = func(id json.RawMessage, method string, params json.RawMessage) {
		s.questioned(x.id, id, method, params)
	}
	if speaks(method) {
		s.lower(ctx, to)
		s.hearing.begin(ctx, x.id, to)
		defer s.hearing.end(x.id)
	}
	resp, err := s.wire.request(ctx, x, req)
	if err != nil && ctx.Err() != nil {
		var unsent notSent
		if errors.As(err, &unsent) || s.child == nil && !x.sent.Load() {
			return nil, &failure{msg: nothingSent, err: err, unsent: true}
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
			return nil, f
		}
		refusal := refused(resp.Error, private)
		f := &failure{code: registry.BindingFailed, drop: x.status == http.StatusBadRequest && s.lost400(resp.Error.Code), msg: refusal.Error(), rpc: resp.Error.Code}
		if method != mcp.MethodToolsCall {
			f.err = refusal
		}
		return nil, f
	}
	return private.json(resp.Result), nil
}

// lost400 reports whether an error under the status 400 is about the session and not about the request alone.
// 2026-07-28 has that status for wrong arguments too, and no sessions; what can be wrong there is how the
// server is spoken to.
func (s *session) lost400(code int) bool {
	return !mcp.IsModernProtocol(s.version) || code == mcp.UNSUPPORTED_PROTOCOL_VERSION || code == mcp.HEADER_MISMATCH
}

// cancel tells the server that nobody waits for an answer any more. Over HTTP in 2026-07-28 the end of the
// request's stream says so.
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
