package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/passthrough"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// passthroughRequest is one request for passthrough resources or prompts, while it is answered.
type passthroughRequest struct {
	*branch
	g        *generation.Generation
	path     *invoke.Path
	declared *registry.Branch
	m        *message
	modern   bool
	to       registry.Listener
	// release unpins the generation, unless a call that outlives the request has taken it.
	release *func()
}

// passthrough answers the methods about resources, prompts and completions. A branch is shown what the list
// decision allows; nothing else exists for its clients. A request is sent to the item's server only after the
// call decision has allowed it.
func (b *branch) passthrough(ctx context.Context, m *message, g *generation.Generation, path *invoke.Path, modern bool, to registry.Listener, release *func()) reply {
	p := &passthroughRequest{b, g, path, path.View.Declared(), m, modern, to, release}
	if !g.HandlesPassthrough(m.method) {
		return p.refuse(refuse(mcp.METHOD_NOT_FOUND, "%s is not supported", m.method))
	}
	if m.flaw != nil {
		b.malformed(m)
		return p.refuse(m.flaw)
	}
	g.AwaitPassthrough(ctx, b.root)
	shown := g.ShownPassthrough(ctx, path, b.caller.Principal)
	if b.advertised.Load() == nil {
		now := digests(shown)
		b.advertised.CompareAndSwap(nil, &now)
	}
	switch m.method {
	case mcp.MethodResourcesList:
		return p.list(shown, passthrough.Resource, "resources")
	case mcp.MethodResourcesTemplatesList:
		return p.list(shown, passthrough.Template, "resourceTemplates")
	case mcp.MethodPromptsList:
		return p.list(shown, passthrough.Prompt, "prompts")
	case mcp.MethodPromptsGet:
		return p.getPrompt(ctx, shown)
	case mcp.MethodCompletionComplete:
		return p.complete(ctx, shown)
	case mcp.MethodResourcesSubscribe, mcp.MethodResourcesUnsubscribe:
		return p.subscribe(ctx, shown)
	}
	return p.readResource(ctx, shown)
}

// list answers a list request with one page. Servers order what they list, so a cursor whose item the list has no
// more is unknown.
func (p *passthroughRequest) list(shown *passthrough.Shown, kind passthrough.Kind, member string) reply {
	list := listed{p.m.method, p.name}
	after, refusal := list.after(p.m.cursor)
	if refusal != nil {
		return p.refuse(refusal)
	}
	items, last, ok := shown.Page(kind, after, p.server.Limits.Page)
	if !ok {
		return p.refuse(list.unknown())
	}
	next, tail := endOfArray, "}}"
	if last != "" {
		next = list.next(last)
	}
	if p.modern {
		tail = `,"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{` + p.server.serverInfo + "}}}"
	}
	return reply{status: 200, parts: [][]byte{beginReply(p.m.id), []byte(`{"` + member + `":[`), items, next, []byte(tail)}}
}

func (p *passthroughRequest) refuse(e *rpcError) reply { return p.fail(p.m.id, p.modern, e) }

// asked is the outcome of a request: a server's result, or the questions that the server asks first.
type asked struct {
	answer json.RawMessage
	first  *registry.Result
	call   *registry.Call
}

// ask requests the call decision, sends the request to the item's server, and logs one line. uri is the URI
// that is read through a template.
func (p *passthroughRequest) ask(ctx context.Context, item *passthrough.Item, uri, action string, r upstream.Request) (asked, *rpcError) {
	call := p.call(item)
	var out asked
	d := p.decide(ctx, call, item, uri, action, r.Arguments)
	var err error
	if err = refusedBy(ctx, item, action, d); err != nil {
		// nothing is sent
	} else if limited := p.path.Limit(call, d); limited != nil {
		p.recordRefused(decision.AttemptCode(limited.Code), p.m)
		err = limited
	} else {
		out.answer, out.first, err = p.send(ctx, item, d, r)
	}
	out.call = call
	p.record(call, item, r, d, out.first != nil, err)
	if err != nil {
		return asked{}, p.explain(err, call.ID)
	}
	return out, nil
}

// call returns the call record of a request.
func (p *passthroughRequest) call(item *passthrough.Item) *registry.Call {
	return &registry.Call{
		ID: registry.NewCallID(), Branch: p.declared.Name, Session: p.declared.Session, Tool: string(item.Kind) + " " + item.Name, Principal: p.caller.Principal.Name,
		Generation: p.g.ID, Start: time.Now(),
	}
}

// refusedBy returns the error of a request that a decision does not allow; nil if it does.
func refusedBy(ctx context.Context, item *passthrough.Item, action string, d decision.Decision) error {
	switch {
	case invoke.Withdrawn(ctx, d):
		return invoke.Undecided(ctx, "it was decided on", "Nothing was sent to the server")
	case !d.Allow:
		return &registry.Error{Code: registry.Denied, Decision: string(d.Code), Msg: denied(item, action, d)}
	}
	return nil
}

// recheck requests the call decision for a further round of a request that still runs, as for its first
// round.
func (p *passthroughRequest) recheck(ctx context.Context, item *passthrough.Item, uri, action string, r upstream.Request) *rpcError {
	call := p.call(item)
	d := p.decide(ctx, call, item, uri, action, r.Arguments)
	err := refusedBy(ctx, item, action, d)
	if err == nil {
		refusal := invoke.StillRelayed(p.to.Round, d)
		if refusal == nil {
			return nil
		}
		err = refusal
	}
	p.record(call, item, r, d, false, err)
	return p.explain(err, call.ID)
}

func (p *passthroughRequest) decide(ctx context.Context, call *registry.Call, item *passthrough.Item, uri, action string, args json.RawMessage) decision.Decision {
	if args == nil {
		args = json.RawMessage("{}")
	}
	in := decision.CallInput{
		Tool: generation.NoTool(), Principal: p.caller.Principal, Arguments: args, Time: call.Start.UTC(),
		Rate: p.path.Rate(call),
	}
	in.Resource, in.Prompt = p.g.PolicyItem(item, uri, action)
	return p.path.Each(decision.Call, call.ID, func(b decision.Branch, id string) decision.Decision {
		in.Branch = b
		asked := time.Now()
		d := p.g.AskCall(ctx, in)
		if p.path.Decided != nil && !invoke.Withdrawn(ctx, d) {
			p.path.Decided(decision.Event{
				ID: id, Call: call.ID, Time: asked, Point: decision.Call, Input: in, Principal: call.Principal, Decision: d, Took: time.Since(asked),
			})
		}
		return d
	})
}

func (p *passthroughRequest) send(ctx context.Context, item *passthrough.Item, d decision.Decision, r upstream.Request) (json.RawMessage, *registry.Result, error) {
	if d.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Timeout)
		defer cancel()
	}
	if r.Method == mcp.MethodResourcesSubscribe {
		return nil, nil, p.subscribed(ctx, item)
	}
	to := p.to.Within(d.Relay, d.Hosts)
	to.Branch = p.root
	return p.g.Upstream().Ask(ctx, item.Server, r, to)
}

func denied(item *passthrough.Item, action string, d decision.Decision) string {
	what := fmt.Sprintf("the policy denied to %s the %s %q", action, item.Kind, item.Name)
	if d.Code != decision.Denied {
		what += fmt.Sprintf(" (%s)", d.Code)
	}
	return strings.Join(append([]string{what}, d.Reasons...), "; ")
}

func (p *passthroughRequest) record(call *registry.Call, item *passthrough.Item, r upstream.Request, d decision.Decision, waits bool, err error) {
	attrs := []slog.Attr{
		slog.String("id", call.ID), slog.String("branch", p.name), slog.String("method", string(r.Method)), slog.String("server", item.Server),
		slog.String("name", item.Name), slog.String("principal", call.Principal), slog.String("generation", p.g.ID),
		slog.Duration("duration", time.Since(call.Start)), slog.String("decision", string(d.Code)),
	}
	if r.URI != "" {
		attrs = append(attrs, slog.String("uri", registry.Shown(r.URI)))
	}
	status := registry.Succeeded
	if waits {
		status = registry.Waiting
	}
	var known *registry.Error
	if errors.As(err, &known) {
		status = registry.Failed
		if known.Code == registry.Denied || known.Code == registry.RateLimited {
			status = registry.Rejected
		}
		attrs = append(attrs, slog.String("code", string(known.Code)), slog.String("error", known.Error()))
	}
	p.server.Log.LogAttrs(context.Background(), slog.LevelInfo, "passed on", append(attrs, slog.String("status", string(status)))...)
}

// failed returns an error with an MCP code and catalogd's own code in its data.
func (p *passthroughRequest) failed(code int, own *registry.Error) *rpcError {
	return &rpcError{Code: code, Message: own.Msg, Data: map[string]any{metaError: codes(own)}, retryAfter: own.RetryAfter}
}

// ownCodes are the error codes about the connection or the protocol: those of an upstream concern the
// connection between it and catalogd, so the client gets an internal error.
var ownCodes = map[int]bool{
	mcp.PARSE_ERROR: true, mcp.INVALID_REQUEST: true, mcp.METHOD_NOT_FOUND: true, mcp.HEADER_MISMATCH: true,
	mcp.MISSING_REQUIRED_CLIENT_CAPABILITY: true, mcp.UNSUPPORTED_PROTOCOL_VERSION: true,
}

