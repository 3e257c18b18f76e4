// Package invoke is the path of every call, however it came (MCP, the command line or a program that embeds catalogd):
//
//	resolve in the branch's view -> contract -> pre and the contract again -> call decision -> rate limit
//	  -> read: Invoke, within the tool's time limit
//	     write: an intent is staged -> its turn -> release decision -> Execute, once -> the outcome is recorded
//	  -> post -> result contract -> result decision, redaction -> one log record
//
// The accepted arguments are one immutable value (contract.Args), which is decided on, logged by digest and
// executed. A Path belongs to one branch of one generation and is safe for concurrent use. A call of a read
// tool stays on the generation with which it began; an intent is executed on the generation that serves when
// its turn comes.
package invoke

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/fair"
	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/internal/tracing"
	"github.com/catalogd/catalogd/registry"
)

// Path is the call path of one branch of one generation.
type Path struct {
	View *registry.View
	// Lineage holds, by decision point, the branches of which each must allow; nil means that of View alone.
	Lineage Lineage
	// Generation is the id of the generation, for records.
	Generation string
	// Decide makes the call decision.
	Decide func(context.Context, decision.CallInput) decision.Decision
	// Judge makes the result decision. It calls result, which is not cheap, only if the policy reads the
	// result.
	Judge func(ctx context.Context, in decision.ResultInput, result func() decision.ToolResult) decision.Decision
	// Policy is the digest of the policy, and Release makes the release decision.
	Policy  string
	Release func(context.Context, decision.ReleaseInput) decision.Decision
	// Effects executes tools with side effects; if it is nil, their calls are refused.
	Effects *Effects
	// Rates counts calls; nil if the policy has no rate limits.
	Rates *Rates
	// Counted says that the call decision reads the counts.
	Counted bool
	// Decided receives each decision about a call; nil discards them.
	Decided func(decision.Event)
	// Events keeps the records of calls; may be nil.
	Events *Events
	Log    *slog.Logger
}

// Request is one call as received.
type Request struct {
	// ID is the id of the call; if it is empty, one is made.
	ID   string
	Tool string
	// Arguments is a JSON object; empty means {}.
	Arguments json.RawMessage
	// Dialect is the dialect in which the caller got the tool's schema; the arguments are converted from it
	// before they are checked. Empty means MCP, which needs no conversion.
	Dialect   dialect.Dialect
	Principal decision.Principal
	// Credential is the hash of the principal's token; empty for the local operator.
	Credential string
	// Key is the caller's idempotency key for a tool with a side effect; empty if there is none.
	Key string
	// Intent is the id of the intent that a further round (Listener.Round) continues; empty in a first round.
	Intent string
	// Attempt is the attempt of Intent that asked (registry.Input).
	Attempt int
	// Listener receives the messages of the tool once the call is allowed.
	Listener registry.Listener
}

// Call runs one call to its end. It always returns a complete record, with a failure in Err or Result. A
// panic in a tool or a decision fails only this call.
func (p *Path) Call(ctx context.Context, req Request) registry.Call {
	call := p.newCall(req)
	ctx = forCall(ctx, &call)
	p.Events.begin(&call, req.Credential)
	ctx, span := tracing.Start(ctx, "call", tracing.Internal)
	result, err := p.run(ctx, &call, req)
	call.End(result, err)
	endSpan(span, &call)
	p.ended(ctx, &call, req)
	return call
}

// ended records a call that has ended: as an event, in the log, and in the decision log if it was refused.
func (p *Path) ended(ctx context.Context, call *registry.Call, req Request) {
	p.Events.end(call, req.Credential)
	p.record(ctx, *call)
	p.attempted(call, req)
}

// Refuse returns a call that was not begun, because of err, and records it like one that was.
func (p *Path) Refuse(req Request, err *registry.Error) registry.Call {
	call := p.newCall(req)
	call.End(nil, err)
	call.Status = registry.Rejected
	p.Events.end(&call, req.Credential)
	p.record(context.Background(), call)
	return call
}

