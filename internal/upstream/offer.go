package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

const (
	// maxPages, maxOffered and maxOfferedBytes cap what one server may offer; what is more is an error, never
	// cut off. Each is far above what is known of real servers; time (CallTimeout) is the limit that holds
	// first.
	maxPages        = 2000
	maxOffered      = 50_000
	maxOfferedBytes = 64 << 20
	// relistSlowest is how many times Config.Relist is the longest pause between two questions for what a
	// server offers, and relistNoisy the one from which on a server is called noisy.
	relistSlowest, relistNoisy = 12, 4
	// relistEvery is when a server is asked again that is not heard outside of calls (listen): in 2026-07-28
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

// digest names the content of the offer.
func (o Offer) digest() [sha256.Size]byte { return sha256.Sum256(encode(o)) }

// Watch is told what servers offer: on each connection, and again when a server says that this changed, but
// at most once in Config.Relist. Its functions are called from several goroutines, and must not block.
type Watch struct {
	// Offered gets the tools of a server that discovers them (Server.Discover), before the first call is
	// sent.
	Offered func(registry.Server, Offer)
	// Admit says whether a tool may be called after what its server offered last; its error is the call's.
	Admit func(s registry.Server, tool string) error
	// Forwarded gets what a server passes on (Server.Forward), or why that isn't known; branch is whose
	// connection was asked where the server keeps branches apart, else empty.
	Forwarded func(s registry.Server, branch string, f Forwarded, err error)
	// Updated is told that a resource which somebody has subscribed to is another than before; branch is as
	// in Forwarded. It must not block.
	Updated func(s registry.Server, branch, uri string)
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

// offer asks for all pages; a server that declares no tools offers none, and isn't asked. Its errors are
// *failure, as those of ask.
func (s *session) offer(ctx context.Context) (Offer, error) {
	o := Offer{Name: s.server.Name, Version: s.server.Version, Protocol: s.version, Tools: []json.RawMessage{}}
	if s.toolless {
		return o, nil
	}
	tools, err := s.pages(ctx, mcp.MethodToolsList, "tools", "tools")
	if err != nil {
		return Offer{}, err
	}
	if s.mirrors() {
		s.mirror.offered(tools)
	}
	o.Tools = tools
	return o, nil
}

// pages asks for all pages of a list: the elements of the member of that name, which hold what.
func (s *session) pages(ctx context.Context, method mcp.MCPMethod, member, what string) ([]json.RawMessage, error) {
	refuse := func(format string, args ...any) ([]json.RawMessage, error) {
		return nil, &failure{code: registry.ResultInvalid, msg: fmt.Sprintf(format, args...)}
	}
	all, cursor, seen, size := []json.RawMessage{}, "", map[string]bool{}, 0
	for range maxPages {
		answer, err := s.ask(ctx, method, params{Cursor: cursor}, registry.Listener{})
		if err != nil {
			return nil, err
		}
		var page map[string]json.RawMessage
		var elements []json.RawMessage
		var next string
		if err := errors.Join(json.Unmarshal(answer, &page), decode(page[member], &elements), decode(page["nextCursor"], &next)); err != nil {
			return refuse("its list of %s can't be read: %v", what, err)
		}
		size += len(answer)
		all = append(all, elements...)
		switch {
		case len(all) > maxOffered:
			return refuse("it offers more than %d %s", maxOffered, what)
		case size > maxOfferedBytes:
			return refuse("its list of %s has more than %d bytes", what, maxOfferedBytes)
		case next == "":
			return all, nil
		case seen[next]:
			return refuse("its list of %s goes round in a circle: a cursor came twice", what)
		}
		cursor, seen[next] = next, true
	}
	return refuse("its list of %s has more than %d pages", what, maxPages)
}

// decode leaves v as it is where there is nothing to decode.
func decode(raw json.RawMessage, v any) error {
	if raw == nil {
		return nil
	}
	return json.Unmarshal(raw, v)
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
	s.offered = offer.digest()
	l.cfg.Watch.Offered(l.up.Server, offer)
	return nil
}

func (l *link) watched() bool { return l.cfg.Watch.Offered != nil && l.up.Server.Discover != nil }

// follow asks a session again what it offers, when it says that this changed, until the session ends. One
// that doesn't answer is dropped: what it offers then is not known.
func (l *link) follow(s *session) {
	l.again(s, 0, s.hearing.changed, func() (different, ok bool) {
		before := s.offered
		if f := l.look(l.life, s); f != nil {
			l.drop(s, f)
			return false, false
		}
		return s.offered != before, true
	})
}

// again calls ask when changed has an element, but at most once in Config.Relist, and each minute where a
// server isn't sure to tell; until the session ends, or ask says that it is not ok. While a server says that
// something changed and ask finds nothing different, the pause doubles. kind is the place in link.noisy.
func (l *link) again(s *session, kind int, changed <-chan struct{}, ask func() (different, ok bool)) {
	var tick <-chan time.Time
	if s.child == nil || mcp.IsModernProtocol(s.version) {
		t := time.NewTicker(relistEvery)
		defer t.Stop()
		tick = t.C
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
	shortest := l.cfg.Relist
	last, pause := time.Now(), shortest
	for {
		said := false
		select {
		case <-ctx.Done():
			return
		case <-tick:
			if s.listening.Load() {
				continue
			}
		case <-changed:
			said = true
		}
		if time.Since(last) >= 2*relistSlowest*shortest { // it has been quiet
			pause = shortest
			l.quiet(kind, 0)
		}
		if wait := pause - time.Since(last); wait > 0 {
			if !sleep(ctx, wait) {
				return
			}
			select { // what was said meanwhile is answered by the same question
			case <-changed:
				said = true
			default:
			}
		}
		different, ok := ask()
		last = time.Now()
		switch {
		case !ok:
			return
		case different:
			pause = shortest
			l.quiet(kind, 0)
		case said:
			if pause = min(2*pause, relistSlowest*shortest); pause >= relistNoisy*shortest {
				l.quiet(kind, pause)
			}
		}
	}
}

// quiet notes that a server which says again and again that what it offers has changed, and it has not, is
// asked once in pause; 0 that it is not such a server.
func (l *link) quiet(kind int, pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if pause > 0 && l.noisy[kind] == 0 {
		l.log.Warn("upstream says again and again that what it offers has changed, and it has not; it is asked less often")
	}
	l.noisy[kind] = pause
}
