package main

import (
	"errors"
	"fmt"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/secret"
)

// traceFlags configure where traces are sent.
type traceFlags struct {
	OTLP     string `name:"otlp" placeholder:"URL" help:"Send OpenTelemetry traces of calls to this collector (OTLP over HTTP, JSON), and trace ids to upstream MCP servers."`
	OTLPAuth string `name:"otlp-auth" placeholder:"env:NAME|file:PATH" help:"The Authorization header to send to it."`
}

// trace sets where traces are sent.
func (f traceFlags) trace(cfg *catalogd.Config) (err error) {
	cfg.Traces.OTLP = f.OTLP
	if f.OTLPAuth == "" {
		return nil
	}
	if f.OTLP == "" {
		return errors.New("--otlp-auth needs --otlp")
	}
	if cfg.Traces.Authorization, err = secret.Read(f.OTLPAuth, "."); err != nil {
		return fmt.Errorf("--otlp-auth: %w", err)
	}
	return nil
}
