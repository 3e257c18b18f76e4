package catalogd

import "github.com/catalogd/catalogd/internal/tracing"

// Traces says where OpenTelemetry traces of calls are sent (docs/operations.md). While they are on, upstream MCP servers
// get the ids of the span of their request as traceparent, and the client's tracestate: in _meta, and over HTTP in the
// headers too.
type Traces struct {
	// OTLP is the URL of a collector that takes OTLP over HTTP as JSON: https, or http on this machine. Without a path,
	// /v1/traces is meant. Authorization is the header that it is sent.
	OTLP          string
	Authorization string
}

// open returns nil where nothing is traced.
func (t Traces) open(cfg Config) (*tracing.Tracer, error) {
	if t.OTLP == "" {
		return nil, nil
	}
	return tracing.New(tracing.Config{URL: t.OTLP, Authorization: t.Authorization, Version: cfg.Version, Log: cfg.Log})
}

// closeTraces sends the spans that wait.
func (c *Catalog) closeTraces() {
	if err := c.tracer.Close(); err != nil {
		c.log.Warn("not all spans were sent", "error", err)
	}
}
