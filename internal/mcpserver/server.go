// Package mcpserver serves branches over MCP, in revision 2026-07-28 and in the older revisions, over
// streamable HTTP and stdio. Files are named after parts of the specification, where it has a name
// for what is in them.
//
// A message takes this path: streamable_http.go or stdio.go receives it, message.go scans it strictly, once,
// protocol_version.go determines its revision, limits.go admits it, and branch.answer pins a generation and
// calls tools_list.go, tools_call.go or passthrough.go. Meanwhile notifications.go and server_requests.go
// forward the notifications and requests of an upstream. mcp-go does the rest: initialize, ping and the
// streams of sessions.
//
// All client state belongs to one branch value per pair of branch and caller, so callers share nothing: no
// sessions, subscriptions, pending calls or requestState keys. The places of calls are shared, in turns (limits.go).
package mcpserver

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

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/fair"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/internal/tracing"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// Config configures a Server.
type Config struct {
	Version string
	// Pin returns the generation that serves now and keeps its resources open until release is called.
	Pin func() (g *generation.Generation, release func())
	// Called receives each call that has ended, Refused the code of each request that was refused before it
	// became a call. Both may be nil.
	Called  func(*registry.Call)
	Refused func(decision.AttemptCode)
	Log     *slog.Logger
	Limits  Limits
	// ListTTL is how long a client of 2026-07-28 may use a list of tools without asking again.
	ListTTL time.Duration
	// StateKey seals the requestState of calls, so that every process with the same key accepts it. Nil is a
	// random key for each branch and caller, which accepts nothing of another process.
	StateKey []byte
	// SessionKey seals the ids of sessions, so that a client may go on with a session that another process
	// with the same key began, or that has expired. Nil means that a session ends with its process.
	SessionKey []byte
	// Tokens are the tokens accepted over HTTP. Nil accepts every local client as the operator, with full
	// access.
	Tokens *token.Store
	// Tracer makes the spans of requests; nil makes none.
	Tracer *tracing.Tracer
}

// Limits bound what the clients of one branch, and one client among them, can use. A request over a limit
// isn't run. A zero field takes its default.
type Limits struct {
	// SessionIdle is how long a session may be unused before it expires, 1 h. Only the older revisions have
	// sessions.
	SessionIdle time.Duration
	// Conns caps the open connections, 2,048. Connections over it are closed.
	Conns int
	// Sessions and Streams cap what is open at once on one branch, 1,000 each; with tokens, they apply to
	// each bearer on that branch. Requests over them are answered 503 with Retry-After. AllSessions caps the
	// sessions of all branches together, 10,000.
	Sessions, Streams, AllSessions int
	// Calls caps the calls that run at once on one branch, 256, and AllCalls those on all branches, four times Calls.
	// CallsPerTool caps those of one tool on one branch, half of Calls. With tokens, CallsPerPrincipal caps those of
	// one principal on one branch, half of Calls, and half of AllCalls is the cap for one principal on all branches;
	// without tokens there is one principal. A read of a resource, a prompt and a completion are calls, too.
	Calls, AllCalls, CallsPerTool, CallsPerPrincipal int
	// Queue is how many more calls of one branch wait for a place, 64, each at most QueueWait (1 s); a negative Queue
	// lets none wait. A place that becomes free goes to the principal, and then the branch, that has the fewest; the
	// queue has room for whoever has fewer calls in it than another (package fair). A call without a place is
	// answered 429 with Retry-After. On stdio nothing is queued.
	Queue     int
	QueueWait time.Duration
	// Effects caps the calls of tools with a side effect that one branch waits for, 1,000: at most half of them of
	// one tool and, with tokens, of one principal, and four times as many on all branches. They don't count towards
	// Calls; calls over it are answered 429 at once.
	Effects int
	// Page caps the tools, resources, templates or prompts in one page of a list, 1,000.
	Page int
	// HeaderTime limits reading the headers of a request, 5 s; BodyTime its body, 30 s (then 408). WriteTime
	// limits each write of an answer or of one stream event, 30 s; the lifetime of a stream has no limit. On
	// stdio WriteTime applies only at shutdown: until then a client that doesn't read blocks only itself.
	// IdleTime is how long a connection may stay open between requests, 2 min.
	HeaderTime, BodyTime, WriteTime, IdleTime time.Duration
	// Heartbeat is after how long of silence an event stream gets a comment, 15 s.
	Heartbeat time.Duration
	// Drain is how long calls in flight may continue after the daemon shuts down or a client's standard input
	// ends, 5 s.
	Drain time.Duration
}

