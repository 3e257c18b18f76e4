package mcpserver

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// heartbeat is the ResponseWriter of what may become an event stream. If nothing is written to the stream for
// an interval it writes an empty comment, so that a proxy doesn't take a quiet stream for a dead one, and a
// client that has gone is noticed. All methods but Header are safe for concurrent use. stop must be called
// before the handler returns.
type heartbeat struct {
	http.ResponseWriter
	every time.Duration
	// lost is called if a comment can't be written.
	lost func()

	mu      sync.Mutex
	spoke   bool          // something was written since the last tick
	stopped chan struct{} // closed by stop; nil before the stream has begun
	beating sync.WaitGroup
}

// WriteHeader begins the heartbeat if the answer is an event stream.
func (h *heartbeat) WriteHeader(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ResponseWriter.WriteHeader(status)
	if h.stopped == nil && strings.HasPrefix(h.Header().Get("Content-Type"), "text/event-stream") {
		h.stopped = make(chan struct{})
		h.beating.Go(h.beat)
	}
}

// Write writes b, which must be whole lines.
func (h *heartbeat) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spoke = true
	return h.ResponseWriter.Write(b)
}

// Flush implements http.Flusher, which mcp-go requires.
func (h *heartbeat) Flush() { _ = h.FlushError() }

// FlushError flushes; http.ResponseController calls it.
func (h *heartbeat) FlushError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return http.NewResponseController(h.ResponseWriter).Flush()
}

func (h *heartbeat) beat() {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	for {
		select {
		case <-h.stopped:
			return
		case <-tick.C:
		}
		if err := h.once(); err != nil {
			h.lost()
			return
		}
	}
}

// once writes a comment if nothing was written since the last tick.
func (h *heartbeat) once() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.spoke {
		h.spoke = false
		return nil
	}
	if _, err := h.ResponseWriter.Write([]byte(":\n\n")); err != nil {
		return err
	}
	return http.NewResponseController(h.ResponseWriter).Flush()
}

// stop ends the heartbeat, and returns when nothing more will be written.
func (h *heartbeat) stop() {
	h.mu.Lock()
	begun := h.stopped != nil
	h.mu.Unlock()
	if begun {
		close(h.stopped)
		h.beating.Wait()
	}
}
