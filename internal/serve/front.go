package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// Backend is what a Front serves from.
type Backend struct {
	Version string
	// Pin returns the generation that serves now and keeps what it needs open until release is called.
	Pin func() (g *Generation, release func())
	// Status and Reload answer /status and POST /-/reload.
	Status func() Status
	Reload func(context.Context) Outcome
	Log    *slog.Logger
	Limits FrontLimits
	// Tokens are who may use HTTP; nil lets everyone on this machine do everything, as the operator.
	Tokens *token.Store
	// Hosts are names by which clients reach the daemon beside the loopback ones, with Tokens only.
	Hosts []string
}

// FrontLimits keep one branch's clients from using up the daemon, and one client from holding what others need. Nothing
// of what is over a limit is run. Zero fields have the default.
type FrontLimits struct {
	// SessionIdle ends a session that nothing has used for so long; one hour. Sessions exist in the older eras only.
	SessionIdle time.Duration
	// Conns caps the open connections, 2,048; what is over it is hung up on.
	Conns int
	// Sessions and Streams cap what one branch has open at once, 1,000 each, and where there are tokens what each bearer has
	// open there; more are answered 503 with Retry-After. AllSessions caps the sessions of all of them, 10,000.
	Sessions, Streams, AllSessions int
	// Calls cap what one branch, and where there are tokens each bearer there, runs at once, 256. Up to Queue more (64) wait for a place, each at most QueueWait (1 s);
	// what finds no place is answered 429 with Retry-After. A client on stdio waits for nothing: it is refused at once.
	Calls, Queue int
	QueueWait    time.Duration
	// HeaderTime is how long the headers of a request may take, 5 s; BodyTime its body, 30 s (then 408). WriteTime is how
	// long a client may take to accept one answer, or one event of a stream, 30 s; how long a stream lives has no limit. On
	// stdio it holds at the end only: until then a client that reads nothing holds up itself.
	// IdleTime is how long a connection may stay open between requests, 2 min.
	HeaderTime, BodyTime, WriteTime, IdleTime time.Duration
	// Drain is how long calls in flight may go on when the daemon, or a client's standard input, ends; 5 s.
	Drain time.Duration
}

func (l FrontLimits) withDefaults() FrontLimits {
	return FrontLimits{
		SessionIdle: cmp.Or(l.SessionIdle, time.Hour),
		Conns:       cmp.Or(l.Conns, 2048),
		Sessions:    cmp.Or(l.Sessions, 1000),
		Streams:     cmp.Or(l.Streams, 1000),
		AllSessions: cmp.Or(l.AllSessions, 10_000),
		Calls:       cmp.Or(l.Calls, 256),
		Queue:       cmp.Or(l.Queue, 64),
		QueueWait:   cmp.Or(l.QueueWait, time.Second),
		HeaderTime:  cmp.Or(l.HeaderTime, 5*time.Second),
		BodyTime:    cmp.Or(l.BodyTime, 30*time.Second),
		WriteTime:   cmp.Or(l.WriteTime, 30*time.Second),
		IdleTime:    cmp.Or(l.IdleTime, 2*time.Minute),
		Drain:       cmp.Or(l.Drain, 5*time.Second),
	}
}

// Front serves branches over MCP, in the era of 2026-07-28 and in the older ones, over HTTP and stdio.
//
// It answers tools/list and tools/call itself: the list from bytes that are encoded once for each view, the call through
// invoke. So it does with what upstream servers pass on, resources, prompts and completions (passOn), and with subscriptions. Everything else is
// mcp-go's: one MCPServer a branch, made on first use and with nothing in it, speaks the handshakes and the streams of
// sessions. Every message passes the scan first, whoever answers it.
//
// All methods are safe for concurrent use. Close must be called.
type Front struct {
	Backend
	lists      listings
	metrics    *metrics
	serverInfo string // the member of _meta that names this server, in the modern era

	ctx   context.Context
	close context.CancelFunc
	sweep sync.WaitGroup

	failures bucket        // requests with tokens that are not good
	changed  chan struct{} // has one element when bearers are to be told what has changed

	mu         sync.Mutex
	branches   map[place]*branch // those that HTTP serves
	attached   map[*branch]bool  // those that stdio serves
	subscribed subscriptions
}

// place is a branch as one caller has it open.
type place struct {
	branch string
	caller token.Hash
}

