package catalogd

import (
	"cmp"
	"errors"
	"io"

	"github.com/catalogd/catalogd/internal/decisionlog"
)

// DecisionLog says where every decision is logged, as one JSON object a line in the format of OPA's decision
// logs (docs/decision-log.md): to one of File, Writer and Collector.
type DecisionLog struct {
	// File is appended to. Before it exceeds MaxBytes (zero means 100 MiB) it is rotated to FILE.1, FILE.2
	// and so on, of which Keep remain (zero means 5, a negative value none).
	File     string
	MaxBytes int64
	Keep     int
	// Writer gets the lines. It is not closed.
	Writer io.Writer
	// Collector is the URL of a service that accepts OPA's decision logs, Authorization the header that it is
	// sent.
	Collector     string
	Authorization string
	// Block makes calls wait while the log can't keep up or can't be written. Otherwise events are dropped
	// and counted.
	Block bool
}

// open returns nil where nothing is logged.
func (d DecisionLog) open(cfg Config) (*decisionlog.Log, error) {
	var sinks []func() (decisionlog.Sink, error)
	if d.File != "" {
		sinks = append(sinks, func() (decisionlog.Sink, error) {
			return decisionlog.OpenFile(d.File, cmp.Or(d.MaxBytes, 100<<20), max(cmp.Or(d.Keep, 5), 0))
		})
	}
	if d.Writer != nil {
		sinks = append(sinks, func() (decisionlog.Sink, error) { return decisionlog.Stream{W: d.Writer}, nil })
	}
	if d.Collector != "" {
		sinks = append(sinks, func() (decisionlog.Sink, error) {
			return decisionlog.NewCollector(d.Collector, d.Authorization)
		})
	}
	switch len(sinks) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, errors.New("got more than one of File, Writer and Collector, want one")
	}
	sink, err := sinks[0]()
	if err != nil {
		return nil, err
	}
	return decisionlog.New(decisionlog.Config{
		Sink: sink, Block: d.Block, Version: cfg.Version, Logger: cfg.Log,
	}), nil
}

// closeLog writes the events, and sends the spans, that wait.
func (c *Catalog) closeLog() {
	c.closeTraces()
	if c.written == nil {
		return
	}
	if err := c.written.Close(); err != nil {
		c.log.Error("closing the decision log", "error", err)
	}
}
