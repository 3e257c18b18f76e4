package serve

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/lock"
	"github.com/catalogd/catalogd/internal/reach"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Survey is what the servers that discover their tools offer now, beside what is locked of them.
type Survey struct {
	// Build is what the catalog declares.
	Build   *registry.Build
	Lock    *lock.File
	Servers []Surveyed
}

// Surveyed is one server of a Survey.
type Surveyed struct {
	Server registry.Server
	// Err is why the server could not be asked; Offer is then empty.
	Err   error
	Offer lock.Offer
	// Declared are the tools of the server that declared tools call; they are locked too.
	Declared []string
}

// Chosen reports whether a tool of the server is locked.
func (s Surveyed) Chosen(tool string) bool {
	return s.Server.Discover.Chooses(tool) || slices.Contains(s.Declared, tool)
}

// LocalName is the tool's name in the catalog.
func (s Surveyed) LocalName(tool string) string { return lock.LocalName(s.Server, tool) }

// Survey connects to every server of the snapshot that discovers its tools and that the policy trusts, and asks what it
// offers. What the lock says counts for nothing here, but it must be readable. The survey is nil when a problem is an
// error.
func (b *Builder) Survey(ctx context.Context, snap *loader.Snapshot) (*Survey, problem.List) {
	engine, problems := b.loadPolicy(ctx, snap, "", nil)
	build, more := b.Compiler.Compile(ctx, snap)
	problems = append(problems, more...)
	locked, more := lock.Load(snap.FS())
	problems = append(problems, more...)
	if build == nil || problems.HasErrors() {
		return nil, problems.Sorted()
	}
	var servers []registry.Server
	for _, s := range build.Servers {
		if s.Discover != nil {
			servers = append(servers, s)
		}
	}
	b.observer.Begin(ctx, namedHosts(&registry.Build{Servers: servers}))
	a := &assembly{Builder: b, ctx: ctx, engine: engine, connecting: patience{}, environment: reach.Environment(), g: &Generation{
		ID:    snap.Digest(),
		paths: map[string]*invoke.Path{}, servers: map[string]trust.Trust{}, connects: map[connectKey]connectAnswer{},
	}}
	problems = append(problems, slices.DeleteFunc(a.trustServers(servers, nil), func(p problem.Problem) bool {
		return p.Code == problem.UntrustedServer // said of the server
	})...)
	defer a.g.upstream.Close()
	survey := &Survey{Build: build, Lock: locked, Servers: make([]Surveyed, len(servers))}
	var asking sync.WaitGroup
	for i, s := range servers {
		asking.Go(func() {
			survey.Servers[i] = Surveyed{Server: s, Declared: lock.DeclaredTools(build, s.Name)}
			if why, hidden := a.untrusted[s.Name]; hidden {
				survey.Servers[i].Err = errors.New("it is not trusted: " + strings.TrimSuffix(why, ".") + "; `catalogd trust` shows what is asked")
				return
			}
			offer, err := a.g.upstream.Offered(ctx, s.Name)
			survey.Servers[i].Offer, survey.Servers[i].Err = readTools(offer), err
		})
	}
	asking.Wait()
	return survey, problems.Sorted()
}

func readTools(o upstream.Offer) lock.Offer {
	return lock.ReadOffer(lock.Identity{Name: o.Name, Version: o.Version, Protocol: o.Protocol}, o.Tools)
}