// branch is one branch as it is served to one caller: its protocol state, while its tools are those of whichever
// generation is pinned. Callers share nothing here, so what one begins can't be gone on with by another.
type branch struct {
	front    *Front
	name     string
	caller   caller
	used     time.Time // the last time that a request came; under Front.mu
	shown    string    // the digest of the view that a bearer knows of; Front.tellBearers is the only one to change it
	mcp      *server.MCPServer
	http     *server.StreamableHTTPServer
	sessions *sessions
	streams  limit
	calls    gate
	seal     *seal
	held     held
	// listeners are the subscriptions of clients of 2026-07-28.
	listeners listeners
	// passed is what of resources and prompts the clients know of; nil before any has been shown them.
	passed atomic.Pointer[forwardDigests]
	// ctx ends with the branch, and its streams with it.
	ctx context.Context
	end context.CancelFunc
}

// NewFront makes a front of a backend.
func NewFront(b Backend) *Front {
	b.Limits = b.Limits.withDefaults()
	info, err := json.Marshal(map[string]mcp.Implementation{mcp.MetaKeyServerInfo: implementation(b.Version)})
	if err != nil {
		panic("serve: a name and a version always encode: " + err.Error())
	}
	f := &Front{
		Backend: b, lists: listings{by: map[string]*listing{}}, serverInfo: string(info[1 : len(info)-1]),
		branches: map[place]*branch{}, attached: map[*branch]bool{}, changed: make(chan struct{}, 1),
	}
	f.ctx, f.close = context.WithCancel(context.Background())
	f.metrics = newMetrics(f)
	f.sweep.Go(f.sweepSessions)
	if b.Tokens != nil {
		f.sweep.Go(f.tellBearers)
	}
	return f
}

func implementation(version string) mcp.Implementation {
	return mcp.Implementation{Name: "catalogd", Version: version}
}

// Close ends every stream and session. Calls in flight are not ended by it.
func (f *Front) Close() {
	f.close()
	f.sweep.Wait()
}

// Changed tells the clients of these branches that their list has changed; it is called after the swap. What they ask
// for next is encoded before they are told. Branches that are no longer served end, with their sessions and streams.
//
// Bearers of tokens are told a moment later, once what they see has been decided on, and only where that is something
// else. It asks for no generation as long as nothing has been used, so it may be called before there is a first one.
func (f *Front) Changed(names []string) {
	if f.unused() {
		return
	}
	g, release := f.Pin()
	defer release()
	f.lists.keep(g)
	for _, b := range f.served(g) {
		if b.caller.token != nil || !slices.Contains(names, b.name) {
			continue
		}
		if path, ok := b.path(g); ok {
			f.lists.of(path.View)
		}
		b.listChanged()
	}
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (b *branch) listChanged() {
	b.notify(mcp.MethodNotificationToolsListChanged)
}

// tellBearers tells bearers of tokens whose view is another than before, after each change, until the front closes.
func (f *Front) tellBearers() {
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-f.changed:
		}
		f.tellBearersOnce()
	}
}

func (f *Front) tellBearersOnce() {
	g, release := f.Pin()
	defer release()
	for _, b := range f.served(g) {
		if f.ctx.Err() != nil {
			return
		}
		path, ok := b.path(g)
		if b.caller.token == nil || !ok || path.View.Digest() == b.shown {
			continue
		}
		b.shown = path.View.Digest()
		f.lists.of(path.View)
		b.listChanged()
	}
}

// Ended counts the outcome of a reload.
func (f *Front) Ended(o Outcome) { f.metrics.reloads.WithLabelValues(o.Result).Inc() }

func (f *Front) unused() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.branches)+len(f.attached) == 0
}

// served are the branches that have been used, after ending those that the generation has no more.
func (f *Front) served(g *Generation) []*branch {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*branch
	for at, b := range f.branches {
		if _, ok := g.Path(at.branch); !ok {
			b.end()
			delete(f.branches, at)
			continue
		}
		all = append(all, b)
	}
	for b := range f.attached {
		all = append(all, b)
	}
	return all
}

