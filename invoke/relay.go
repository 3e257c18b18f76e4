package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/registry"
)

// relay passes on to a caller what the called tool reports, until the call is answered. What comes later is dropped, and
// what is asked then is refused: the effect goes on without its caller.
type relay struct {
	to   registry.Listener
	left context.Context // ends when the caller is answered
	end  context.CancelFunc

	mu     sync.Mutex
	closed bool
	spoken bool // the tool reports its own progress
	told   int  // how often the caller was told that it waits
	asking int  // how many questions the caller has not answered
}

func newRelay(to registry.Listener) *relay {
	h := &relay{to: to}
	h.left, h.end = context.WithCancel(context.Background())
	return h
}

// close ends the relay; nothing reaches the caller after it has returned.
func (h *relay) close() {
	h.end()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
}

// say says something to the caller, as long as it listens.
func (h *relay) say(to func(json.RawMessage), params json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		to(params)
	}
}

// listener is the caller as its tool is to see it.
func (h *relay) listener() registry.Listener {
	to := h.to
	if said := h.to.Progress; said != nil {
		to.Progress = func(params json.RawMessage) {
			h.mu.Lock()
			h.spoken = true
			h.mu.Unlock()
			h.say(said, params)
		}
	}
	if said := h.to.Message; said != nil {
		to.Message = func(params json.RawMessage) { h.say(said, params) }
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

// waiting tells a caller that has asked for progress, and hears none from its tool, that it waits.
func (h *relay) waiting(state intent.State) {
	if h.to.Progress == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.spoken {
		return
	}
	h.told++
	h.to.Progress(json.RawMessage(fmt.Sprintf(`{"progress":%d,"message":"the call is %s"}`, h.told, state)))
}
