// Package upstream is catalogd's MCP client: it connects to upstream servers over the standard streams of a
// child process and over streamable HTTP, in the revision 2026-07-28 of MCP or an older one, as negotiated
// (negotiate.go).
//
// A Pool has one link for each upstream that some generation uses. Links are shared: the Set that a
// generation opens refers to the same link as the one before it where the server's declaration, its resolved
// target and the terms of its trust are the same, so that a reload keeps the connections of unchanged
// servers. The last Set that releases a link drains it: calls in flight finish, then the session is closed
// and a child's whole process group is ended.
//
// A server that isolates branches (Server.Isolate) has a link for each branch, and one limit for all of them.
//
// A link connects lazily: at the first call (within the server's ConnectTimeout and InitializeTimeout), or at
// Connect where the server is eager; concurrent calls wait for the same attempt. Its states are
//
//	idle -> connecting -> ready -> failed -> connecting ...
//
// where failed means that the last attempt failed or the connection was lost. The next call tries again;
// after more failures in a row without an answered call, only once a backoff has passed, and calls before
// that fail at once. In addition each link has a circuit breaker: after Config.BreakAfter failures in a row,
// of any kind, it opens for MaxBackoff, and then lets one call through as a probe. A failure affects only the
// calls of its own server.
//
// A call with a side effect (Set.Execute) is never sent twice. Any other call is retried where the server
// reports that it ran nothing: an HTTP session that it has forgotten (404), headers that don't mirror the
// arguments as it requires (2026-07-28), and what net/http retries by itself. Where a connection breaks after
// a request was sent, the error says that the outcome is unknown (outcome.go).
//
// Arguments are sent as the JSON received, over HTTP in 2026-07-28 also in headers where the server requires
// that (x-mcp-header), and content blocks, structured content and _meta are returned as the bytes that the
// server sent. Progress and log messages are routed to the call that they belong to, and a server's requests
// to that call's caller, where the policy allows them (Set.Call).
//
// What a server offers is listed where its declaration discovers tools (Watch), and on request (Set.Offered).
package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/egress"
	effect "github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Upstream is a server with the trust that the connect decision gave it.
type Upstream struct {
	Server registry.Server
	Trust  trust.Trust
	// Branches are the branches that have a connection each, where the server isolates branches; if empty,
	// all share one.
	Branches []string
	// Redirect decides whether a redirect (307, 308) to another path of the server's origin is followed, and
	// refuses by an error; nil follows none.
	Redirect func(ctx context.Context, to trust.Target) error
}

// Config configures a Pool. The zero value is ready for use.
type Config struct {
	// Logger gets one line for each connection made, failed and lost; nil discards them. Neither arguments
	// nor secrets are logged. A child's standard error is, as it comes, with the values of its secrets
	// masked, control characters quoted and within bounds: 1 KiB a line, 10 lines a second after the first
	// 200, 4 MiB a process.
	Logger *slog.Logger
	// Version is the client version reported to upstreams, next to the name catalogd.
	Version string
	// MaxAnswer caps one answer of an upstream in bytes: a line of standard output, or an HTTP response with
	// its resumed streams. 0 means 16 MiB.
	MaxAnswer int64
	// Backoff is the pause after the second failure in a row; it doubles up to MaxBackoff. 0 means 250 ms and
	// 5 s.
	Backoff, MaxBackoff time.Duration
	// BreakAfter is how many failures in a row open a server's circuit breaker, for MaxBackoff. 0 means 5.
	BreakAfter uint32
	// Relist is the shortest time between two listings of what a server offers, however often it notifies of
	// a change; while its notifications prove false the time doubles, up to twelve times as long. 0 means 5
	// s.
	Relist time.Duration
	// Homes has the private directories of children; nil makes one for each start.
	Homes *egress.Homes
	// Watch is notified of what servers offer; its zero value lists no server's tools.
	Watch Watch
}

// Pool holds the connections of all generations. It is safe for concurrent use.
type Pool struct {
	cfg   Config
	mu    sync.Mutex
	links map[string]*link
	// leaving holds the links that no Set refers to and that have not ended yet.
	leaving map[*link]struct{}
	closed  bool
	// gates are those of servers that keep branches apart, as long as a link has one.
	gates map[string]*gate
	// tallies are by the server's name.
	tallies map[string]*tally
}

// tally counts the results of a server's connections and calls, over all its links.
type tally struct {
	calls, failures, refused, connects, ignored atomic.Uint64
}

// NewPool makes a pool without connections. It does no I/O; Close ends it.
func NewPool(cfg Config) *Pool {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxAnswer <= 0 {
		cfg.MaxAnswer = 16 << 20
	}
	if cfg.Backoff <= 0 {
		cfg.Backoff = 250 * time.Millisecond
	}
	if cfg.MaxBackoff <= 0 {
		cfg.MaxBackoff = 5 * time.Second
	}
	cfg.Relist = cmp.Or(cfg.Relist, 5*time.Second)
	cfg.BreakAfter = cmp.Or(cfg.BreakAfter, 5)
	cfg.Version = cmp.Or(cfg.Version, "dev")
	return &Pool{
		cfg: cfg, links: make(map[string]*link), leaving: make(map[*link]struct{}),
		gates: make(map[string]*gate), tallies: make(map[string]*tally),
	}
}

// Set is what one generation may call: its trusted servers by name.
type Set struct {
	pool  *Pool
	once  sync.Once
	links map[place]*link
	// redirects are the Redirect of each server, by its name.
	redirects map[string]func(context.Context, trust.Target) error
}

// place is the key of a link in a Set: its server, and its branch where the server isolates branches.
type place struct{ server, branch string }

