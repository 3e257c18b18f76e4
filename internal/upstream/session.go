package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

const (
	// firstID is above the ids that mcp-go's client uses for the handshake.
	firstID = 1000
	// cancelTime bounds the attempt to tell a server that a call was given up.
	cancelTime = 2 * time.Second
	// maxBlocks caps the content of one result, which a client shows block by block; Config.MaxAnswer caps its bytes.
	maxBlocks = 5000

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
	// forgotten says that the server has refused the request because it doesn't know the session: nothing was run.
	forgotten bool
	// needs are the capabilities that the client lacks, for CapabilityMissing.
	needs registry.Abilities
}

func (f *failure) Error() string { return f.msg }
func (f *failure) Unwrap() error { return f.err }

// session is one negotiated connection: a child process, or an HTTP session.
type session struct {
	client  *client.Client
	info    mcp.Implementation
	version string
	limit   int64
	veil    func() veil
	child   *child       // stdio
	http    *http.Client // http
	address registry.HTTPAddress
	id      string // http: the server's name for the session; empty where it gave none
	hearing hearing
	// ignored is called for each message of the server's that is dropped.
	ignored func()

	// server is who the server says it is; toolless says that it declares no tools among its capabilities.
	server   mcp.Implementation
	toolless bool
	// has is what it declares that it can do.
	has mcp.ServerCapabilities
	// listening says that the server tells of changes at once.
	listening atomic.Bool

	lastID atomic.Int64
	// questions counts the requests of a child that wait for their answers.
	questions atomic.Int64
	// calls counts calls on the session. It is added to under the link's lock while the session is the link's.
	calls sync.WaitGroup
	// notices counts notifications of cancellation under way.
	notices sync.WaitGroup
	retired chan struct{}
	retire  func()
	// blamed is set by the first call that fails because the session was lost.
	blamed atomic.Bool
	// lost is why a child's session ended by itself; watch writes it, drop reads it after.
	lost *failure
}

func newSession(wire transport.Interface, cfg Config, private func() veil, options ...client.ClientOption) *session {
	s := &session{
		veil:    private,
		client:  client.NewClient(wire, options...),
		info:    mcp.Implementation{Name: "catalogd", Version: cfg.Version},
		limit:   cfg.MaxAnswer,
		retired: make(chan struct{}),
	}
	s.hearing.changed, s.hearing.forwards = make(chan struct{}, 1), make(chan struct{}, 1)
	s.retire = sync.OnceFunc(func() { close(s.retired) })
	s.lastID.Store(firstID)
	return s
}

// handshake negotiates the protocol.
func (s *session) handshake(ctx context.Context) error {
	if err := s.client.Start(ctx); err != nil {
		return err
	}
	var req mcp.InitializeRequest
	req.Params.ClientInfo = s.info
	req.Params.Capabilities = relayable()
	initialized, err := s.client.Initialize(ctx, req)
	if err != nil {
		return err
	}
	s.server = initialized.ServerInfo
	s.toolless = initialized.Capabilities.Tools == nil
	s.has = initialized.Capabilities
	s.version = s.client.ProtocolVersion()
	s.id = s.client.GetTransport().GetSessionId()
	return nil
}

// discoverTime bounds the question for the modern protocol, which some older servers don't answer, so that enough of the
// time to connect is left for the older handshake.
func discoverTime(connect time.Duration) client.ClientOption {
	limit := 5 * time.Second
	if connect > 0 {
		limit = min(limit, connect/2)
	}
	return client.WithDiscoverTimeout(limit)
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
	if s.child != nil {
		s.child.close()
		s.notices.Wait()
		return
	}
	s.notices.Wait()
	// The end of an HTTP session is a courtesy; a server that doesn't take it forgets the session by itself.
	_ = s.client.Close()
	s.http.CloseIdleConnections()
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
	Notifications *mcp.SubscriptionFilter `json:"notifications,omitempty"`
	// InputResponses and RequestState are those of a further round.
	InputResponses json.RawMessage `json:"inputResponses,omitempty"`
	RequestState   json.RawMessage `json:"requestState,omitempty"`
}

// request is a request, with what 2026-07-28 asks to stand in each.
func (s *session) request(method mcp.MCPMethod, p params, to registry.Listener) (transport.JSONRPCRequest, error) {
	p.Meta = map[string]any{}
	req := transport.JSONRPCRequest{
		JSONRPC: mcp.JSONRPC_VERSION,
		ID:      mcp.NewRequestId(s.lastID.Add(1)),
		Method:  string(method),
	}
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
		req.Header = http.Header{}
		for name, value := range mcp.StandardHeaders(s.version, method, named) {
			req.Header.Set(name, value)
		}
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
	return s.rounds(ctx, mcp.MethodToolsCall, params{Name: tool, Arguments: args}, to, toolResult)
}

