// Package worker compiles catalogs in a child process that can be ended, because CUE can't be: a small catalog can keep
// its evaluator busy for ever, or take all memory.
//
// The child is this same program, started again (reach.Self) with a command that calls Child. It lives long and compiles
// incrementally, as a loader.Compiler does. Length-prefixed frames go over its standard input and output: the sources go
// in, those that it doesn't have yet; out come the steps that begin and end, and then the answer as plain data, as a
// difference by declaration from the answer before. The child opens no file and no connection; on Linux the kernel holds
// it to that (sandbox_linux.go), elsewhere nothing but its code does.
//
// A step (a file that is parsed, a package that is evaluated) that takes too long, or too much memory, ends the child with
// its process group. That is a problem of the step's files, and the next build gets a new child. Any other death in the
// middle of a build is a problem too. The parent takes nothing that comes back for more than data: what is no frame of the
// protocol, or too large, ends the child as well.
package worker

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Config says how to compile. Args and Schema are needed.
type Config struct {
	// Args are the arguments with which this program calls Child.
	Args []string
	// Schema and MaxTools are as in loader.Config.
	Schema   []byte
	MaxTools int
	// Timeout bounds one step, and the time in which nothing begins, ends or is answered; 10 s by default.
	Timeout time.Duration
	// Memory bounds what the child uses, in bytes; 1 GiB by default.
	Memory int64
	// Keep is how much memory, in bytes, the child may hold between builds; one that holds more ends, and the next build
	// compiles everything again. 256 MiB by default.
	Keep int64
	// Builds is after how many builds a child is replaced; 1,000 by default.
	Builds int
	// Idle is how long a child waits for the next build before it is ended; 10 minutes by default.
	Idle time.Duration
	// Logger gets a line when a child starts and when one had to be ended; nil discards.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Memory == 0 {
		c.Memory = 1 << 30
	}
	if c.Keep == 0 {
		c.Keep = 256 << 20
	}
	if c.Builds == 0 {
		c.Builds = 1000
	}
	if c.Idle == 0 {
		c.Idle = 10 * time.Minute
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Compiler compiles snapshots in a child process. It is safe for concurrent use; one Compile runs at a time. The child is
// started by the first Compile.
type Compiler struct {
	cfg    Config
	status atomic.Pointer[Status]
	closed context.Context // ends with Close
	end    context.CancelFunc

	mu     sync.Mutex // held during a build
	worker *compiling // nil while there is none
	// answered are the contents of the files, by place, that the last answer was for: what differs from them was written
	// since, and is the first to be suspected.
	answered map[string]digest
	idle     *time.Timer
}

// Status describes the child.
type Status struct {
	// PID is 0 while none runs.
	PID int
	// Sandbox names what keeps the latest child in: seccomp, landlock, rlimit_data. It is empty where nothing but its code
	// does, and nil before the first child.
	Sandbox []string
}

// New returns a Compiler without a child. Close ends it.
func New(cfg Config) *Compiler {
	c := &Compiler{cfg: cfg.withDefaults()}
	c.closed, c.end = context.WithCancel(context.Background())
	c.status.Store(&Status{})
	return c
}

// Status never waits for a build.
func (c *Compiler) Status() Status {
	s := *c.status.Load()
	s.Sandbox = slices.Clone(s.Sandbox)
	return s
}

// Close ends the child, and a build that runs. Compile fails from then on.
func (c *Compiler) Close() {
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle != nil {
		c.idle.Stop()
	}
	c.discard()
}

// Compile is loader.Compiler's, and answers the same, but that it ends: with a problem of code load_timeout, load_memory
// or load_failed and no build where the child had to be ended or died, and at once when ctx ends.
func (c *Compiler) Compile(ctx context.Context, s *loader.Snapshot) (*registry.Build, problem.List) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.closed, cancel)()
	if c.idle != nil {
		c.idle.Stop()
	}
	src := s.Sources()
	a := &attempt{compiler: c, src: src, sums: sums(src)}
	build, err := a.run(ctx)
	if a.stale(err) {
		// The child had ended between two builds, to return its memory or by a foreign hand.
		c.discard()
		a = &attempt{compiler: c, src: src, sums: a.sums}
		build, err = a.run(ctx)
	}
	if a.crowded(err) {
		// Several packages shared the memory, so that none can be blamed. One by one, either each has enough or it is the
		// one.
		c.discard()
		a = &attempt{compiler: c, src: src, sums: a.sums, steps: 1}
		build, err = a.run(ctx)
	}
	if err != nil {
		l := a.explain(ctx, err)
		c.discard()
		c.blame(ctx, a, l)
		c.discard()
		return nil, l
	}
	c.answered = a.places()
	if c.worker.builds++; c.worker.builds >= c.cfg.Builds {
		c.discard()
	} else {
		c.idle = time.AfterFunc(c.cfg.Idle, c.dismiss)
	}
	if build == nil {
		return nil, a.problems.Sorted()
	}
	build.Digest = s.Digest()
	return build, a.problems.Sorted()
}

// dismiss ends a child that has had nothing to do, unless it has just been given something.
func (c *Compiler) dismiss() {
	if c.mu.TryLock() {
		defer c.mu.Unlock()
		c.discard()
	}
}

// discard ends the child, if there is one. The caller holds c.mu.
func (c *Compiler) discard() {
	if c.worker != nil {
		c.worker.stop()
		c.worker = nil
	}
}