// Plan does all that Call does before running the tool, and returns what would run. If nothing would, the
// call's Err says why; otherwise the call has neither result nor error. Planning has no effect, also for a
// write tool.
func (p *Path) Plan(ctx context.Context, req Request) (registry.Plan, registry.Call) {
	call := p.newCall(req)
	ctx = forCall(ctx, &call)
	plan, err := p.plan(ctx, &call, req)
	if err != nil {
		call.End(nil, err)
	}
	return plan, call
}

func (p *Path) plan(ctx context.Context, call *registry.Call, req Request) (plan registry.Plan, failed *registry.Error) {
	defer recovering(call, &failed)
	entry, args, _, refusal := p.checkAndDecide(ctx, call, req)
	if refusal != nil {
		return registry.Plan{}, refusal
	}
	if entry.Declared().Binding.Intent != "" {
		return registry.Plan{Kind: "intent", Tool: entry.Name(), Args: args.JSON()}, nil
	}
	plan, err := entry.Plan(entry.Contract().Redact(args))
	if err != nil {
		return registry.Plan{}, maskSecrets(entry, args, asError(ctx, err))
	}
	return plan, nil
}

// Again makes all checks of Call for a further round of a running call, without running anything. The
// returned call is that of the round; it has an Err if the running call may not continue.
func (p *Path) Again(ctx context.Context, req Request) registry.Call {
	call := p.newCall(req)
	ctx = forCall(ctx, &call)
	if err := p.again(ctx, &call, req); err != nil {
		call.End(nil, err)
		p.ended(ctx, &call, req)
	}
	return call
}

func (p *Path) again(ctx context.Context, call *registry.Call, req Request) (failed *registry.Error) {
	defer recovering(call, &failed)
	_, _, answer, refusal := p.checkAndDecide(ctx, call, req)
	if refusal != nil {
		return refusal
	}
	return StillRelayed(req.Listener.Round, answer)
}

// StillRelayed returns an error if a decision no longer relays the questions that a round answers.
func StillRelayed(round *registry.Round, d decision.Decision) *registry.Error {
	for _, kind := range round.Kinds {
		if kind == registry.OwnApproval && d.RequireApproval != nil && d.RequireApproval.Self {
			continue
		}
		if !slices.Contains(d.Relay, kind) {
			return &registry.Error{Code: registry.BindingFailed, Msg: fmt.Sprintf("the tool asked for input (%s), and the policy no longer relays that; the call was ended", kind)}
		}
	}
	return nil
}

// recovering turns a panic into the call's error. The text of the panic may contain anything, so it goes only
// to the operator's log.
func recovering(call *registry.Call, failed **registry.Error) {
	if p := recover(); p != nil {
		*failed = &registry.Error{
			Code: registry.Internal,
			Msg:  "internal error; the operator's log has it as call " + call.ID,
			Err:  fmt.Errorf("panic: %v\n%s", p, debug.Stack()),
		}
	}
}

// forCall returns a context of the work for a call: where it waits for a worker process, its branch and principal say
// when its turn is.
func forCall(ctx context.Context, call *registry.Call) context.Context {
	return fair.With(ctx, fair.Key{Branch: call.Branch, Principal: call.Principal})
}

func (p *Path) newCall(req Request) registry.Call {
	if req.ID == "" {
		req.ID = registry.NewCallID()
	}
	b := p.View.Declared()
	return registry.Call{
		ID: req.ID, Branch: b.Name, Session: b.Session, Tool: req.Tool, Principal: req.Principal.Name,
		Generation: p.Generation, Status: registry.Running, Start: time.Now(),
	}
}

