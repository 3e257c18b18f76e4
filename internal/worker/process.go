package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/registry"
)

// startTimeout bounds the time from the start of a child to its hello, which takes 50 ms on an idle machine.
const startTimeout = 30 * time.Second

// childProcess is the parent's end of one child.
type childProcess struct {
	process *egress.Process
	out     frameWriter
	frames  chan frame    // closed when the stream has ended
	err     error         // why it ended
	closing chan struct{} // closed when nobody receives frames any more
	stopped sync.Once
	hello   hello
}

// compileProcess is a child that compiles, with what the parent knows of it.
type compileProcess struct {
	*childProcess
	contents map[digest]bool // the file contents that the child has
	build    *registry.Build // of its last answer, from which the next differs
	builds   int
}

// launch starts a child at the given priority, sends its first message, of the given kind, and waits for its
// hello.
func launch(ctx context.Context, nice int, args []string, kind byte, first any) (*childProcess, error) {
	process, err := egress.Self(nice, args...)
	if err != nil {
		return nil, fmt.Errorf("it can't be started: %w", err)
	}
	p := &childProcess{
		process: process, out: frameWriter{out: process.Stdin},
		frames: make(chan frame), closing: make(chan struct{}),
	}
	go p.read()
	if p.hello, err = p.greet(ctx, kind, first); err != nil {
		p.stop()
		return nil, fmt.Errorf("it does not answer: %w; its last words: %q", err, stderrTail(process))
	}
	return p, nil
}

// start starts a child that runs at most so many steps at once, and waits until it is ready.
func (c *Compiler) start(ctx context.Context, steps int) (*compileProcess, error) {
	p, err := launch(ctx, egress.Background, c.cfg.Args, frameSetup, compileSetup{
		Schema: c.cfg.Schema, MaxTools: c.cfg.MaxTools, Steps: steps, Memory: c.cfg.Memory, Keep: c.cfg.Keep,
	})
	if err != nil {
		return nil, err
	}
	before := c.status.Load()
	status := &Status{PID: p.process.Pid(), Sandbox: p.hello.Sandbox}
	c.status.Store(status)
	go func() {
		<-p.process.Done()
		c.status.CompareAndSwap(status, &Status{Sandbox: p.hello.Sandbox})
	}()
	p.logStart(c.cfg.Logger, "compile worker", before.Sandbox == nil)
	return &compileProcess{childProcess: p, contents: map[digest]bool{}, build: &registry.Build{}}, nil
}

// logStart logs the start of a child. That is a warning where the kernel confines it less than it should, once for
// each kind of child: for the first of them.
func (p *childProcess) logStart(log *slog.Logger, name string, first bool) {
	if missing := unconfined(runtime.GOOS, p.hello.Sandbox); first && missing != "" {
		log.Warn(name+" started with less of a sandbox than it should have; catalogd doctor says more",
			"pid", p.process.Pid(), "sandbox", p.hello.Sandbox, "missing", missing)
		return
	}
	log.Debug(name+" started", "pid", p.process.Pid(), "sandbox", p.hello.Sandbox)
}

// unconfined names the layers that a child lacks of those that every supported kernel has, which is none but on Linux.
// seccomp alone keeps it from files, sockets and programs, so that Landlock may be missing.
func unconfined(goos string, sandbox []string) string {
	var missing []string
	for _, layer := range []string{"seccomp", "rlimit_data"} {
		if goos == "linux" && !slices.Contains(sandbox, layer) {
			missing = append(missing, layer)
		}
	}
	return strings.Join(missing, ", ")
}

// greet sends the first message and waits for the hello.
func (p *childProcess) greet(ctx context.Context, kind byte, first any) (h hello, err error) {
	sent := p.send(kind, first)
	limit := time.NewTimer(startTimeout)
	defer limit.Stop()
	for {
		select {
		case f, ok := <-p.frames:
			if !ok {
				return h, p.err
			}
			err = f.decode(frameHello, &h)
			return h, err
		case err := <-sent:
			if err != nil {
				return h, err
			}
			sent = nil
		case <-limit.C:
			return h, fmt.Errorf("nothing came in %s", startTimeout)
		case <-ctx.Done():
			return h, ctx.Err()
		}
	}
}

// send writes a message in the background, because the child may not read before its own frames are read. The
// result comes on the channel.
func (p *childProcess) send(kind byte, message any) <-chan error {
	sent := make(chan error, 1)
	go func() { sent <- p.out.write(kind, message) }()
	return sent
}

// read sends the child's frames to p.frames until the stream ends or stop is called.
func (p *childProcess) read() {
	defer close(p.frames)
	r := bufio.NewReaderSize(p.process.Stdout, 1<<16)
	for {
		f, err := readFrame(r, maxChildFrame)
		if err != nil {
			p.err = err
			return
		}
		select {
		case p.frames <- f:
		case <-p.closing:
			p.err = errors.New("it was stopped")
			return
		}
	}
}

// stop kills the child with its process group, and returns when it and the reading of its frames have ended.
func (p *childProcess) stop() {
	p.stopped.Do(func() {
		close(p.closing)
		p.process.Kill()
		for range p.frames {
		}
		p.process.Stdout.Close()
	})
}

// exit stops the child and returns how it ended.
func (p *childProcess) exit() egress.Exit {
	p.stop()
	return p.process.Wait()
}

// stderrTail is the end of what the child wrote to standard error, for the log.
func stderrTail(p *egress.Process) string {
	const maxBytes = 2 << 10
	text := p.Stderr()
	return text[max(0, len(text)-maxBytes):]
}

// ended reports whether an error means that the child's stream has ended, not that the child sent something
// wrong.
func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
