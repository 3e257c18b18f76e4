package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

const (
	// maxHeld is the maximum number of calls of one branch that wait for their clients' next round.
	maxHeld = 64
	// maxOpen is the maximum number of open questions of one call.
	maxOpen = 16
)

// pendingCalls are the calls of a branch that must outlive one request: the upstream server speaks an older
// era and asks by requests while the tool runs, and the client speaks 2026-07-28 and is asked by results.
// Requests for prompts and resources are handled the same. Such a call keeps running after its client was
// sent a question, and the client's next round finds it by the requestState that it received. All methods are
// safe for concurrent use.
type pendingCalls struct {
	mu      sync.Mutex
	waiting map[nonce]*pendingCall // by the nonce of the state that the client received
	running map[*pendingCall]bool
}

// pendingCall is one call that runs independently of a request.
type pendingCall struct {
	id, generation string
	able           registry.Abilities
	end            context.CancelCauseFunc
	// now is the listener of the current round; notifications between two rounds are dropped.
	now atomic.Pointer[registry.Listener]
	// call is the outcome of a tool call, passed that of a request for a prompt or a resource. Both may be
	// read once ended is closed.
	call   registry.Call
	passed outcome
	ended  chan struct{}
	// asked holds one element when there may be an open question.
	asked chan struct{}

	mu   sync.Mutex
	open map[string]openQuestion
	last int
	// unwatch stops the timers that end a detached call; nil while a client is attached.
	unwatch func()
}

type openQuestion struct {
	registry.Question
	answer chan registry.Reply
}

// run starts a call that may outlive the request that it came with. work receives the listener that forwards
// to the currently attached client. The call is cancelled by its own timeouts, with its client (while
// attached), or if no client resumes it (while detached). release is called when it has ended.
func (s *pendingCalls) run(ctx context.Context, generation string, first registry.Listener, release func(), work func(context.Context, *pendingCall, registry.Listener)) *pendingCall {
	ctx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	h := &pendingCall{
		id: registry.NewCallID(), generation: generation, able: first.Able, end: end,
		ended: make(chan struct{}), asked: make(chan struct{}, 1), open: map[string]openQuestion{},
	}
	to := h.listener(first)
	s.mu.Lock()
	if s.running == nil {
		s.running = map[*pendingCall]bool{}
	}
	s.running[h] = true
	s.mu.Unlock()
	go func() {
		defer func() {
			end(nil)
			release()
			s.forget(h)
			close(h.ended)
			h.attach()
		}()
		work(ctx, h, to)
	}()
	return h
}

// forget removes a call that has ended.
func (s *pendingCalls) forget(h *pendingCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, h)
	maps.DeleteFunc(s.waiting, func(_ nonce, w *pendingCall) bool { return w == h })
}

// idle reports whether no call is running.
func (s *pendingCalls) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running) == 0
}

// wait blocks until no call is running. No call may be started meanwhile.
func (s *pendingCalls) wait() {
	for {
		s.mu.Lock()
		var h *pendingCall
		for h = range s.running {
			break
		}
		s.mu.Unlock()
		if h == nil {
			return
		}
		<-h.ended
	}
}

// AwaitPending blocks until the pending calls of a closed Server have ended. It covers the branches served
// over HTTP.
func (s *Server) AwaitPending() {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.branches))
	s.mu.Unlock()
	for _, b := range all {
		b.pending.wait()
	}
}

// keep lets a running call wait for the state n. It returns false if too many calls wait. The call may end
// meanwhile.
func (s *pendingCalls) keep(n nonce, h *pendingCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) >= maxHeld {
		return false
	}
	if s.waiting == nil {
		s.waiting = map[nonce]*pendingCall{}
	}
	if s.running[h] {
		s.waiting[n] = h
	}
	return true
}

// take removes and returns the call that waits for a state; nil if it has ended.
func (s *pendingCalls) take(n nonce) *pendingCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.waiting[n]
	delete(s.waiting, n)
	return h
}

// listener returns a listener that forwards to the current round. What the first round didn't subscribe to is
// never forwarded.
func (h *pendingCall) listener(first registry.Listener) registry.Listener {
	h.now.Store(&first)
	to := first
	if first.Progress != nil {
		to.Progress = func(params json.RawMessage) {
			if now := h.now.Load(); now.Progress != nil {
				now.Progress(params)
			}
		}
	}
	if first.Message != nil {
		to.Message = func(params json.RawMessage) {
			if now := h.now.Load(); now.Message != nil {
				now.Message(params)
			}
		}
	}
	to.Ask = h.ask
	return to
}

