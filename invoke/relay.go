package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/registry"
)

// relay forwards the messages of a tool to its caller until the caller is answered. Later messages are
// dropped, and later questions are refused, because the effect continues without its caller.
type relay struct {
	to   registry.Listener
	left context.Context // ends when the caller is answered
	end  context.CancelFunc

	mu       sync.Mutex
	closed   bool
	spoken   bool // the tool reports progress itself
	reported int  // progress notifications sent by waiting
	asking   int  // questions that the caller has not answered
}

func newRelay(to registry.Listener) *relay {
	h := &relay{to: to}
	h.left, h.end = context.WithCancel(context.Background())
	return h
}

// close ends the relay; after it has returned, nothing is sent to the caller.
func (h *relay) close() {
	h.end()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
}

// send sends params to the caller unless the relay is closed.
func (h *relay) send(to func(json.RawMessage), params json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		to(params)
	}
}

// listener returns the listener for the tool.
func (h *relay) listener() registry.Listener {
	to := h.to
	if progress := h.to.Progress; progress != nil {
		to.Progress = func(params json.RawMessage) {
			h.mu.Lock()
			h.spoken = true
			h.mu.Unlock()
			h.send(progress, params)
		}
	}
	if message := h.to.Message; message != nil {
		to.Message = func(params json.RawMessage) { h.send(message, params) }
	}
	if asked := h.to.Ask; asked != nil {
		to.Ask = func(ctx context.Context, q registry.Question) registry.Reply {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(h.left, cancel)()
			h.open(1)
			defer h.open(-1)
			return asked(ctx, q)
		}
	}
	return to
}

func (h *relay) open(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asking += n
}

// busy reports whether the caller has a question to answer.
func (h *relay) busy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asking > 0
}

// waiting sends a progress notification that the call waits, if the caller wants progress and the tool
// reports none.
func (h *relay) waiting(state intent.State) {
	if h.to.Progress == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.spoken {
		return
	}
	h.reported++
	h.to.Progress(json.RawMessage(fmt.Sprintf(`{"progress":%d,"message":"the call is %s"}`, h.reported, state)))
}
