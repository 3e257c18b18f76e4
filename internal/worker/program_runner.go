package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/catalogd/catalogd/internal/jq"
)

// ProgramRunnerConfig says how jq programs are run. Args is needed.
type ProgramRunnerConfig struct {
	// Args is as in Config.
	Args []string
	// Size is the maximum number of children, and so of programs that run at once; 4 by default. One principal
	// uses at most all but one of them through one branch, so that others are not held up by programs that run
	// to their deadline.
	Size int
	// Deadline bounds one run, in processor time of its child; 5 s by default.
	Deadline time.Duration
	// Memory bounds what a child uses, in bytes; 256 MiB by default.
	Memory int64
	// Idle is how long a child waits for a program before it is killed; 10 minutes by default.
	Idle time.Duration
	// Logger gets a line when a child starts and when one fails; nil discards.
	Logger *slog.Logger
}

func (c ProgramRunnerConfig) withDefaults() ProgramRunnerConfig {
	if c.Size == 0 {
		c.Size = 4
	}
	if c.Deadline == 0 {
		c.Deadline = 5 * time.Second
	}
	if c.Memory == 0 {
		c.Memory = 256 << 20
	}
	if c.Idle == 0 {
		c.Idle = 10 * time.Minute
	}
	return c
}

// ProgramRunner runs jq programs in a few children. A child that exceeds the deadline or its memory, or whose
// run is cancelled, is killed: its run fails and no other does, and a new child replaces it. The first Run or
// Warm starts the first child. A ProgramRunner is safe for concurrent use.
type ProgramRunner struct {
	cfg  ProgramRunnerConfig
	pool *pool
}

// NewProgramRunner returns a ProgramRunner without a child. Close must be called.
func NewProgramRunner(cfg ProgramRunnerConfig) *ProgramRunner {
	cfg = cfg.withDefaults()
	return &ProgramRunner{cfg: cfg, pool: newPool(poolConfig{
		name: "jq worker", what: "the process that runs jq programs", args: cfg.Args,
		setup: message{frameProgramSetup, programSetup{Memory: cfg.Memory}},
		size:  cfg.Size, share: max(1, cfg.Size-1), idle: cfg.Idle, log: cfg.Logger,
	})}
}

// Close kills the children. Every run fails afterwards.
func (r *ProgramRunner) Close() { r.pool.close() }

// Status describes the children. It does not wait for a run.
func (r *ProgramRunner) Status() PoolStatus { return r.pool.status() }

// Warm implements jq.Runner: it starts a child if there is none.
func (r *ProgramRunner) Warm() { r.pool.warm() }

// Run implements jq.Runner.
func (r *ProgramRunner) Run(ctx context.Context, source string, in json.RawMessage, limit int) (
	json.RawMessage, error,
) {
	request := message{frameProgram, programRequest{source, in, limit}}
	var v programResult
	err := r.pool.do(ctx, func(w *pooledProcess) (answered bool, err error) {
		return r.pool.exchange(ctx, w, request, limitError{limit: r.cfg.Deadline, step: "the jq program"},
			func(f frame) (next limitError, done bool, err error) {
				return next, true, f.decode(frameProgramRan, &v)
			})
	})
	var late limitError
	var death deathError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &late) && late.starved:
		return nil, jq.UnavailableError{Err: err}
	case errors.As(err, &late):
		return nil, jq.StoppedError{Limit: fmt.Sprintf("%s of processor time", late.limit)}
	case errors.As(err, &death) && ranOut(death.exit):
		return nil, jq.StoppedError{Limit: size(r.cfg.Memory) + " of memory"}
	case err != nil:
		return nil, jq.UnavailableError{Err: err}
	case v.TooLarge:
		return nil, jq.TooLargeError{Limit: limit}
	case v.Failed != "":
		return nil, errors.New(v.Failed)
	case v.Output == nil:
		return nil, jq.ErrNoOutput
	case !json.Valid(v.Output):
		return nil, jq.UnavailableError{Err: errors.New("its process answered what is not JSON")}
	}
	return v.Output, nil
}
