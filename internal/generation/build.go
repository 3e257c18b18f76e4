package generation

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/internal/cache"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/jq"
	"github.com/catalogd/catalogd/internal/progress"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Compiler compiles a snapshot's CUE, in this process (loader.Compiler) or in a child process that can be
// killed.
type Compiler interface {
	Compile(context.Context, *loader.Snapshot) (*registry.Build, problem.List)
}

// Checker checks with CUE what the JSON Schemas of contracts can't express, in child processes that can be
// killed or in this process.
type Checker interface {
	// Hold keeps what the build's contracts need for these checks until release is called.
	Hold(*registry.Build) (release func())
	Rest(r contract.Remainder, open bool) contract.Rest
}

// Builder builds generations, one at a time. Packages, contracts, bindings and decisions that are unchanged
// since the previous generation are reused from it.
type Builder struct {
	// Root is the catalog's directory, against which relative commands and secret files are resolved; may be
	// empty.
	Root     string
	Compiler Compiler
	// Checker may be nil: calls of tools whose schema is incomplete are then refused.
	Checker Checker
	Pool    *upstream.Pool
	Policy  decision.Config
	// Functions are the Go functions of func bindings.
	Functions Functions
	// Processors run before and after the calls of tools.
	Processors []registry.Processor
	// JQ runs jq programs; nil runs them in this process.
	JQ jq.Runner
	// Warm says that calls follow a build, so that JQ is prepared for them meanwhile.
	Warm bool
	// Homes holds the private directories of tools' commands; Pool has its own reference. Nil creates one for
	// each call.
	Homes *egress.Homes
	// Live holds what servers offer now; may be nil.
	Live *Live
	// Conversations holds the conversation branches; may be nil.
	Conversations *conversation.Store
	// State persists list decisions across restarts; may be nil.
	State *buildcache.Cache
	Log   *slog.Logger
	// Effects executes calls of tools with a side effect; nil refuses them.
	Effects *invoke.Effects
	// Events keeps the records of calls; may be nil.
	Events *invoke.Events
	// Decided receives each decision about what is built and served; may be nil.
	Decided func(decision.Event)

	observer egress.Observer
	rates    invoke.Rates // shared by all generations
	// Tolerant leaves out of a generation, with a warning, what the policy does not decide on before the
	// deadline; the daemon asks again. Otherwise that is an error.
	Tolerant bool
}

// Build builds a generation of a snapshot. It reports all problems in one pass; if any is an error, the
// generation is nil. prev, which may be nil, only saves work. No process is spawned and nothing is dialled;
// the hosts of URLs are resolved.
func (b *Builder) Build(ctx context.Context, snap *loader.Snapshot, prev *Generation) (g *Generation, problems problem.List) {
	defer func() {
		if p := recover(); p != nil {
			g, problems = nil, b.panicked(problem.Position{File: "."}, "", p)
		}
	}()
	if snap.Empty() {
		problems.Errorf(problem.NoCatalog, problem.Position{File: "."}, "",
			"there is no catalog here, neither catalog/ nor policy/: name the root of one, or run `catalogd init`")
		return nil, problems
	}
	var (
		engine   *decision.Engine
		ofPolicy problem.List
		done     = make(chan struct{})
		policy   = policyFiles(snap.FS())
	)
	go func() {
		defer close(done)
		engine, ofPolicy = b.loadPolicy(ctx, snap, policy, prev)
	}()
	progress.Begin(ctx, "compiling the catalog", "tools")
	build, problems := b.Compiler.Compile(ctx, snap)
	progress.Begin(ctx, "compiling the policy", "")
	<-done
	broken := problems.HasErrors()
	problems = append(problems, ofPolicy...)
	if build == nil || problems.Has(problem.LiteralSecret) {
		return nil, problems.Discreet().Sorted()
	}
	made := inputs{id: snap.Digest(), engine: engine, policy: policy, declared: build}
	problems = append(problems, made.join(snap.FS(), broken)...)
	problems = append(problems, made.complete(b.Functions, b.Processors)...)
	made.problems = problems
	return b.assemble(ctx, made, prev)
}

// Rebuild builds a generation of the same files as g, which must be serving. It decides again on what servers
// offer, and reuses everything else.
func (b *Builder) Rebuild(ctx context.Context, g *Generation) (next *Generation, problems problem.List) {
	defer func() {
		if p := recover(); p != nil {
			next, problems = nil, b.panicked(problem.Position{File: "."}, "", p)
		}
	}()
	return b.assemble(ctx, g.inputs, g)
}

