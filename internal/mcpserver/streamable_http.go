package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/internal/tracing"
	"github.com/catalogd/catalogd/registry"
)

const allowMCP = "POST, GET, DELETE"

// ServeHTTP handles the MCP endpoint of one branch for a caller.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request, c token.Caller, name string) {
	if s.Ctx.Err() != nil {
		w.Header().Set("Retry-After", "1")
		WriteError(w, http.StatusServiceUnavailable, "the server is shutting down")
		return
	}
	b := s.branch(name, c)
	if b == nil {
		s.RecordRefused(decision.UnknownBranch, name, &c.Principal, "", "")
		s.NoBranch(w, c, name)
		return
	}
	switch r.Method {
	case http.MethodPost:
		if ctx := tracing.FromHeader(r.Context(), r.Header); ctx != r.Context() {
			r = r.WithContext(ctx)
		}
		b.post(w, r)
	case http.MethodGet, http.MethodDelete:
		b.stream(w, r)
	default:
		NotAllowed(w, allowMCP)
	}
}

// NoBranch answers 404 for a branch that doesn't exist or that the caller may not open; the answer names those that
// it may open (generation.UnknownBranchFor).
func (s *Server) NoBranch(w http.ResponseWriter, c token.Caller, name string) {
	g, release := s.Pin()
	defer release()
	WriteError(w, http.StatusNotFound, g.UnknownBranchFor(name, c.Principal, c.MayOpen).Error())
}

// post handles one message.
func (b *branch) post(w http.ResponseWriter, r *http.Request) {
	if status, text := CheckContent(r.Header); status != 0 {
		WriteError(w, status, text)
		return
	}
	body, status, text := b.server.ReadBody(w, r)
	if status != 0 {
		WriteError(w, status, text)
		return
	}
	m, refusal := scan(body)
	if refusal != nil {
		b.malformed(m)
		reply{status: http.StatusBadRequest, parts: [][]byte{encodeError(m.id, refusal)}}.write(w)
		return
	}
	if name := repeated(r.Header); name != "" {
		b.malformed(m)
		b.fail(m.id, true, refuse(mcp.HEADER_MISMATCH, "header %s is sent more than once; send it once", name)).write(w)
		return
	}
	e := eraOf(m, r.Header.Get(mcp.HeaderProtocolVersion))
	if m.method == mcp.MethodInitialize && e.meta == "" {
		// initialize negotiates the revision. Clients send their newest one in the header as well, which may
		// be unknown here.
		r.Header.Del(mcp.HeaderProtocolVersion)
		e.modern, e.header = false, ""
	}
	if e.modern {
		b.postModern(w, r, m, e)
		return
	}
	b.postLegacy(w, r, m, e)
}