// Open refers to a link for each upstream, or to one for each of its branches, and connects nothing. root is
// the catalog's directory. A server whose target can't be resolved is in the Set too; its calls fail with the
// reason. In a closed pool every call fails.
func (p *Pool) Open(root string, upstreams []Upstream) *Set {
	set := &Set{pool: p, links: make(map[place]*link, len(upstreams)), redirects: make(map[string]func(context.Context, trust.Target) error)}
	// Looking up commands reads the disk, so it is done without the lock.
	var fresh []*link
	for _, up := range upstreams {
		set.redirects[up.Server.Name] = up.Redirect
		target, problems := Target(up.Server, root)
		key := identity(up, root, target, problems)
		branches := up.Branches
		if up.Server.Isolate != registry.ByBranch || len(branches) == 0 {
			branches = []string{""}
		}
		for _, branch := range branches {
			l := newLink(up, branch, root, p.cfg)
			l.target, l.problems, l.declared, l.key = target, problems, key, key+branch
			fresh = append(fresh, l)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range fresh {
		at := place{l.up.Server.Name, l.branch}
		if p.closed || set.links[at] != nil {
			continue
		}
		if shared, ok := p.links[l.key]; ok {
			l = shared
		} else {
			p.adopt(l)
		}
		l.refs++
		set.links[at] = l
	}
	return set
}

// adopt gives a new link its gate and its tally. It must be called with the lock held.
func (p *Pool) adopt(l *link) {
	p.links[l.key] = l
	name := l.up.Server.Name
	if l.tally = p.tallies[name]; l.tally == nil {
		l.tally = &tally{}
		p.tallies[name] = l.tally
	}
	if l.branch == "" {
		l.gate = newGate(l.up)
		return
	}
	if l.gate = p.gates[l.declared]; l.gate == nil {
		l.gate = newGate(l.up)
		p.gates[l.declared] = l.gate
	}
	l.gate.links++
}

// unadopt reverses adopt. It must be called with the lock held.
func (p *Pool) unadopt(l *link) {
	delete(p.links, l.key)
	if l.branch == "" {
		return
	}
	if l.gate.links--; l.gate.links == 0 {
		delete(p.gates, l.declared)
	}
}

// Connect begins to connect the servers that are eager, and waits for none of them. One that fails is tried
// again by its first call.
func (s *Set) Connect() {
	for _, l := range s.links {
		if l.up.Server.Eager {
			l.warm()
		}
	}
}

// link is the link that carries a branch's calls of a server.
func (s *Set) link(server, branch string) (*link, *registry.Error) {
	for _, at := range []place{{server, ""}, {server, branch}} {
		if l, ok := s.links[at]; ok {
			// The last decision on a redirect applies, and a Set is asked for a link only by the generation
			// that serves.
			if redirect := s.redirects[server]; redirect != nil {
				l.redirect.Store(&redirect)
			}
			return l, nil
		}
	}
	return nil, &registry.Error{Code: registry.Unavailable, Msg: fmt.Sprintf("server %q can't be reached: this generation has no trusted server of that name", server)}
}

// identity is what must be the same for a connection to be kept over a reload.
func identity(up Upstream, root string, target trust.Target, problems problem.List) string {
	b, err := json.Marshal([]any{
		root, up.Server.Name, up.Server.Digest, target.Digest(), problems,
		up.Trust.Covers(target) == nil, up.Trust.Digest(),
	})
	if err != nil {
		panic(fmt.Sprintf("upstream: an identity is plain data: %v", err))
	}
	return string(b)
}

// Call runs a tool of a server: tools/call with exactly these arguments (nil stands for {}). It takes at most
// the server's CallTimeout, including the time to connect, and returns soon after ctx ends, of which the
// server is notified (notifications/cancelled, or the end of the request's stream in 2026-07-28 over HTTP).
//
// At most min(declared, granted) maxConnections calls run at an HTTP server at once; a further call waits for
// its turn until it times out, and its error then says how many wait and what to raise. A stdio server is one
// process whatever that number is, and is sent calls as they arrive; where each branch has a process, the
// number limits the processes, and one without calls is closed in favour of another branch's.
//
// to.Branch is the caller's branch, for servers that isolate branches. to receives the progress and the log
// messages of this call that arrive before the result; later ones, and those that could belong to another
// call, are dropped. Progress is requested where to.Progress is set, and the level of to.Message is sent in
// 2026-07-28; in the older versions it is requested by logging/setLevel. The zero Listener receives nothing.
//
// A failure that the server reports inside a result is a Result with IsError. All other failures are a
// *registry.Error.
func (s *Set) Call(ctx context.Context, server, tool string, args json.RawMessage, to registry.Listener) (*registry.Result, error) {
	return s.call(ctx, server, tool, args, "", to)
}

// Execute is Call for a tool with a side effect. The request is sent at most once, whatever becomes of it,
// with the attempt's idempotency key as _meta["catalogd/idempotencyKey"], and the error says what is known
// (registry.OutcomeOf).
func (s *Set) Execute(ctx context.Context, server, tool string, args json.RawMessage, a effect.Attempt, to registry.Listener) (*registry.Result, error) {
	of, ok := a.Of()
	if !ok || of.Key == "" {
		return nil, &registry.Error{Code: registry.Internal, Msg: "a tool with a side effect runs only for an attempt with an idempotency key; nothing was sent", Unsent: true}
	}
	return s.call(ctx, server, tool, args, of.Key, to)
}

func (s *Set) call(ctx context.Context, server, tool string, args json.RawMessage, key string, to registry.Listener) (*registry.Result, error) {
	l, err := s.link(server, to.Branch)
	if err != nil {
		return nil, unsentError(err)
	}
	return l.call(ctx, tool, args, key, to)
}

// Close releases the Set's links, waits for the calls of those that no other Set refers to, and ends them.
// Only calls in flight finish, so close a Set when its generation begins no more of them. It can be called
// again, and concurrently; each call returns when the links have ended.
func (s *Set) Close() {
	s.once.Do(func() { s.pool.release(s.links) })
}

func (p *Pool) release(links map[place]*link) {
	var last []*link
	p.mu.Lock()
	for _, l := range links {
		if l.refs--; l.refs == 0 && !p.closed {
			p.unadopt(l)
			p.leaving[l] = struct{}{}
			last = append(last, l)
		}
	}
	p.mu.Unlock()
	var ends sync.WaitGroup
	for _, l := range last {
		ends.Go(func() {
			l.drain()
			p.mu.Lock()
			delete(p.leaving, l)
			p.mu.Unlock()
		})
	}
	ends.Wait()
}

// Close ends every connection now: calls in flight fail, children and their groups end. It returns when they
// have.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	all := p.all()
	p.mu.Unlock()
	var ends sync.WaitGroup
	for _, l := range all {
		ends.Go(l.abort)
	}
	ends.Wait()
}

// all must be called with the lock held.
func (p *Pool) all() []*link {
	var all []*link
	for _, l := range p.links {
		all = append(all, l)
	}
	for l := range p.leaving {
		all = append(all, l)
	}
	return all
}

// Status returns each link's state, in the order of the servers' names; a server that a reload has changed
// can appear twice, until the calls at the old one have finished.
func (p *Pool) Status() []Status {
	p.mu.Lock()
	all := p.all()
	p.mu.Unlock()
	out := make([]Status, 0, len(all))
	for _, l := range all {
		out = append(out, l.status())
	}
	slices.SortFunc(out, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Branch, b.Branch), a.Since.Compare(b.Since))
	})
	return out
}

