package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/secret"
)

// decisionLogFlags configure where decisions are logged.
type decisionLogFlags struct {
	DecisionLog      string `placeholder:"FILE|URL|-" help:"Write every decision to a file, to a collector of OPA decision logs, or to standard output (-)."`
	DecisionLogBlock bool   `help:"Make calls wait for a decision log that can't be written, instead of dropping and counting its events."`
	DecisionLogSize  int64  `default:"104857600" placeholder:"BYTES" help:"Rotate a file before it grows over this size."`
	DecisionLogKeep  int    `default:"5" help:"How many rotated files to keep."`
	DecisionLogAuth  string `placeholder:"env:NAME|file:PATH" help:"The Authorization header to send to a collector."`
}

// log returns the destination of decisions; stdout is what - writes to, and nil if it is already in use.
func (f decisionLogFlags) log(stdout io.Writer) (d catalogd.DecisionLog, err error) {
	d.Block, d.MaxBytes, d.Keep = f.DecisionLogBlock, f.DecisionLogSize, f.DecisionLogKeep
	if d.Keep == 0 {
		d.Keep = -1
	}
	if f.DecisionLogAuth != "" && !strings.Contains(f.DecisionLog, "://") {
		return d, errors.New("--decision-log-auth is for a collector: --decision-log URL")
	}
	switch to := f.DecisionLog; {
	case to == "" && f.DecisionLogBlock:
		return d, errors.New("--decision-log-block needs --decision-log")
	case to == "-" && stdout == nil:
		return d, errors.New("standard output carries the protocol; name a file with --decision-log")
	case to == "-":
		d.Writer = stdout
	case strings.Contains(to, "://"):
		d.Collector = to
		if f.DecisionLogAuth != "" {
			if d.Authorization, err = secret.Read(f.DecisionLogAuth, "."); err != nil {
				return d, fmt.Errorf("--decision-log-auth: %w", err)
			}
		}
	default:
		d.File = to
	}
	return d, nil
}
