package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

// hearing takes a session's notifications to the calls that they belong to. Progress is known by its token,
// which is the request's id. A log message bears no token: on the stream of a call it belongs to that call,
// and on a stream of all (a child's standard output, the GET stream over HTTP) to the call that runs alone;
// while several run it could be anyone's, so nobody gets it unless all of them are one client's (speaker).
// What belongs to no call, or to one that has ended, is dropped.
type hearing struct {
	mu    sync.Mutex
	calls map[string]heard // by the request's id
	begun int
	// changed has one element when the server has said that its tools changed, forwards when its resources or
	// prompts did; whoever asks again takes it out.
	changed, forwards chan struct{}
	// acknowledged takes the params of what answers subscriptions/listen, from a child of 2026-07-28; nil
	// before it is asked.
	acknowledged atomic.Pointer[func(params json.RawMessage)]
	// subscribed takes those of the subscriptions to single resources, by the request's id.
	subscribed map[string]func(params json.RawMessage)
	// updated is told of each update of a resource, and does not block; nil where nobody wants to know.
	updated func(uri string)
	// pages are those that people were asked to open.
	pages pages
}

// acknowledges has the answer to a request for a subscription taken by f, until done is called.
func (h *hearing) acknowledges(id string, f func(params json.RawMessage)) (done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subscribed == nil {
		h.subscribed = map[string]func(json.RawMessage){}
	}
	h.subscribed[id] = f
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subscribed, id)
	}
}

// missed says that changes may not have been heard.
func (h *hearing) missed() {
	signal(h.changed)
	signal(h.forwards)
}

// heard is one call: who listens, and until when.
type heard struct {
	registry.Listener
	ctx context.Context
	// begun counts the calls of the session.
	begun int
}

// asker is the call that a request of the server's belongs to, by the rule for log messages.
func (h *hearing) asker(on string) (heard, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	call, ok := h.calls[on]
	if on == "" && len(h.calls) == 1 {
		for _, call = range h.calls {
			ok = true
		}
	}
	return call, ok
}

// begin lets a call hear until its end.
func (h *hearing) begin(ctx context.Context, id string, to registry.Listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls == nil {
		h.calls = map[string]heard{}
	}
	h.begun++
	h.calls[id] = heard{to, ctx, h.begun}
}

// end says that a call was answered, or given up.
func (h *hearing) end(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.calls, id)
}

// hear takes one notification; on is the id of the request on whose stream it came, empty for a stream of
// all. It reports whether that made a difference to anybody.
//
// The lock is held while a listener is called, so that none is called after its end; listeners don't block.
func (h *hearing) hear(on, method string, params json.RawMessage) (taken bool) {
	if !utf8.Valid(params) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch method {
	case string(mcp.MethodNotificationToolsListChanged):
		return signal(h.changed)
	case string(mcp.MethodNotificationResourcesListChanged), string(mcp.MethodNotificationPromptsListChanged):
		return signal(h.forwards)
	case mcp.MethodNotificationResourceUpdated:
		var p struct {
			URI string `json:"uri"`
		}
		if json.Unmarshal(params, &p) == nil && p.URI != "" && h.updated != nil {
			h.updated(p.URI)
			return true
		}
	case string(mcp.MethodNotificationElicitationComplete):
		return h.pages.complete(params)
	case mcp.MethodNotificationSubscriptionsAcknowledged:
		var p struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
		if json.Unmarshal(params, &p) == nil {
			var id mcp.RequestId
			if json.Unmarshal(p.Meta[mcp.MetaKeySubscriptionID], &id) == nil {
				if f, ok := h.subscribed[id.String()]; ok {
					f(params)
					return true
				}
			}
		}
		if acknowledged := h.acknowledged.Load(); acknowledged != nil {
			(*acknowledged)(params)
			return true
		}
	case string(mcp.MethodNotificationProgress):
		var p struct {
			Token    *mcp.RequestId  `json:"progressToken"`
			Progress json.RawMessage `json:"progress"`
			Total    json.RawMessage `json:"total,omitempty"`
			Message  *string         `json:"message,omitempty"`
			Meta     json.RawMessage `json:"_meta,omitempty"`
		}
		if json.Unmarshal(params, &p) != nil || p.Token == nil || !number(p.Progress) || p.Total != nil && !number(p.Total) {
			return false
		}
		if on != "" && on != p.Token.String() {
			return false // a stream is one call's, and says nothing of another
		}
		if to := h.calls[p.Token.String()].Listener; to.Progress != nil {
			p.Token = nil
			to.Progress(encode(struct {
				Progress json.RawMessage `json:"progress"`
				Total    json.RawMessage `json:"total,omitempty"`
				Message  *string         `json:"message,omitempty"`
				Meta     json.RawMessage `json:"_meta,omitempty"`
			}{p.Progress, p.Total, p.Message, ownMeta(p.Meta)}))
			return true
		}
	case string(mcp.MethodNotificationMessage):
		var p struct {
			Level  mcp.LoggingLevel `json:"level"`
			Logger *string          `json:"logger,omitempty"`
			Data   json.RawMessage  `json:"data"`
			Meta   json.RawMessage  `json:"_meta,omitempty"`
		}
		if json.Unmarshal(params, &p) != nil || p.Data == nil {
			return false
		}
		to, ok := h.calls[on]
		if on == "" {
			to, ok = h.speaker()
		}
		if ok && to.Message != nil && p.Level.ShouldSendTo(mcp.LoggingLevel(to.Level)) {
			p.Meta = ownMeta(p.Meta)
			to.Message(encode(p))
			return true
		}
	}
	return false
}

// speaker is the call that a log message on a stream of all goes to: the one that runs alone, or of several
// the one that began first, if all are of one client to which messages are its session's, and each of them
// may hear some. It needs the lock.
func (h *hearing) speaker() (first heard, ok bool) {
	for _, call := range h.calls {
		switch {
		case !ok || call.begun < first.begun:
			if ok && !call.shares(first) {
				return heard{}, false
			}
			first, ok = call, true
		case !call.shares(first):
			return heard{}, false
		}
	}
	return first, ok
}

// shares reports whether a message that is either call's may go to the other.
func (c heard) shares(other heard) bool {
	return c.Client != nil && c.Client == other.Client && c.Message != nil && other.Message != nil && c.Level == other.Level
}

// ownMeta is the _meta of a notification without what the protocol itself says there, which is about the
// connection to the server and not about the client's.
func ownMeta(meta json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(meta, &members) != nil {
		return nil // none, or no object
	}
	for name := range members {
		if strings.HasPrefix(name, "io.modelcontextprotocol/") || strings.HasPrefix(name, "catalogd/") {
			delete(members, name)
		}
	}
	if len(members) == 0 {
		return nil
	}
	return encode(members)
}

// signal puts an element into c, unless one is there.
func signal(c chan<- struct{}) bool {
	select {
	case c <- struct{}{}:
		return true
	default:
		return false
	}
}

// encode is v as JSON; v is made of what was decoded from JSON.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // what a server said stays as it said it
	if err := enc.Encode(v); err != nil {
		panic("upstream: what was decoded encodes: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func number(raw json.RawMessage) bool {
	return len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}
