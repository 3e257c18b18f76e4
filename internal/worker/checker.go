package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/registry"
)

// CheckerConfig says how calls are checked. Args and Schema are needed.
type CheckerConfig struct {
	// Args and Schema are as in Config.
	Args   []string
	Schema []byte
	// Size is how many children there are at most; 2 by default. So many calls are checked at once, and the others wait.
	Size int
	// Deadline bounds the evaluation of one call; 100 ms by default. What comes before it, the start of a child and the
	// building of a package, is not the caller's doing and does not count.
	Deadline time.Duration
	// Load bounds the building of a package's value; 10 s by default, as a compilation.
	Load time.Duration
	// Memory bounds what a child uses, in bytes; 256 MiB by default.
	Memory int64
	// Checks is after how many checks a child is replaced, because CUE keeps every name that it has ever met; 100,000 by
	// default.
	Checks int
	// Idle is how long a child waits for a call before it is ended; 10 minutes by default.
	Idle time.Duration
	// Logger gets a line when a child starts and when one had to be ended; nil discards.
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
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Checker has CUE check what the schemas of contracts can't say, in a few children that are ended where an argument keeps
// them busy or takes their memory. Such a call fails and no other does; a new child takes the place while the others go
// on. The first child is started by the first call. A Checker is safe for concurrent use.
type Checker struct {
	cfg     CheckerConfig
	held    held
	slots   chan struct{}   // one for each child that works, or is started
	closed  context.Context // ends with Close
	end     context.CancelFunc
	closing sync.Once
	wait    sync.WaitGroup // for what goes on behind a call

	mu    sync.Mutex
	ready []*checking // that do nothing now, the last used last

	live    sync.Map // the children that run, *checking
	sandbox atomic.Pointer[[]string]

	checks, kills, timeouts, deaths atomic.Int64
}

// checking is a child that checks calls, with what the parent knows of it.
type checking struct {
	*worker
	has    map[string]bool // the packages that it has, by digest
	checks int
	idle   *time.Timer
}

// CheckerStatus describes the children that check calls.
type CheckerStatus struct {
	// PIDs are those of the children that run now.
	PIDs []int
	// Sandbox is as in Status.
	Sandbox []string
	// Packages is of how many packages the sources are held for the generations that serve.
	Packages int
	// Checks counts calls that were decided by a child; Timeouts those that took longer than they may; Kills the children
	// that were ended for a call; Deaths those that ended by themselves in the middle of one.
	Checks, Timeouts, Kills, Deaths int64
}

// NewChecker returns a Checker without a child. Close ends it.
func NewChecker(cfg CheckerConfig) *Checker {
	c := &Checker{cfg: cfg.withDefaults()}
	c.slots = make(chan struct{}, c.cfg.Size)
	c.closed, c.end = context.WithCancel(context.Background())
	return c
}

// Hold keeps the sources of a build's packages until release is called, which must happen once.
func (c *Checker) Hold(b *registry.Build) (release func()) { return c.held.hold(b) }

// Rest is the check of one contract; open tells that further keys pass, as strictness has it. It works as long as some build is held that has its package.
func (c *Checker) Rest(r contract.Remainder, open bool) contract.Rest {
	return func(ctx context.Context, args json.RawMessage) (json.RawMessage, []contract.Violation, error) {
		return c.check(ctx, rule{r.Digest, r.Path, open}, args)
	}
}

// Close ends the children. Every check fails from then on.
func (c *Checker) Close() { c.closing.Do(c.close) }

func (c *Checker) close() {
	c.end()
	c.mu.Lock()
	idle := c.ready
	c.ready = nil
	c.mu.Unlock()
	for _, w := range idle {
		c.discard(w)
	}
	for range c.cfg.Size { // those that work end their call first
		c.slots <- struct{}{}
	}
	c.wait.Wait()
}

// Status never waits for a check.
func (c *Checker) Status() CheckerStatus {
	s := CheckerStatus{
		Packages: c.held.count(), Checks: c.checks.Load(), Timeouts: c.timeouts.Load(), Kills: c.kills.Load(), Deaths: c.deaths.Load(),
	}
	if sandbox := c.sandbox.Load(); sandbox != nil {
		s.Sandbox = *sandbox
	}
	c.live.Range(func(w, _ any) bool {
		s.PIDs = append(s.PIDs, w.(*checking).process.Pid())
		return true
	})
	return s
}

var errClosed = errors.New("the checker is closed")

// check gives one call to a child: the one that was used last, which has the most built already, or a new one.
func (c *Checker) check(ctx context.Context, r rule, args json.RawMessage) (json.RawMessage, []contract.Violation, error) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("no process was free to check with CUE: %w", ctx.Err())
	case <-c.closed.Done():
		return nil, nil, errClosed
	}
	v, err := c.once(ctx, r, args)
	if err != nil {
		return nil, nil, err
	}
	return v.outcome(args)
}

// outcome is what a contract wants to hear. Where nothing is filled in, the arguments are what came.
func (v verdict) outcome(args json.RawMessage) (json.RawMessage, []contract.Violation, error) {
	switch {
	case v.Failed != "":
		return nil, nil, errors.New(v.Failed)
	case v.Filled == nil && v.Violations == nil:
		return args, nil, nil
	}
	return v.Filled, v.Violations, nil
}

// once has a call checked, and gives the slot back when a child is ready again.
func (c *Checker) once(ctx context.Context, r rule, args json.RawMessage) (verdict, error) {
	w, fresh, err := c.take()
	if err != nil {
		<-c.slots
		return verdict{}, err
	}
	v, heard, err := c.ask(ctx, w, r, args)
	if err != nil && !fresh && !heard && ended(err) {
		// It had died while it had nothing to do. What it was given now is none of its business.
		c.discard(w)
		if w, err = c.start(); err != nil {
			<-c.slots
			return verdict{}, err
		}
		v, _, err = c.ask(ctx, w, r, args)
	}
	if err != nil {
		return verdict{}, c.lose(w, err)
	}
	c.checks.Add(1)
	if w.checks++; w.checks >= c.cfg.Checks {
		c.replace(w)
		return v, nil
	}
	c.giveBack(w)
	<-c.slots
	return v, nil
}