// ask adds a question of the tool to the open ones and waits for its answer.
func (h *pendingCall) ask(ctx context.Context, q registry.Question) registry.Reply {
	if !h.able.Answers(q) {
		return failedReply(refuse(mcp.METHOD_NOT_FOUND, "the client has not declared that it answers %s", q.Method))
	}
	h.mu.Lock()
	if len(h.open) >= maxOpen {
		h.mu.Unlock()
		return failedReply(refuse(mcp.INTERNAL_ERROR, "too many requests wait for the client's answers"))
	}
	h.last++
	name, answer := fmt.Sprintf("question-%d", h.last), make(chan registry.Reply, 1)
	h.open[name] = openQuestion{q, answer}
	h.mu.Unlock()
	h.signal()
	select {
	case reply := <-answer:
		return reply
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, name)
	return failedReply(refuse(mcp.INTERNAL_ERROR, "the client did not answer in time"))
}

func (h *pendingCall) signal() {
	select {
	case h.asked <- struct{}{}:
	default: // a signal is pending already
	}
}

// answer delivers the client's answers to the open questions. Answers to other names are ignored, and
// unanswered questions stay open.
func (h *pendingCall) answer(responses json.RawMessage) {
	given := map[string]json.RawMessage{}
	if responses != nil {
		if err := json.Unmarshal(responses, &given); err != nil {
			panic("mcpserver: checked answers must decode: " + err.Error())
		}
	}
	h.mu.Lock()
	for name, q := range h.open {
		if reply, ok := given[name]; ok {
			delete(h.open, name)
			q.answer <- registry.Reply{Result: reply}
		}
	}
	left := len(h.open)
	h.mu.Unlock()
	if left > 0 {
		h.signal()
	}
}

// refuseAll answers every open question with an error.
func (h *pendingCall) refuseAll(e *rpcError) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, q := range h.open {
		delete(h.open, name)
		q.answer <- failedReply(e)
	}
}

// input returns the open questions as an Input; nil if there are none.
func (h *pendingCall) input() *registry.Input {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.open) == 0 {
		return nil
	}
	type request struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params,omitempty"`
	}
	requests, kinds := map[string]request{}, map[string]bool{}
	for name, q := range h.open {
		requests[name] = request{q.Method, q.Params}
		kind := q.Kind()
		if q.Approval {
			kind = registry.OwnApproval
		}
		kinds[kind] = true
	}
	return &registry.Input{Requests: encodeJSON(requests), Kinds: slices.Sorted(maps.Keys(kinds))}
}

// detach cancels a call when the branch ends or the client's state expires, until attach is called.
func (h *pendingCall) detach(branch context.Context) {
	cancel := func() { h.end(context.Canceled) }
	stop, late := context.AfterFunc(branch, cancel), time.AfterFunc(stateTime, cancel)
	unwatch := func() {
		stop()
		late.Stop()
	}
	h.mu.Lock()
	h.unwatch = unwatch
	h.mu.Unlock()
	select {
	case <-h.ended:
		h.attach()
	default:
	}
}

func (h *pendingCall) attach() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unwatch != nil {
		h.unwatch()
		h.unwatch = nil
	}
}

// awaitPending blocks until a call has ended or asks a question. In the second case it returns the questions
// and the state for the client's next round. If ctx, that of the client's request, ends, the call is
// cancelled.
func (b *branch) awaitPending(ctx context.Context, h *pendingCall, of subject) (in *registry.Input, state string) {
	detach := context.AfterFunc(ctx, func() { h.end(context.Cause(ctx)) })
	for {
		select {
		case <-h.ended:
			detach()
			return nil, ""
		case <-h.asked:
		}
		in := h.input()
		if in == nil {
			continue // the question was abandoned meanwhile
		}
		state, n := b.seal.close(of, encodeJSON(roundState{Kinds: in.Kinds, Held: true}))
		if !b.pending.keep(n, h) {
			h.refuseAll(refuse(mcp.INTERNAL_ERROR, "too many calls wait for their clients"))
			continue
		}
		if !detach() { // the client has disconnected, and the call is cancelled
			<-h.ended
			return nil, ""
		}
		h.detach(b.ctx)
		return in, state
	}
}

// waits returns a call that has asked as the call record for the client's answer.
func (h *pendingCall) waits(in *registry.Input) *registry.Call {
	return &registry.Call{ID: h.id, Generation: h.generation, Status: registry.Waiting, Result: &registry.Result{Input: in}}
}

// resume returns the call that waits for the state n, and attaches the client to it.
func (b *branch) resume(n nonce) (*pendingCall, *rpcError) {
	h := b.pending.take(n)
	if h == nil {
		return nil, refuse(mcp.INVALID_PARAMS, "the call that waited for these answers has ended: it waits no longer than its tool and its server do; "+
			"call again from the start, without requestState")
	}
	h.attach()
	return h, nil
}

// continuePending delivers the answers of a further round to the call and waits for it. The round must have
// been checked and decided on like a first one.
func (b *branch) continuePending(ctx context.Context, h *pendingCall, to registry.Listener, of subject) (in *registry.Input, state string) {
	h.now.Store(&to)
	h.answer(to.Round.Responses)
	return b.awaitPending(ctx, h, of)
}
