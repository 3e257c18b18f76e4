package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/internal/jq"
	"github.com/catalogd/catalogd/internal/lock"
	"github.com/catalogd/catalogd/internal/reach"
	"github.com/catalogd/catalogd/internal/state"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Compiler compiles a snapshot's CUE: in this process (loader.Compiler) or in a child that can be killed.
type Compiler interface {
	Compile(context.Context, *loader.Snapshot) (*registry.Build, problem.List)
}

// Checker checks with CUE what the schemas of contracts can't say: in children that can be killed, or in this process.
type Checker interface {
	// Hold keeps what the build's contracts need for that until release is called.
	Hold(*registry.Build) (release func())
	Rest(r contract.Remainder, open bool) contract.Rest
}

// Builder makes generations. Work is per change: packages, contracts, bindings and decisions that are unchanged since
// the previous generation are taken over from it. One build runs at a time.
type Builder struct {
	// Root is the catalog's directory, against which relative commands and secret files are resolved; empty without one.
	Root     string
	Compiler Compiler
	// Checker may be nil: calls of tools whose schema does not say all are then refused.
	Checker Checker
	Pool    *upstream.Pool
	Policy  decision.Config
	// Live holds what servers offer now; nil knows nothing of it.
	Live *Live
	// State keeps list decisions from one start to the next; nil keeps none.
	State *state.Cache
	Log   *slog.Logger
	// Decided is told each decision of what is served and built; nil where nobody wants to know.
	Decided func(decision.Event)

	observer reach.Observer
	rates    invoke.Rates // of all generations
}

// compiled is what a tool's declaration alone decides: its binding checked and its programs compiled.
type compiled struct {
	binding   *binding.Compiled
	target    string // the digest of what the binding reaches; empty where it reaches nothing
	pre, post registry.Transform
}

// connectKey is all that a connect decision depends on.
type connectKey struct {
	policy   string
	subject  decision.Subject
	target   string // its digest
	observed string // as JSON
}

type connectAnswer struct {
	trust    trust.Trust
	decision decision.Decision
}

// Build makes a generation of a snapshot, and says everything that is wrong with it in one pass; the generation is nil
// when any of that is an error. prev, which may be nil, only saves work. Nothing is spawned or dialled; the hosts of URLs are
// looked up.
func (b *Builder) Build(ctx context.Context, snap *loader.Snapshot, prev *Generation) (g *Generation, problems problem.List) {
	defer func() {
		if p := recover(); p != nil {
			g, problems = nil, b.panicked(problem.Position{File: "."}, "", p)
		}
	}()
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
	build, problems := b.Compiler.Compile(ctx, snap)
	<-done
	broken := problems.HasErrors()
	problems = append(problems, ofPolicy...)
	if build == nil {
		return nil, problems.Sorted()
	}
	made := ingredients{id: snap.Digest(), engine: engine, policy: policy, declared: build}
	problems = append(problems, made.join(snap.FS(), broken)...)
	made.problems = problems
	return b.assemble(ctx, made, prev)
}

// Rebuild makes a generation of the same files as g, which must be serving: what is decided of what servers offer is
// decided anew, and all else is taken over.
func (b *Builder) Rebuild(ctx context.Context, g *Generation) (next *Generation, problems problem.List) {
	defer func() {
		if p := recover(); p != nil {
			next, problems = nil, b.panicked(problem.Position{File: "."}, "", p)
		}
	}()
	return b.assemble(ctx, g.made, g)
}

// ingredients are what a generation is made of: the files, compiled.
type ingredients struct {
	id     string
	engine *decision.Engine // nil when the policy doesn't load
	policy string
	// declared is the build of the CUE alone, build that with the discovered tools; declared is not changed.
	declared, build *registry.Build
	locked          *lock.File
	degraded        []lock.Degraded
	problems        problem.List
}

