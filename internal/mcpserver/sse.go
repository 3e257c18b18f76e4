package mcpserver

import (
	"bytes"
	"net/http"
	"time"
)

// eventStream is a response that becomes a stream of events (MCP, streamable HTTP) once there is something to
// send before the answer. It is not safe for concurrent use.
type eventStream struct {
	w http.ResponseWriter
	// cancel is called when a write fails, to cancel the request.
	cancel func()
	begun  bool
	failed bool
}

// event writes one message as one event and flushes it.
func (s *eventStream) event(parts ...[]byte) {
	if s.failed {
		return
	}
	if !s.begun {
		s.begun = true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache")
		s.w.WriteHeader(http.StatusOK)
	}
	out := append(make([]byte, 0, length(parts)+32), "event: message\ndata: "...)
	out = append(appendLine(out, parts), "\n\n"...)
	_, err := s.w.Write(out)
	if err == nil {
		err = http.NewResponseController(s.w).Flush()
	}
	if err != nil {
		s.failed = true
		s.cancel()
	}
}

func length(parts [][]byte) (n int) {
	for _, p := range parts {
		n += len(p)
	}
	return n
}

// appendLine joins the parts of a message on one line. Line breaks that an upstream put between JSON tokens
// are white space there but would end the line here; strings contain none.
func appendLine(out []byte, parts [][]byte) []byte {
	for _, p := range parts {
		start := len(out)
		out = append(out, p...)
		if bytes.IndexByte(p, '\n') < 0 && bytes.IndexByte(p, '\r') < 0 {
			continue
		}
		for i := start; i < len(out); i++ {
			if out[i] == '\n' || out[i] == '\r' {
				out[i] = ' '
			}
		}
	}
	return out
}

// DeadlineWriter is a ResponseWriter that sets a deadline for each write and none for all writes together: a
// client that doesn't read must not hold the resources of its answer for ever, and a stream may live long.
// The deadline of the last write remains until the next one, so that it covers what the server writes after
// the handler has returned.
type DeadlineWriter struct {
	http.ResponseWriter
	control http.ResponseController
	limit   time.Duration
	Begun   bool
}

// NewDeadlineWriter returns a DeadlineWriter on w. limit is the time for each write.
func NewDeadlineWriter(w http.ResponseWriter, limit time.Duration) *DeadlineWriter {
	return &DeadlineWriter{ResponseWriter: w, control: *http.NewResponseController(w), limit: limit}
}

// due sets the deadline of the next write. Not every ResponseWriter has deadlines (httptest's doesn't); that
// of the server does.
func (p *DeadlineWriter) due() {
	p.Begun = true
	_ = p.control.SetWriteDeadline(time.Now().Add(p.limit))
}

// WriteHeader sets the deadline and writes the header; an answer may have no body.
func (p *DeadlineWriter) WriteHeader(status int) {
	p.due()
	p.ResponseWriter.WriteHeader(status)
}

// Write sets the deadline and writes b.
func (p *DeadlineWriter) Write(b []byte) (int, error) {
	p.due()
	return p.ResponseWriter.Write(b)
}

// Flush implements http.Flusher, which mcp-go requires.
func (p *DeadlineWriter) Flush() { _ = p.FlushError() }

// FlushError sets the deadline and flushes; http.ResponseController calls it.
func (p *DeadlineWriter) FlushError() error {
	p.due()
	return p.control.Flush()
}

// Unwrap returns the underlying ResponseWriter, for http.ResponseController.
func (p *DeadlineWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }
