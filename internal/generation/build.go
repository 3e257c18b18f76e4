package generation

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
	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/internal/cache"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/jq"
	"github.com/catalogd/catalogd/internal/lockfile"
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

// compiled is what depends on a tool's declaration alone: its checked binding and programs.
type compiled struct {
	binding   *binding.Compiled
	target    string // digest of the binding's target; empty without one
	pre, post registry.Transform
}

// connectKey is everything that a connect decision depends on.
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

// Build builds a generation of a snapshot. It reports all problems in one pass; if any is an error, the
// generation is nil. prev, which may be nil, only saves work. No process is spawned and nothing is dialled;
// the hosts of URLs are resolved.
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
	Progress(ctx, "compiling the catalog")
	build, problems := b.Compiler.Compile(ctx, snap)
	Progress(ctx, "compiling the policy")
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

// inputs are the compiled files that a generation is built from.
type inputs struct {
	id     string
	engine *decision.Engine // nil if the policy doesn't load
	policy string
	// declared is the build of the CUE alone, build adds the discovered tools; declared is not modified.
	declared, build *registry.Build
	locked          *lockfile.File
	degraded        []lockfile.Degraded
	problems        problem.List
}

// join adds the discovered tools to the declared ones. If the declarations are broken, a server may be
// missing for that reason alone, so no stale lock is reported.
func (in *inputs) join(fsys fs.FS, broken bool) problem.List {
	locked, problems := lockfile.Load(fsys)
	in.locked, in.build = locked, in.declared
	joined := lockfile.Join(in.declared, locked)
	in.degraded = joined.Degraded
	if !problems.HasErrors() { // else tools are missing because of the lock, not the catalog
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
	if !slices.ContainsFunc(problems, unlocked) { // else branches may select tools that are not known yet
		var leftOut []string
		for _, d := range joined.Degraded {
			leftOut = append(leftOut, d.Name)
		}
		problems = append(problems, loader.Selections(&all, leftOut)...)
	}
	return append(problems, in.leaveOut()...)
}

// complete completes the tools of Go functions.
func (in *inputs) complete(functions Functions, processors []registry.Processor) problem.List {
	tools, problems := functions.complete(in.build.Tools, processors)
	all := *in.build
	all.Tools = tools
	in.build = &all
	return problems
}

// assemble builds a generation: each decision is requested, or reused from prev.
func (b *Builder) assemble(ctx context.Context, in inputs, prev *Generation) (*Generation, problem.List) {
	build, problems := in.build, slices.Clone(in.problems)
	a := &assembly{Builder: b, ctx: ctx, prev: prev, engine: in.engine,
		g: &Generation{
			ID: in.id, engine: in.engine, policy: in.policy, inputs: in, live: b.Live, conversations: b.Conversations, log: b.Log, passing: cache.New[passthroughKey, shownPassthrough](maxForwards),
			paths: map[string]*invoke.Path{}, servers: map[string]trust.Trust{},
			built: map[string]compiled{}, connects: map[connectKey]connectAnswer{},
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
	Progress(ctx, "looking up hosts")
	b.observer.Begin(ctx, namedHosts(build))
	Progress(ctx, "asking what may be reached")
	problems = append(problems, a.trustServers(build.Servers, build.Branches)...)
	problems = append(problems, a.discover()...)
	var more problem.List
	var prevRegistry *registry.Registry
	if prev != nil {
		prevRegistry = prev.registry
	}
	Progress(ctx, "checking the tools")
	a.g.registry, more = registry.New(build, a.bind, rest, prevRegistry)
	problems = append(append(problems, more...), reservedRenames(build.Branches)...)
	if a.undecided.spent(decision.Connect) {
		// Hidden for want of an answer: reported as undecided, not as untrusted.
		problems = slices.DeleteFunc(problems, func(p problem.Problem) bool {
			return p.Code == problem.UntrustedServer || p.Code == problem.UntrustedBinding
		})
	}
	if !problems.HasErrors() && !a.undecided.problems(b.Tolerant).HasErrors() {
		Progress(ctx, "asking what each branch shows")
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

// loadPolicy loads the snapshot's policy, or reuses the previous engine if no file of the policy has changed.
func (b *Builder) loadPolicy(ctx context.Context, snap *loader.Snapshot, policy string, prev *Generation) (*decision.Engine, problem.List) {
	if prev != nil && policy != "" && prev.policy == policy {
		return prev.engine, nil
	}
	return decision.Load(ctx, snap.FS(), b.Policy)
}

// namedHosts returns the host of every well-formed URL that the build declares.
func namedHosts(build *registry.Build) (names []string) {
	add := func(declared string) {
		if u, err := egress.ParseURL(declared); err == nil {
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

// policyFiles returns a digest of every file below policy/, tests included; empty if they can't be read.
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

// assembly is one build in progress.
type assembly struct {
	*Builder
	ctx    context.Context
	prev   *Generation
	engine *decision.Engine // nil if the policy doesn't load: bindings are then only checked
	g      *Generation

	undecided undecided

	// quarantined maps the tools of servers that the policy doesn't allow to the reason; complete before bind
	// is called.
	quarantined map[remote]string

	// untrusted and missing (its command is not on this machine) map servers to the reason why their tools are
	// hidden; complete before bind is called.
	untrusted, missing map[string]string

	mu sync.Mutex // guards g.built, g.connects and g.reaches while bind runs in parallel
}

// trustServers requests the connect decision for every server and opens the set of the trusted ones. branches
// are those whose connections are separate if a server declares so.
func (a *assembly) trustServers(servers []registry.Server, branches []registry.Branch) (problems problem.List) {
	a.untrusted, a.missing = map[string]string{}, map[string]string{}
	var trusted []upstream.Upstream
	names := make([]string, len(branches))
	for i, b := range branches {
		names[i] = b.Name
	}
	for _, s := range servers {
		target, more := upstream.Target(s, a.Root)
		problems = append(problems, more...)
		if len(more) > 0 && !more.HasErrors() {
			a.missing[s.Name] = more[0].Message
			continue
		}
		if more.HasErrors() || a.engine == nil {
			a.untrusted[s.Name] = "its declaration is not valid"
			continue
		}
		asked := a.question(decision.Subject{Kind: "server", Name: s.Name, Pos: s.Pos}, target)
		answer := a.connect(asked, target.Digest())
		if answer.decision.Code == decision.PolicyTimeout {
			a.untrusted[s.Name] = notDecided
			continue
		}
		if why := unreachable(answer, func() error { return egress.Check(answer.trust, target, asked.Observed.InTree) }); why != "" {
			a.untrusted[s.Name] = why
			problems.Warnf(problem.UntrustedServer, s.Pos, "servers."+s.Name,
				"server %q is not trusted, so its tools are hidden: %s; %s", s.Name, why, proposeCommand(s.Name))
			continue
		}
		a.g.servers[s.Name] = answer.trust
		trusted = append(trusted, upstream.Upstream{
			Server: s, Trust: answer.trust, Branches: names, Redirect: redirect(a.g.engine, asked, answer.trust),
		})
	}
	a.g.upstream = a.Pool.Open(a.Root, trusted)
	return problems
}

// notDecided is the reason for hiding what the policy did not decide on in time.
const notDecided = "whether it may be reached is not decided yet"

// unreachable returns the reason why a target may not be reached: the decision denied, or its grant is
// insufficient. Empty means that it may.
func unreachable(answer connectAnswer, enough func() error) string {
	if !answer.decision.Allow {
		return refusal(answer.decision)
	}
	if err := enough(); err != nil {
		return err.Error()
	}
	return ""
}

// refusal returns the reasons of a denied decision as text, or else its code.
func refusal(d decision.Decision) string {
	if len(d.Reasons) == 0 {
		return string(d.Code)
	}
	return strings.Join(d.Reasons, "; ")
}

// question returns the input of the connect decision for a target.
func (a *assembly) question(subject decision.Subject, target trust.Target) decision.ConnectInput {
	return decision.ConnectInput{Subject: subject, Target: target, Observed: a.observer.Observe(target, a.Root)}
}

// connect requests the connect decision, or reuses the previous generation's answer to the same question
// under the same policy, and keeps the answer for `catalogd trust`. digest is the target's.
func (a *assembly) connect(in decision.ConnectInput, digest string) connectAnswer {
	observed, err := json.Marshal(in.Observed)
	if err != nil {
		panic(fmt.Sprintf("generation: what was observed is plain data: %v", err))
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
		question := Undecided{Point: decision.Connect, Kind: subject.Kind, Name: subject.Name, Pos: subject.Pos}
		d, asked := a.undecided.ask(a.ctx, question, func() decision.Decision {
			answer.trust, answer.decision = a.engine.Connect(a.ctx, in)
			return answer.decision
		})
		if !asked { // too many timeouts; the build is refused
			return connectAnswer{decision: d}
		}
		a.g.logDecision(decision.Connect, in, answer.decision, begin)
		place := ""
		if answer.decision.Allow {
			place = a.engine.TrustPosition(answer.trust.Name()).String()
		}
		level := slog.LevelInfo
		if a.decidedBefore(subject, in.Target, answer.decision) {
			level = slog.LevelDebug // a new policy has confirmed it
		}
		a.Log.Log(a.ctx, level, "connect decision", "generation", a.g.ID, "kind", subject.Kind, "name", subject.Name, "allow", answer.decision.Allow,
			"trust", answer.decision.Trust, "written", place, "code", answer.decision.Code, "reasons", answer.decision.Reasons, "declared", subject.Pos.String())
	}
	a.g.failures.note(a.ctx, a.Log, answer.decision, fmt.Sprintf("%s %q", subject.Kind, subject.Name))
	a.mu.Lock()
	defer a.mu.Unlock()
	if answered(answer.decision) {
		a.g.connects[key] = answer
	}
	way := Reach{Kind: subject.Kind, Name: subject.Name, Target: in.Target, Observed: in.Observed, Decision: answer.decision, Pos: subject.Pos, asked: in}
	if answer.decision.Allow {
		way.Trust, way.Pinned = answer.trust.Name(), answer.trust.SHA256() != ""
		way.Written = a.engine.TrustPosition(way.Trust)
		way.Variables = egress.Variables(answer.trust, in.Target)
	}
	a.g.reaches = append(a.g.reaches, way)
	return answer
}

// decidedBefore reports whether the previous generation has the same decision on the same target.
func (a *assembly) decidedBefore(subject decision.Subject, target trust.Target, d decision.Decision) bool {
	if a.prev == nil {
		return false
	}
	i, found := slices.BinarySearchFunc(a.prev.reaches, subject, func(r Reach, s decision.Subject) int {
		return cmp.Or(cmp.Compare(r.Kind, s.Kind), cmp.Compare(r.Name, s.Name))
	})
	if !found {
		return false
	}
	was := a.prev.reaches[i]
	return was.Decision.Allow == d.Allow && was.Decision.Trust == d.Trust && was.Decision.Code == d.Code &&
		slices.Equal(was.Decision.Reasons, d.Reasons) && was.Target.Digest() == target.Digest()
}

// bind is the registry's Bind: it checks a tool's binding and programs, and requests the connect decision for
// its target.
func (a *assembly) bind(t registry.Tool) (_ registry.Bound, problems problem.List) {
	defer func() {
		if p := recover(); p != nil { // runs on a goroutine of the registry
			problems = a.panicked(t.Pos, "tools."+t.Name, p)
		}
	}()
	if invoke.Builtin(t.Name) {
		return a.reserved(t)
	}
	c, problems := a.compileTool(t)
	if problems.HasErrors() || a.engine == nil {
		return registry.Bound{Hidden: "its declaration is not valid"}, problems
	}
	bound := registry.Bound{Pre: c.pre, Post: c.post}
	bound.Before, bound.After = registry.BindProcessors(a.Processors, t.Name)
	function := a.Functions.By[t.Binding.Func]
	if t.Binding.Func != "" && function == nil {
		bound.Hidden = absent
		return bound, problems
	}
	var granted trust.Trust
	asked := decision.ConnectInput{Subject: decision.Subject{Kind: "tool", Name: t.Name, Effect: string(t.Effect), Pos: t.Pos}}
	if target, outward := c.binding.Target(); outward {
		asked = a.question(asked.Subject, target)
		answer := a.connect(asked, c.target)
		if answer.decision.Code == decision.PolicyTimeout {
			bound.Hidden = notDecided
			return bound, problems
		}
		if why := unreachable(answer, func() error { return c.binding.Check(answer.trust, asked.Observed.InTree) }); why != "" {
			bound.Hidden = "what it reaches is not trusted: " + why
			problems.Warnf(problem.UntrustedBinding, t.At("binding"), "tools."+t.Name+".binding",
				"tool %q is hidden, because what it reaches is not trusted: %s; %s", t.Name, why, proposeCommand(t.Name))
			return bound, problems
		}
		granted = answer.trust
		bound.Trust, bound.Reach = granted.Name(), granted.Digest()
	}
	if t.Binding.MCP != nil {
		if why, hidden := a.missing[t.Binding.MCP.Server]; hidden {
			bound.Hidden = why
			return bound, problems
		}
		if why, hidden := a.untrusted[t.Binding.MCP.Server]; hidden {
			bound.Hidden = fmt.Sprintf("its server %q is not trusted: %s", t.Binding.MCP.Server, why)
			return bound, problems
		}
		if why, waits := a.quarantined[remote{t.Binding.MCP.Server, t.Binding.MCP.Tool}]; waits {
			bound.Hidden = "it is quarantined: " + why
			return bound, problems
		}
		of := a.g.servers[t.Binding.MCP.Server]
		bound.Trust, bound.Reach = of.Name(), of.Digest()
	}
	bound.Invoker = c.binding.Bind(granted, binding.Deps{
		Upstream: a.g.upstream.Call, UpstreamWrite: a.g.upstream.Execute, Redirect: redirect(a.g.engine, asked, granted), Digests: &a.observer.Digests, Homes: a.Homes, JQ: a.JQ, Func: function,
	})
	return bound, problems
}

// reserved refuses a tool with the name of a built-in one: a declared tool is an error, that of a server is
// hidden.
func (a *assembly) reserved(t registry.Tool) (registry.Bound, problem.List) {
	var l problem.List
	const why = "the name is that of a tool that catalogd has itself"
	if t.Annotations == nil && t.Binding.MCP == nil {
		l.Errorf(problem.ReservedName, t.Pos, "tools."+t.Name, "tool %q can't be declared: %s; choose another", t.Name, why)
	} else {
		l.Warnf(problem.ReservedName, t.Pos, "tools."+t.Name, "tool %q is hidden: %s; give it another (rename)", t.Name, why)
	}
	return registry.Bound{Hidden: why}, l
}

// reservedRenames refuses branches that show a tool under the name of a built-in one.
func reservedRenames(branches []registry.Branch) (problems problem.List) {
	for _, b := range branches {
		for _, tool := range slices.Sorted(maps.Keys(b.Narrow)) {
			if name := b.Narrow[tool].Name; invoke.Builtin(name) {
				field := "narrow." + tool + ".name"
				problems.Errorf(problem.ReservedName, b.At(field), "branches."+b.Name+"."+field,
					"tool %q can't be shown as %q: the name is that of a tool that catalogd has itself; choose another", tool, name)
			}
		}
	}
	return problems
}

// redirect returns a function that decides on a redirect like on any other target, except that the same trust
// entry must cover it: that entry determines the addresses that may be dialled and the headers that are sent.
func redirect(engine *decision.Engine, asked decision.ConnectInput, granted trust.Trust) func(context.Context, trust.Target) error {
	return func(ctx context.Context, to trust.Target) error {
		in := asked // the observed facts still apply, because the host is the same
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

// compileTool checks a tool's binding and programs, once per content of the declaration.
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
		if err := jq.Check(p.source); err != nil {
			problems.Errorf(problem.BadJQ, t.At(p.field), "tools."+t.Name+"."+p.field, "%v", err)
			continue
		}
		*p.into = a.transform(p.source)
	}
	if len(problems) == 0 {
		a.keep(t, c)
	}
	return c, problems
}

// transform makes a Transform of a program that compiles.
func (a *assembly) transform(source string) registry.Transform {
	runner := a.JQ
	if runner == nil {
		runner = new(jq.InProcess)
	}
	return func(ctx context.Context, in json.RawMessage, limit int) (json.RawMessage, error) {
		out, err := runner.Run(ctx, source, in, limit)
		switch {
		case errors.As(err, new(jq.TooLargeError)):
			return nil, &registry.Error{Code: registry.OutputTooLarge, Msg: err.Error()}
		case errors.As(err, new(jq.UnavailableError)):
			return nil, &registry.Error{Code: registry.Unavailable, Msg: "the jq program could not be run; try again", Err: err}
		case errors.As(err, new(jq.StoppedError)) || errors.Is(err, jq.ErrNoOutput):
			return nil, &registry.Error{Code: registry.BindingFailed, Msg: err.Error()}
		}
		return out, err
	}
}

// warmJQ prepares for calls of tools with jq programs, if there are any.
func (a *assembly) warmJQ(tools []registry.Tool) {
	if a.Warm && a.JQ != nil && slices.ContainsFunc(tools, func(t registry.Tool) bool {
		http := t.Binding.HTTP
		return t.Binding.JQ != nil || t.Pre != "" || t.Post != "" || http != nil && (http.Select != "" || http.Error != "" || http.Pages != nil)
	}) {
		a.JQ.Warm()
	}
}

func (a *assembly) keep(t registry.Tool, c compiled) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.g.built[t.Digest] = c
}

// views decides what each branch shows, and warns of a branch for which the policy denies every tool.
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
		visible, asked := a.g.lists.decide(a.ctx, a.engine, b, a.g.registry, old, &a.undecided, a.g.noting(a.ctx, b.Name))
		a.g.logList(b, decision.Local(), visible, asked, begin)
		news += asked
		a.Log.Debug("list decisions", "branch", b.Name, "asked", asked)
		view, _ := a.g.view(a.ctx, a.engine, b, decision.Local(), visible)
		a.g.paths[b.Name] = &invoke.Path{
			View:       view,
			Generation: a.g.ID,
			Decide:     a.g.AskCall,
			Judge:      a.g.askResult,
			Policy:     a.engine.Digest(),
			Release:    a.g.askRelease,
			Effects:    a.Effects,
			Rates:      &a.rates,
			Counted:    a.engine.Reads(decision.Call, "rate"),
			Decided:    a.g.decided,
			Events:     a.Events,
			Log:        a.Log,
		}
		if why := a.refused(b, visible); why != "" {
			who := ""
			if a.g.claims != "" {
				who = " for the operator" // the policy distinguishes the operator from bearers of tokens
			}
			problems.Warnf(problem.EmptyBranch, b.Pos, "branches."+b.Name, "branch %q sees no tool%s: %s", b.Name, who, why)
		}
	}
	if a.State != nil && news > 0 {
		a.State.KeepLists(a.g.lists.policy, a.g.lists.answers)
	}
	return problems
}

// refused returns the reason why the policy denies a branch all tools that were decided on, taken from the
// first; empty if it allows one, or if there was none.
func (a *assembly) refused(b registry.Branch, visible map[string]bool) string {
	if len(visible) == 0 {
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
	return refusal(listed(a.ctx, a.engine, decision.ListInput{
		Branch: invoke.PolicyBranch(b), Tool: invoke.PolicyTool(first), Principal: decision.Local(),
	}))
}
