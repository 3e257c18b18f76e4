package decision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/catalogd/catalogd/decision/internal/grant"
	"github.com/catalogd/catalogd/decision/internal/shape"
	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/decision/lint"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/cache"
	"github.com/catalogd/catalogd/problem"
)

// Engine is one compiled policy. It is immutable but for its caches, and safe for concurrent use.
type Engine struct {
	digest     string
	deadline   time.Duration
	build      time.Duration
	logger     *slog.Logger
	policy     *lint.Policy // as it was parsed
	store      storage.Store
	points     map[Point]*compiledPoint
	log        *compiledPoint // nil where the policy has no package log
	logAnswers *cache.Cache[string, Logging]
}

// Load reads and compiles the policy below policy/ in fsys, the catalog's root. It returns a nil Engine with
// every problem where any of them is an error: a policy is served whole or not at all. A broken _test.rego
// refuses too, though tests are no part of what is served.
func Load(ctx context.Context, fsys fs.FS, cfg Config) (e *Engine, problems problem.List) {
	defer func() {
		if recover() != nil {
			e = nil
			problems.Errorf(problem.RegoCompile, problem.Position{File: source.Root}, "", "%s", compilerPanicked)
		}
	}()
	s, problems := source.Read(ctx, fsys, capabilities())
	if problems.HasErrors() {
		return nil, problems.Sorted()
	}
	if problems = append(problems, check(ctx, s)...); problems.HasErrors() {
		return nil, problems.Sorted()
	}
	e, found := newEngine(cfg, policyOf(s), s.Digest, nil)
	return e, append(problems, found...).Sorted()
}

// newEngine compiles the points named, or all where none are; the engine is nil where that fails.
func newEngine(cfg Config, policy *lint.Policy, digest string, only []Point) (e *Engine, problems problem.List) {
	e = &Engine{
		digest: digest, deadline: cmp.Or(cfg.Deadline, DefaultDeadline), build: cmp.Or(cfg.Build, DefaultBuild),
		logger: cfg.Logger, policy: policy, store: storeOf(policy.Data), points: map[Point]*compiledPoint{}, logAnswers: cache.New[string, Logging](maxLogged),
	}
	if e.logger == nil {
		e.logger = slog.New(slog.DiscardHandler)
	}
	for _, spec := range points {
		if spec.optional && !policy.Has(spec.path()) || only != nil && !slices.Contains(only, spec.point) {
			continue
		}
		point, found := compilePoint(policy, spec)
		problems = append(problems, found...)
		e.points[spec.point] = point
	}
	if policy.Has(logSpec.path()) && only == nil {
		log, found := compile(source.Closure(policy.Modules, logSpec.path()), logSpec, nil)
		problems = append(problems, found...)
		e.log = log
	}
	if problems.HasErrors() {
		return nil, problems
	}
	return e, problems
}

const compilerPanicked = "the Rego compiler panicked on this policy: take back the last change to it"

// Digest names the content of the policy that is served: modules and data, without tests.
func (e *Engine) Digest() string { return e.digest }

// WithBuildDeadline returns an engine with the deadline Config.Build, for builds, checks and comparisons. It
// shares all else.
func (e *Engine) WithBuildDeadline() *Engine {
	p := *e
	p.deadline = e.build
	return &p
}

// Policy is the policy as it is written, for package lint.
func (e *Engine) Policy() *lint.Policy { return e.policy }

// TrustPosition is where data.trust.entries.<name> is written; the zero Position where no data file has it.
func (e *Engine) TrustPosition(name string) problem.Position {
	return e.policy.Data.Position("trust", "entries", name)
}

// Connect asks whether the target may be reached. The Trust covers exactly that target if the decision
// allows, and nothing if it denies. No other code makes a Trust. Answers are cached by what the policy reads
// of the input; the Trust is for the target of this input all the same.
func (e *Engine) Connect(ctx context.Context, in ConnectInput) (trust.Trust, Decision) {
	p := e.points[Connect]
	if p == nil {
		d, _ := e.decide(ctx, Connect, in)
		return trust.Trust{}, d
	}
	at := e.cached(ctx, p, reflect.ValueOf(in))
	d := at.decision
	d.Reasons = slices.Clone(d.Reasons)
	if !d.Allow {
		return trust.Trust{}, d
	}
	return trust.New(grant.Issue(), in.Target, at.outputs.terms), d
}

// List asks whether the branch and principal may see the tool.
func (e *Engine) List(ctx context.Context, in ListInput) Decision {
	d, _ := e.decide(ctx, List, in)
	return d
}

// Discover asks whether a tool of a server may be used, as it is locked and offered.
func (e *Engine) Discover(ctx context.Context, in DiscoverInput) Decision {
	d, _ := e.decide(ctx, Discover, in)
	return d
}

