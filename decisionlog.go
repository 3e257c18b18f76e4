package catalogd

import (
	"cmp"
	"errors"
	"io"

	"github.com/catalogd/catalogd/internal/decisionlog"
)

// DecisionLog says where every decision is written down, as a JSON object a line in the form of OPA's decision logs
// (docs/decision-log.md): one of File, Writer and Collector.
type DecisionLog struct {
	// File is appended to. Before it grows over MaxBytes (100 MiB by default) it is renamed to FILE.1, and so on up to Keep
	// (5 by default; negative keeps none).
	File     string
	MaxBytes int64
	Keep     int
	// Writer gets the lines, and is not closed.
	Writer io.Writer
	// Collector is the URL of a service that takes OPA's decision logs, Authorization what it is sent in that header.
	Collector     string
	Authorization string
	// Block makes calls wait where the log can't be written as fast as they come, or at all; else events are dropped and
	// counted.
	Block bool
}

// open is nil where nothing is written.
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
		sinks = append(sinks, func() (decisionlog.Sink, error) { return decisionlog.NewCollector(d.Collector, d.Authorization) })
	}
	switch len(sinks) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, errors.New("it goes to a file, a writer or a collector, and only to one of them")
	}
	sink, err := sinks[0]()
	if err != nil {
		return nil, err
	}
	return decisionlog.New(decisionlog.Config{Sink: sink, Block: d.Block, Version: cfg.Version, Logger: cfg.Log}), nil
}

// closeLog writes what waits.
func (c *Catalog) closeLog() {
	if c.written == nil {
		return
	}
	if err := c.written.Close(); err != nil {
		c.log.Error("closing the decision log", "error", err)
	}
}