func (p *Path) run(ctx context.Context, call *registry.Call, req Request) (_ *registry.Result, failed *registry.Error) {
	defer recovering(call, &failed)
	entry, args, answer, refusal := p.checkAndDecide(ctx, call, req)
	if refusal != nil {
		return nil, refusal
	}
	if req.Intent == "" { // a further round counts with the first one
		if limited := p.Limit(call, answer); limited != nil {
			return nil, limited
		}
	}
	if entry.Effect() != registry.Read {
		return p.submit(ctx, call, req, entry, args, answer)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout(entry, answer), registry.ErrTimeLimit)
	defer cancel()
	if entry.Declared().Binding.Intent != "" {
		result, failed := p.intents(ctx, req, entry, args)
		if failed != nil {
			return nil, failed
		}
		return p.finish(ctx, call, req, entry, args, result)
	}
	req.Listener = req.Listener.Within(answer.Relay, answer.Hosts)
	req.Listener.Branch, req.Listener.Call, req.Listener.Principal = call.Branch, call.ID, call.Principal
	req.Listener.Retried = func() { call.Retries++ }
	result, err := invoked(ctx, entry, func(ctx context.Context) (*registry.Result, error) {
		return entry.Invoke(ctx, args, req.Listener)
	})
	if err != nil {
		return nil, maskSecrets(entry, args, asError(ctx, err))
	}
	return p.finish(ctx, call, req, entry, args, result)
}

// invoked runs a tool, with a span of its own.
func invoked(ctx context.Context, entry *registry.Entry, run func(context.Context) (*registry.Result, error)) (*registry.Result, error) {
	ctx, span := tracing.Start(ctx, "invoke", tracing.Client)
	defer span.End()
	span.Set("catalogd.tool", entry.Name())
	span.Set("catalogd.server", entry.Server())
	result, err := run(ctx)
	var known *registry.Error
	switch {
	case errors.As(err, &known):
		span.Fail(string(known.Code))
	case err != nil:
		span.Fail(string(registry.BindingFailed))
	case result.IsError:
		span.Fail("tool_error")
	}
	return result, err
}

// timeout returns the time limit of one run of a tool.
func timeout(entry *registry.Entry, answer decision.Decision) time.Duration {
	if answer.Timeout > 0 {
		return min(entry.Declared().Timeout, answer.Timeout)
	}
	return entry.Declared().Timeout
}

// finish turns a tool's answer into the result for the caller.
func (p *Path) finish(ctx context.Context, call *registry.Call, req Request, entry *registry.Entry, args contract.Args, result *registry.Result) (*registry.Result, *registry.Error) {
	if result.Input != nil {
		return result, nil // no result yet; relay has admitted its questions
	}
	if result.IsError {
		discreetResult(entry, args, result)
	}
	result, failed := p.postProcess(ctx, entry, result)
	if failed != nil {
		return nil, maskSecrets(entry, args, failed)
	}
	return p.judge(ctx, call, req, entry, args, result)
}

// checkAndDecide does everything before running: it resolves the tool, checks the arguments and makes the call
// decision.
func (p *Path) checkAndDecide(ctx context.Context, call *registry.Call, req Request) (*registry.Entry, contract.Args, decision.Decision, *registry.Error) {
	var none decision.Decision
	entry, unknown := p.View.Lookup(req.Tool)
	if unknown != nil {
		return nil, contract.Args{}, none, unknown
	}
	call.Declared = entry.Declared().Name
	args, refusal := Check(ctx, entry, req.Dialect.Arguments(entry.Declared().Args.Schema, req.Arguments))
	if refusal != nil {
		return nil, contract.Args{}, none, refusal
	}
	call.Arguments = args
	in := decision.CallInput{
		Tool:      PolicyTool(entry),
		Principal: req.Principal,
		Arguments: args.JSON(),
		Time:      call.Start.UTC(),
	}
	if p.Counted {
		in.Rate = p.Rates.rate(call)
	}
	deciding, span := tracing.Start(ctx, "decide call", tracing.Internal)
	hide := Secrets(entry, args)
	answer := p.Each(decision.Call, call.ID, func(b decision.Branch, id string) decision.Decision {
		in.Branch = b
		asked := time.Now()
		answer := p.Decide(deciding, in)
		took := time.Since(asked)
		if Withdrawn(ctx, answer) {
			return answer
		}
		answer.Reasons = slices.Clone(answer.Reasons)
		for i, reason := range answer.Reasons {
			answer.Reasons[i] = hide.Replace(reason) // a policy may repeat its input
		}
		p.decided(entry, call, decision.Event{ID: id, Point: decision.Call, Input: in, Decision: answer, Time: asked, Took: took})
		return answer
	})
	span.Set("catalogd.decision", string(answer.Code))
	span.End()
	if Withdrawn(ctx, answer) {
		return nil, contract.Args{}, none, Undecided(ctx, "it was decided on", "Nothing was run")
	}
	call.Decision, call.Reasons = string(answer.Code), answer.Reasons
	if answer.Code == decision.PolicyTimeout {
		return nil, contract.Args{}, none, &registry.Error{Code: registry.Timeout, Decision: string(answer.Code), Msg: undecided(call.Tool, "this call", answer) + ". Nothing was run; try again"}
	}
	if !answer.Allow {
		return nil, contract.Args{}, none, &registry.Error{Code: registry.Denied, Decision: string(answer.Code), Msg: denial(call.Tool, answer)}
	}
	return entry, args, answer, nil
}

// decided logs one decision about the call. The call decision has the id of the call.
func (p *Path) decided(entry *registry.Entry, call *registry.Call, e decision.Event) {
	if p.Decided != nil {
		args := call.Arguments
		e.Call, e.Arguments, e.Principal = call.ID, args.Digest(), call.Principal
		e.Shown = func() json.RawMessage { return Secrets(entry, args).JSON(entry.Contract().Redact(args).JSON()) }
		p.Decided(e)
	}
}

// attempted logs a call that was refused, but not by a decision.
func (p *Path) attempted(call *registry.Call, req Request) {
	if p.Decided == nil || call.Status != registry.Rejected || call.Err.Code == registry.Denied || call.Decision == string(decision.PolicyTimeout) {
		return
	}
	who := req.Principal
	e := decision.NewAttempt(call.ID+"-attempt", string(call.Err.Code), decision.Attempt{
		Branch: p.View.Declared().Address(), Method: "tools/call", Name: call.Tool, Hidden: p.View.Hides(call.Tool),
		Principal: &who,
	})
	e.Call = call.ID
	p.Decided(e)
}

// undecided returns the text for a decision that was not made in time.
func undecided(tool, what string, d decision.Decision) string {
	return fmt.Sprintf("the policy did not decide on %s of %q in time (%s): %s", what, tool, d.Code, strings.Join(d.Reasons, "; "))
}

func denial(tool string, d decision.Decision) string {
	msg := fmt.Sprintf("the policy denied this call of %q", tool)
	if d.Code != decision.Denied {
		msg += fmt.Sprintf(" (%s)", d.Code)
	}
	for i, reason := range d.Reasons {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		msg += sep + reason
	}
	return msg
}

// maxPre caps the output of a pre program, in bytes: a message can have as many.
const maxPre = 4 << 20

// Check checks the arguments of a call against the contract. If the tool has a pre program, Check runs it, and then each
// of the program's processors; each output is checked again. The returned arguments are decided on and executed.
func Check(ctx context.Context, entry *registry.Entry, raw json.RawMessage) (contract.Args, *registry.Error) {
	args, refusal := check(ctx, entry, entry.Contract().Check, raw, "")
	if refusal != nil || entry.Pre() == nil && len(entry.Before()) == 0 {
		return args, refusal
	}
	ctx, cancel := context.WithTimeoutCause(ctx, entry.Declared().Timeout, registry.ErrTimeLimit)
	defer cancel()
	if pre := entry.Pre(); pre != nil {
		if args, refusal = rewrite(ctx, entry, args, pre, "the tool's pre program"); refusal != nil {
			return contract.Args{}, refusal
		}
	}
	for _, before := range entry.Before() {
		if args, refusal = rewrite(ctx, entry, args, before, "a processor of the program"); refusal != nil {
			return contract.Args{}, refusal
		}
	}
	return args, nil
}

// rewrite runs a program or function over the arguments, and checks its output.
func rewrite(ctx context.Context, entry *registry.Entry, args contract.Args, by registry.Transform, name string) (contract.Args, *registry.Error) {
	out, err := by(ctx, args.JSON(), maxPre)
	if err != nil && ctx.Err() != nil {
		return contract.Args{}, Undecided(ctx, name+" had ended", "Nothing was run")
	}
	if err != nil {
		says := err.Error()
		if known := (*registry.Error)(nil); errors.As(err, &known) {
			switch known.Code {
			case registry.Unavailable:
				return contract.Args{}, &registry.Error{Code: registry.Unavailable, Msg: name + " could not be run, so nothing was run; try again", Err: known.Err}
			case registry.ProcessorFailed:
				return contract.Args{}, maskSecrets(entry, args, known)
			}
			says = known.Msg
		}
		return contract.Args{}, maskSecrets(entry, args, &registry.Error{Code: registry.ProcessorFailed, Msg: name + " refused the arguments: " + says, Unsent: true})
	}
	return check(ctx, entry, entry.Contract().Recheck, out, "after "+name+", ")
}

func check(
	ctx context.Context, entry *registry.Entry, by func(context.Context, json.RawMessage) (contract.Args, []contract.Violation, error),
	raw json.RawMessage, when string,
) (contract.Args, *registry.Error) {
	args, violations, err := by(ctx, raw)
	switch {
	case err != nil && (errors.Is(ctx.Err(), context.Canceled) || registry.CallersDeadline(ctx)):
		return contract.Args{}, &registry.Error{Code: registry.Cancelled, Msg: "the call was cancelled before its arguments were checked; nothing was run"}
	case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return contract.Args{}, &registry.Error{
			Code: registry.Timeout, Msg: fmt.Sprintf("%sthe arguments of %q could not be checked: %v, so nothing was run; use smaller or simpler ones", when, entry.Name(), err),
		}
	case err != nil:
		return contract.Args{}, &registry.Error{Code: registry.Unavailable, Msg: when + "the arguments could not be checked, so nothing was run; try again", Err: err}
	case violations != nil:
		return contract.Args{}, invalid(entry.Name(), when, violations)
	}
	return args, nil
}

func invalid(tool, when string, violations []contract.Violation) *registry.Error {
	msg := fmt.Sprintf("%sthe arguments of %q are not valid:%s", when, tool, lines(violations))
	return &registry.Error{Code: registry.InvalidArguments, Msg: msg, Violations: violations}
}

// Secrets returns a masker for the values of the call's secret arguments.
func Secrets(entry *registry.Entry, args contract.Args) *secret.Masker {
	return secret.NewMasker(contract.Redacted, entry.Contract().Secrets(args), nil)
}

// maskSecrets masks the values of secret arguments in an error.
func maskSecrets(entry *registry.Entry, args contract.Args, e *registry.Error) *registry.Error {
	hide := Secrets(entry, args)
	shown := *e
	shown.Msg = hide.Replace(e.Msg)
	if e.Err != nil {
		if text := hide.Replace(e.Err.Error()); text != e.Err.Error() {
			shown.Err = errors.New(text)
		}
	}
	shown.Violations = slices.Clone(e.Violations)
	for i, v := range shown.Violations {
		shown.Violations[i].Got, shown.Violations[i].Expected = hide.Replace(v.Got), hide.Replace(v.Expected)
	}
	return &shown
}

// discreetResult masks the values of secret arguments in a result with IsError, because programs and servers
// often repeat their input in error messages. Successful results are not masked.
func discreetResult(entry *registry.Entry, args contract.Args, r *registry.Result) {
	hide := Secrets(entry, args)
	without := func(raw json.RawMessage) json.RawMessage {
		masked := hide.JSON(raw)
		if !bytes.Equal(masked, raw) {
			r.Answer = nil
		}
		return masked
	}
	masked := func(raw, instead json.RawMessage) json.RawMessage {
		if m := without(raw); bytes.Equal(m, raw) || !bytes.HasPrefix(m, []byte(`"`)) {
			return m
		}
		return instead // it can't be parsed
	}
	for i, block := range r.Content {
		r.Content[i] = masked(block, registry.Text(contract.Redacted))
	}
	r.Structured, r.Meta = masked(r.Structured, nil), masked(r.Meta, nil)
	for name, raw := range r.Fields {
		r.Fields[name] = without(raw)
	}
}

