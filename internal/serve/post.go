package serve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

const allowMCP = "POST, GET, DELETE"

// serveMCP is the MCP endpoint of one branch.
func (f *Front) serveMCP(w http.ResponseWriter, r *http.Request, name string) {
	if f.ctx.Err() != nil {
		writeError(w, http.StatusServiceUnavailable, "the server is ending")
		return
	}
	if err := f.named(name); err != nil {
		// Which branches there are is told by /branches, not here.
		writeError(w, http.StatusNotFound, "no branch "+strconv.Quote(name))
		return
	}
	b := f.branch(name)
	switch r.Method {
	case http.MethodPost:
		b.post(w, r)
	case http.MethodGet, http.MethodDelete:
		b.stream(w, r)
	default:
		notAllowed(w, allowMCP)
	}
}

// post takes one message.
func (b *branch) post(w http.ResponseWriter, r *http.Request) {
	if status, text := checkContent(r.Header); status != 0 {
		writeError(w, status, text)
		return
	}
	body, status, text := readBody(w, r)
	if status != 0 {
		writeError(w, status, text)
		return
	}
	m, refusal := scan(body)
	if refusal != nil {
		reply{http.StatusBadRequest, [][]byte{encodeError(m.id, refusal)}}.write(w)
		return
	}
	e := eraOf(m, r.Header.Get(mcp.HeaderProtocolVersion))
	if e.modern {
		b.postModern(w, r, m, e)
		return
	}
	b.postLegacy(w, r, m, e)
}

func (b *branch) postModern(w http.ResponseWriter, r *http.Request, m *message, e era) {
	if m.method == mcp.MethodSubscriptionsListen {
		leave, ok := b.streams.enter(w)
		if !ok {
			return
		}
		defer leave()
	}
	if !own(m) {
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
		b.fail(m.id, true, refusal).write(w)
		return
	}
	b.answerHTTP(r.Context(), w, m, true)
}

// answerHTTP answers what the front answers itself, within the branch's limit of calls.
func (b *branch) answerHTTP(ctx context.Context, w http.ResponseWriter, m *message, modern bool) {
	if m.method == mcp.MethodToolsCall {
		leave, ok := b.calls.enter(w)
		if !ok {
			return
		}
		defer leave()
	}
	b.answer(ctx, m, modern).write(w)
}

// checkStandard holds the standard headers against the message, and against the schema of the tool that it calls.
func (b *branch) checkStandard(h http.Header, m *message, e era) *rpcError {
	g, release := b.front.Pin()
	defer release()
	if path, ok := g.Path(b.name); ok && m.name != nil {
		if entry, unknown := path.View.Lookup(*m.name); unknown == nil {
			return checkStandardHeaders(h, e.meta, m, entry)
		}
	}
	return checkStandardHeaders(h, e.meta, m, nil)
}

func (b *branch) postLegacy(w http.ResponseWriter, r *http.Request, m *message, e era) {
	if e.header != "" && !mcp.IsValidProtocolVersion(e.header) {
		writeError(w, http.StatusBadRequest, "Unsupported protocol version: "+e.header)
		return
	}
	if m.method == mcp.MethodInitialize {
		if b.sessions.full() {
			overLimit(w)
			return
		}
		b.forward(w, r, m.body, b.ctx)
		return
	}
	s, done, ok := b.session(w, r)
	if !ok {
		return
	}
	defer done()
	if own(m) {
		ctx, finish := s.begin(r.Context(), m.id)
		defer finish()
		b.answerHTTP(ctx, w, m, false)
		return
	}
	if m.method == mcp.MethodNotificationCancelled && m.requestID != nil {
		s.cancel(m.requestID)
	}
	b.forward(w, r, m.body, s.ctx)
}

