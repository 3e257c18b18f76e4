package worker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/registry"
)

// CheckerConfig says how calls are checked. Args and Schema are needed.
type CheckerConfig struct {
	// Args and Schema are as in Config.
	Args   []string
	Schema []byte
	// Size is the maximum number of children, and so of calls that are checked at once; 2 by default.
	Size int
	// Deadline bounds the evaluation of one call; 100 ms by default. The start of a child and the building of
	// a package don't count, because they don't depend on the arguments.
	Deadline time.Duration
	// Load bounds the building of a contract's value; 10 s by default.
	Load time.Duration
	// Memory bounds what a child uses, in bytes; 256 MiB by default.
	Memory int64
	// Checks is after how many checks a child is replaced, because CUE never frees a name; 100,000 by
	// default.
	Checks int
	// Idle is how long a child waits for a call before it is killed; 10 minutes by default.
	Idle time.Duration
	// Logger gets a line when a child starts and when one fails; nil discards.
	Logger *slog.Logger
}

func (c CheckerConfig) withDefaults() CheckerConfig {
	if c.Size == 0 {
		c.Size = 2
	}
	if c.Deadline == 0 {
		c.Deadline = 100 * time.Millisecond
	}
	if c.Load == 0 {
		c.Load = 10 * time.Second
	}
	if c.Memory == 0 {
		c.Memory = 256 << 20
	}
	if c.Checks == 0 {
		c.Checks = 100_000
	}
	if c.Idle == 0 {
		c.Idle = 10 * time.Minute
	}
	return c
}

// Checker checks with CUE what the schemas of contracts can't express, in a few children. A child that
// exceeds the deadline or its memory is killed: its call fails and no other does, and a new child replaces
// it. The first call starts the first child. A Checker is safe for concurrent use.
type Checker struct {
	cfg      CheckerConfig
	packages packageStore
	pool     *pool
}

// CheckerStatus describes the children that check calls.
type CheckerStatus struct {
	PoolStatus
	// Packages is the number of packages whose sources are held.
	Packages int
}

// NewChecker returns a Checker without a child. Close must be called.
func NewChecker(cfg CheckerConfig) *Checker {
	cfg = cfg.withDefaults()
	return &Checker{cfg: cfg, pool: newPool(poolConfig{
		name: "check worker", what: "the process that checks with CUE", args: cfg.Args,
		setup: message{frameCheckSetup, checkSetup{Schema: cfg.Schema, Memory: cfg.Memory}},
		size:  cfg.Size, uses: cfg.Checks, idle: cfg.Idle, log: cfg.Logger,
	})}
}

// Hold keeps the sources of a build's packages until release is called, which must happen once.
func (c *Checker) Hold(b *registry.Build) (release func()) { return c.packages.hold(b) }

// Rest is the check of one contract. open says that unknown keys are allowed. It fails unless a build with
// the contract's package is held.
func (c *Checker) Rest(r contract.Remainder, open bool) contract.Rest {
	return func(ctx context.Context, args json.RawMessage) (json.RawMessage, []contract.Violation, error) {
		q := checkRequest{contractKey{r.Digest, r.Path, open}, args}
		var v checkResult
		err := c.pool.do(ctx, func(w *pooledProcess) (answered bool, err error) {
			v, answered, err = c.ask(ctx, w, q)
			return answered, err
		})
		if err != nil {
			return nil, nil, err
		}
		return v.outcome(args)
	}
}

// Close kills the children. Every check fails afterwards.
func (c *Checker) Close() { c.pool.close() }

// Status describes the children. It does not wait for a check.
func (c *Checker) Status() CheckerStatus { return CheckerStatus{c.pool.status(), c.packages.count()} }

// outcome is the result as a contract.Rest returns it. Where CUE filled nothing in, it returns args.
func (v checkResult) outcome(args json.RawMessage) (json.RawMessage, []contract.Violation, error) {
	switch {
	case v.Failed != "":
		return nil, nil, errors.New(v.Failed)
	case v.Filled == nil && v.Violations == nil:
		return args, nil, nil
	}
	return v.Filled, v.Violations, nil
}

// The steps of a check that have limits.
const (
	sendingOfPackage  = "the sending of the package for a check with CUE"
	buildingOfPackage = "the building of the package for a check with CUE"
	evaluationOfCheck = "the check of the arguments with CUE"
)

// ask has one child check one call. answered says that the child sent a frame for it.
func (c *Checker) ask(ctx context.Context, w *pooledProcess, q checkRequest) (
	v checkResult, answered bool, err error,
) {
	messages, err := c.messages(w, q)
	if err != nil {
		return checkResult{Failed: err.Error()}, true, nil
	}
	for _, m := range messages {
		if err := c.pool.deliver(ctx, w, m, limitError{limit: c.cfg.Load, step: sendingOfPackage}); err != nil {
			return v, false, err
		}
	}
	evaluation := limitError{limit: c.cfg.Deadline, step: evaluationOfCheck}
	answered, err = c.pool.exchange(ctx, w, message{frameCheck, q}, evaluation,
		func(f frame) (next limitError, done bool, err error) {
			switch f.kind {
			case frameLoading:
				return limitError{limit: c.cfg.Load, step: buildingOfPackage}, false, nil
			case frameLoaded:
				return evaluation, false, nil
			}
			return next, true, f.decode(frameChecked, &v)
		})
	return v, answered, err
}

// messages are those that must precede a call: the packages that the child need not keep, and the one that it
// lacks. It records in w what the child then has.
func (c *Checker) messages(w *pooledProcess, q checkRequest) (out []message, err error) {
	if removed := c.packages.unheld(w.packages); len(removed) > 0 {
		for _, d := range removed {
			delete(w.packages, d)
		}
		out = append(out, message{frameForget, forgetPackages{removed}})
	}
	if !w.packages[q.Contract.Digest] {
		p, ok := c.packages.get(q.Contract.Digest)
		if !ok {
			return nil, errors.New("the sources of the tool's package are not here any more")
		}
		w.packages[q.Contract.Digest] = true
		out = append(out, message{framePackage, p})
	}
	return out, nil
}