// Drain is the default of Limits.Drain.
const Drain = 5 * time.Second

func (l Limits) withDefaults() Limits {
	calls := cmp.Or(l.Calls, 256)
	return Limits{
		SessionIdle: cmp.Or(l.SessionIdle, time.Hour),
		Conns:       cmp.Or(l.Conns, 2048),
		Sessions:    cmp.Or(l.Sessions, 1000),
		Streams:     cmp.Or(l.Streams, 1000),
		AllSessions: cmp.Or(l.AllSessions, 10_000),
		Calls:       calls,
		AllCalls:    cmp.Or(l.AllCalls, 4*calls),
		Queue:       max(0, cmp.Or(l.Queue, 64)),

		CallsPerTool:      cmp.Or(l.CallsPerTool, half(calls)),
		CallsPerPrincipal: cmp.Or(l.CallsPerPrincipal, half(calls)),

		Effects:    cmp.Or(l.Effects, 1000),
		QueueWait:  cmp.Or(l.QueueWait, time.Second),
		Page:       max(1, cmp.Or(l.Page, 1000)),
		HeaderTime: cmp.Or(l.HeaderTime, 5*time.Second),
		BodyTime:   cmp.Or(l.BodyTime, 30*time.Second),
		WriteTime:  cmp.Or(l.WriteTime, 30*time.Second),
		IdleTime:   cmp.Or(l.IdleTime, 2*time.Minute),
		Heartbeat:  cmp.Or(l.Heartbeat, 15*time.Second),
		Drain:      cmp.Or(l.Drain, Drain),
	}
}

// Server serves branches over MCP, in revision 2026-07-28 and in the older revisions, over HTTP and stdio.
//
// It answers tools/list and tools/call itself: the list from bytes that are encoded once per view, the call
// through invoke. It also answers the requests about passthrough resources, prompts and completions, and
// about subscriptions. mcp-go answers everything else: one MCPServer per branch, created on first use and
// without tools, resources or prompts, handles the handshakes and the streams of sessions. Every message
// passes the scan first, whichever of the two answers it.
//
// All methods are safe for concurrent use. Close must be called.
type Server struct {
	Config
	lists      encodedLists
	serverInfo string // the member of _meta that names this server, in revision 2026-07-28

	Ctx   context.Context
	close context.CancelFunc
	sweep sync.WaitGroup

	changed chan struct{} // holds one element while followers are to be notified of a change

	mu            sync.Mutex
	branches      map[branchKey]*branch // the branches served over HTTP
	stdioBranches map[*branch]bool      // the branches served over stdio
	subscribed    subscriptions

	calls, effects *fair.Places // effects are calls of tools with a side effect, which may wait long
}

// branchKey identifies a branch as opened by one caller.
type branchKey struct {
	branch string
	caller token.Hash
}

// branch holds the protocol state of one branch for one caller; its tools are those of the pinned generation.
// Callers share nothing here, so none can continue what another began. A conversation branch shares the limits
// of the declared branch that it was forked from.
type branch struct {
	server *Server
	name   string
	// root is the declared branch on whose account it counts: name, unless it is a conversation branch.
	root           string
	caller         token.Caller
	used           time.Time // time of the last request; guarded by Server.mu
	advertisedView string    // digest of the view last announced to a follower; written only by Server.notifyFollowers
	mcp            *server.MCPServer
	http           *server.StreamableHTTPServer
	sessions       *sessions
	streams        *limit
	running        atomic.Int64 // calls that have a place
	seal           *seal
	resumable      *sessionSeal
	pending        pendingCalls
	// listeners are the open subscriptions/listen requests of clients of revision 2026-07-28.
	listeners listeners
	// advertised holds the digests of the resources and prompts last shown to the clients; nil before the
	// first.
	advertised atomic.Pointer[passthroughDigests]
	// ctx is cancelled when the branch ends; its streams end with it.
	ctx context.Context
	end context.CancelFunc
}