// stream is GET, a session's stream of notifications, and DELETE, a session's end. In 2026-07-28 neither exists, which
// mcp-go says.
func (b *branch) stream(w http.ResponseWriter, r *http.Request) {
	version := r.Header.Get(mcp.HeaderProtocolVersion)
	if mcp.IsModernProtocol(version) || version != "" && !mcp.IsValidProtocolVersion(version) {
		b.forward(w, r, nil, b.ctx)
		return
	}
	if r.Method == http.MethodGet && !accepts(r.Header, "text/event-stream") {
		writeError(w, http.StatusNotAcceptable, "a stream is text/event-stream; Accept must allow it")
		return
	}
	s, done, ok := b.session(w, r)
	if !ok {
		return
	}
	defer done()
	if r.Method == http.MethodDelete {
		b.forward(w, r, nil, b.ctx) // the session ends on the way
		return
	}
	leave, ok := b.streams.enter(w)
	if !ok {
		return
	}
	defer leave()
	b.forward(w, r, nil, s.ctx)
}

// limit caps how many of something are open at once.
type limit struct {
	open atomic.Int64
	max  int64
}

// take counts one more until leave is called, if there is room.
func (l *limit) take() (leave func(), ok bool) {
	if l.open.Add(1) > l.max {
		l.open.Add(-1)
		return nil, false
	}
	return func() { l.open.Add(-1) }, true
}

// enter is take that answers where there is no room.
func (l *limit) enter(w http.ResponseWriter) (leave func(), ok bool) {
	if leave, ok = l.take(); !ok {
		overLimit(w)
	}
	return leave, ok
}

func overLimit(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	writeError(w, http.StatusServiceUnavailable, "this branch is as busy as it may be; nothing was run")
}

// session is the live session that a request names; mcp-go would let a GET name any.
func (b *branch) session(w http.ResponseWriter, r *http.Request) (*session, func(), bool) {
	id := r.Header.Get(mcp.HeaderSessionID)
	if id == "" {
		writeError(w, http.StatusBadRequest, mcp.HeaderSessionID+" is missing; begin with initialize")
		return nil, nil, false
	}
	s, done, err := b.sessions.use(id)
	if err != nil {
		writeError(w, http.StatusNotFound, err.Error())
		return nil, nil, false
	}
	return s, done, true
}

// forward hands a request to mcp-go, until the client goes or owner ends.
func (b *branch) forward(w http.ResponseWriter, r *http.Request, body []byte, owner context.Context) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(owner, cancel)()
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	b.http.ServeHTTP(w, r)
}

// forget clears what mcp-go keeps of a session that has expired; only a DELETE does that.
func (b *branch) forget(id string) {
	r, err := http.NewRequestWithContext(b.ctx, http.MethodDelete, "/mcp", nil)
	if err != nil {
		panic("serve: a constant request is always valid: " + err.Error())
	}
	r.Header.Set(mcp.HeaderSessionID, id)
	b.http.ServeHTTP(discard{http.Header{}}, r)
}

// discard is a ResponseWriter for nobody.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// checkContent returns a status other than 0 for a body that is not plain JSON in UTF-8, or for a client that can't
// read an answer.
func checkContent(h http.Header) (status int, text string) {
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

// accepts reports whether a client takes a media type; one that says nothing takes all.
func accepts(h http.Header, media string) bool {
	values := h.Values("Accept")
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

// readBody reads at most maxMessage bytes in at most bodyTimeout.
func readBody(w http.ResponseWriter, r *http.Request) (body []byte, status int, text string) {
	const tooLarge = "a message is at most 4 MiB"
	if r.ContentLength > maxMessage {
		w.Header().Set("Connection", "close")
		return nil, http.StatusRequestEntityTooLarge, tooLarge
	}
	// Not every ResponseWriter has deadlines (one of a test doesn't); the server's own does.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	var b bytes.Buffer
	if r.ContentLength > 0 {
		b.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, maxMessage))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, http.StatusRequestEntityTooLarge, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, http.StatusRequestTimeout, "the body did not come in time"
	case err != nil:
		return nil, http.StatusBadRequest, "the body could not be read"
	}
	return b.Bytes(), 0, ""
}

// write writes the reply as one JSON document.
func (r reply) write(w http.ResponseWriter) {
	size := 1
	for _, p := range r.parts {
		size += len(p)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(size))
	// A client that reads nothing must not hold its call's memory for ever.
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	w.WriteHeader(r.status)
	for _, p := range append(r.parts, []byte("\n")) {
		if _, err := w.Write(p); err != nil {
			return // the client has gone away
		}
	}
}
