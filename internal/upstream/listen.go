package upstream

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

const (
	// reopenFirst and reopenMost are the pauses before a stream that ended is opened again: twice as long each time, and
	// from the beginning after one that lasted.
	reopenFirst, reopenMost = time.Second, time.Minute
	// noCall is what a request of the server's belongs to that came on the stream outside of calls.
	noCall = "no call"
)

// announces are the changes that the server declares to tell of, as far as l asks for what changes; all says whether these
// are all that l would hear of.
func (l *link) announces(s *session) (f mcp.SubscriptionFilter, all bool) {
	all = true
	heard := func(wanted, declared bool) bool {
		all = all && (declared || !wanted)
		return wanted && declared
	}
	prompts, resources := l.forwards() && l.up.Server.Forwards("prompts"), l.forwards() && l.up.Server.Forwards("resources")
	f.ToolsListChanged = heard(l.watched(), s.has.Tools != nil && s.has.Tools.ListChanged)
	f.PromptsListChanged = heard(prompts && s.has.Prompts != nil, s.has.Prompts != nil && s.has.Prompts.ListChanged)
	f.ResourcesListChanged = heard(resources && s.has.Resources != nil, s.has.Resources != nil && s.has.Resources.ListChanged)
	return f, all
}

// listen hears, outside of calls, that what a server offers has changed: on the session's GET stream over HTTP in the older
// eras, and by subscriptions/listen in 2026-07-28. A child of the older eras tells by itself. While that stream is open, and
// tells of everything, nothing is asked again by the clock. A server that has no such stream is left alone; one that ends
// is opened again, and with each opening what was missed before is asked for.
func (l *link) listen(s *session) {
	want, all := l.announces(s)
	// In the older eras updates of resources come on that stream too.
	updates := !mcp.IsModernProtocol(s.version) && l.forwards() && s.has.Resources != nil && s.has.Resources.Subscribe
	if want.IsEmpty() && !updates || s.child != nil && !mcp.IsModernProtocol(s.version) {
		return
	}
	ctx, cancel := context.WithCancel(l.life)
	defer cancel()
	go func() {
		select {
		case <-s.retired:
			cancel()
		case <-ctx.Done():
		}
	}()
	for pause := reopenFirst; ; pause = min(2*pause, reopenMost) {
		begun := time.Now()
		again := s.listenOnce(ctx, want, all)
		s.listening.Store(false)
		if !again || ctx.Err() != nil {
			return
		}
		if time.Since(begun) > reopenMost {
			pause = reopenFirst
		}
		wait := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

// listenOnce returns when the stream has ended, and reports whether another may be tried.
func (s *session) listenOnce(ctx context.Context, want mcp.SubscriptionFilter, all bool) (again bool) {
	opened := func() {
		s.listening.Store(all)
		s.hearing.missed()
	}
	if !mcp.IsModernProtocol(s.version) {
		x := s.outside("", func(json.RawMessage) {})
		r, err := http.NewRequestWithContext(x.context(ctx), http.MethodGet, s.address.URL, nil)
		if err != nil {
			return false // the URL is one that calls are sent to, so this can't be
		}
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set(mcp.HeaderProtocolVersion, s.version)
		if s.id != "" {
			r.Header.Set(mcp.HeaderSessionID, s.id)
		}
		resp, err := s.http.Do(r)
		return s.read(resp, err, opened)
	}
	acknowledged := func(params json.RawMessage) {
		var p mcp.SubscriptionsAcknowledgedParams
		got := &p.Notifications
		if json.Unmarshal(params, &p) == nil && got.ToolsListChanged == want.ToolsListChanged &&
			got.PromptsListChanged == want.PromptsListChanged && got.ResourcesListChanged == want.ResourcesListChanged {
			opened()
		}
	}
	req, err := s.request(mcp.MethodSubscriptionsListen, params{Notifications: &want}, registry.Listener{})
	if err != nil {
		return false
	}
	if s.child != nil {
		s.hearing.acknowledged.Store(&acknowledged)
		resp, err := s.client.GetTransport().SendRequest(ctx, req)
		return err == nil && resp.Error == nil
	}
	resp, err := s.post(s.outside(req.ID.String(), acknowledged).context(ctx), req, req.Header)
	return s.read(resp, err, func() {})
}

// outside is an exchange on whose stream nothing belongs to a call: what is said of calls there is dropped, and what is
// asked is refused.
func (s *session) outside(id string, acknowledged func(json.RawMessage)) *exchange {
	x := newExchange(id, s.limit)
	x.ignored = s.ignored
	x.heard = func(method string, params json.RawMessage) {
		switch method {
		case mcp.MethodNotificationSubscriptionsAcknowledged:
			acknowledged(params)
		case string(mcp.MethodNotificationProgress), string(mcp.MethodNotificationMessage):
		default:
			s.hearing.hear(noCall, method, params)
		}
	}
	x.asked = func(id mcp.RequestId, method string, params json.RawMessage) {
		s.questioned(noCall, id, method, params)
	}
	return x
}

// read reads a stream to its end; opened is called where there is one. Its events go to the exchange that it came with.
func (s *session) read(resp *http.Response, err error, opened func()) (again bool) {
	if err != nil {
		return true
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusOK && mediaType(resp) == "text/event-stream":
		opened()
		_, _ = io.Copy(io.Discard, resp.Body) // however it ends
		return true
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= 500:
		return true
	}
	return false
}