// join puts the discovered tools beside the declared ones. Where the declarations are broken, a server may be missing for
// that alone, so nothing of the lock is called stale.
func (in *ingredients) join(fsys fs.FS, broken bool) problem.List {
	locked, problems := lock.Load(fsys)
	in.locked, in.build = locked, in.declared
	joined := lock.Join(in.declared, locked)
	in.degraded = joined.Degraded
	if !problems.HasErrors() { // else what is missing in the lock is no fault of the catalog
		problems = append(problems, joined.Problems...)
	}
	if broken {
		problems = slices.DeleteFunc(problems, func(p problem.Problem) bool { return p.Code == problem.StaleLock })
	}
	if !slices.ContainsFunc(in.declared.Servers, func(s registry.Server) bool { return s.Discover != nil }) {
		return problems
	}
	all := *in.declared
	all.Tools = slices.Concat(in.declared.Tools, joined.Tools)
	slices.SortFunc(all.Tools, func(x, y registry.Tool) int { return cmp.Compare(x.Name, y.Name) })
	in.build = &all
	unlocked := func(p problem.Problem) bool { return p.Code == problem.NotLocked || p.Code == problem.BadLock }
	if !slices.ContainsFunc(problems, unlocked) { // else branches may name what is not known yet
		var leftOut []string
		for _, d := range joined.Degraded {
			leftOut = append(leftOut, d.Name)
		}
		problems = append(problems, loader.Selections(&all, leftOut)...)
	}
	return problems
}

// assemble makes a generation: every question about it is asked, or its answer taken over from prev.
func (b *Builder) assemble(ctx context.Context, in ingredients, prev *Generation) (*Generation, problem.List) {
	build, problems := in.build, slices.Clone(in.problems)
	a := &assembly{Builder: b, ctx: ctx, prev: prev, engine: in.engine, environment: reach.Environment(),
		connecting: patience{point: decision.Connect}, listing: patience{point: decision.List}, g: &Generation{
			ID: in.id, engine: in.engine, policy: in.policy, made: in, live: b.Live, log: b.Log,
			paths: map[string]*invoke.Path{}, servers: map[string]trust.Trust{},
			built: map[string]compiled{}, connects: map[connectKey]connectAnswer{},
			discovers: map[string]decision.Decision{}, admitted: map[string]map[string]string{},
		}}
	a.g.tell(b.Decided)
	var rest registry.Rest
	if b.Checker != nil {
		a.g.unhold = b.Checker.Hold(build)
		rest = b.Checker.Rest
	}
	b.observer.Begin(ctx, namedHosts(build))
	problems = append(problems, a.trustServers(build.Servers, build.Branches)...)
	problems = append(problems, a.discover()...)
	var more problem.List
	var prevRegistry *registry.Registry
	if prev != nil {
		prevRegistry = prev.registry
	}
	a.g.registry, more = registry.New(build, a.bind, rest, prevRegistry)
	problems = append(problems, more...)
	if slow := a.connecting.problems(); len(slow) > 0 {
		// What is hidden for want of an answer is not said a tool.
		problems = append(slices.DeleteFunc(problems, func(p problem.Problem) bool {
			return p.Code == problem.UntrustedServer || p.Code == problem.UntrustedBinding
		}), slow...)
	}
	problems = problems.Sorted()
	if !problems.HasErrors() {
		problems = append(problems, a.views(build.Branches)...)
		a.g.Warnings = problems.Sorted()
		problems = append(problems, a.listing.problems()...).Sorted()
	}
	if problems.HasErrors() {
		a.g.Retire()
		return nil, problems
	}
	slices.SortFunc(a.g.reaches, func(x, y Reach) int { return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Name, y.Name)) })
	a.g.summary = a.g.summarize()
	return a.g, problems
}