// postModern handles a message of 2026-07-28. It checks headers and params._meta, unless mcp-go answers.
func (b *branch) postModern(w http.ResponseWriter, r *http.Request, m *message, e era) {
	if m.id == nil && m.method == mcp.MethodNotificationCancelled {
		// The end of a request's connection cancels it. Some clients say so as well, in whatever form, and end
		// for good if that is refused; without a session the id that they say could be anybody's.
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if !answeredHere(m) {
		b.forward(w, r, m.body, b.ctx)
		return
	}
	refusal := e.checkHeaders(r.Header)
	if refusal == nil {
		refusal = e.checkRequest()
	}
	if refusal == nil {
		refusal = b.checkStandard(r.Header, m, e)
	}
	if refusal != nil {
		b.malformed(m)
		b.fail(m.id, true, refusal).write(w)
		return
	}
	if m.method == mcp.MethodSubscriptionsListen {
		b.listenHTTP(w, r, m)
		return
	}
	b.answerHTTP(r.Context(), w, r.Header, m, e, "", nil)
}

// answerHTTP answers the messages that the Server answers itself, within the branch's limit of calls. level
// is the session's log level and asks holds the requests to its client: only the older eras have both.
func (b *branch) answerHTTP(ctx context.Context, w http.ResponseWriter, h http.Header, m *message, e era, level mcp.LoggingLevel, asks *serverRequests) {
	if !countsAsCall(m) {
		finish(ctx, w, h, b.answer(ctx, m, e.modern, registry.Listener{}))
		return
	}
	place := b.placeOf(m)
	if err := place.enter(ctx); err != nil {
		if cancelled(ctx) {
			unanswered(w, h)
			return
		}
		var full *registry.Error
		if errors.As(err, &full) { // else the client is gone
			b.recordRefused(decision.TooManyCalls, m)
			overloadedReply(m, full, http.StatusTooManyRequests).write(w)
		}
		return
	}
	defer place.leave()
	wants := e.wants(level)
	if wants.nothing() && asks.none() || !accepts(h, "text/event-stream") {
		finish(ctx, w, h, b.answer(ctx, m, e.modern, e.caller(registry.Listener{})))
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	beats := &heartbeat{ResponseWriter: w, every: b.server.Limits.Heartbeat, lost: cancel}
	defer beats.stop()
	stream := &eventStream{w: beats, cancel: cancel}
	notices := &notificationQueue{write: func(n []byte) { stream.event(n) }}
	to := e.caller(wants.listener(notices))
	if asks != nil {
		to.Client = asks
	}
	asks.by(notices, &to)
	answer := b.answer(ctx, m, e.modern, to)
	b.relayed(m, notices.end())
	switch {
	case !stream.begun:
		finish(ctx, w, h, answer)
	case !cancelled(ctx): // else the stream ends without an answer
		stream.event(answer.parts...)
	}
}

// listenHTTP answers subscriptions/listen by a stream that ends with the client or the branch.
func (b *branch) listenHTTP(w http.ResponseWriter, r *http.Request, m *message) {
	leave, ok := b.streams.take()
	if !ok {
		overloadedReply(m, b.tooManyStreams(), http.StatusServiceUnavailable).write(w)
		return
	}
	defer leave()
	if !accepts(r.Header, "text/event-stream") {
		WriteError(w, http.StatusNotAcceptable, "a stream is text/event-stream; Accept must allow it")
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(b.ctx, cancel)()
	beats := &heartbeat{ResponseWriter: w, every: b.server.Limits.Heartbeat, lost: cancel}
	defer beats.stop()
	stream := &eventStream{w: beats, cancel: cancel}
	last := b.listen(ctx, m, func(n []byte) { stream.event(n) })
	switch {
	case !stream.begun:
		last.write(w)
	case r.Context().Err() == nil:
		stream.event(last.parts...)
	}
}

// cancelled reports whether the client has cancelled its request, which then gets no answer (MCP 2025-06-18,
// cancellation).
func cancelled(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errClientCancelled) }

// finish writes the answer to a request, unless the client has cancelled it.
func finish(ctx context.Context, w http.ResponseWriter, h http.Header, r reply) {
	if cancelled(ctx) {
		unanswered(w, h)
		return
	}
	r.write(w)
}

// unanswered ends a request without an answer: by an event stream without events, or by an empty 202 if the
// client doesn't accept a stream.
func unanswered(w http.ResponseWriter, h http.Header) {
	if !accepts(h, "text/event-stream") {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
}

// relayed logs how many notifications of a call were dropped.
func (b *branch) relayed(m *message, dropped int) {
	if dropped > 0 {
		b.server.Log.Warn("a tool sent more notifications in one call than are relayed", "branch", b.name, "method", m.method, "of", m.subject(), "dropped", dropped)
	}
}

// checkStandard checks the standard headers against the message and against the schema of the called tool.
func (b *branch) checkStandard(h http.Header, m *message, e era) *rpcError {
	g, release := b.server.Pin()
	defer release()
	if path, ok := b.path(g); ok && m.method == mcp.MethodToolsCall {
		if entry, unknown := path.View.Lookup(*m.name); unknown == nil {
			return checkStandardHeaders(h, e.meta, m, entry)
		}
	}
	return checkStandardHeaders(h, e.meta, m, nil)
}

// postLegacy handles a message of an older revision. All but initialize need a live session.
func (b *branch) postLegacy(w http.ResponseWriter, r *http.Request, m *message, e era) {
	if e.header != "" && !mcp.IsValidProtocolVersion(e.header) {
		WriteError(w, http.StatusBadRequest, "Unsupported protocol version: "+e.header)
		return
	}
	if m.method == mcp.MethodInitialize {
		b.initialize(w, r, m)
		return
	}
	s, done, ok := b.session(w, r, m)
	if !ok {
		return
	}
	defer done()
	if m.method == "" {
		s.questions.answered(m) // ignored if no request waits for it any more
		w.WriteHeader(http.StatusAccepted)
		return
	}
	m.from = &client{r.Header.Get(mcp.HeaderSessionID), s.ctx}
	if answeredHere(m) {
		ctx, finish := s.track(r.Context(), m.id)
		defer finish()
		b.answerHTTP(ctx, w, r.Header, m, e, s.level.Load().(mcp.LoggingLevel), &s.questions)
		return
	}
	if level := mcp.LoggingLevel(str(m.level)); m.method == mcp.MethodSetLogLevel && m.id != nil && known(level) {
		s.level.Store(level) // mcp-go, which answers, keeps its own level for its own log messages
	}
	if m.method == mcp.MethodNotificationCancelled && m.requestID != nil {
		s.cancel(m.requestID)
	}
	b.forward(w, r, m.body, s.ctx)
}

// initialize begins a session if the limits allow one.
func (b *branch) initialize(w http.ResponseWriter, r *http.Request, m *message) {
	if m.id == nil { // mcp-go would begin a session whose id the client never receives
		b.fail(nil, true, refuse(mcp.INVALID_REQUEST, "initialize is a request, and needs an id")).write(w)
		return
	}
	if full := b.server.reserve(b); full != nil {
		overloadedReply(m, full, http.StatusServiceUnavailable).write(w)
		return
	}
	begun := false
	defer func() {
		if !begun {
			b.sessions.cancelReservation()
		}
	}()
	able := abilities(m.params)
	b.forward(beginning{w, func(id string) {
		begun = id != ""
		if s, done, err := b.sessions.use(id); err == nil {
			s.questions.declared(able, b.later(id))
			done()
		}
	}}, r.WithContext(context.WithValue(r.Context(), declares{}, able)), m.body, b.ctx)
}

// stream handles GET, which opens a session's notification stream, and DELETE, which ends a session.
// 2026-07-28 has neither, which mcp-go reports. Some clients GET a stream before they have begun a session;
// these get a 405, as from a server without such streams, which they accept.
func (b *branch) stream(w http.ResponseWriter, r *http.Request) {
	if name := repeated(r.Header); name != "" {
		WriteError(w, http.StatusBadRequest, "header "+name+" is sent more than once; send it once")
		return
	}
	version := r.Header.Get(mcp.HeaderProtocolVersion)
	if !mcp.IsModernProtocol(version) && r.Method == http.MethodGet && r.Header.Get(mcp.HeaderSessionID) == "" {
		NotAllowed(w, http.MethodPost)
		return
	}
	if mcp.IsModernProtocol(version) || version != "" && !mcp.IsValidProtocolVersion(version) {
		b.forward(w, r, nil, b.ctx)
		return
	}
	if r.Method == http.MethodGet && !accepts(r.Header, "text/event-stream") {
		WriteError(w, http.StatusNotAcceptable, "a stream is text/event-stream; Accept must allow it")
		return
	}
	s, done, ok := b.session(w, r, nil)
	if !ok {
		return
	}
	defer done()
	if r.Method == http.MethodDelete {
		b.resumable.end(r.Header.Get(mcp.HeaderSessionID))
		b.forward(w, r, nil, b.ctx) // mcp-go calls Terminate
		return
	}
	leave, ok := b.streams.take()
	if !ok {
		full := b.tooManyStreams()
		SetRetryAfter(w.Header(), full.RetryAfter)
		WriteError(w, http.StatusServiceUnavailable, full.Msg)
		return
	}
	defer leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	beats := &heartbeat{ResponseWriter: w, every: b.server.Limits.Heartbeat, lost: cancel}
	defer beats.stop()
	b.forward(beats, r.WithContext(ctx), nil, s.ctx)
}

func (b *branch) tooManyStreams() *registry.Error {
	return tooMany("streams", "as many streams are open here as may be", b.streams.max)
}

// session returns the live session that a request names; mcp-go would accept any id for a GET. m is nil if
// the request has no message.
func (b *branch) session(w http.ResponseWriter, r *http.Request, m *message) (*session, func(), bool) {
	id := r.Header.Get(mcp.HeaderSessionID)
	if id == "" {
		WriteError(w, http.StatusBadRequest, mcp.HeaderSessionID+" is missing; begin with initialize")
		return nil, nil, false
	}
	s, done, err := b.sessions.use(id)
	if err != nil {
		if full := b.resumeSession(id); full != nil {
			SetRetryAfter(w.Header(), full.RetryAfter)
			WriteError(w, http.StatusServiceUnavailable, full.Msg)
			return nil, nil, false
		}
		s, done, err = b.sessions.use(id)
	}
	if err != nil {
		b.recordRefused(decision.UnknownSession, m)
		WriteError(w, http.StatusNotFound, err.Error())
		return nil, nil, false
	}
	return s, done, true
}

// forward passes a request to mcp-go. The request is cancelled when the client disconnects or owner ends.
func (b *branch) forward(w http.ResponseWriter, r *http.Request, body []byte, owner context.Context) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(owner, cancel)()
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	b.http.ServeHTTP(w, r)
}

// forget clears the state that mcp-go keeps for an expired session, which only a DELETE does.
func (b *branch) forget(id string) {
	r, err := http.NewRequestWithContext(b.ctx, http.MethodDelete, "/mcp", nil)
	if err != nil {
		panic("mcpserver: a constant request is always valid: " + err.Error())
	}
	r.Header.Set(mcp.HeaderSessionID, id)
	b.http.ServeHTTP(discard{http.Header{}}, r)
}

// discard is a ResponseWriter that discards everything.
type discard struct{ header http.Header }

func (d discard) Header() http.Header { return d.header }

func (d discard) Write(p []byte) (int, error) { return len(p), nil }

func (d discard) WriteHeader(int) {}

// repeated returns the name of a single-valued header that was sent more than once; empty if there is none.
// One reader could take the first value and another the last.
func repeated(h http.Header) (name string) {
	for n, values := range h {
		if len(values) < 2 || name != "" && n > name {
			continue
		}
		switch n {
		case "Authorization", "Content-Encoding", "Content-Type", "Last-Event-Id", "Origin":
			name = n
		default:
			if strings.HasPrefix(n, "Mcp-") {
				name = n
			}
		}
	}
	return name
}

// CheckContent returns a status other than 0 if the body is not declared as plain JSON in UTF-8, or if the
// client does not accept JSON.
func CheckContent(h http.Header) (status int, text string) {
	if len(h["Content-Type"]) == 1 && h["Content-Type"][0] == "application/json" && len(h["Content-Encoding"]) == 0 && accepts(h, "application/json") {
		return 0, ""
	}
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return http.StatusUnsupportedMediaType, "Content-Type must be application/json"
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return http.StatusUnsupportedMediaType, "the charset must be utf-8"
	}
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return http.StatusUnsupportedMediaType, "Content-Encoding is not supported"
	}
	if !accepts(h, "application/json") {
		return http.StatusNotAcceptable, "answers are application/json or text/event-stream; Accept must allow both"
	}
	return 0, ""
}

