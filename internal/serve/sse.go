package serve

import (
	"bytes"
	"net/http"
	"time"
)

// eventStream is a response that has become a stream of events (MCP, streamable HTTP) because there is something to say
// before the answer. One goroutine at a time writes to it.
type eventStream struct {
	w http.ResponseWriter
	// gone is called when the client takes no more: there is nobody left to answer.
	gone   func()
	begun  bool
	failed bool
}

// event writes one message as one event and hands it to the client at once.
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
		s.gone()
	}
}

func length(parts [][]byte) (n int) {
	for _, p := range parts {
		n += len(p)
	}
	return n
}

// appendLine joins a message's parts on one line. A line end that an upstream put between JSON tokens is white space
// there and would end the line here; inside strings there is none.
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

// paced is a ResponseWriter whose client has a time limit for each write, and none for all of them: a client that reads
// nothing must not hold what its answer needs for ever, and a stream may live long. The deadline of the last write stands
// until the next one, so that it covers what the server still has to write after the handler.
type paced struct {
	http.ResponseWriter
	control http.ResponseController
	limit   time.Duration
	begun   bool
}

func newPaced(w http.ResponseWriter, limit time.Duration) *paced {
	return &paced{ResponseWriter: w, control: *http.NewResponseController(w), limit: limit}
}

// due begins the time of the next write. Not every ResponseWriter has deadlines (one of a test doesn't); the server's
// own does.
func (p *paced) due() {
	p.begun = true
	_ = p.control.SetWriteDeadline(time.Now().Add(p.limit))
}

// WriteHeader begins the time of an answer that may have no body.
func (p *paced) WriteHeader(status int) {
	p.due()
	p.ResponseWriter.WriteHeader(status)
}

func (p *paced) Write(b []byte) (int, error) {
	p.due()
	return p.ResponseWriter.Write(b)
}

// Flush is http.Flusher's, which mcp-go asks for.
func (p *paced) Flush() { _ = p.FlushError() }

// FlushError is what http.ResponseController asks for, as Unwrap is.
func (p *paced) FlushError() error {
	p.due()
	return p.control.Flush()
}

// Unwrap is the ResponseWriter below.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }
