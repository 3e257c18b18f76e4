package decision

import (
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
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/problem"
)

// Engine is one compiled policy. It is immutable and safe for concurrent use.
type Engine struct {
	digest   string
	deadline time.Duration
	logger   *slog.Logger
	modules  map[string]*ast.Module // as they were parsed
	data     *document
	store    storage.Store
	points   map[Point]*asked
	log      *asked // nil where the policy masks nothing
}

// Load reads and compiles the policy below policy/ in fsys, the catalog's root. It returns a nil Engine with every
// problem where any of them is an error: a policy is served whole or not at all. A broken _test.rego refuses too,
// though tests are no part of what is served.
func Load(ctx context.Context, fsys fs.FS, cfg Config) (e *Engine, problems problem.List) {
	defer func() {
		if recover() != nil {
			e = nil
			problems.Errorf(problem.RegoCompile, problem.Position{File: root}, "", "%s", compilerPanicked)
		}
	}()
	s, problems := readSource(ctx, fsys)
	if problems.HasErrors() {
		return nil, problems.Sorted()
	}
	if problems = append(problems, check(ctx, s)...); problems.HasErrors() {
		return nil, problems.Sorted()
	}
	e = &Engine{
		digest: s.digest, deadline: cfg.Deadline, logger: cfg.Logger,
		modules: s.modules, data: s.data, store: s.data.store(), points: map[Point]*asked{},
	}
	if e.deadline <= 0 {
		e.deadline = DefaultDeadline
	}
	if e.logger == nil {
		e.logger = slog.New(slog.DiscardHandler)
	}
	for _, spec := range points {
		if !spec.enforced() || spec.optional && !s.has(spec.point) {
			continue
		}
		point, found := compilePoint(s, spec)
		problems = append(problems, found...)
		e.points[spec.point] = point
	}
	if s.has(logSpec.point) {
		log, found := compile(closure(s.modules, logSpec.path()), logSpec, nil)
		problems = append(problems, found...)
		e.log = log
	}
	if problems.HasErrors() {
		return nil, problems.Sorted()
	}
	return e, problems.Sorted()
}

const compilerPanicked = "the Rego compiler panicked on this policy: take back the last change to it"

// Digest names the content of the policy that is served: modules and data, without tests.
func (e *Engine) Digest() string { return e.digest }

// TrustPosition is where the named trust entry is written: data.trust.entries.<name>; the zero Position where no data file
// has it.
func (e *Engine) TrustPosition(name string) problem.Position {
	return e.data.position("trust", "entries", name)
}

// Connect asks whether the target may be reached. The Trust covers exactly that target where the decision allows, and
// nothing where it denies. No other code makes a Trust.
func (e *Engine) Connect(ctx context.Context, in ConnectInput) (trust.Trust, Decision) {
	d, out := e.decide(ctx, Connect, in, nil)
	if !d.Allow {
		return trust.Trust{}, d
	}
	return trust.New(grant.Issue(), in.Target, out.terms), d
}

// List asks whether the branch and principal may see the tool.
func (e *Engine) List(ctx context.Context, in ListInput) Decision {
	d, _ := e.decide(ctx, List, in, nil)
	return d
}

// Discover asks whether a tool of a server may be used, as it is locked and offered.
func (e *Engine) Discover(ctx context.Context, in DiscoverInput) Decision {
	d, _ := e.decide(ctx, Discover, in, nil)
	return d
}

// Call asks whether the call may run. Arguments are those that were checked; their numbers stay exact. What the policy
// answers without a look at what the call brings is evaluated once for each branch, tool and principal that it looks at.
func (e *Engine) Call(ctx context.Context, in CallInput) Decision {
	return e.recurring(ctx, Call, reflect.ValueOf(in), unremarkable(in.Arguments))
}

// Result asks whether the result may leave, and what has to be taken out of it. It is evaluated as rarely as Call is, and
// result is called only where the policy looks at what the call brings.
func (e *Engine) Result(ctx context.Context, in ResultInput, result func() ToolResult) Decision {
	if at := e.stands(ctx, e.points[Result], reflect.ValueOf(in)); at.answered {
		at.decision.Reasons = slices.Clone(at.decision.Reasons)
		return at.decision
	}
	in.Result = result()
	return e.recurring(ctx, Result, reflect.ValueOf(in), unremarkable(in.Arguments) && unremarkable(in.Result.Structured))
}

// Reads reports whether the point's modules mention the part of the input at path, or what it is a part of, so that what is
// costly to find out is asked for only where somebody looks at it.
func (e *Engine) Reads(point Point, path ...string) bool {
	p := e.points[point]
	return p != nil && p.read.mention(path)
}

// recurring asks a point whose questions come again with each call. plain says that what the call brings would certainly be
// taken by an evaluation.
func (e *Engine) recurring(ctx context.Context, point Point, in reflect.Value, plain bool) Decision {
	p := e.points[point]
	if plain {
		at := e.stands(ctx, p, in)
		if at.answered {
			at.decision.Reasons = slices.Clone(at.decision.Reasons)
			return at.decision
		}
	}
	d, _ := e.decide(ctx, point, in.Interface(), nil)
	return d
}

