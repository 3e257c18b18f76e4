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
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Checker checks with CUE what the schemas of contracts can't express, in a few children. A child that
// exceeds the deadline or its memory is killed: its call fails and no other does, and a new child replaces
// it. The first call starts the first child. A Checker is safe for concurrent use.
type Checker struct {
	cfg      CheckerConfig
	packages packageStore
	slots    chan struct{}   // has an element for each child that is checking or starting
	closed   context.Context // ends with Close
	end      context.CancelFunc
	closing  sync.Once
	wait     sync.WaitGroup // for background work

	mu   sync.Mutex
	idle []*checkProcess // the most recently used last

	live    sync.Map // the running children, *checkProcess
	sandbox atomic.Pointer[[]string]

	checks, kills, timeouts, deaths atomic.Int64
}

// checkProcess is a child that checks calls, with what the parent knows of it.
type checkProcess struct {
	*childProcess
	has       map[string]bool // the packages that it has, by digest
	checks    int
	idleTimer *time.Timer
}

// CheckerStatus describes the children that check calls.
type CheckerStatus struct {
	// PIDs are those of the running children.
	PIDs []int
	// Sandbox is as in Status.
	Sandbox []string
	// Packages is the number of packages whose sources are held.
	Packages int
	// Checks counts calls that a child decided, Timeouts those that exceeded a limit, Kills the children that
	// were killed during a call, and Deaths those that ended by themselves during one.
	Checks, Timeouts, Kills, Deaths int64
}

// NewChecker returns a Checker without a child. Close must be called.
func NewChecker(cfg CheckerConfig) *Checker {
	c := &Checker{cfg: cfg.withDefaults()}
	c.slots = make(chan struct{}, c.cfg.Size)
	c.closed, c.end = context.WithCancel(context.Background())
	return c
}

// Hold keeps the sources of a build's packages until release is called, which must happen once.
func (c *Checker) Hold(b *registry.Build) (release func()) { return c.packages.hold(b) }

// Rest is the check of one contract. open says that unknown keys are allowed. It fails unless a build with
// the contract's package is held.
func (c *Checker) Rest(r contract.Remainder, open bool) contract.Rest {
	return func(ctx context.Context, args json.RawMessage) (json.RawMessage, []contract.Violation, error) {
		return c.check(ctx, checkRequest{contractKey{r.Digest, r.Path, open}, args})
	}
}

// Close kills the children. Every check fails afterwards.
func (c *Checker) Close() { c.closing.Do(c.close) }

func (c *Checker) close() {
	c.end()
	c.mu.Lock()
	idle := c.idle
	c.idle = nil
	c.mu.Unlock()
	for _, w := range idle {
		c.discard(w)
	}
	for range c.cfg.Size { // wait for the calls that are being checked
		c.slots <- struct{}{}
	}
	c.wait.Wait()
}

// Status describes the children. It does not wait for a check.
func (c *Checker) Status() CheckerStatus {
	s := CheckerStatus{
		Packages: c.packages.count(),
		Checks:   c.checks.Load(), Timeouts: c.timeouts.Load(), Kills: c.kills.Load(), Deaths: c.deaths.Load(),
	}
	if sandbox := c.sandbox.Load(); sandbox != nil {
		s.Sandbox = *sandbox
	}
	c.live.Range(func(w, _ any) bool {
		s.PIDs = append(s.PIDs, w.(*checkProcess).process.Pid())
		return true
	})
	return s
}

var errClosed = errors.New("the checker is closed")

// check has one call checked by the child that was used last, which has built the most values, or a new one.
func (c *Checker) check(ctx context.Context, q checkRequest) (json.RawMessage, []contract.Violation, error) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("no process was free to check with CUE: %w", ctx.Err())
	case <-c.closed.Done():
		return nil, nil, errClosed
	}
	v, err := c.checkInSlot(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	return v.outcome(q.Args)
}

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

// checkInSlot has a call checked. It frees the caller's slot, in the background where a child must be
// replaced first.
func (c *Checker) checkInSlot(ctx context.Context, q checkRequest) (checkResult, error) {
	w, fresh, err := c.acquire()
	if err != nil {
		<-c.slots
		return checkResult{}, err
	}
	v, answered, err := c.ask(ctx, w, q)
	if err != nil && !fresh && !answered && ended(err) {
		// The child had died while it was idle; the call is not the cause.
		c.discard(w)
		if w, err = c.start(); err != nil {
			<-c.slots
			return checkResult{}, err
		}
		v, _, err = c.ask(ctx, w, q)
	}
	if err != nil {
		return checkResult{}, c.fail(w, err)
	}
	c.checks.Add(1)
	if w.checks++; w.checks >= c.cfg.Checks {
		c.replace(w)
		return v, nil
	}
	c.putBack(w)
	<-c.slots
	return v, nil
}
