package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

const (
	// maxPages, maxOffered and maxOfferedBytes cap what one server may offer; what is more is an error, never cut off.
	maxPages        = 200
	maxOffered      = 5000
	maxOfferedBytes = 32 << 20
	// relistPause is the shortest time between two questions for a server's tools, however often it says that they changed.
	relistPause = 5 * time.Second
	// relistEvery is when a server is asked again that can't be relied on to say that its tools changed: in 2026-07-28
	// only who subscribes is told, and over HTTP only who keeps a stream open.
	relistEvery = time.Minute
)

// Offer is what a server offers, as it came.
type Offer struct {
	Name, Version string
	// Protocol is the negotiated revision of MCP.
	Protocol string
	Tools    []json.RawMessage
}

// Watch is told what servers offer that discover their tools (Server.Discover): on each connection before the first call
// is sent, and again when a server says that its tools changed, but at most once in 5 seconds. Both functions are called
// from several goroutines, and must not block.
type Watch struct {
	Offered func(registry.Server, Offer)
	// Admit says whether a tool may be called after what its server offered last; its error is the call's.
	Admit func(s registry.Server, tool string) error
}

// Offered connects to a server and asks what it offers, all pages of it, within the server's ConnectTimeout,
// InitializeTimeout and CallTimeout. Its errors are those of Call.
func (s *Set) Offered(ctx context.Context, server string) (Offer, error) {
	l, err := s.link(server, "")
	if err != nil {
		return Offer{}, err
	}
	if l.problems.HasErrors() {
		return Offer{}, l.unavailable(nil, "%s", l.problems[0].Message)
	}
	if err := l.enter(); err != nil {
		return Offer{}, err
	}
	defer l.leave()
	if limit := l.connectTime() + l.up.Server.CallTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	session, _, failed := l.connected(ctx)
	if failed != nil {
		return Offer{}, failed
	}
	defer session.calls.Done()
	offer, failed := session.offer(ctx)
	if failed != nil {
		return Offer{}, l.callError(ctx, failed)
	}
	return offer, nil
}

// offer asks for all pages; a server that declares no tools offers none, and isn't asked. Its errors are *failure, as those of ask.
func (s *session) offer(ctx context.Context) (Offer, error) {
	o := Offer{Name: s.server.Name, Version: s.server.Version, Protocol: s.version, Tools: []json.RawMessage{}}
	refuse := func(format string, args ...any) (Offer, error) {
		return Offer{}, &failure{code: registry.ResultInvalid, msg: fmt.Sprintf(format, args...)}
	}
	if s.toolless {
		return o, nil
	}
	cursor, seen, size := "", map[string]bool{}, 0
	for range maxPages {
		answer, err := s.ask(ctx, mcp.MethodToolsList, params{Cursor: cursor}, registry.Listener{})
		if err != nil {
			return Offer{}, err
		}
		var page struct {
			Tools  []json.RawMessage `json:"tools"`
			Cursor string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			return refuse("its list of tools can't be read: %v", err)
		}
		size += len(answer)
		o.Tools = append(o.Tools, page.Tools...)
		switch {
		case len(o.Tools) > maxOffered:
			return refuse("it offers more than %d tools", maxOffered)
		case size > maxOfferedBytes:
			return refuse("its list of tools has more than %d bytes", maxOfferedBytes)
		case page.Cursor == "":
			return o, nil
		case seen[page.Cursor]:
			return refuse("its list of tools goes round in a circle: a cursor came twice")
		}
		cursor, seen[page.Cursor] = page.Cursor, true
	}
	return refuse("its list of tools has more than %d pages", maxPages)
}

// look asks a new session what it offers and tells the Watch, before any call is sent on it.
func (l *link) look(ctx context.Context, s *session) *failure {
	if !l.watched() {
		return nil
	}
	if limit := l.up.Server.CallTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	offer, err := s.offer(ctx)
	if err != nil {
		return &failure{code: registry.Unavailable, msg: "its tools could not be compared with the lock: " + err.Error(), err: err, drop: true}
	}
	l.cfg.Watch.Offered(l.up.Server, offer)
	return nil
}

func (l *link) watched() bool { return l.cfg.Watch.Offered != nil && l.up.Server.Discover != nil }

// follow asks a session again what it offers, when it says that this changed, until the session ends. One that doesn't
// answer is dropped: what it offers then is not known.
func (l *link) follow(s *session) {
	var tick <-chan time.Time
	if s.child == nil || mcp.IsModernProtocol(s.version) {
		t := time.NewTicker(relistEvery)
		defer t.Stop()
		tick = t.C
	}
	last := time.Now()
	for {
		select {
		case <-s.retired:
			return
		case <-l.life.Done():
			return
		case <-tick:
		case <-s.hearing.changed:
		}
		if wait := relistPause - time.Since(last); wait > 0 {
			pause := time.NewTimer(wait)
			select {
			case <-s.retired:
				pause.Stop()
				return
			case <-l.life.Done():
				pause.Stop()
				return
			case <-pause.C:
			}
			select { // what was said meanwhile is answered by the same question
			case <-s.hearing.changed:
			default:
			}
		}
		last = time.Now()
		if f := l.look(l.life, s); f != nil {
			l.drop(s, f)
			return
		}
	}
}
