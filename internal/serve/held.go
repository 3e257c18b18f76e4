package serve

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
	// maxHeld is how many calls of one branch may wait for their clients to come back.
	maxHeld = 64
	// maxOpen is how many questions one call may have open.
	maxOpen = 16
)

// held are the calls of a branch whose tools, at servers of the older eras, ask by requests while they run, and whose
// clients speak 2026-07-28 and are asked by results; so are requests for prompts and resources. Such a call goes on while its client is away with the question, and
// the client's next round finds it by the state that it was given. All methods are safe for concurrent use.
type held struct {
	mu      sync.Mutex
	waiting map[nonce]*heldCall // by the state that the client has
	running map[*heldCall]bool
}

// heldCall is one call that runs by itself.
type heldCall struct {
	id, generation string
	able           registry.Abilities
	end            context.CancelCauseFunc
	// now is the listener of the round that is being answered; what a tool says between two rounds is heard by nobody.
	now atomic.Pointer[registry.Listener]
	// call is the outcome of a call of a tool, passed that of a request for a prompt or a resource; it is complete when ended
	// is closed.
	call   registry.Call
	passed outcome
	ended  chan struct{}
	// asked has one element when there may be an open question.
	asked chan struct{}

	mu   sync.Mutex
	open map[string]openQuestion
	last int
	// unwatch ends what watches over a call whose client is away; nil while it is there.
	unwatch func()
}

type openQuestion struct {
	registry.Question
	answer chan registry.Reply
}

// run begins a call that may outlive the request which it came with: work is called with the listener that hears for
// whoever is attached. It ends at its own limits of time, with its client (attached), or with nobody waiting for it
// (detached). release is called when it has ended.
func (s *held) run(ctx context.Context, generation string, first registry.Listener, release func(), work func(context.Context, *heldCall, registry.Listener)) *heldCall {
	ctx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	h := &heldCall{
		id: registry.NewCallID(), generation: generation, able: first.Able, end: end,
		ended: make(chan struct{}), asked: make(chan struct{}, 1), open: map[string]openQuestion{},
	}
	to := h.listener(first)
	s.mu.Lock()
	if s.running == nil {
		s.running = map[*heldCall]bool{}
	}
	s.running[h] = true
	s.mu.Unlock()
	go func() {
		defer func() {
			end(nil)
			release()
			s.forget(h)
			close(h.ended)
			h.back()
		}()
		work(ctx, h, to)
	}()
	return h
}

// forget drops a call that has ended.
func (s *held) forget(h *heldCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, h)
	maps.DeleteFunc(s.waiting, func(_ nonce, w *heldCall) bool { return w == h })
}

// idle reports whether no call runs.
func (s *held) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running) == 0
}

// wait returns when no call runs any more. No further one may begin.
func (s *held) wait() {
	for {
		s.mu.Lock()
		var h *heldCall
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

// settle returns when no call of an ended front runs any more without its request.
func (f *Front) settle() {
	f.mu.Lock()
	all := slices.Collect(maps.Values(f.branches))
	f.mu.Unlock()
	for _, b := range all {
		b.held.wait()
	}
}

// keep lets a running call wait for the state n to come back, until the branch ends or the state expires, and reports
// whether there is room. The call may end by itself meanwhile.
func (s *held) keep(n nonce, h *heldCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) >= maxHeld {
		return false
	}
	if s.waiting == nil {
		s.waiting = map[nonce]*heldCall{}
	}
	if s.running[h] {
		s.waiting[n] = h
	}
	return true
}

// take is the call that waits for a state; nil where it has ended.
func (s *held) take(n nonce) *heldCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.waiting[n]
	delete(s.waiting, n)
	return h
}

// listener hears for whoever is attached. What the first round didn't want to hear is heard in none.
func (h *heldCall) listener(first registry.Listener) registry.Listener {
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

// ask puts a question of the tool's among the open ones and waits for its answer.
func (h *heldCall) ask(ctx context.Context, q registry.Question) registry.Reply {
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

func (h *heldCall) signal() {
	select {
	case h.asked <- struct{}{}:
	default: // who waits will look anyway
	}
}

// answer hands the client's answers to who asked. What was not asked is left alone, and what is not answered stays open.
func (h *heldCall) answer(responses json.RawMessage) {
	given := map[string]json.RawMessage{}
	if responses != nil {
		if err := json.Unmarshal(responses, &given); err != nil {
			panic("serve: answers were checked: " + err.Error())
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
func (h *heldCall) refuseAll(e *rpcError) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, q := range h.open {
		delete(h.open, name)
		q.answer <- failedReply(e)
	}
}

// input are the open questions as an Input; nil where there are none.
func (h *heldCall) input() *registry.Input {
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
		kinds[q.Kind()] = true
	}
	return &registry.Input{Requests: encodeJSON(requests), Kinds: slices.Sorted(maps.Keys(kinds))}
}

// away has a call end with the branch, and with the state that its client has, as long as the client is away.
func (h *heldCall) away(branch context.Context) {
	gone := func() { h.end(context.Canceled) }
	stop, late := context.AfterFunc(branch, gone), time.AfterFunc(stateTime, gone)
	unwatch := func() {
		stop()
		late.Stop()
	}
	h.mu.Lock()
	h.unwatch = unwatch
	h.mu.Unlock()
	select {
	case <-h.ended:
		h.back()
	default:
	}
}

func (h *heldCall) back() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unwatch != nil {
		h.unwatch()
		h.unwatch = nil
	}
}

// attend waits, for the client of ctx, until a call has ended or asks; then in is what it asks, and state what the client
// comes back with. The client's end is the call's.
func (b *branch) attend(ctx context.Context, h *heldCall, of subject) (in *registry.Input, state string) {
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
			continue // whoever asked has given up
		}
		state, n := b.seal.close(of, encodeJSON(remembered{Kinds: in.Kinds, Held: true}))
		if !b.held.keep(n, h) {
			h.refuseAll(refuse(mcp.INTERNAL_ERROR, "too many calls wait for their clients"))
			continue
		}
		if !detach() { // the client has gone, and the call with it
			<-h.ended
			return nil, ""
		}
		h.away(b.ctx)
		return in, state
	}
}

// waits is a call that has asked, as the event that its client is answered with.
func (h *heldCall) waits(in *registry.Input) *registry.Call {
	return &registry.Call{ID: h.id, Generation: h.generation, Status: registry.Waiting, Result: &registry.Result{Input: in}}
}

// resume is the call that waits for the state n, whose client is here again.
func (b *branch) resume(n nonce) (*heldCall, *rpcError) {
	h := b.held.take(n)
	if h == nil {
		return nil, refuse(mcp.INVALID_PARAMS, "the call that waited for these answers has ended: it waits no longer than its tool and its server do; "+
			"call again from the start, without requestState")
	}
	h.back()
	return h, nil
}

// goOn hands the answers of a round, which was checked and decided like a first one, to the call, and attends to it.
func (b *branch) goOn(ctx context.Context, h *heldCall, to registry.Listener, of subject) (in *registry.Input, state string) {
	h.now.Store(&to)
	h.answer(to.Round.Responses)
	return b.attend(ctx, h, of)
}
