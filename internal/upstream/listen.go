package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

const (
	// reopenFirst and reopenMost are the first and the longest pause before a stream that ended is reopened.
	// The pause doubles each time, and is reset after a stream that lasted.
	reopenFirst, reopenMost = time.Second, time.Minute
	// openTime caps how long the first call waits for the server to open the stream outside of calls, or to
	// refuse it: requests that the server makes during that call may come on it.
	openTime = 250 * time.Millisecond
	// noCall marks a stream whose requests from the server belong to no call.
	noCall = "no call"
)

// announces returns the change notifications that the server declares and l wants; all reports whether these
// are all that l wants.
func (l *link) announces(s *session) (f mcp.SubscriptionFilter, all bool) {
	all = true
	subscribed := func(wanted, declared bool) bool {
		all = all && (declared || !wanted)
		return wanted && declared
	}
	prompts, resources := l.forwards() && l.up.Server.Forwards("prompts"), l.forwards() && l.up.Server.Forwards("resources")
	f.ToolsListChanged = subscribed(l.watched(), s.has.Tools != nil && s.has.Tools.ListChanged)
	f.PromptsListChanged = subscribed(prompts && s.has.Prompts != nil, s.has.Prompts != nil && s.has.Prompts.ListChanged)
	f.ResourcesListChanged = subscribed(resources && s.has.Resources != nil, s.has.Resources != nil && s.has.Resources.ListChanged)
	return f, all
}

// listen receives notifications outside of calls: over HTTP in the older protocol versions on the session's
// GET stream, which may also carry messages of a call, and in 2026-07-28 change notifications by
// subscriptions/listen. A child of the older versions sends all of that on its one stream. While the
// notifications asked for are received, nothing is polled. A server that has no such stream is not asked
// again; a stream that ends is reopened, resuming from its last event id, and each reopening lists again what
// may have changed meanwhile. tried is called when the first attempt has an outcome.
func (l *link) listen(s *session, tried func()) {
	defer tried()
	want, all := l.announces(s)
	older := !mcp.IsModernProtocol(s.version)
	if older && s.child != nil || !older && want.IsEmpty() {
		return
	}
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	go func() {
		select {
		case <-s.retired:
			cancel()
		case <-ctx.Done():
		}
	}()
	st := stream{first: reopenFirst}
	for pause := st.first; ; pause = min(2*pause, reopenMost) {
		begun := time.Now()
		st.again, st.active = false, false
		opened := func() {
			tried()
			st.opened = true
			s.listening.Store(all)
			if !want.IsEmpty() {
				s.router.missed()
			}
		}
		if older {
			s.listenOlder(ctx, &st, opened)
		} else {
			s.listenModern(ctx, &st, want, opened)
		}
		s.listening.Store(false)
		tried()
		if ctx.Err() != nil {
			return
		}
		if st.forgotten {
			l.drop(s, &failure{
				code: registry.Unavailable, msg: "it has forgotten the session (404)", drop: true, forgotten: true,
			})
			return
		}
		if !st.again {
			return
		}
		if st.active || time.Since(begun) > reopenMost {
			pause = st.first
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// stream is the state of the stream outside of calls, over all its openings.
type stream struct {
	// opened reports that the server has opened the stream once, active that the last one carried a message,
	// and again that another may be tried. forgotten reports that the server doesn't know the session any
	// more.
	opened, active, again, forgotten bool
	// lastID is the event id to resume from, and first the pause before reopening, which the server may set.
	lastID string
	first  time.Duration
}

// listenOlder opens the GET stream and reads it to its end.
func (s *session) listenOlder(ctx context.Context, st *stream, opened func()) {
	resp, err := s.web.get(ctx, st.lastID)
	if err != nil {
		st.again = true
		return
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusOK && mediaType(resp) == "text/event-stream":
	case resp.StatusCode == http.StatusNotFound && st.opened && s.web.sessionID() != "":
		st.forgotten = true
		return
	default:
		// The server may still hold a stream that broke off (409), and may have none (405, 404 and an answer
		// that is not a stream).
		st.again = resp.StatusCode == http.StatusConflict ||
			busy(resp.StatusCode) && resp.StatusCode != http.StatusNotImplemented
		return
	}
	opened()
	s.follow(resp.Body, s.outside("", "", nil), st)
	st.again = true
}

// listenModern subscribes to the changes, and returns when the subscription has ended.
func (s *session) listenModern(ctx context.Context, st *stream, want mcp.SubscriptionFilter, opened func()) {
	acknowledged := func(params json.RawMessage) {
		var p mcp.SubscriptionsAcknowledgedParams
		got := &p.Notifications
		if json.Unmarshal(params, &p) == nil && got.ToolsListChanged == want.ToolsListChanged &&
			got.PromptsListChanged == want.PromptsListChanged && got.ResourcesListChanged == want.ResourcesListChanged {
			opened()
		}
	}
	req, err := s.request(ctx, mcp.MethodSubscriptionsListen, params{Notifications: &want}, registry.Listener{})
	if err != nil {
		return
	}
	if s.child != nil {
		s.router.acknowledged.Store(&acknowledged)
		resp, err := s.wire.request(ctx, newExchange(req.ID.String(), s.limit), req)
		st.again = err == nil && resp.Error == nil
		return
	}
	st.again = s.subscription(ctx, req, acknowledged, st) == nil
}

// subscription posts subscriptions/listen and reads its stream to the end. An error means that no other
// attempt is to be made.
func (s *session) subscription(ctx context.Context, req request, acknowledged func(json.RawMessage), st *stream) error {
	resp, err := s.web.post(ctx, s.web.client, req, req.header)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK && mediaType(resp) == "text/event-stream" {
		s.follow(resp.Body, s.outside(req.ID.String(), noCall, acknowledged), st)
		return nil
	}
	if busy(resp.StatusCode) {
		return nil
	}
	return fmt.Errorf("it answered status %d without a stream", resp.StatusCode)
}

// ofCalls are the notifications that belong to a call.
var ofCalls = []string{string(mcp.MethodNotificationProgress), string(mcp.MethodNotificationMessage)}

// outside is an exchange whose stream answers no call. on is what the server's messages there belong to:
// noCall, or empty for the only running call.
func (s *session) outside(id, on string, acknowledged func(json.RawMessage)) *exchange {
	x := newExchange(id, s.limit)
	x.ignored = s.drop
	x.onNotification = func(method string, params json.RawMessage) {
		switch {
		case method == mcp.MethodNotificationSubscriptionsAcknowledged && acknowledged != nil:
			acknowledged(params)
		case on == noCall && slices.Contains(ofCalls, method):
			s.drop()
		default:
			s.onMessage(on, method, s.secretMask().JSON(params))
		}
	}
	x.asked = func(id json.RawMessage, method string, params json.RawMessage) { s.questioned(on, id, method, params) }
	return x
}

// follow passes the messages of a stream to x, until the stream's end or the response to x. Their total size
// is not capped, because the stream lasts as long as the session.
func (s *session) follow(body io.Reader, x *exchange, st *stream) {
	in := newEvents(body, s.limit)
	in.lastID = st.lastID
	for {
		data, err := in.next()
		if err == nil {
			st.active = true
			if x.take(data) == nil {
				continue
			}
		}
		st.lastID = in.lastID
		if in.hasRetry {
			st.first = min(max(in.retry, resumeLeast), reopenMost)
		}
		return
	}
}
