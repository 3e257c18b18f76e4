// Package generation builds and holds generations. A Generation is one immutable build of a catalog, its lock
// and its policy, identified by the digest of their files.
//
// A Builder makes one from a snapshot: it compiles the policy and the catalog, requests the connect decision
// for every target, checks the contracts, joins the locked tools of servers, and requests the discover
// decision for each of those tools and the list decision for every branch. What is unchanged is reused from
// the previous generation. The result answers everything that depends on files and policy alone: the View of
// a branch and principal (PathFor), which alone determines what is listed and what can be called,
// explanations, offers in a provider's dialect, the access matrix, check and decision tables.
//
// internal/daemon decides which generation serves. A generation is closed after Retire, when the last caller
// that has pinned it is done. Live holds what the servers offer now, and belongs to no generation.
package generation

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/cache"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Generation is one immutable build of catalog and policy, identified by the digest of the files. It is safe
// for concurrent use.
type Generation struct {
	// ID is the digest of the snapshot.
	ID string
	// Warnings are the warnings of the build.
	Warnings problem.List
	// Since and Adopted are when the generation began to serve and how it was adopted, for Status. Read holds
	// the problems of reading its files. The daemon sets all three before the generation serves.
	Since   time.Time
	Adopted string
	Read    problem.List

	engine   *decision.Engine
	policy   string // digest of the policy's files
	registry *registry.Registry
	paths    map[string]*invoke.Path
	reaches  []Reach
	servers  map[string]trust.Trust
	lists    listCache
	claims   string // the operator's claims, as the list policy reads them
	views    views
	built    map[string]compiled // by tool digest
	connects map[connectKey]connectAnswer
	inputs   inputs
	// undecided are the questions that the policy did not answer in time; their subjects are left out.
	undecided []Undecided
	failures  policyFailures // of the policy
	// questions holds the input of the discover decision for each tool of a server; discovers the decisions
	// by their input. admitted holds the digest that may be called, by the server's digest and the tool's
	// name on it.
	questions   map[remote]decision.DiscoverInput
	discovers   map[string]decision.Decision
	admitted    map[string]map[string]string
	quarantined []Quarantined
	upstream    *upstream.Set
	// live holds the passthrough items of servers, passing those that each branch is shown.
	live            *Live
	conversations   *conversation.Store // nil without one
	passing         *cache.Cache[passthroughKey, shownPassthrough]
	log             *slog.Logger
	summary         decision.GenerationSummary
	past            *manifest            // set by LoadPast, for a generation of which only the manifest and the engine exist; else nil
	decided         func(decision.Event) // receives each decision; nil without a listener
	releaseCheckers func()               // releases the CUE checkers; nil without one

	// commands has the path of each declared command below or beside root, or the reason why it can't be run on
	// this machine; lacking are the servers and tools that are left out for that.
	root     string
	commands map[string]string
	lacking  []Lacking

	mu      sync.Mutex
	calls   int
	retired bool
}

// Reach is one outbound target of the daemon, that of an upstream server or of a binding that spawns or
// dials, with its connect decision.
type Reach struct {
	// Kind is "server" or "tool".
	Kind     string            `json:"kind"`
	Name     string            `json:"name"`
	Target   trust.Target      `json:"target"`
	Observed trust.Observed    `json:"observed"`
	Decision decision.Decision `json:"decision"`
	// Missing is why the command can't be run on this machine, empty if it can: no decision is requested then,
	// nothing is reached, and what a file would show is not observed.
	Missing string `json:"missing,omitempty"`
	// Trust is the name of the trust entry; empty if the decision denied.
	Trust string `json:"trust,omitempty"`
	// Pinned says that a file is run only if its digest is that of the trust entry.
	Pinned bool `json:"pinned,omitempty"`
	// Variables are the environment variables that a command receives.
	Variables []egress.Variable `json:"variables,omitempty"`
	// Written is the position of the trust entry, Pos that of the server or tool.
	Written problem.Position `json:"written,omitzero"`
	Pos     problem.Position `json:"pos"`

	asked   decision.ConnectInput
	granted trust.Trust // the zero Trust if the decision denied
}

// Policy returns the digest of the policy alone.
func (g *Generation) Policy() string { return g.engine.Digest() }

// PolicyFiles returns the digest of the policy's files, tests included.
func (g *Generation) PolicyFiles() string { return g.policy }

// PolicyProblems returns the failures of the policy since the build, as warnings.
func (g *Generation) PolicyProblems() problem.List { return g.failures.problems() }

// Undecided returns the questions that the policy did not answer in time; their subjects are left out.
func (g *Generation) Undecided() []Undecided { return slices.Clone(g.undecided) }