// ask sends one request and returns the result that answers it, without the server's secrets. Its errors are those of
// call.
func (s *session) ask(ctx context.Context, method mcp.MCPMethod, p params, to registry.Listener) (json.RawMessage, error) {
	req, err := s.request(method, p, to)
	if err != nil {
		return nil, err
	}
	x, private := newExchange(req.ID.String(), s.limit), s.veil()
	x.heard = func(method string, params json.RawMessage) { s.hearing.hear(x.id, method, private.json(params)) }
	x.ignored = s.ignored
	x.asked = func(id mcp.RequestId, method string, params json.RawMessage) { s.questioned(x.id, id, method, params) }
	if !lists(method) { // nothing is said about those
		s.hearing.begin(ctx, x.id, to)
		defer s.hearing.end(x.id)
	}
	resp, err := s.send(ctx, x, req)
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
		f := &failure{code: registry.BindingFailed, drop: s.child == nil && x.status.Load() == http.StatusBadRequest && s.lost400(resp.Error.Code), msg: refusal.Error()}
		if method != mcp.MethodToolsCall {
			f.err = refusal
		}
		return nil, f
	}
	return private.json(resp.Result), nil
}

// lost400 reports whether an error under the status 400 is about the session and not about the request alone. 2026-07-28 has
// that status for wrong arguments too, and no sessions; what can be wrong there is how the server is spoken to.
func (s *session) lost400(code int) bool {
	return !mcp.IsModernProtocol(s.version) || code == mcp.UNSUPPORTED_PROTOCOL_VERSION || code == mcp.HEADER_MISMATCH
}

// cancel tells the server that nobody waits for an answer any more. Over HTTP in 2026-07-28 the end of the request's
// stream says so.
func (s *session) cancel(ctx context.Context, id mcp.RequestId) {
	if s.child == nil && mcp.IsModernProtocol(s.version) {
		return
	}
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{
		Method: string(mcp.MethodNotificationCancelled),
		Params: mcp.NotificationParams{AdditionalFields: map[string]any{"requestId": id, "reason": ctx.Err().Error()}},
	}}
	s.notices.Go(func() {
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
		defer done()
		// Best effort: a late answer is dropped anyway.
		_ = s.client.GetTransport().SendNotification(ctx, n)
	})
}

// explain is what an HTTP server's answer, or the lack of one, means. mcp-go's error can hold the whole answer, so it goes
// nowhere as it is.
func (s *session) explain(x *exchange, resp *transport.JSONRPCResponse, err error, private veil) error {
	status := int(x.status.Load())
	f := &failure{code: registry.Unavailable, outcome: nothingRun}
	switch {
	case x.tooLarge():
		f.code, f.msg, f.outcome = registry.OutputTooLarge, tooLargeError{s.limit}.Error(), "ask for less"
	case status == 0:
		f.msg, f.outcome, f.drop = plain(err, private), nothingSent, true
		if x.sent.Load() {
			f.outcome = outcomeUnknown
		}
	case status == http.StatusNotFound && !mcp.IsModernProtocol(s.version):
		f.msg, f.drop, f.forgotten = "it has forgotten the session (404), or nothing answers at this path any more", true, true
	case status >= 500:
		f.msg, f.outcome = explainStatus(status, ""), outcomeUnknown
	case status == http.StatusBadRequest && err == nil && resp.Error != nil:
		return nil
	case denied(status):
		f.msg, f.err = explainAccess(status, s.address)
	case status >= 300:
		f.msg, f.drop = explainStatus(status, retryAfter(x)), status == http.StatusBadRequest || status == http.StatusNotFound
	case err != nil:
		f.msg, f.outcome, f.err = "its answer broke off, or is no MCP message", outcomeUnknown, errors.New(plain(err, private))
	case resp.Error == nil && resp.Result == nil, resp.Error != nil && present(resp.Result) != nil:
		f.code, f.msg, f.outcome = registry.ResultInvalid, "it answered with what is no MCP message", outcomeUnknown
	case resp.ID.String() != x.id && !(resp.Error != nil && resp.ID.IsNil()):
		f.code, f.msg, f.outcome = registry.ResultInvalid, "it answered another request than this one", outcomeUnknown
	default:
		return nil
	}
	return f
}

func denied(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

func retryAfter(x *exchange) string {
	s, _ := x.retryAfter.Load().(string)
	return s
}

// plain is err in words that hold no URL, whose query may be private, and no secret of the server's, whose words may be in
// it.
func plain(err error, private veil) string {
	var te *transport.Error
	if errors.As(err, &te) {
		err = te.Err
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return clip(private.text(err.Error()), 500)
}

// clip is s on one line of at most n bytes, its beginning; what can't be printed is quoted.
func clip(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if q := strconv.Quote(s); q != `"`+s+`"` {
		s = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(q[1 : len(q)-1])
	}
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "..."
	}
	return s
}
