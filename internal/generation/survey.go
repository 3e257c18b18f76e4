package generation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/internal/progress"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Survey is what the servers that discover their tools offer now, with what is locked of them.
type Survey struct {
	// Build is what the catalog declares.
	Build   *registry.Build
	Lock    *lockfile.File
	Servers []Surveyed
}

// Surveyed is one server of a Survey.
type Surveyed struct {
	Server registry.Server
	// Err is the error of requesting the offer; Offer is then empty.
	Err error
	// Lacking says that Err is that the server's command can't be run on this machine.
	Lacking bool
	Offer   lockfile.Offer
	// Declared are the server's tools that declared tools call; they are locked too.
	Declared []string
}

// Chosen reports whether a tool of the server is to be locked.
func (s Surveyed) Chosen(tool string) bool {
	return s.Server.Discover.Chooses(tool) || slices.Contains(s.Declared, tool)
}

// LocalName returns the tool's name in the catalog.
func (s Surveyed) LocalName(tool string) string { return lockfile.LocalName(s.Server, tool) }

// Survey connects to every trusted server of the snapshot that discovers its tools, and requests its offer.
// The content of the lock has no influence, but it must be readable. If a problem is an error, the survey is
// nil.
func (b *Builder) Survey(ctx context.Context, snap *loader.Snapshot) (*Survey, problem.List) {
	progress.Begin(ctx, "compiling the policy", "")
	engine, problems := b.loadPolicy(ctx, snap, "", nil)
	progress.Begin(ctx, "compiling the catalog", "tools")
	build, more := b.Compiler.Compile(ctx, snap)
	problems = append(problems, more...)
	locked, more := lockfile.Load(snap.FS())
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
	a := &assembly{Builder: b, ctx: ctx, engine: engine.WithBuildDeadline(), g: &Generation{
		ID: snap.Digest(), engine: engine,
		paths: map[string]*invoke.Path{}, servers: map[string]trust.Trust{}, connects: map[connectKey]connectAnswer{},
		root: b.Root, commands: map[string]string{},
	}}
	problems = append(problems, slices.DeleteFunc(a.trustServers(servers, nil), func(p problem.Problem) bool {
		return p.Code == problem.UntrustedServer || p.Code == problem.MissingCommand // reported in Surveyed.Err
	})...)
	problems = append(problems, a.undecided.problems(false)...)
	defer a.g.upstream.Close()
	if problems.HasErrors() {
		return nil, problems.Sorted()
	}
	step := progress.Begin(ctx, "asking the servers", "servers")
	survey := &Survey{Build: build, Lock: locked, Servers: make([]Surveyed, len(servers))}
	var asking sync.WaitGroup
	for i, s := range servers {
		answered := step.Wait(s.Name)
		asking.Go(func() {
			defer answered()
			survey.Servers[i] = Surveyed{Server: s, Declared: lockfile.DeclaredTools(build, s.Name)}
			if why, hidden := a.missing[s.Name]; hidden {
				survey.Servers[i].Err, survey.Servers[i].Lacking = errors.New(why), true
				return
			}
			if why, hidden := a.untrusted[s.Name]; hidden {
				survey.Servers[i].Err = errors.New("it is not trusted: " + strings.TrimSuffix(why, ".") + "; " + proposeCommand(s.Name))
				return
			}
			offer, err := a.g.upstream.Offered(ctx, s.Name)
			survey.Servers[i].Offer, survey.Servers[i].Err = readTools(offer), once(s.Name, err)
		})
	}
	asking.Wait()
	return survey, problems.Sorted()
}

// once returns the error of a server that was asked for its offer without what a reader knows, its name and
// that it is unavailable, and with a cause only where the message does not have it.
func once(server string, err error) error {
	var e *registry.Error
	if !errors.As(err, &e) {
		return err
	}
	why := strings.TrimPrefix(e.Msg, fmt.Sprintf("server %q is unavailable: ", server))
	why, _, _ = strings.Cut(why, "; unavailable since ")
	if e.Err != nil && !strings.Contains(why, e.Err.Error()) && !strings.Contains(why, "its last output: ") {
		why += ": " + e.Err.Error()
	}
	return errors.New(why)
}

func readTools(o upstream.Offer) lockfile.Offer {
	return lockfile.ReadOffer(lockfile.Identity{Name: o.Name, Version: o.Version, Protocol: o.Protocol}, o.Tools)
}