// Quarantined returns the tools of servers that the discover decision does not allow.
func (g *Generation) Quarantined() []Quarantined { return slices.Clone(g.quarantined) }

// Degraded returns the locked tools that can't be served.
func (g *Generation) Degraded() []lockfile.Degraded { return slices.Clone(g.inputs.degraded) }

// Upstream returns the connections to the generation's servers.
func (g *Generation) Upstream() *upstream.Set { return g.upstream }

// OnNewView sets a function that is called when a retry has changed an incomplete view. Set it before the
// generation serves.
func (g *Generation) OnNewView(f func()) { g.views.changed = f }

// Shown adds to digests those of the views that are cached for principals.
func (g *Generation) Shown(digests map[string]bool) { g.views.digests(digests) }

// Registry returns the generation's tools, servers and branches.
func (g *Generation) Registry() *registry.Registry { return g.registry }

// Branches returns the sorted names of the branches.
func (g *Generation) Branches() []string {
	names := make([]string, 0, len(g.paths))
	for name := range g.paths {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Path returns the call path of a branch for the operator.
func (g *Generation) Path(branch string) (*invoke.Path, bool) {
	p, ok := g.paths[branch]
	return p, ok
}

// Reaches returns every server and outbound binding with its connect decision, sorted by kind and name.
func (g *Generation) Reaches() []Reach { return slices.Clone(g.reaches) }

// Outward returns Reaches and, as Missing, the servers and tools whose command can't be run on this machine.
func (g *Generation) Outward() []Reach {
	all := g.Reaches()
	for _, l := range g.lacking {
		all = append(all, l.reach())
	}
	slices.SortFunc(all, func(x, y Reach) int { return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Name, y.Name)) })
	return all
}

// HiddenTools are tools that can't be offered to anyone, for the same reason.
type HiddenTools struct {
	// Reason is why they can't be offered.
	Reason string `json:"reason"`
	// Tools counts them.
	Tools int `json:"tools"`
	// Example is the first of them by name, in full Why.
	Example string `json:"example"`
	Why     string `json:"why"`
}

// Hidden returns how many tools can't be offered to anyone, by reason, the most frequent first.
func (g *Generation) Hidden() (n int, reasons []HiddenTools) {
	at := map[string]int{}
	for _, e := range g.registry.Entries() {
		why := e.Hidden()
		if why == "" {
			continue
		}
		n++
		reason, _, _ := strings.Cut(why, ": ")
		i, known := at[reason]
		if !known {
			i = len(reasons)
			at[reason] = i
			reasons = append(reasons, HiddenTools{Reason: reason, Example: e.Name(), Why: why})
		}
		reasons[i].Tools++
	}
	slices.SortStableFunc(reasons, func(a, b HiddenTools) int { return cmp.Compare(b.Tools, a.Tools) })
	return n, reasons
}

// Unseen returns how many tools could be offered and are shown to the operator by no branch.
func (g *Generation) Unseen() (n int) {
	seen := map[string]bool{}
	for _, path := range g.paths {
		for _, name := range path.View.Catalog() {
			seen[name] = true
		}
	}
	for _, e := range g.registry.Entries() {
		if e.Hidden() == "" && !seen[e.Declared().Name] {
			n++
		}
	}
	return n
}

// Changed returns the sorted names of the branches whose list for the operator differs between g and next,
// including those that only one of them has. g may be nil.
func (g *Generation) Changed(next *Generation) []string {
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

// Pin keeps the generation open until Unpin. It returns false once the generation has been closed.
func (g *Generation) Pin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.retired && g.calls == 0 {
		return false
	}
	g.calls++
	return true
}

// Unpin ends a Pin. The last one closes a retired generation.
func (g *Generation) Unpin() {
	g.mu.Lock()
	g.calls--
	last := g.retired && g.calls == 0
	g.mu.Unlock()
	if last {
		g.release()
	}
}

// release closes the generation's connections, including those that its bindings keep open for further calls.
// It returns at once, because ending a child can take long; the pool's Close waits.
func (g *Generation) release() {
	go func() {
		defer g.upstream.Close()
		if g.releaseCheckers != nil {
			g.releaseCheckers()
		}
		if g.registry == nil {
			return // the build failed
		}
		for _, e := range g.registry.Entries() {
			e.Close()
		}
	}()
}

// Retire marks the generation as replaced. Its resources are released when its last call has ended.
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

// Engine returns the engine of the generation's policy, with the deadline of builds.
func (g *Generation) Engine() *decision.Engine { return g.engine.WithBuildDeadline() }

// Subjects returns what the policy decides on: every tool, branch and outbound target.
func (g *Generation) Subjects() decision.Catalog { return g.catalog(nil, Fixtures{}) }
