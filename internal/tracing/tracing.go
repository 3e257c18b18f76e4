// Package tracing makes OpenTelemetry traces of calls, and sends them to a collector that the operator names.
//
// A Tracer begins the span of a request, below the span that the client names by W3C trace context (traceparent and
// tracestate, as HTTP headers or in the _meta of an MCP message). Start begins a span below the one in a context: where
// there is none, because traces are off or the client's trace is not sampled, it does nothing and allocates nothing. The
// context carries the client's trace id in any case, for the log (ID).
//
// Attributes are names, codes and ids: never arguments, results, texts of errors, or secrets.
package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The keys of W3C trace context, in headers and in _meta, where MCP reserves them.
const (
	parentKey = "traceparent"
	stateKey  = "tracestate"
)

// Kind says which side of a request a span is.
type Kind int

const (
	// Internal is work in this process, Client a request to another one.
	Internal Kind = iota
	Client
)

// Span is a span, or nothing if its zero value. Its methods are not for concurrent use.
type Span struct{ span trace.Span }

// Request begins the span of a request, as the child of the client's span in ctx. A nil Tracer begins none.
func (t *Tracer) Request(ctx context.Context, name string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))
	return ctx, Span{span}
}

// Start begins a span below the one in ctx. End must be called.
func Start(ctx context.Context, name string, kind Kind) (context.Context, Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, Span{}
	}
	as := trace.SpanKindInternal
	if kind == Client {
		as = trace.SpanKindClient
	}
	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(as))
	return ctx, Span{span}
}

// Set sets an attribute, unless the value is empty.
func (s Span) Set(key, value string) {
	if s.span != nil && value != "" {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// Fail marks the span as failed; code is why.
func (s Span) Fail(code string) {
	if s.span != nil {
		s.span.SetStatus(codes.Error, code)
	}
}

// End ends the span.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}

// Beside returns ctx with the span of another context, for work that outlives the other.
func Beside(ctx, other context.Context) context.Context {
	if span := trace.SpanFromContext(other); span.SpanContext().IsValid() {
		return trace.ContextWithSpan(ctx, span)
	}
	return ctx
}

// ID returns the trace id of a context, in hex; empty if it has none.
func ID(ctx context.Context) string {
	if id := trace.SpanContextFromContext(ctx).TraceID(); id.IsValid() {
		return id.String()
	}
	return ""
}

// FromHeader returns a context with the client's span that the headers of its request name, if they do.
func FromHeader(ctx context.Context, h http.Header) context.Context {
	if len(h["Traceparent"]) != 1 { // a second one could be another's
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{
		parentKey: h["Traceparent"][0],
		stateKey:  strings.Join(h["Tracestate"], ","), // RFC 9110 5.3: a list in several lines is one list
	})
}

// FromMeta is FromHeader for the _meta of a message, which stands nearer to the caller than headers do.
func FromMeta(ctx context.Context, meta json.RawMessage) context.Context {
	if !bytes.Contains(meta, []byte(parentKey)) {
		return ctx
	}
	var named struct {
		Parent json.RawMessage `json:"traceparent"`
		State  json.RawMessage `json:"tracestate"`
	}
	if json.Unmarshal(meta, &named) != nil {
		return ctx
	}
	carrier := propagation.MapCarrier{}
	for key, raw := range map[string]json.RawMessage{parentKey: named.Parent, stateKey: named.State} {
		var value string
		if raw != nil && json.Unmarshal(raw, &value) == nil { // what is no string names no span
			carrier[key] = value
		}
	}
	return propagation.TraceContext{}.Extract(ctx, carrier)
}

// maxState is how much of a client's tracestate is passed on, in bytes: as much as W3C trace context asks for.
const maxState = 512

// Inject passes the span in a context on to another process, if it is recorded, so nothing while traces are
// off: set gets its ids as traceparent and, where the client sent one, the client's tracestate, whose entries
// are part of the trace. baggage is never passed on: it is for the processes of one operator, and may name
// users or carry secrets.
func Inject(ctx context.Context, set func(key, value string)) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	of := span.SpanContext()
	set(parentKey, "00-"+of.TraceID().String()+"-"+of.SpanID().String()+"-"+of.TraceFlags().String())
	if state := shortened(of.TraceState().String()); state != "" {
		set(stateKey, state)
	}
}

// shortened removes whole entries of a tracestate that is longer than maxState, in the order that W3C trace context
// wants: those of more than 128 characters first, then the last ones, which are the oldest.
func shortened(state string) string {
	if len(state) <= maxState {
		return state
	}
	entries := strings.Split(state, ",")
	size := len(state)
	for _, most := range []int{128, 0} {
		for i := len(entries) - 1; i >= 0 && size > maxState; i-- {
			if len(entries[i]) > most {
				size -= len(entries[i]) + 1
				entries = slices.Delete(entries, i, i+1)
			}
		}
	}
	return strings.Join(entries, ",")
}