// panicked is the problem of a build, or of one tool in it, that fails by a fault of catalogd: what serves goes on. The
// panic's text may hold anything, so it goes to the log only.
func (b *Builder) panicked(at problem.Position, path string, p any) (l problem.List) {
	id := registry.NewCallID()
	b.Log.Error("internal error", "id", id, "in", "build", "declared", at.String(), "error", fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	l.Errorf(problem.LoadFailed, at, path, "the build failed by a fault of catalogd; the log has it as %s, please report it", id)
	return l
}

// loadPolicy loads the snapshot's policy, or takes the previous engine when no file of the policy has changed.
func (b *Builder) loadPolicy(ctx context.Context, snap *loader.Snapshot, policy string, prev *Generation) (*decision.Engine, problem.List) {
	if prev != nil && policy != "" && prev.policy == policy {
		return prev.engine, nil
	}
	return decision.Load(ctx, snap.FS(), b.Policy)
}

// namedHosts are the hosts of every URL that the build declares, well-formed ones.
func namedHosts(build *registry.Build) (names []string) {
	add := func(declared string) {
		if u, err := reach.ParseURL(declared); err == nil {
			names = append(names, u.Host)
		}
	}
	for _, s := range build.Servers {
		if s.HTTP != nil {
			add(s.HTTP.URL)
		}
	}
	for _, t := range build.Tools {
		if t.Binding.HTTP != nil {
			add(t.Binding.HTTP.URL)
		}
	}
	return names
}

// policyFiles names the content of every file below policy/, tests included; empty where they can't be read.
func policyFiles(fsys fs.FS) string {
	sum := sha256.New()
	err := fs.WalkDir(fsys, "policy", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		fmt.Fprintf(sum, "%q %d\n", name, len(data))
		sum.Write(data)
		return err
	})
	if err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// assembly is one build under way.
type assembly struct {
	*Builder
	ctx    context.Context
	prev   *Generation
	engine *decision.Engine // nil when the policy doesn't load: bindings are then checked and nothing is asked
	g      *Generation

	connecting, listing patience // with the policy

	// quarantined are the tools of servers that the policy doesn't let be used, with the reason; complete before bind is
	// called.
	quarantined map[remote]string

	environment []string // the names of catalogd's own variables

	untrusted map[string]string // server -> why its tools are hidden; complete before bind is called

	mu sync.Mutex // guards g.built, g.connects and g.reaches while bind runs in parallel
}

// trustServers asks the connect decision about every server and opens the set of those that may be reached. branches are
// those whose calls are to be kept apart where a server says so.
func (a *assembly) trustServers(servers []registry.Server, branches []registry.Branch) (problems problem.List) {
	a.untrusted = map[string]string{}
	var trusted []upstream.Upstream
	names := make([]string, len(branches))
	for i, b := range branches {
		names[i] = b.Name
	}
	for _, s := range servers {
		target, more := upstream.Target(s, a.Root)
		problems = append(problems, more...)
		if more.HasErrors() || a.engine == nil {
			a.untrusted[s.Name] = "its declaration is not valid"
			continue
		}
		asked := a.question(decision.Subject{Kind: "server", Name: s.Name, Pos: s.Pos}, target)
		answer := a.connect(asked, target.Digest())
		if why := unreachable(answer, func() error { return reach.Check(answer.trust, target) }); why != "" {
			a.untrusted[s.Name] = why
			problems.Warnf(problem.UntrustedServer, s.Pos, "servers."+s.Name,
				"server %q is not trusted, so its tools are hidden: %s; `catalogd trust` shows what is asked", s.Name, why)
			continue
		}
		a.g.servers[s.Name] = answer.trust
		trusted = append(trusted, upstream.Upstream{
			Server: s, Trust: answer.trust, Branches: names, Redirect: redirect(a.engine, asked, answer.trust),
		})
	}
	a.g.upstream = a.Pool.Open(a.Root, trusted)
	return problems
}

// unreachable says why a target may not be reached: the decision denied, or what it granted is not enough. Empty means
// that it may.
func unreachable(answer connectAnswer, enough func() error) string {
	if !answer.decision.Allow {
		return refusal(answer.decision)
	}
	if err := enough(); err != nil {
		return err.Error()
	}
	return ""
}

// refusal words a denied decision.
func refusal(d decision.Decision) string {
	if len(d.Reasons) == 0 {
		return string(d.Code)
	}
	return strings.Join(d.Reasons, "; ")
}

// question is what the connect decision is asked about a target.
func (a *assembly) question(subject decision.Subject, target trust.Target) decision.ConnectInput {
	return decision.ConnectInput{Subject: subject, Target: target, Observed: a.observer.Observe(target, a.Root), Environment: a.environment}
}

// connect asks the connect decision, or takes the previous generation's answer to the same question under the same
// policy, and keeps the answer for `catalogd trust`. digest is the target's. (The environment is the same as long as the
// process lives.)
func (a *assembly) connect(in decision.ConnectInput, digest string) connectAnswer {
	observed, err := json.Marshal(in.Observed)
	if err != nil {
		panic(fmt.Sprintf("serve: what was observed is plain data: %v", err))
	}
	subject := in.Subject
	key := connectKey{a.engine.Digest(), subject, digest, string(observed)}
	var answer connectAnswer
	known := false
	if a.prev != nil {
		answer, known = a.prev.connects[key]
	}
	if !known {
		begin := time.Now()
		_, asked := a.connecting.ask(a.ctx, fmt.Sprintf("%s %q", subject.Kind, subject.Name), func() decision.Decision {
			answer.trust, answer.decision = a.engine.Connect(a.ctx, in)
			return answer.decision
		})
		if !asked { // the build is refused
			return connectAnswer{decision: decision.Decision{Point: decision.Connect, Code: decision.PolicyTimeout}}
		}
		a.g.note(decision.Connect, in, answer.decision, begin)
		place := ""
		if answer.decision.Allow {
			place = a.engine.TrustPosition(answer.trust.Name()).String()
		}
		a.Log.Info("connect decision", "generation", a.g.ID, "kind", subject.Kind, "name", subject.Name, "allow", answer.decision.Allow,
			"trust", answer.decision.Trust, "written", place, "code", answer.decision.Code, "reasons", answer.decision.Reasons, "declared", subject.Pos.String())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if answered(answer.decision) {
		a.g.connects[key] = answer
	}
	reach := Reach{Kind: subject.Kind, Name: subject.Name, Target: in.Target, Observed: in.Observed, Decision: answer.decision, Pos: subject.Pos, asked: in}
	if answer.decision.Allow {
		reach.Trust, reach.Pinned = answer.trust.Name(), answer.trust.SHA256() != ""
		reach.Written = a.engine.TrustPosition(reach.Trust)
	}
	a.g.reaches = append(a.g.reaches, reach)
	return answer
}

// bind is the registry's Bind: it checks a tool's binding and programs, and asks whether it may reach what it reaches.
func (a *assembly) bind(t registry.Tool) (_ registry.Bound, problems problem.List) {
	defer func() {
		if p := recover(); p != nil { // on a goroutine of the registry's
			problems = a.panicked(t.Pos, "tools."+t.Name, p)
		}
	}()
	c, problems := a.compileTool(t)
	if problems.HasErrors() || a.engine == nil {
		return registry.Bound{Hidden: "its declaration is not valid"}, problems
	}
	bound := registry.Bound{Pre: c.pre, Post: c.post}
	var granted trust.Trust
	asked := decision.ConnectInput{Subject: decision.Subject{Kind: "tool", Name: t.Name, Effect: string(t.Effect), Pos: t.Pos}}
	if target, outward := c.binding.Target(); outward {
		asked = a.question(asked.Subject, target)
		answer := a.connect(asked, c.target)
		if why := unreachable(answer, func() error { return c.binding.Check(answer.trust) }); why != "" {
			bound.Hidden = "what it reaches is not trusted: " + why
			problems.Warnf(problem.UntrustedBinding, t.At("binding"), "tools."+t.Name+".binding",
				"tool %q is hidden, because what it reaches is not trusted: %s; `catalogd trust` shows what is asked", t.Name, why)
			return bound, problems
		}
		granted = answer.trust
		bound.Trust = granted.Name()
	}
	if t.Binding.MCP != nil {
		if why, hidden := a.untrusted[t.Binding.MCP.Server]; hidden {
			bound.Hidden = fmt.Sprintf("its server %q is not trusted: %s", t.Binding.MCP.Server, why)
			return bound, problems
		}
		if why, waits := a.quarantined[remote{t.Binding.MCP.Server, t.Binding.MCP.Tool}]; waits {
			bound.Hidden = "it is quarantined: " + why
			return bound, problems
		}
		bound.Trust = a.g.servers[t.Binding.MCP.Server].Name()
	}
	bound.Invoker = c.binding.Bind(granted, binding.Deps{
		Upstream: a.g.upstream.Call, Redirect: redirect(a.engine, asked, granted), Digests: &a.observer.Digests,
	})
	return bound, problems
}

// redirect decides on a redirect as on any other target, except that it must be the same trust entry that covers it: the
// addresses that may be dialled and the headers that are sent are that entry's.
func redirect(engine *decision.Engine, asked decision.ConnectInput, granted trust.Trust) func(context.Context, trust.Target) error {
	return func(ctx context.Context, to trust.Target) error {
		in := asked // what was observed of the host stands, for it is the same
		in.Target = to
		again, d := engine.Connect(ctx, in)
		switch {
		case !d.Allow:
			return errors.New(refusal(d))
		case again.Name() != granted.Name():
			return fmt.Errorf("trust entry %q covers it, and what is redirected is reached through %q", again.Name(), granted.Name())
		}
		return nil
	}
}

// compileTool checks a tool's binding and compiles its programs, once per content of the declaration.
func (a *assembly) compileTool(t registry.Tool) (compiled, problem.List) {
	if a.prev != nil {
		if c, ok := a.prev.built[t.Digest]; ok {
			a.keep(t, c)
			return c, nil
		}
	}
	var c compiled
	b, problems := binding.Compile(t, a.Root)
	c.binding = b
	if b != nil {
		if target, outward := b.Target(); outward {
			c.target = target.Digest()
		}
	}
	for _, p := range []struct {
		field, source string
		into          *registry.Transform
	}{{"pre", t.Pre, &c.pre}, {"post", t.Post, &c.post}} {
		if p.source == "" {
			continue
		}
		program, err := jq.Compile(p.source)
		if err != nil {
			problems.Errorf(problem.BadJQ, t.At(p.field), "tools."+t.Name+"."+p.field, "%v", err)
			continue
		}
		*p.into = program.Run
	}
	if len(problems) == 0 {
		a.keep(t, c)
	}
	return c, problems
}

func (a *assembly) keep(t registry.Tool, c compiled) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.g.built[t.Digest] = c
}

// views decides what each branch sees, and warns of a branch that the policy refuses all that it could show.
func (a *assembly) views(branches []registry.Branch) (problems problem.List) {
	a.g.lists = newListCache(a.engine.Digest())
	a.g.claims = a.engine.ListClaims(decision.Local())
	if a.prev != nil && a.prev.lists.policy == a.g.lists.policy {
		a.g.views.inherit(&a.prev.views, a.prev.lists.answers)
	}
	var old listCache
	if a.prev != nil {
		old = a.prev.lists
	} else if a.State != nil {
		old = listCache{a.g.lists.policy, a.State.Lists(a.g.lists.policy)}
	}
	news := 0
	for _, b := range branches {
		begin := time.Now()
		visible, asked := a.g.lists.decide(a.ctx, a.engine, b, a.g.registry, old, &a.listing)
		a.g.noteList(b, decision.Local(), visible, asked, begin)
		news += asked
		a.Log.Debug("list decisions", "branch", b.Name, "asked", asked)
		a.g.paths[b.Name] = &invoke.Path{
			View:       registry.NewView(a.g.registry, b, func(e *registry.Entry) bool { return visible[e.Name()] }),
			Generation: a.g.ID,
			Decide:     a.engine.Call,
			Release:    a.engine.Result,
			Rates:      &a.rates,
			Counted:    a.engine.Reads(decision.Call, "rate"),
			Decided:    a.g.decided,
			Log:        a.Log,
		}
		if why := a.refused(b, visible); why != "" {
			who := ""
			if a.g.claims != "" {
				who = " for the operator" // whom the policy tells apart from bearers of tokens
			}
			problems.Warnf(problem.EmptyBranch, b.Pos, "branches."+b.Name, "branch %q sees no tool%s: %s", b.Name, who, why)
		}
	}
	if a.State != nil && news > 0 {
		a.State.KeepLists(a.g.lists.policy, a.g.lists.answers)
	}
	return problems
}

// refused is why the policy lets a branch see none of the tools that were decided on, by the example of the first; empty
// where it sees one, or there was none.
func (a *assembly) refused(b registry.Branch, visible map[string]bool) string {
	if len(visible) == 0 || a.listing.gone() {
		return ""
	}
	for _, allowed := range visible {
		if allowed {
			return ""
		}
	}
	first, ok := a.g.registry.Lookup(slices.Min(slices.Collect(maps.Keys(visible))))
	if !ok {
		return ""
	}
	return refusal(a.engine.List(a.ctx, decision.ListInput{
		Branch: invoke.PolicyBranch(b), Tool: invoke.PolicyTool(first), Principal: decision.Local(),
	}))
}
