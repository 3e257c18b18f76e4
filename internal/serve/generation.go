// Package serve is the daemon: it builds generations out of snapshots, swaps them, and serves every branch over MCP and
// HTTP.
//
// A Generation is one immutable build of catalog and policy. A Builder makes one of a snapshot; a Daemon owns the one
// that serves: it watches the files, builds a candidate when their digest changes, asks the serving policy whether the
// candidate may be adopted, swaps one pointer and tells the branches whose visible set changed. A candidate that fails
// changes nothing but the Status. Calls pin the generation that they begin with; a generation that has been replaced
// closes what it holds when its last call has ended.
package serve

import (
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Generation is one immutable build of catalog and policy, named by the digest of the files. It is safe for concurrent
// use.
type Generation struct {
	// ID is the digest of the snapshot.
	ID string
	// Warnings are what the build had to say without refusing.
	Warnings problem.List

	engine   *decision.Engine
	policy   string // names the content of the policy's files
	registry *registry.Registry
	paths    map[string]*invoke.Path
	reaches  []Reach
	servers  map[string]trust.Trust
	lists    listCache
	claims   string // the operator's, to the list policy
	views    views
	built    map[string]compiled // by tool digest
	connects map[connectKey]connectAnswer
	made     ingredients
	read     problem.List // what reading the files had to say
	// questions are what the discover decision was asked about each tool of a server; discovers are its answers by their
	// input; admitted is, by the server's digest and the tool's name there,
	// the digest of what may be called.
	questions   map[remote]decision.DiscoverInput
	discovers   map[string]decision.Decision
	admitted    map[string]map[string]string
	quarantined []Quarantined
	upstream    *upstream.Set
	// live holds what servers pass on, passing what of it each branch is shown.
	live    *Live
	passing forwardCache
	log     *slog.Logger
	summary decision.GenerationSummary
	decided func(decision.Event) // nil where nobody wants to know
	unhold  func()               // gives up what checks with CUE need; nil without one

	since   time.Time
	adopted string

	mu      sync.Mutex
	calls   int
	retired bool
}

// Reach is one way out of the daemon: an upstream server or a binding that spawns or dials, and what the connect
// decision said of it.
type Reach struct {
	// Kind is "server" or "tool".
	Kind     string            `json:"kind"`
	Name     string            `json:"name"`
	Target   trust.Target      `json:"target"`
	Observed trust.Observed    `json:"observed"`
	Decision decision.Decision `json:"decision"`
	// Trust is the name of the trust entry; empty where the decision denied.
	Trust string `json:"trust,omitempty"`
	// Pinned says that only a file with the digest that the trust entry has is run.
	Pinned bool `json:"pinned,omitempty"`
	// Written is where the trust entry stands, Pos where the server or tool does.
	Written problem.Position `json:"written,omitzero"`
	Pos     problem.Position `json:"pos"`

	asked decision.ConnectInput
}

// Policy is the digest of the policy alone.
func (g *Generation) Policy() string { return g.engine.Digest() }

// Registry holds the generation's tools, servers and branches.
func (g *Generation) Registry() *registry.Registry { return g.registry }

// Branches are the names of the branches in order.
func (g *Generation) Branches() []string {
	names := make([]string, 0, len(g.paths))
	for name := range g.paths {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Path is the call path of a branch for the operator.
func (g *Generation) Path(branch string) (*invoke.Path, bool) {
	p, ok := g.paths[branch]
	return p, ok
}

// Reaches lists every server and outward binding with its connect decision, by kind and name.
func (g *Generation) Reaches() []Reach { return slices.Clone(g.reaches) }

// hidden counts the tools that can't be offered to anyone.
func (g *Generation) hidden() int {
	n := 0
	for _, e := range g.registry.Entries() {
		if e.Bound().Hidden != "" {
			n++
		}
	}
	return n
}

// changed names the branches that list something else in next than in g, in order. A branch that only one of them has
// counts. g may be nil.
func (g *Generation) changed(next *Generation) []string {
	changed := []string{}
	for name, p := range next.paths {
		if g == nil {
			changed = append(changed, name)
		} else if old, ok := g.paths[name]; !ok || old.View.Digest() != p.View.Digest() {
			changed = append(changed, name)
		}
	}
	if g != nil {
		for name := range g.paths {
			if _, ok := next.paths[name]; !ok {
				changed = append(changed, name)
			}
		}
	}
	slices.Sort(changed)
	return changed
}

// pin keeps the generation open until unpin; it fails once the generation has been closed.
func (g *Generation) pin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.retired && g.calls == 0 {
		return false
	}
	g.calls++
	return true
}

func (g *Generation) unpin() {
	g.mu.Lock()
	g.calls--
	last := g.retired && g.calls == 0
	g.mu.Unlock()
	if last {
		g.release()
	}
}

// release gives up the generation's connections, those that its bindings keep for a next call included. Ending a child
// can take a while, and neither a call nor a reload waits for it; the pool's Close does.
func (g *Generation) release() {
	go func() {
		defer g.upstream.Close()
		if g.unhold != nil {
			g.unhold()
		}
		if g.registry == nil {
			return // a build that failed
		}
		for _, e := range g.registry.Entries() {
			if c, ok := e.Bound().Invoker.(io.Closer); ok {
				c.Close()
			}
		}
	}()
}

// Retire says that nothing new begins on the generation. What it holds is closed when its last call has ended.
func (g *Generation) Retire() {
	g.mu.Lock()
	already := g.retired
	g.retired = true
	idle := g.calls == 0
	g.mu.Unlock()
	if idle && !already {
		g.release()
	}
}