// Foreseen is the answer to calls of this branch, tool and principal, where that is the same whatever a call brings; ok is
// false where it is not, or can't be shown to be. Arguments, time and rate of in are not looked at.
func (e *Engine) Foreseen(ctx context.Context, in CallInput) (d Decision, ok bool) {
	at := e.stands(ctx, e.points[Call], reflect.ValueOf(in))
	at.decision.Reasons = slices.Clone(at.decision.Reasons)
	return at.decision, at.answered
}

// stands is how far the question is answered, worked out where nobody has asked it yet.
func (e *Engine) stands(ctx context.Context, p *asked, in reflect.Value) standing {
	key := append(p.settled.key(in), allowedBy(in.Interface())...)
	at, ok := p.settled.find(key)
	if !ok {
		var keep bool
		if at, keep = e.standing(ctx, p, in); keep {
			p.settled.keep(key, at)
		}
	}
	return at
}

// Adopt asks whether the candidate may replace the generation that is serving. Ask the engine that is serving; the first
// generation after a start asks its own.
func (e *Engine) Adopt(ctx context.Context, in AdoptInput) Decision {
	d, _ := e.decide(ctx, Adopt, in, nil)
	return d
}

// decide evaluates a point. The tracer is nil except for Explain: tracing doubles the cost.
func (e *Engine) decide(ctx context.Context, point Point, in any, tracer topdown.QueryTracer) (d Decision, out outputs) {
	defer func() {
		if r := recover(); r != nil {
			e.logger.Error("a policy evaluation panicked", "point", point, "stack", string(debug.Stack()))
			d, out = no(point, PolicyError, "the evaluation failed inside the engine"), outputs{}
		}
	}()
	p := e.points[point]
	if p == nil {
		return no(point, Undefined, fmt.Sprintf("the policy has no package catalogd.%s (`catalogd init` writes one)", point)), outputs{}
	}
	input, err := p.spec.input.value(reflect.ValueOf(in))
	if err != nil {
		return no(point, PolicyError, fmt.Sprintf("the input can't be read: %v", err)), outputs{}
	}
	document, err := e.evaluate(ctx, p, input, tracer)
	if err != nil {
		return e.failed(ctx, point, err), outputs{}
	}
	if document == nil {
		return no(point, Undefined, fmt.Sprintf("data.catalogd.%s has no value", point)), outputs{}
	}
	return answer(p.spec, allowedBy(in), document)
}

// evaluate returns the value of the point's package, nil where it has none.
func (e *Engine) evaluate(ctx context.Context, p *asked, input *ast.Term, tracer topdown.QueryTracer) (document ast.Object, err error) {
	err = e.within(ctx, func(ctx context.Context, ask asking) error {
		query := ask(p, p.query, input)
		if tracer != nil {
			query = query.WithQueryTracer(tracer)
		}
		if _, ok := tracer.(*blind); ok {
			query = query.WithIndexing(false) // an index looks at the input behind the tracer's back
		}
		return query.Iter(ctx, func(r topdown.QueryResult) error {
			if term := r[result]; term != nil {
				document, _ = term.Value.(ast.Object)
			}
			return nil
		})
	})
	return document, err
}

// asking makes a query of a point, ready to be evaluated.
type asking func(p *asked, query ast.Body, input *ast.Term) *topdown.Query

// within evaluates queries that must all have ended before the deadline of one decision.
func (e *Engine) within(ctx context.Context, evaluate func(context.Context, asking) error) error {
	ctx, cancel := context.WithTimeout(ctx, e.deadline)
	defer cancel()
	stopped := topdown.NewCancel()
	defer context.AfterFunc(ctx, stopped.Cancel)()

	txn, err := e.store.NewTransaction(ctx)
	if err != nil {
		return fmt.Errorf("reading the policy's data: %w", err)
	}
	defer e.store.Abort(ctx, txn)

	err = evaluate(ctx, func(p *asked, query ast.Body, input *ast.Term) *topdown.Query {
		return topdown.NewQuery(query).
			WithCompiler(p.compiler).
			WithStore(e.store).
			WithTransaction(txn).
			WithInput(input).
			WithCancel(stopped).
			WithMetrics(metrics.NoOp()).
			WithStrictBuiltinErrors(true)
	})
	if err == nil {
		// A built-in that can't be interrupted may have ended behind the deadline; late is late.
		err = ctx.Err()
	}
	return err
}

// failed says why an evaluation ended without a value. The words of a built-in's error are left out: they quote what
// it was given, which may be an argument of a call.
func (e *Engine) failed(ctx context.Context, point Point, err error) Decision {
	if topdown.IsCancel(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		if errors.Is(ctx.Err(), context.Canceled) {
			return no(point, PolicyError, "the question was withdrawn before the policy answered")
		}
		return no(point, PolicyTimeout, fmt.Sprintf("the policy did not answer within %v", e.deadline))
	}
	var rego *topdown.Error
	if !errors.As(err, &rego) {
		return no(point, PolicyError, "the policy could not be evaluated")
	}
	message := rego.Message
	if rego.Code == topdown.BuiltinErr || rego.Code == topdown.TypeErr {
		message, _, _ = strings.Cut(message, ":")
		message += " failed"
	}
	return no(point, PolicyError, fmt.Sprintf("%s: %s: %s", position(rego.Location), rego.Code, message))
}