// State is the state of a link.
type State string

const (
	// Idle: nothing has been called yet.
	Idle State = "idle"
	// Connecting: a process starts, or a handshake runs.
	Connecting State = "connecting"
	// Ready: calls are answered.
	Ready State = "ready"
	// Failed: the last attempt failed, or the connection was lost; LastError says why. The next call tries
	// again.
	Failed State = "failed"
	// Draining: no generation uses the server any more; its last calls finish.
	Draining State = "draining"
)

// Status is a link as an operator sees it.
type Status struct {
	// Server is the server's name in the catalog.
	Server string `json:"server"`
	// Branch is the branch of the connection, where the server isolates branches.
	Branch string `json:"branch,omitempty"`
	// Transport is stdio or http.
	Transport string `json:"transport"`
	// State is the state of the connection.
	State State `json:"state"`
	// Since is when it entered its state.
	Since time.Time `json:"since"`
	// Trust is the name of the trust entry through which the server is reached.
	Trust string `json:"trust"`
	// Protocol is the negotiated revision of MCP; empty while there is no connection.
	Protocol string `json:"protocol,omitempty"`
	// Pid is the child's process id, for stdio.
	Pid int `json:"pid,omitempty"`
	// Calls is the number of calls in flight or waiting for their turn.
	Calls int `json:"calls"`
	// MaxConnections is the limit in effect, Waiting the number of calls (of all the server's branches) that
	// it delays.
	MaxConnections int `json:"maxConnections"`
	Waiting        int `json:"waiting"`
	// Breaker is the circuit breaker's state: closed, open or half-open. While it is open, calls fail at once
	// until RetryAt.
	Breaker string    `json:"breaker"`
	RetryAt time.Time `json:"retryAt,omitzero"`
	// LastError is why the last attempt, connection or call failed; it stays until a call is answered again.
	LastError string `json:"lastError,omitempty"`
	// Notice is a remark for the operator on a server that works.
	Notice string `json:"notice,omitempty"`

	tally *tally
}

// Tally counts the results of a server's connections and calls since the pool was made.
type Tally struct {
	// Calls were let through to the server; Failures counts those for which the server is to blame. Refused
	// were not let through by its breaker.
	Calls    uint64 `json:"calls"`
	Failures uint64 `json:"failures"`
	Refused  uint64 `json:"refused"`
	// Connects counts the connections that were made.
	Connects uint64 `json:"connects"`
	// Ignored counts the server's messages and lines that were dropped because they are not MCP messages, or
	// answer no pending request.
	Ignored uint64 `json:"ignored"`
}

// Tally returns the counters of the status's server.
func (s Status) Tally() Tally {
	if s.tally == nil {
		return Tally{}
	}
	return Tally{Calls: s.tally.calls.Load(), Failures: s.tally.failures.Load(), Refused: s.tally.refused.Load(), Connects: s.tally.connects.Load(), Ignored: s.tally.ignored.Load()}
}