// accepts reports whether a client accepts a media type; a client without an Accept header accepts all.
func accepts(h http.Header, media string) bool {
	values := h["Accept"]
	if len(values) == 0 {
		return true
	}
	family, _, _ := strings.Cut(media, "/")
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			name, params, _ := strings.Cut(strings.TrimSpace(part), ";")
			name = strings.TrimSpace(name)
			if strings.TrimSpace(params) == "q=0" {
				continue
			}
			if strings.EqualFold(name, media) || name == "*/*" || strings.EqualFold(name, family+"/*") {
				return true
			}
		}
	}
	return false
}

// ReadBody reads a body of at most maxMessage bytes within Limits.BodyTime. If that fails, status and text
// are the answer.
func (s *Server) ReadBody(w http.ResponseWriter, r *http.Request) (body []byte, status int, text string) {
	const tooLarge = "a message is at most 4 MiB"
	if r.ContentLength > maxMessage {
		w.Header().Set("Connection", "close")
		return nil, http.StatusRequestEntityTooLarge, tooLarge
	}
	// Not every ResponseWriter has deadlines (httptest's doesn't); that of the server does.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(s.Limits.BodyTime))
	var err error
	if r.ContentLength >= 0 {
		// Allocate no more than 64 KiB on the announcement of a length alone.
		body = make([]byte, 0, min(r.ContentLength+1, 64<<10))
		body, err = appendAll(body, r.Body)
	} else {
		body, err = appendAll(nil, http.MaxBytesReader(w, r.Body, maxMessage))
	}
	var over *http.MaxBytesError
	switch {
	case err == nil:
		_ = control.SetReadDeadline(time.Time{})
		return body, 0, ""
	case errors.As(err, &over):
		status, text = http.StatusRequestEntityTooLarge, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		status, text = http.StatusRequestTimeout, "the body did not come in time"
	default:
		status, text = http.StatusBadRequest, "the body could not be read"
	}
	// The rest of the body would be read as the next request. The deadline remains, because the server tries
	// to read that rest before it closes the connection.
	w.Header().Set("Connection", "close")
	return nil, status, text
}

// appendAll is io.ReadAll into b.
func appendAll(b []byte, r io.Reader) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = slices.Grow(b, max(512, len(b)))
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