// assemble builds a generation: each decision is requested, or reused from prev.
func (b *Builder) assemble(ctx context.Context, in inputs, prev *Generation) (*Generation, problem.List) {
	build, problems := in.build, slices.Clone(in.problems)
	a := &assembly{Builder: b, ctx: ctx, prev: prev, engine: in.engine,
		g: &Generation{
			ID: in.id, engine: in.engine, policy: in.policy, inputs: in, live: b.Live, conversations: b.Conversations, log: b.Log, passing: cache.New[passthroughKey, shownPassthrough](maxForwards),
			paths: map[string]*invoke.Path{}, servers: map[string]trust.Trust{},
			built: map[string]compiled{}, connects: map[connectKey]connectAnswer{}, root: b.Root, commands: map[string]string{},
			discovers: map[string]decision.Decision{}, admitted: map[string]map[string]string{},
		}}
	if a.engine != nil {
		a.engine = a.engine.WithBuildDeadline()
	}
	a.g.onDecision(b.Decided)
	var rest registry.Rest
	if b.Checker != nil {
		a.g.releaseCheckers = b.Checker.Hold(build)
		rest = b.Checker.Rest
	}
	a.warmJQ(build.Tools)
	progress.Begin(ctx, "looking up hosts", "")
	b.observer.Begin(ctx, namedHosts(build))
	progress.Begin(ctx, "asking what may be reached", "")
	problems = append(problems, a.trustServers(build.Servers, build.Branches)...)
	problems = append(problems, a.discover()...)
	var more problem.List
	var prevRegistry *registry.Registry
	if prev != nil {
		prevRegistry = prev.registry
	}
	a.checking = progress.Begin(ctx, "checking the tools", "tools")
	a.checking.Of(len(build.Tools))
	a.g.registry, more = registry.New(build, a.bind, rest, prevRegistry)
	problems = append(append(problems, more...), reservedRenames(build.Branches)...)
	if a.undecided.spent(decision.Connect) {
		// Hidden for want of an answer: reported as undecided, not as untrusted.
		problems = slices.DeleteFunc(problems, func(p problem.Problem) bool {
			return p.Code == problem.UntrustedServer || p.Code == problem.UntrustedBinding
		})
	}
	if !problems.HasErrors() && !a.undecided.problems(b.Tolerant).HasErrors() {
		progress.Begin(ctx, "asking what each branch shows", "decisions")
		problems = append(problems, a.views(build.Branches)...)
	}
	problems = append(problems, a.undecided.problems(b.Tolerant)...).Sorted()
	if err := ctx.Err(); err != nil && !problems.HasErrors() { // some decisions were cancelled
		problems.Errorf(problem.LoadFailed, problem.Position{File: "."}, "", "the build was ended before it was done: %v", err)
	}
	if problems.HasErrors() {
		a.g.Retire()
		return nil, problems
	}
	a.g.Warnings, a.g.undecided = problems, a.undecided.list()
	slices.SortFunc(a.g.lacking, func(x, y Lacking) int { return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Name, y.Name)) })
	slices.SortFunc(a.g.reaches, func(x, y Reach) int { return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Name, y.Name)) })
	a.g.summary = a.g.summarize()
	return a.g, problems
}

// panicked returns the problem of a build, or of one tool in it, that panicked; the serving generation stays
// in place. The panic's text may contain anything, so it is only logged.
func (b *Builder) panicked(at problem.Position, path string, p any) (l problem.List) {
	id := registry.NewCallID()
	b.Log.Error("internal error", "id", id, "in", "build", "declared", at.String(), "error", fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	l.Errorf(problem.LoadFailed, at, path, "the build failed by a fault of catalogd; the log has it as %s, please report it", id)
	return l
}

// assembly is one build in progress.
type assembly struct {
	*Builder
	ctx    context.Context
	prev   *Generation
	engine *decision.Engine // nil if the policy doesn't load: bindings are then only checked
	g      *Generation

	undecided undecided
	checking  *progress.Step // counts the tools that bind has done

	// quarantined maps the tools of servers that the policy doesn't allow to the reason; complete before bind
	// is called.
	quarantined map[remote]string

	// untrusted and missing (its command can't be run here) map servers to the reason why their tools are
	// hidden; complete before bind is called.
	untrusted, missing map[string]string

	mu sync.Mutex // guards g.built, g.connects, g.reaches, g.commands and g.lacking while bind runs in parallel
}