// branch is the branch of that name as it is served to a caller, made on first use; nil where the caller does not know of
// such a branch, or there is none.
func (f *Front) branch(name string, c caller) *branch {
	if !c.opens(name) || f.named(name) != nil {
		return nil
	}
	at := place{name, c.key()}
	f.mu.Lock()
	b := f.branches[at]
	if b != nil {
		b.used = time.Now()
	}
	f.mu.Unlock()
	if b != nil {
		return b
	}
	made := f.newBranch(name, c)
	if c.token != nil {
		g, release := f.Pin()
		if path, ok := made.path(g); ok {
			made.shown = path.View.Digest()
		}
		release()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.branches[at]; b != nil {
		made.end()
		return b
	}
	if !f.authorized(made) { // the token was revoked this moment
		made.end()
		return nil
	}
	made.used = time.Now()
	f.branches[at] = made
	return made
}

// path is the call path that the branch's caller has in a generation.
func (b *branch) path(g *Generation) (*invoke.Path, bool) {
	return g.PathFor(b.name, b.caller.principal)
}

func (f *Front) newBranch(name string, c caller) *branch {
	b := &branch{front: f, name: name, caller: c, streams: limit{max: int64(f.Limits.Streams)}, calls: newGate(f.Limits), seal: newSeal(time.Now)}
	b.ctx, b.end = context.WithCancel(f.ctx)
	info := implementation(f.Version)
	b.mcp = server.NewMCPServer(info.Name, info.Version, b.capable()...)
	b.sessions = newSessions(b.ctx, f.Limits.Sessions)
	b.http = server.NewStreamableHTTPServer(b.mcp,
		server.WithSessionIdManager(b.sessions),
		server.WithStreamableHTTPLogger(f.Log),
	)
	return b
}

// answer answers the methods that the front keeps from mcp-go. to hears what a called tool says meanwhile.
func (b *branch) answer(ctx context.Context, m *message, modern bool, to registry.Listener) (r reply) {
	defer func() {
		if p := recover(); p != nil {
			r = b.fail(m.id, modern, b.front.panicked(string(m.method), p))
		}
	}()
	g, release := b.front.Pin()
	defer func() { release() }() // unless a call that goes on has taken it over
	path, ok := b.path(g)
	if !ok {
		return b.fail(m.id, modern, refuse(mcp.INVALID_REQUEST, "branch %q is not served any more", b.name))
	}
	switch m.method {
	case mcp.MethodToolsList:
		return b.list(m, path.View, modern)
	case mcp.MethodToolsCall:
		return b.call(ctx, m, path, modern, to, &release)
	}
	return b.passOn(ctx, m, g, path, modern, to, &release)
}

// own reports whether the front answers a message itself.
func own(m *message) bool {
	switch m.method {
	case mcp.MethodToolsList, mcp.MethodToolsCall, mcp.MethodResourcesList, mcp.MethodResourcesTemplatesList, mcp.MethodResourcesRead,
		mcp.MethodPromptsList, mcp.MethodPromptsGet, mcp.MethodCompletionComplete:
		return m.id != nil
	case mcp.MethodResourcesSubscribe, mcp.MethodResourcesUnsubscribe:
		return m.id != nil && m.from != nil // 2026-07-28 has neither
	case mcp.MethodSubscriptionsListen:
		return m.id != nil && m.from == nil // which it has instead
	}
	return false
}

// runs reports whether a message asks for what can take its time, and is spoken about meanwhile: such requests count for
// the branch's limit of calls.
func runs(m *message) bool {
	switch m.method {
	case mcp.MethodToolsCall, mcp.MethodResourcesRead, mcp.MethodResourcesSubscribe, mcp.MethodPromptsGet, mcp.MethodCompletionComplete:
		return m.id != nil
	}
	return false
}

// waits reports whether a message that the front answers may have to wait, as a list does for a server that is asked first.
func waits(m *message) bool { return own(m) && m.method != mcp.MethodToolsList }

// sweepSessions ends idle sessions until the front closes.
func (f *Front) sweepSessions() {
	tick := time.NewTicker(min(max(f.Limits.SessionIdle/4, 10*time.Millisecond), time.Minute))
	defer tick.Stop()
	for {
		select {
		case <-f.ctx.Done():
			return
		case now := <-tick.C:
			f.mu.Lock()
			all := make([]*branch, 0, len(f.branches))
			for _, b := range f.branches {
				all = append(all, b)
			}
			f.mu.Unlock()
			before := now.Add(-f.Limits.SessionIdle)
			for _, b := range all {
				for _, id := range b.sessions.expire(before) {
					b.forget(id)
				}
			}
			f.forgetBearers(before)
		}
	}
}

// forgetBearers gives up what is kept for bearers who have nothing open and have not come since before.
func (f *Front) forgetBearers(before time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, b := range f.branches {
		if b.caller.token != nil && b.used.Before(before) && b.sessions.count() == 0 && b.streams.open.Load() == 0 && len(b.calls.places) == 0 && b.held.idle() {
			b.end()
			delete(f.branches, at)
		}
	}
}

// reserve keeps room for one more session of a branch, and reports whether there is any: in the branch, and in all that
// is served together.
func (f *Front) reserve(b *branch) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, other := range f.branches {
		n += other.sessions.count()
	}
	return n < f.Limits.AllSessions && b.sessions.reserve()
}

// named is the error for a branch that the generation doesn't have.
func (f *Front) named(name string) error {
	g, release := f.Pin()
	defer release()
	if _, ok := g.Path(name); ok {
		return nil
	}
	return g.UnknownBranch(name)
}
