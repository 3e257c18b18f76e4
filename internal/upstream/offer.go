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
	// maxPages, maxOffered and maxOfferedBytes cap the offer of one server; exceeding one is an error, and
	// nothing is truncated. Each is far above the offers of real servers; CallTimeout is usually the first
	// limit reached.
	maxPages        = 2000
	maxOffered      = 50_000
	maxOfferedBytes = 64 << 20
	// relistSlowest and relistNoisy are multiples of Config.Relist: the longest pause between two listings,
	// and the pause from which on a server is reported as noisy.
	relistSlowest, relistNoisy = 12, 4
	// relistEvery is the polling interval for a server whose notifications are not received outside of calls
	// (listen): in 2026-07-28 only subscribers are notified, and over HTTP only clients with an open stream.
	relistEvery = time.Minute
)

// Offer is what a server offers, as received.
type Offer struct {
	Name, Version string
	// Protocol is the negotiated revision of MCP.
	Protocol string
	Tools    []json.RawMessage
}

// digest identifies the content of the offer.
func (o Offer) digest() [sha256.Size]byte { return sha256.Sum256(encode(o)) }

// Watch receives what servers offer: on each connection, and again when a server notifies of a change, but at
// most once in Config.Relist. Its functions are called from several goroutines, and must not block.
type Watch struct {
	// Offered receives the tools of a server that discovers them (Server.Discover), before the first call is
	// sent.
	Offered func(registry.Server, Offer)
	// Admit decides whether a tool may be called after its server's last offer; its error becomes the call's.
	Admit func(s registry.Server, tool string) error
	// Forwarded receives the passthrough items of a server (Server.Forward), or the error of listing them;
	// branch is the branch whose connection was used where the server isolates branches, else empty.
	Forwarded func(s registry.Server, branch string, f Forwarded, err error)
	// Updated is called when a subscribed resource has changed; branch is as in Forwarded. It must not block.
	Updated func(s registry.Server, branch, uri string)
}

// Offered connects to a server and lists what it offers, all pages, within the server's ConnectTimeout,
// InitializeTimeout and CallTimeout. Its errors are those of Call.
func (s *Set) Offered(ctx context.Context, server string) (Offer, error) {
	l, err := s.link(server, "")
	if err != nil {
		return Offer{}, err
	}
	if len(l.problems) > 0 {
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

// offer lists all pages of tools; a server that declares no tools offers none, and isn't asked. Its errors
// are *failure, as those of ask.
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

// pages requests all pages of a list and returns the elements of the result member with that name; what names
// them in errors.
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

// decode decodes raw into v; without input it leaves v unchanged.
func decode(raw json.RawMessage, v any) error {
	if raw == nil {
		return nil
	}
	return json.Unmarshal(raw, v)
}

// look lists what a new session's server offers and notifies the Watch, before any call is sent on it.
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

// follow lists a session's offer again after each change notification, until the session ends. A session that
// doesn't answer is dropped, because its offer is unknown.
func (l *link) follow(s *session) {
	l.again(s, 0, s.router.changed, func() (different, ok bool) {
		before := s.offered
		if f := l.look(l.ctx, s); f != nil {
			l.drop(s, f)
			return false, false
		}
		return s.offered != before, true
	})
}

// again calls ask when changed has an element, but at most once in Config.Relist, and each minute where a
// server may not notify; until the session ends, or ask returns not ok. While a server notifies of changes
// and ask finds no difference, the pause doubles. kind is the index into link.noisy.
func (l *link) again(s *session, kind int, changed <-chan struct{}, ask func() (different, ok bool)) {
	var tick <-chan time.Time
	if s.child == nil || mcp.IsModernProtocol(s.version) {
		t := time.NewTicker(relistEvery)
		defer t.Stop()
		tick = t.C
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
	shortest := l.cfg.Relist
	last, pause := time.Now(), shortest
	for {
		changeSeen := false
		select {
		case <-ctx.Done():
			return
		case <-tick:
			if s.listening.Load() {
				continue
			}
		case <-changed:
			changeSeen = true
		}
		if time.Since(last) >= 2*relistSlowest*shortest { // no notification for a long time
			pause = shortest
			l.quiet(kind, 0)
		}
		if wait := pause - time.Since(last); wait > 0 {
			if !sleep(ctx, wait) {
				return
			}
			select { // the next listing also covers notifications received meanwhile
			case <-changed:
				changeSeen = true
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
		case changeSeen:
			if pause = min(2*pause, relistSlowest*shortest); pause >= relistNoisy*shortest {
				l.quiet(kind, pause)
			}
		}
	}
}

// quiet records the pause between listings of a noisy server, one that keeps notifying of changes without a
// difference; 0 for any other server.
func (l *link) quiet(kind int, pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if pause > 0 && l.noisy[kind] == 0 {
		l.log.Warn("upstream says again and again that what it offers has changed, and it has not; it is asked less often")
	}
	l.noisy[kind] = pause
}
