package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/catalogd/catalogd/internal/egress"
)

// scope is the name of the instrumentation.
const scope = "catalogd"

const (
	// sendTime bounds one request to the collector.
	sendTime = 10 * time.Second
	// closeTime bounds the sending of what is left at the end.
	closeTime = 3 * time.Second
)

// Config says where spans are sent. URL is required.
type Config struct {
	// URL is that of an OTLP collector (OTLP over HTTP, JSON), by https, or http on this machine. Without a path,
	// /v1/traces is meant.
	URL string
	// Authorization is sent in the header of that name, unless it is empty.
	Authorization string
	Version       string
	Log           *slog.Logger
}

// Tracer sends the spans of requests to a collector, in batches. Spans that the collector does not take in time are
// dropped. All methods are safe for concurrent use; a nil Tracer makes no spans.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// New returns a Tracer. Close must be called.
func New(cfg Config) (*Tracer, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.User != nil {
		return nil, errors.New("got no URL of a collector, want one such as https://otel.example.com:4318")
	}
	ip, notIP := netip.ParseAddr(u.Hostname())
	here := u.Hostname() == "localhost" || notIP == nil && ip.IsLoopback()
	if u.Scheme != "https" && !(u.Scheme == "http" && here) {
		return nil, errors.New("a collector is reached by https; http is for one on this machine")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	client, err := egress.OperatorClient(u, sendTime)
	if err != nil {
		return nil, err
	}
	about := []attribute.KeyValue{attribute.String("service.name", scope), attribute.String("service.version", cfg.Version)}
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(&exporter{url: u.String(), authorization: cfg.Authorization, client: client, log: cfg.Log}),
		sdk.WithResource(resource.NewSchemaless(about...)),
		sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample())),
	)
	return &Tracer{provider, provider.Tracer(scope)}, nil
}

// Close sends what is left, for at most 3 s.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// exporter posts spans as OTLP's JSON.
type exporter struct {
	url, authorization string
	client             *http.Client
	log                *slog.Logger
	failing            atomic.Bool
}

// ExportSpans implements sdk.SpanExporter. A failure is logged once, until spans are taken again.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.post(ctx, spans)
	if failed := err != nil; e.failing.Swap(failed) != failed {
		if failed {
			e.log.Warn("traces can't be sent; spans are dropped until they can", "error", err)
		} else {
			e.log.Info("traces are sent again")
		}
	}
	return nil // the SDK would write to the standard logger
}

// Shutdown implements sdk.SpanExporter.
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}

func (e *exporter) post(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	body, err := json.Marshal(request(spans))
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if e.authorization != "" {
		req.Header.Set("Authorization", e.authorization)
	}
	return egress.Deliver(e.client, req)
}

// The JSON of an ExportTraceServiceRequest (opentelemetry-proto, trace/v1), as far as it is used.
type (
	otlpRequest struct {
		ResourceSpans []otlpResource `json:"resourceSpans"`
	}
	otlpResource struct {
		Resource   otlpAttributes `json:"resource"`
		ScopeSpans []otlpScope    `json:"scopeSpans"`
	}
	otlpAttributes struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpScope struct {
		Scope struct {
			Name string `json:"name"`
		} `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Parent     string          `json:"parentSpanId,omitempty"`
		State      string          `json:"traceState,omitempty"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Status     otlpStatus      `json:"status"`
	}
	otlpAttribute struct {
		Key   string `json:"key"`
		Value struct {
			String string `json:"stringValue"`
		} `json:"value"`
	}
	otlpStatus struct {
		Code    int    `json:"code,omitempty"`
		Message string `json:"message,omitempty"`
	}
)

// otlpError is STATUS_CODE_ERROR.
const otlpError = 2

// request returns the message for spans, which are all of one resource and scope.
func request(spans []sdk.ReadOnlySpan) otlpRequest {
	of := otlpScope{}
	of.Scope.Name = scope
	for _, s := range spans {
		one := otlpSpan{
			TraceID: s.SpanContext().TraceID().String(), SpanID: s.SpanContext().SpanID().String(),
			State: s.SpanContext().TraceState().String(), Name: s.Name(),
			Kind:  int(s.SpanKind()), // the numbers are the same
			Start: nanoseconds(s.StartTime()), End: nanoseconds(s.EndTime()),
			Attributes: attributes(s.Attributes()),
		}
		if s.Parent().SpanID().IsValid() {
			one.Parent = s.Parent().SpanID().String()
		}
		if s.Status().Code == codes.Error {
			one.Status = otlpStatus{otlpError, s.Status().Description}
		}
		of.Spans = append(of.Spans, one)
	}
	about := otlpAttributes{attributes(spans[0].Resource().Attributes())}
	return otlpRequest{[]otlpResource{{about, []otlpScope{of}}}}
}

func attributes(all []attribute.KeyValue) (out []otlpAttribute) {
	for _, a := range all {
		one := otlpAttribute{Key: string(a.Key)}
		one.Value.String = a.Value.String()
		out = append(out, one)
	}
	return out
}

func nanoseconds(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