// New creates a Server and starts its background goroutines. Close stops them.
func New(cfg Config) *Server {
	cfg.Limits = cfg.Limits.withDefaults()
	if cfg.Called == nil {
		cfg.Called = func(*registry.Call) {}
	}
	if cfg.Refused == nil {
		cfg.Refused = func(decision.AttemptCode) {}
	}
	info, err := json.Marshal(map[string]mcp.Implementation{mcp.MetaKeyServerInfo: implementation(cfg.Version)})
	if err != nil {
		panic("mcpserver: a name and a version always encode: " + err.Error())
	}
	s := &Server{
		Config: cfg, lists: newEncodedLists(), serverInfo: string(info[1 : len(info)-1]),
		branches: map[branchKey]*branch{}, stdioBranches: map[*branch]bool{}, changed: make(chan struct{}, 1),
	}
	s.calls, s.effects = newPlaces(cfg.Limits, cfg.Tokens != nil)
	s.Ctx, s.close = context.WithCancel(context.Background())
	s.sweep.Go(s.sweepSessions)
	s.sweep.Go(s.notifyFollowers)
	return s
}

func implementation(version string) mcp.Implementation {
	return mcp.Implementation{Name: "catalogd", Version: version}
}

// Close ends every stream and session and waits for the background goroutines. Calls in flight continue.
func (s *Server) Close() {
	s.close()
	s.sweep.Wait()
}

// Changed notifies the clients of the named branches that their tool list has changed. Call it after the
// generation was swapped. The new lists are encoded before the clients are notified. Branches that the
// generation no longer has end, with their sessions and streams.
//
// Bearers of tokens and clients of conversation branches are notified asynchronously, once their views have
// been decided, and only if a view differs. Changed pins no generation while no branch has been used, so it may be called before there is a
// first generation.
func (s *Server) Changed(names []string) {
	if s.unused() {
		return
	}
	g, release := s.Pin()
	defer release()
	s.lists.keep(g)
	for _, b := range s.served(g) {
		if b.follows() || !slices.Contains(names, b.name) {
			continue
		}
		if path, ok := b.path(g); ok {
			s.lists.of(path.View)
		}
		b.listChanged()
	}
	generation.Signal(s.changed)
}

// ConversationsChanged notifies the clients of conversation branches whose tool list has changed, and ends those
// that no longer exist, with their sessions and streams. Call it after each change of a conversation branch.
func (s *Server) ConversationsChanged() {
	if s.unused() {
		return
	}
	g, release := s.Pin()
	defer release()
	s.served(g)
	generation.Signal(s.changed)
}

// follows reports whether the branch's view is not the operator's of a declared branch, so that it has to be
// derived before anybody knows whether it has changed.
func (b *branch) follows() bool { return b.caller.Token != nil || b.root != b.name }

func (b *branch) listChanged() {
	b.notify(mcp.MethodNotificationToolsListChanged)
}

// notifyFollowers notifies the clients of branches that follow, whose view differs, after each change, until the
// Server closes.
func (s *Server) notifyFollowers() {
	for {
		select {
		case <-s.Ctx.Done():
			return
		case <-s.changed:
		}
		s.notifyFollowersOnce()
	}
}

func (s *Server) notifyFollowersOnce() {
	g, release := s.Pin()
	defer release()
	for _, b := range s.served(g) {
		if s.Ctx.Err() != nil {
			return
		}
		path, ok := b.path(g)
		if !b.follows() || !ok || path.View.Digest() == b.advertisedView {
			continue
		}
		b.advertisedView = path.View.Digest()
		s.lists.of(path.View)
		b.listChanged()
	}
}

