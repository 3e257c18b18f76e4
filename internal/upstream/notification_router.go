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

// router routes a session's notifications to the calls that they belong to. Progress is matched by its
// token, which is the request's id. A log message has no token: on the stream of a call it belongs to that
// call, and on a shared stream (a child's standard output, the GET stream over HTTP) to the only running
// call; while several run it could belong to any of them, so it is dropped unless all of them are one
// client's (speaker). Notifications that belong to no call, or to one that has ended, are dropped.
type router struct {
	mu    sync.Mutex
	calls map[string]callListener // by the request's id
	begun int
	// changed has one element when the server has notified that its tools changed, forwards when its
	// resources or prompts did; the receiver lists them again.
	changed, forwards chan struct{}
	// acknowledged receives the params of the acknowledgement of subscriptions/listen, from a child of
	// 2026-07-28; nil before that request is sent.
	acknowledged atomic.Pointer[func(params json.RawMessage)]
	// subscribed receives those of the subscriptions to single resources, by the request's id.
	subscribed map[string]func(params json.RawMessage)
	// updated is called for each update of a resource, and must not block; nil where nobody subscribed.
	updated func(uri string)
	// pages are the pages that users were asked to open.
	pages pages
}

// acknowledges has f called with the acknowledgement of a subscription request, until done is called.
func (h *router) acknowledges(id string, f func(params json.RawMessage)) (done func()) {
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

// missed reports that change notifications may have been lost.
func (h *router) missed() {
	signal(h.changed)
	signal(h.forwards)
}

// callListener is one call in flight: its listener, and how long that may be called.
type callListener struct {
	registry.Listener
	ctx context.Context
	// begun counts the calls of the session.
	begun int
}

// asker is the call that a server's request belongs to, by the rule for log messages.
func (h *router) asker(on string) (callListener, bool) {
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

// begin registers a call's listener until the call's end.
func (h *router) begin(ctx context.Context, id string, to registry.Listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls == nil {
		h.calls = map[string]callListener{}
	}
	h.begun++
	h.calls[id] = callListener{to, ctx, h.begun}
}

// end reports that a call was answered or abandoned.
func (h *router) end(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.calls, id)
}

// route routes one notification; on is the id of the request on whose stream it came, empty for a shared
// stream. It reports whether the notification was used.
//
// The lock is held while a listener is called, so that none is called after its end; listeners must not
// block.
func (h *router) route(on, method string, params json.RawMessage) (taken bool) {
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
			return false // a request's stream belongs to one call only
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

// speaker is the call that a log message on a shared stream goes to: the only running call, or the first of
// several, if all belong to one client that takes messages per session and all of them want log messages. It
// must be called with the lock held.
func (h *router) speaker() (first callListener, ok bool) {
	for _, call := range h.calls {
		switch {
		case !ok || call.begun < first.begun:
			if ok && !call.shares(first) {
				return callListener{}, false
			}
			first, ok = call, true
		case !call.shares(first):
			return callListener{}, false
		}
	}
	return first, ok
}

// shares reports whether a message that may belong to either call may go to the other.
func (c callListener) shares(other callListener) bool {
	return c.Client != nil && c.Client == other.Client && c.Message != nil && other.Message != nil && c.Level == other.Level
}

// ownMeta returns a notification's _meta without the members of the protocol itself, which describe the
// connection to the server and not the client's.
func ownMeta(meta json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(meta, &members) != nil {
		return nil // absent, or not an object
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

// encode returns v as JSON; v must consist of values decoded from JSON.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // the server's text is passed on unescaped
	if err := enc.Encode(v); err != nil {
		panic("upstream: what was decoded encodes: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func number(raw json.RawMessage) bool {
	return len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}