// asError converts the error of an Invoker.
func asError(ctx context.Context, err error) *registry.Error {
	var known *registry.Error
	late := registry.CallersDeadline(ctx)
	switch {
	case errors.As(err, &known) && known.Code == registry.Timeout && known.Decision == "" && late:
		said := *known
		said.Code, said.Msg = registry.Cancelled, callersDeadline(known.Unsent)
		return &said
	case errors.As(err, &known):
		return known
	case late:
		return &registry.Error{Code: registry.Cancelled, Msg: callersDeadline(false), Err: err}
	case errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		return &registry.Error{Code: registry.Timeout, Msg: "the tool did not answer within its time limit; it was stopped, and its outcome is unknown", Err: err}
	case errors.Is(ctx.Err(), context.Canceled):
		return &registry.Error{Code: registry.Cancelled, Msg: "the call was cancelled", Err: err}
	}
	return &registry.Error{Code: registry.BindingFailed, Msg: "the tool could not be run; the operator's log says why", Err: err}
}

// callersDeadline is the message for a call that its caller's own deadline has ended.
func callersDeadline(unsent bool) string {
	const says = "the call was cancelled, because its caller's own deadline passed before the tool had answered"
	if unsent {
		return says + "; nothing was run"
	}
	return says + "; its outcome is unknown"
}

// endSpan ends the span of a call, with what the log has of it.
func endSpan(span tracing.Span, call *registry.Call) {
	span.Set("catalogd.call", call.ID)
	span.Set("catalogd.branch", call.Branch)
	span.Set("catalogd.tool", registry.Shown(call.Tool))
	span.Set("catalogd.principal", call.Principal)
	span.Set("catalogd.generation", call.Generation)
	span.Set("catalogd.status", string(call.Status))
	span.Set("catalogd.intent", call.Intent)
	if call.Err != nil {
		span.Fail(string(call.Err.Code))
	}
	span.End()
}

// record writes the log line of a call. Its id is that of the call decision, and stands in the client's answer, as do
// generation and intent; trace is the trace id that the client named, or that of the call's own trace.
func (p *Path) record(ctx context.Context, call registry.Call) {
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("id", call.ID), slog.String("branch", call.Branch), slog.String("tool", registry.Shown(call.Tool)),
		slog.String("principal", call.Principal), slog.String("generation", call.Generation),
		slog.String("status", string(call.Status)), slog.Duration("duration", call.Duration),
	}
	if call.Session != "" {
		attrs = append(attrs, slog.String("session", call.Session))
	}
	if call.Arguments.Object() != nil {
		attrs = append(attrs, slog.String("arguments", call.Arguments.Digest()))
	}
	if call.Decision != "" {
		attrs = append(attrs, slog.String("decision", call.Decision))
	}
	if call.Intent != "" {
		attrs = append(attrs, slog.String("intent", call.Intent))
	}
	if call.Retries > 0 {
		attrs = append(attrs, slog.Int("retries", call.Retries))
	}
	if trace := tracing.ID(ctx); trace != "" {
		attrs = append(attrs, slog.String("trace", trace))
	}
	if call.Err != nil {
		attrs = append(attrs, slog.String("code", string(call.Err.Code)))
		if len(call.Reasons) > 0 {
			attrs = append(attrs, slog.Any("reasons", call.Reasons))
		}
		if call.Err.Err != nil {
			level = slog.LevelWarn // the caller did not see this error
			if call.Err.Code == registry.Internal {
				level = slog.LevelError
			}
			attrs = append(attrs, slog.String("error", call.Err.Err.Error()))
		}
	}
	p.Log.LogAttrs(context.Background(), level, "call", attrs...)
}