func (s *Server) unused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.branches)+len(s.stdioBranches) == 0
}

// served returns the branches that have been used, after ending those that the generation no longer has.
func (s *Server) served(g *generation.Generation) []*branch {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*branch
	for at, b := range s.branches {
		if root, ok := g.Root(at.branch, b.caller.Principal); !ok || root != b.root {
			b.end()
			delete(s.branches, at)
			continue
		}
		all = append(all, b)
	}
	for b := range s.stdioBranches {
		all = append(all, b)
	}
	return all
}

// branch returns the branch of that name for a caller, created on first use. It returns nil if there is no
// such branch or the caller may not open it.
func (s *Server) branch(name string, c token.Caller) *branch {
	root, ok := s.Root(name, c)
	if !ok {
		return nil
	}
	at := branchKey{name, c.Key()}
	s.mu.Lock()
	b := s.branches[at]
	if b != nil {
		b.used = time.Now()
	}
	s.mu.Unlock()
	if b != nil {
		return b
	}
	made := s.newBranch(name, root, c)
	if root != name {
		account := s.branch(root, c)
		if account == nil {
			made.end()
			return nil
		}
		made.streams = account.streams
	}
	if made.follows() {
		g, release := s.Pin()
		if path, ok := made.path(g); ok {
			made.advertisedView = path.View.Digest()
		}
		release()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.branches[at]; b != nil {
		made.end()
		return b
	}
	if !s.authorized(made) { // the token was revoked meanwhile
		made.end()
		return nil
	}
	made.used = time.Now()
	s.branches[at] = made
	return made
}

// path returns the call path of the branch's caller in a generation.
func (b *branch) path(g *generation.Generation) (*invoke.Path, bool) {
	return g.PathFor(b.name, b.caller.Principal)
}

func (s *Server) newBranch(name, root string, c token.Caller) *branch {
	b := &branch{server: s, name: name, root: root, caller: c, streams: &limit{max: int64(s.Limits.Streams)}, seal: s.newSeal(name, c)}
	b.ctx, b.end = context.WithCancel(s.Ctx)
	info := implementation(s.Version)
	b.mcp = server.NewMCPServer(info.Name, info.Version, b.capable()...)
	b.sessions = newSessions(b.ctx, s.Limits.Sessions)
	b.resumable = s.newSessionSeal(name, c)
	b.http = server.NewStreamableHTTPServer(b.mcp,
		server.WithSessionIdManagerResolver(b),
		server.WithStreamableHTTPLogger(s.Log),
	)
	return b
}

// answer answers the methods that the Server doesn't pass to mcp-go. to receives what a called tool sends
// meanwhile.
func (b *branch) answer(ctx context.Context, m *message, modern bool, to registry.Listener) (r reply) {
	defer func() {
		if p := recover(); p != nil {
			r = b.fail(m.id, modern, b.server.Panicked(string(m.method), p))
		}
	}()
	ctx, span := b.server.Tracer.Request(tracing.FromMeta(ctx, m.meta), string(m.method))
	defer span.End()
	span.Set("catalogd.branch", b.name)
	g, release := b.server.Pin()
	defer func() { release() }() // unless a call that outlives its request has taken it
	path, ok := b.path(g)
	if !ok {
		return b.fail(m.id, modern, refuse(mcp.INVALID_REQUEST, "branch %q is not served any more", b.name))
	}
	switch m.method {
	case mcp.MethodToolsList:
		return b.list(m, g, path.View, modern)
	case mcp.MethodToolsCall:
		return b.call(ctx, m, path, modern, to, &release)
	}
	return b.passthrough(ctx, m, g, path, modern, to, &release)
}

// answeredHere reports whether the Server answers a message itself, instead of mcp-go.
func answeredHere(m *message) bool {
	switch m.method {
	case mcp.MethodToolsList, mcp.MethodToolsCall, mcp.MethodResourcesList, mcp.MethodResourcesTemplatesList, mcp.MethodResourcesRead,
		mcp.MethodPromptsList, mcp.MethodPromptsGet, mcp.MethodCompletionComplete:
		return m.id != nil
	case mcp.MethodResourcesSubscribe, mcp.MethodResourcesUnsubscribe:
		return m.id != nil && m.from != nil // revision 2026-07-28 has neither
	case mcp.MethodSubscriptionsListen:
		return m.id != nil && m.from == nil // only revision 2026-07-28 has it
	}
	return false
}

// countsAsCall reports whether a message is a request that may take long and may send notifications
// meanwhile. Such requests count towards the branch's limit of calls.
func countsAsCall(m *message) bool {
	switch m.method {
	case mcp.MethodToolsCall, mcp.MethodResourcesRead, mcp.MethodResourcesSubscribe, mcp.MethodPromptsGet, mcp.MethodCompletionComplete:
		return m.id != nil
	}
	return false
}

// mayBlock reports whether a message that the Server answers may have to wait, as a list waits for an
// upstream server.
func mayBlock(m *message) bool { return answeredHere(m) && m.method != mcp.MethodToolsList }

// sweepSessions expires idle sessions and evicts idle bearers until the Server closes.
func (s *Server) sweepSessions() {
	tick := time.NewTicker(min(max(s.Limits.SessionIdle/4, 10*time.Millisecond), time.Minute))
	defer tick.Stop()
	for {
		select {
		case <-s.Ctx.Done():
			return
		case now := <-tick.C:
			s.mu.Lock()
			all := make([]*branch, 0, len(s.branches))
			for _, b := range s.branches {
				all = append(all, b)
			}
			s.mu.Unlock()
			before := now.Add(-s.Limits.SessionIdle)
			for _, b := range all {
				for _, id := range b.sessions.expire(before) {
					b.forget(id)
				}
			}
			s.evictFollowers(before)
			s.sweepConversations()
		}
	}
}

// sweepConversations ends what belongs to conversation branches that have expired.
func (s *Server) sweepConversations() {
	if s.unused() {
		return
	}
	g, release := s.Pin()
	defer release()
	g.SweepConversations()
}

// evictFollowers evicts the branches that follow, have nothing open and were last used before the given time. One
// on whose account conversation branches count stays with these.
func (s *Server) evictFollowers(before time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	accounts := map[branchKey]bool{}
	for at, b := range s.branches {
		if b.root != b.name {
			accounts[branchKey{b.root, at.caller}] = true
		}
	}
	for at, b := range s.branches {
		if b.follows() && !accounts[at] && b.used.Before(before) && b.sessions.count() == 0 && b.streams.open.Load() == 0 && b.running.Load() == 0 && b.pending.idle() {
			b.end()
			delete(s.branches, at)
		}
	}
}

// reserve reserves one more session for a branch. The error says which limit is reached: that of the branch, or
// that of all branches.
func (s *Server) reserve(b *branch) *registry.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, account := 0, 0
	for _, other := range s.branches {
		open := other.sessions.count()
		n += open
		if other.root == b.root && other.caller.Key() == b.caller.Key() {
			account += open
		}
	}
	if n >= s.Limits.AllSessions {
		return tooMany("sessions_total", "all branches together have as many sessions open as they may", int64(s.Limits.AllSessions))
	}
	if account >= s.Limits.Sessions || !b.sessions.reserve() {
		return tooMany("sessions", "as many sessions are open here as may be", int64(s.Limits.Sessions))
	}
	return nil
}

// Sessions returns the number of live sessions and of those about to begin, for each branch that has been
// used over HTTP.
func (s *Server) Sessions() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := map[string]int{}
	for at, b := range s.branches {
		n[at.branch] += b.sessions.count()
	}
	return n
}

// Root returns the declared branch on whose account a branch counts for a caller (generation.Root). ok is false
// if there is no such branch, or the caller may not open it.
func (s *Server) Root(name string, c token.Caller) (root string, ok bool) {
	g, release := s.Pin()
	defer release()
	root, ok = g.Root(name, c.Principal)
	return root, ok && c.MayOpen(root)
}
