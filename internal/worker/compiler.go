// Package worker evaluates CUE and runs jq programs in child processes, because neither can be stopped: a small
// catalog can keep CUE's evaluator busy for ever, and either can take all memory. A process can be killed.
//
// A Compiler compiles catalogs in one child, a Checker checks the arguments of calls in a few, a ProgramRunner
// runs jq programs in a few others. A child is this same program, started again (egress.Self) with a command
// that calls Child. Length-prefixed frames of plain data go over its standard input and output (frame.go,
// message.go). It opens no file and no connection; on Linux the kernel enforces that (sandbox_linux.go).
//
// A child that compiles lives long and compiles incrementally, as a loader.Compiler does. The parent sends
// the sources that the child doesn't have yet. The child reports the steps that begin and end, then sends the
// declarations that differ from those of the build before (difference.go). A step is the parsing of a file or
// the evaluation of a package. One that takes too long or too much memory has the child killed with its
// process group, and is a problem of the step's files (failure.go, cause.go); the next build gets a new
// child. Any other death during a build is a problem too.
//
// The children of a Checker or a ProgramRunner are a pool (pool.go); each answers one call at a time. One that
// checks gets the sources of the packages that serve, and builds a contract's value when it is first used. One
// that runs programs gets the program with each call, and keeps it compiled.
//
// The parent trusts nothing that a child sends: it is data within limits, and a frame that is not of the
// protocol, or too large, has the child killed.
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
	// Timeout bounds one step, and the time between two frames of a child that runs no step; 10 s by default.
	Timeout time.Duration
	// Memory bounds what the child uses, in bytes; 1 GiB by default.
	Memory int64
	// Keep is how much memory, in bytes, the child may use between builds; one that uses more ends, and the
	// next build compiles everything again. 256 MiB by default.
	Keep int64
	// Builds is after how many builds a child is replaced; 1,000 by default.
	Builds int
	// Idle is how long a child waits for the next build before it is killed; 10 minutes by default.
	Idle time.Duration
	// Logger gets a line when a child starts and when one fails; nil discards.
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

// Compiler compiles snapshots in a child process. It is safe for concurrent use; one Compile runs at a time.
// The child is started by the first Compile.
type Compiler struct {
	cfg    Config
	status atomic.Pointer[Status]
	closed context.Context // ends with Close
	end    context.CancelFunc

	mu    sync.Mutex      // held during a build
	child *compileProcess // nil while there is none
	// lastSources are the digests of the files, by place, of the last build that was answered: a file that
	// differs is the first suspect of a failure.
	lastSources map[string]digest
	idle        *time.Timer
}

// Status describes the child.
type Status struct {
	// PID is 0 while none runs.
	PID int
	// Sandbox names what confines the latest child: seccomp, landlock, rlimit_data. It is empty where nothing
	// does, and nil before the first child.
	Sandbox []string
}

// New returns a Compiler without a child. Close must be called.
func New(cfg Config) *Compiler {
	c := &Compiler{cfg: cfg.withDefaults()}
	c.closed, c.end = context.WithCancel(context.Background())
	c.status.Store(&Status{})
	return c
}

// Status describes the child. It does not wait for a build.
func (c *Compiler) Status() Status {
	s := *c.status.Load()
	s.Sandbox = slices.Clone(s.Sandbox)
	return s
}

// Close kills the child and so ends a running build. Compile fails afterwards.
func (c *Compiler) Close() {
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle != nil {
		c.idle.Stop()
	}
	c.discard()
}

// Compile returns what loader.Compiler's Compile does. Where the child was killed or died, it returns no
// build and a problem of code load_timeout, load_memory or load_failed. It returns at once when ctx ends.
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
	a := &compilation{compiler: c, src: src, sums: sums(src)}
	build, err := a.run(ctx)
	if a.childWasGone(err) {
		// The child ended between two builds, to free its memory or because somebody killed it.
		c.discard()
		a = &compilation{compiler: c, src: src, sums: a.sums}
		build, err = a.run(ctx)
	}
	if a.ranOutTogether(err) {
		// Several packages shared the memory, so none is known to be the cause. Evaluated one at a time, each
		// has enough or is the cause.
		c.discard()
		a = &compilation{compiler: c, src: src, sums: a.sums, steps: 1}
		build, err = a.run(ctx)
	}
	if err != nil {
		l := a.failure(ctx, err)
		c.discard()
		c.findCause(ctx, a, l)
		c.discard()
		return nil, l
	}
	c.lastSources = a.sumsByPlace()
	if c.child.builds++; c.child.builds >= c.cfg.Builds {
		c.discard()
	} else {
		c.idle = time.AfterFunc(c.cfg.Idle, c.endIdle)
	}
	if build == nil {
		return nil, a.problems.Sorted()
	}
	build.Digest = s.Digest()
	return build, a.problems.Sorted()
}

// endIdle kills a child that has been idle, unless a build has just begun.
func (c *Compiler) endIdle() {
	if c.mu.TryLock() {
		defer c.mu.Unlock()
		c.discard()
	}
}

// discard kills the child, if there is one. The caller holds c.mu.
func (c *Compiler) discard() {
	if c.child != nil {
		c.child.stop()
		c.child = nil
	}
}