// Call asks whether the call may run. Arguments are those that were checked; their numbers stay exact. An
// answer for which the policy reads nothing that differs from call to call is evaluated once for each branch,
// tool and principal.
func (e *Engine) Call(ctx context.Context, in CallInput) Decision {
	return e.decideCached(ctx, Call, reflect.ValueOf(in), shape.Plain(in.Arguments))
}

// Result asks whether the result may leave, and what has to be redacted. It is cached as Call is; result is
// called only if the policy reads what differs from call to call.
func (e *Engine) Result(ctx context.Context, in ResultInput, result func() ToolResult) Decision {
	if at := e.cached(ctx, e.points[Result], reflect.ValueOf(in)); at.invariant || at.decision.Code == PolicyTimeout {
		at.decision.Reasons = slices.Clone(at.decision.Reasons)
		return at.decision
	}
	in.Result = result()
	return e.decideCached(ctx, Result, reflect.ValueOf(in), shape.Plain(in.Arguments) && shape.Plain(in.Result.Structured))
}

// Release asks whether an intent may be executed now. It is cached as Call is. A policy without the package
// denies every intent (Undefined).
func (e *Engine) Release(ctx context.Context, in ReleaseInput) Decision {
	if e.points[Release] == nil {
		return missing(Release)
	}
	return e.decideCached(ctx, Release, reflect.ValueOf(in), shape.Plain(in.Arguments))
}

// Reads reports whether the point's modules read the part of the input at path or one that contains it, so
// that costly parts are computed only for policies that read them.
func (e *Engine) Reads(point Point, path ...string) bool {
	p := e.points[point]
	return p != nil && p.reads.mention(path)
}

// ReadsBearer reports whether the point's modules read what distinguishes bearers of tokens: name, groups or
// admin.
func (e *Engine) ReadsBearer(point Point) bool {
	return e.Reads(point, "principal", "name") || e.Reads(point, "principal", "groups") || e.Reads(point, "principal", "admin")
}

// decideCached asks a point with calls, from the cache where possible. plain says that an evaluation would
// certainly accept the raw JSON in the input.
func (e *Engine) decideCached(ctx context.Context, point Point, in reflect.Value, plain bool) Decision {
	p := e.points[point]
	if plain {
		at := e.cached(ctx, p, in)
		if at.invariant || at.decision.Code == PolicyTimeout { // a second evaluation would take as long
			at.decision.Reasons = slices.Clone(at.decision.Reasons)
			return at.decision
		}
	}
	d, _ := e.decide(ctx, point, in.Interface())
	return d
}

// ConstantCall returns the call decision that is the same for all calls of this branch, tool and principal.
// ok is false if the decision depends on more, or may. d is PolicyTimeout or PolicyError if the evaluation
// failed before it read anything that differs between calls. Arguments, time and rate of in are ignored.
func (e *Engine) ConstantCall(ctx context.Context, in CallInput) (d Decision, ok bool) {
	at := e.cached(ctx, e.points[Call], reflect.ValueOf(in))
	at.decision.Reasons = slices.Clone(at.decision.Reasons)
	return at.decision, at.invariant
}

// ConstantResult is like ConstantCall for the result decision.
func (e *Engine) ConstantResult(ctx context.Context, in ResultInput) (d Decision, ok bool) {
	at := e.cached(ctx, e.points[Result], reflect.ValueOf(in))
	at.decision.Reasons = slices.Clone(at.decision.Reasons)
	return at.decision, at.invariant
}

// ConstantRelease is like ConstantCall for the release decision. Arguments, intent and time of in are
// ignored.
func (e *Engine) ConstantRelease(ctx context.Context, in ReleaseInput) (d Decision, ok bool) {
	p := e.points[Release]
	if p == nil {
		return missing(Release), true
	}
	at := e.cached(ctx, p, reflect.ValueOf(in))
	at.decision.Reasons = slices.Clone(at.decision.Reasons)
	return at.decision, at.invariant
}

// cached is the answer of the cache, evaluated if it has none.
func (e *Engine) cached(ctx context.Context, p *compiledPoint, in reflect.Value) cachedAnswer {
	key := p.cache.key(in)
	at, ok := p.cache.get(key)
	if !ok {
		var keep bool
		if at, keep = e.decideInvariant(ctx, p, in); keep {
			p.cache.put(key, at)
		}
	}
	return at
}

// Adopt asks whether the candidate may replace the generation that serves. Call it on the engine that serves;
// the first generation after a start asks its own.
func (e *Engine) Adopt(ctx context.Context, in AdoptInput) Decision {
	d, _ := e.decide(ctx, Adopt, in)
	return d
}

// decide evaluates a point.
func (e *Engine) decide(ctx context.Context, point Point, in any) (Decision, outputs) {
	d, out, _ := e.decideTraced(ctx, point, in, nil)
	return d, out
}