// explain returns the error that the client receives for a failed request. A server's own error is forwarded
// as received, except for the codes below.
func (p *passthroughRequest) explain(err error, id string) *rpcError {
	var known *registry.Error
	if !errors.As(err, &known) {
		return p.server.internal(string(p.m.method), err)
	}
	if known.Code == registry.CapabilityMissing && p.modern {
		return incapable(known, nil)
	}
	var refusal *upstream.Refusal
	if !errors.As(err, &refusal) {
		code := mcp.INTERNAL_ERROR
		if known.Code == registry.Denied || known.Code == registry.RateLimited {
			code = mcp.INVALID_REQUEST
		}
		return p.failed(code, known)
	}
	e := &rpcError{Code: refusal.Code, Message: refusal.Message}
	if refusal.Data != nil {
		e.Data = refusal.Data
	}
	switch {
	case e.Code == mcp.URL_ELICITATION_REQUIRED: // its data contains URLs to open, which were not checked against elicitation_hosts
		e.Code, e.Data = mcp.INTERNAL_ERROR, nil
	case ownCodes[e.Code]:
		e.Code = mcp.INTERNAL_ERROR
	case e.Code == mcp.RESOURCE_NOT_FOUND && p.modern:
		e.Code = mcp.INVALID_PARAMS // the code of 2026-07-28
	}
	return e
}

// outcome is the result of a request that runs independently.
type outcome struct {
	got     asked
	refusal *rpcError
}

// turn answers a request that may need input first, for any round of a client of 2026-07-28; branch.turn does
// the same for calls. Its state is bound to the method, name and arguments.
func (p *passthroughRequest) turn(ctx context.Context, item *passthrough.Item, name, uri, action string, r upstream.Request, member string, cached bool) reply {
	of := subject{branch: p.name, principal: p.caller.Principal.Name, tool: string(p.m.method) + " " + name}
	if !p.modern {
		got, refusal := p.ask(ctx, item, uri, action, r)
		return p.answered(outcome{got, refusal}, of, member, cached)
	}
	kept, n, err := p.round(p.m, &of)
	if err != nil {
		return p.refuse(refuse(mcp.INVALID_PARAMS, "%v", err))
	}
	p.to.Round = p.m.round(kept)
	var h *pendingCall
	var in *registry.Input
	var state string
	switch {
	case kept.Held:
		var refusal *rpcError
		if h, refusal = p.resume(n); refusal != nil {
			return p.refuse(refusal)
		}
		if refusal := p.recheck(ctx, item, uri, action, r); refusal != nil {
			h.end(context.Canceled)
			return p.refuse(refusal)
		}
		in, state = p.continuePending(ctx, h, p.to, of)
	case p.server.holds(p.to.Able):
		of.arguments = digest(p.m.arguments)
		h = p.pending.run(ctx, p.g.ID, p.to, *p.release, func(ctx context.Context, h *pendingCall, to registry.Listener) {
			defer func() {
				if thrown := recover(); thrown != nil {
					h.passed = outcome{refusal: p.server.Panicked(string(r.Method), thrown)}
				}
			}()
			first := *p
			first.to = to
			h.passed.got, h.passed.refusal = first.ask(ctx, item, uri, action, r)
		})
		*p.release = func() {}
		in, state = p.awaitPending(ctx, h, of)
	default:
		got, refusal := p.ask(ctx, item, uri, action, r)
		return p.answered(outcome{got, refusal}, of, member, cached)
	}
	if in != nil {
		return p.asks(p.m, h.waits(in), state)
	}
	return p.answered(h.passed, of, member, cached)
}

// answered returns the answer to a request that has ended.
func (p *passthroughRequest) answered(o outcome, of subject, member string, cached bool) reply {
	switch {
	case o.refusal != nil:
		return p.refuse(o.refusal)
	case o.got.first == nil:
		return p.result(o.got.answer, member, cached)
	}
	o.got.call.Result = o.got.first
	return p.asks(p.m, o.got.call, p.remember(p.m, of, o.got.first.Input, ""))
}

// result encodes a server's result. Cache hints exist in 2026-07-28 only; the scope is private, so that no
// answer is shared between clients.
func (p *passthroughRequest) result(answer json.RawMessage, member string, cached bool) reply {
	r, err := passthrough.ReadResult(answer, member)
	if err != nil {
		return p.refuse(p.failed(mcp.INTERNAL_ERROR, &registry.Error{Code: registry.ResultInvalid, Msg: "the server's answer can't be passed on: " + err.Error()}))
	}
	tail := ""
	if p.modern {
		tail = `,"resultType":"complete"`
		if cached {
			tail += fmt.Sprintf(`,"ttlMs":%d,"cacheScope":"private"`, r.TTL)
		}
	}
	out := append(beginReply(p.m.id), '{')
	out = append(append(out, r.Members...), tail...)
	meta := appendUpstreamMeta(nil, r.Meta)
	if p.modern {
		meta = append(meta, p.server.serverInfo...)
	} else if len(meta) > 0 {
		meta = meta[:len(meta)-1] // the last comma
	}
	if len(meta) > 0 {
		out = append(append(append(out, `,"_meta":{`...), meta...), '}')
	}
	return reply{status: 200, parts: [][]byte{append(out, "}}"...)}}
}
