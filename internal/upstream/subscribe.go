package upstream

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

// subscriptions are the subscribed resources of a link's server: each is subscribed to once, for any number
// of subscribers, on every session of the link.
type subscriptions struct {
	mu sync.Mutex
	by map[string]*subscription // by URI
}

type subscription struct {
	wanted int
	end    context.CancelFunc
	// first is closed when the server has answered for the first time; err is then set for a refusal.
	first chan struct{}
	err   error
}

// Subscribe has the Watch notified of each update of a resource, until end is called; branch is as
// Listener.Branch. It returns when the server has agreed, and its errors are those of Ask. A lost connection
// is made again and the resource subscribed to again; updates in between are lost.
func (s *Set) Subscribe(ctx context.Context, server, branch, uri string) (end func(), err error) {
	l, unknown := s.link(server, branch)
	if unknown != nil {
		return nil, unknown
	}
	if len(l.problems) > 0 {
		return nil, l.unavailable(nil, "%s", l.problems[0].Message)
	}
	if err := l.enter(); err != nil {
		return nil, err
	}
	defer l.leave()
	l.subscribed.mu.Lock()
	sub, ok := l.subscribed.by[uri]
	if !ok {
		life, cancel := context.WithCancel(l.ctx)
		sub = &subscription{end: cancel, first: make(chan struct{})}
		if l.subscribed.by == nil {
			l.subscribed.by = map[string]*subscription{}
		}
		l.subscribed.by[uri] = sub
		l.work.Go(func() { l.keepSubscribed(life, sub, uri) })
	}
	sub.wanted++
	l.subscribed.mu.Unlock()
	var once sync.Once
	end = func() { once.Do(func() { l.unsubscribe(sub, uri) }) }
	ctx, cancel := within(ctx, l.connectTime()+l.up.Server.CallTimeout)
	defer cancel()
	select {
	case <-sub.first:
		err = sub.err
	case <-ctx.Done():
		err = l.ended(ctx, "the server has not agreed to the subscription")
	}
	if err != nil {
		end()
		return nil, err
	}
	return end, nil
}

func (l *link) unsubscribe(sub *subscription, uri string) {
	l.subscribed.mu.Lock()
	defer l.subscribed.mu.Unlock()
	if sub.wanted--; sub.wanted == 0 {
		sub.end()
		if l.subscribed.by[uri] == sub {
			delete(l.subscribed.by, uri)
		}
	}
}

// keepSubscribed subscribes on the link's session, and on those that come after it, until life ends.
func (l *link) keepSubscribed(life context.Context, sub *subscription, uri string) {
	answered := func(err error) bool {
		select {
		case <-sub.first:
			return true
		default:
		}
		sub.err = err
		close(sub.first)
		return err == nil
	}
	for pause := reopenFirst; ; pause = min(2*pause, reopenMost) {
		begun := time.Now()
		s, _, err := l.connected(life)
		if err == nil {
			s.calls.Done() // it ends with the session, which waits for no subscription
			err = l.subscribeOn(life, s, uri, func() { answered(nil) })
		}
		if life.Err() != nil {
			answered(l.ended(life, "the subscription was ended"))
			return
		}
		if err != nil && !answered(l.callError(life, err)) {
			return // never subscribed: the callers get the error, and may retry
		}
		if time.Since(begun) > reopenMost {
			pause = reopenFirst
		}
		wait := time.NewTimer(pause)
		select {
		case <-life.Done():
			wait.Stop()
		case <-wait.C:
		}
	}
}

// subscribeOn subscribes on one session, says when the server has agreed, and returns when the session, the
// server's stream or life has ended, or with the server's refusal.
func (l *link) subscribeOn(life context.Context, s *session, uri string, agreed func()) error {
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	go func() {
		select {
		case <-s.retired:
			cancel()
		case <-ctx.Done():
		}
	}()
	if mcp.IsModernProtocol(s.version) {
		return s.listenTo(ctx, uri, agreed)
	}
	asking, done := within(ctx, l.up.Server.CallTimeout)
	_, err := s.ask(asking, mcp.MethodResourcesSubscribe, params{URI: uri}, registry.Listener{})
	done()
	if err != nil {
		return err
	}
	agreed()
	<-ctx.Done()
	if life.Err() != nil {
		// The unsubscription may fail or be slow: nobody waits for it.
		asking, done := within(l.ctx, l.up.Server.CallTimeout)
		defer done()
		_, _ = s.ask(asking, mcp.MethodResourcesUnsubscribe, params{URI: uri}, registry.Listener{})
	}
	return nil
}

// listenTo opens a stream of its own for one resource (2026-07-28, subscriptions/listen).
func (s *session) listenTo(ctx context.Context, uri string, agreed func()) error {
	var refusal *Refusal
	ended, end := context.WithCancel(ctx)
	defer end()
	acknowledged := func(params json.RawMessage) {
		var p mcp.SubscriptionsAcknowledgedParams
		if json.Unmarshal(params, &p) == nil && slices.Contains(p.Notifications.ResourceSubscriptions, uri) {
			agreed()
			return
		}
		refusal = &Refusal{Code: mcp.INVALID_PARAMS, Message: "the server takes no subscription to this resource"}
		end()
	}
	req, err := s.request(ctx, mcp.MethodSubscriptionsListen, params{Notifications: &mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}}}, registry.Listener{})
	if err != nil {
		return err
	}
	if s.child != nil {
		done := s.router.acknowledges(req.ID.String(), acknowledged)
		defer done()
		resp, err := s.wire.request(ended, newExchange(req.ID.String(), s.limit), req)
		if ctx.Err() != nil {
			s.cancel(ctx, req.ID)
		}
		if err == nil && resp.Error != nil {
			refusal = refused(resp.Error, s.secretMask())
		}
		return notSubscribed(refusal, err)
	}
	return notSubscribed(refusal, s.subscription(ended, req, acknowledged, &stream{}))
}

// notSubscribed returns why a stream has ended: the server's refusal, or the error of the connection.
func notSubscribed(refusal *Refusal, err error) error {
	if refusal != nil {
		err = refusal
	}
	if err == nil {
		return nil
	}
	return &failure{code: registry.BindingFailed, msg: "the subscription was not taken: " + err.Error(), err: err}
}