// decideTraced is decide with a tracer, which doubles the cost. ended is false if the evaluation was
// abandoned, and may still use the tracer.
func (e *Engine) decideTraced(ctx context.Context, point Point, in any, tracer topdown.QueryTracer) (d Decision, out outputs, ended bool) {
	defer func() {
		if recover() != nil {
			d, out, ended = e.panicked(point, debug.Stack()), outputs{}, true
		}
	}()
	p := e.points[point]
	if p == nil {
		return missing(point), outputs{}, true
	}
	input, err := p.spec.input.Value(reflect.ValueOf(in))
	if err != nil {
		return deny(point, PolicyError, fmt.Sprintf("the input can't be read: %v", err)), outputs{}, true
	}
	document, err := e.evaluate(ctx, p, input, tracer)
	if err != nil {
		return e.failure(ctx, point, err), outputs{}, !errors.Is(err, errAbandoned)
	}
	if document == nil {
		d = deny(point, Undefined, fmt.Sprintf("data.catalogd.%s has no value", point))
	} else {
		d, out = answer(p.spec, inquiryOf(in), document)
	}
	switch d.Code {
	case Undefined, BadDecisionType, UnknownOutput, UnsupportedObligation:
		d.At = p.at
		if at, ok := p.outputs[out.faulty]; ok {
			d.At = at
		}
	}
	return d, out, true
}

// missing is the answer at a point without a package.
func missing(point Point) Decision {
	return deny(point, Undefined, fmt.Sprintf("the policy has no package catalogd.%s (`catalogd init` writes one)", point))
}

// panicked is the answer after a panic. The panic's text may contain anything, and is not shown.
func (e *Engine) panicked(point Point, stack []byte) Decision {
	e.logger.Error("a policy evaluation panicked", "point", point, "stack", string(stack))
	return deny(point, PolicyError, "the evaluation failed inside the engine")
}

// evaluate returns the value of the point's package, nil if it is undefined.
func (e *Engine) evaluate(ctx context.Context, p *compiledPoint, input *ast.Term, tracer topdown.QueryTracer) (ast.Object, error) {
	var document ast.Object // owned by the evaluation until it has ended
	err := e.runQuery(ctx, p, input, func(query *topdown.Query) error {
		if tracer != nil {
			query = query.WithQueryTracer(tracer)
		}
		if _, ok := tracer.(*perCallTracer); ok {
			query = query.WithIndexing(false) // rule indexes read the input without an event
		}
		return query.Iter(ctx, func(r topdown.QueryResult) error {
			if term := r[result]; term != nil {
				document, _ = term.Value.(ast.Object)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return document, nil
}

// runQuery evaluates the query of a point once, within the deadline of one decision. If it returns
// errAbandoned, evaluate still runs.
func (e *Engine) runQuery(ctx context.Context, p *compiledPoint, input *ast.Term, evaluate func(*topdown.Query) error) error {
	return p.run(ctx, e.deadline, func(v *evaluation) error {
		txn, err := e.store.NewTransaction(ctx)
		if err != nil {
			return fmt.Errorf("reading the policy's data: %w", err)
		}
		defer e.store.Abort(ctx, txn)
		m := memos.Get().(*memo)
		err = evaluate(topdown.NewQuery(p.query).
			WithCompiler(p.compiler).
			WithStore(e.store).
			WithTransaction(txn).
			WithInput(input).
			WithCancel(v).
			WithMetrics(metrics.NoOp()).
			WithVirtualCache(m).
			WithStrictBuiltinErrors(true))
		m.release()
		return err
	})
}

// failure is the decision after an evaluation that failed. It leaves out the text of built-in errors: they
// quote their operands, which may be arguments of a call.
func (e *Engine) failure(ctx context.Context, point Point, err error) Decision {
	if errors.Is(err, errAbandoned) || errors.Is(err, errDeadline) || topdown.IsCancel(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		if errors.Is(ctx.Err(), context.Canceled) {
			return deny(point, PolicyError, "the question was withdrawn before the policy answered")
		}
		return deny(point, PolicyTimeout, fmt.Sprintf("the policy did not answer within %v", e.deadline))
	}
	if errors.Is(err, errTooManyOverdue) {
		return deny(point, PolicyTimeout, fmt.Sprintf("the policy is not asked while %d answers of %s are overdue and still worked at", maxOverdue, point))
	}
	var panics *evaluatorPanic
	if errors.As(err, &panics) {
		return e.panicked(point, panics.stack)
	}
	var rego *topdown.Error
	if !errors.As(err, &rego) {
		d := deny(point, PolicyError, "the policy could not be evaluated")
		d.At = e.points[point].at
		return d
	}
	message := rego.Message
	if rego.Code == topdown.BuiltinErr || rego.Code == topdown.TypeErr {
		message, _, _ = strings.Cut(message, ":")
		message += " failed"
	}
	d := deny(point, PolicyError, fmt.Sprintf("%s: %s: %s", source.Position(rego.Location), rego.Code, message))
	if d.At = source.Position(rego.Location); d.At.File == "" {
		d.At = e.points[point].at
	}
	return d
}
