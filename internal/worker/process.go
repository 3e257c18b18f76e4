package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/catalogd/catalogd/internal/reach"
	"github.com/catalogd/catalogd/registry"
)

// startLimit bounds the time from the start of a child to its hello, which is 50 ms where nothing else runs.
const startLimit = 30 * time.Second

// worker is the parent's end of one child.
type worker struct {
	process *reach.Process
	out     frameWriter
	frames  chan frame // closes when the stream has ended, by err
	err     error
	gone    chan struct{} // closes when nobody takes frames any more
	stopped sync.Once
	hello   hello
}

// compiling is a child that compiles, with what the parent knows of it.
type compiling struct {
	*worker
	contents map[digest]bool // what the child has
	build    *registry.Build // what it answered last, which the next answer differs from
	builds   int
}

// launch starts a child of this program, at the given priority, and waits until it is ready for what its first message,
// of the given kind, asks it to be.
func launch(ctx context.Context, nice int, args []string, kind byte, first any) (*worker, error) {
	process, err := reach.Self(nice, args...)
	if err != nil {
		return nil, fmt.Errorf("it can't be started: %w", err)
	}
	w := &worker{process: process, out: frameWriter{out: process.Stdin}, frames: make(chan frame), gone: make(chan struct{})}
	go w.read()
	if w.hello, err = w.greet(ctx, kind, first); err != nil {
		w.stop()
		return nil, fmt.Errorf("it does not answer: %w; its last words: %q", err, lastWords(process))
	}
	return w, nil
}

// start starts a child that works on so many steps at once, and waits until it is ready.
func (c *Compiler) start(ctx context.Context, steps int) (*compiling, error) {
	w, err := launch(ctx, reach.Background, c.cfg.Args, frameSetup, setup{Schema: c.cfg.Schema, MaxTools: c.cfg.MaxTools, Steps: steps, Memory: c.cfg.Memory, Keep: c.cfg.Keep})
	if err != nil {
		return nil, err
	}
	status := &Status{PID: w.process.Pid(), Sandbox: w.hello.Sandbox}
	c.status.Store(status)
	go func() {
		<-w.process.Done()
		c.status.CompareAndSwap(status, &Status{Sandbox: w.hello.Sandbox})
	}()
	c.cfg.Logger.Info("compile worker started", "pid", w.process.Pid(), "sandbox", w.hello.Sandbox)
	return &compiling{worker: w, contents: map[digest]bool{}, build: &registry.Build{}}, nil
}

func (w *worker) greet(ctx context.Context, kind byte, first any) (h hello, err error) {
	sent := w.send(kind, first)
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	for {
		select {
		case f, ok := <-w.frames:
			if !ok {
				return h, w.err
			}
			err = f.decode(frameHello, &h)
			return h, err
		case err := <-sent:
			if err != nil {
				return h, err
			}
			sent = nil
		case <-limit.C:
			return h, fmt.Errorf("nothing came in %s", startLimit)
		case <-ctx.Done():
			return h, ctx.Err()
		}
	}
}

// send writes a message beside whatever the child says meanwhile. Its outcome comes on the channel.
func (w *worker) send(kind byte, message any) <-chan error {
	sent := make(chan error, 1)
	go func() { sent <- w.out.write(kind, message) }()
	return sent
}

// read hands on the frames until the stream ends or the worker is stopped.
func (w *worker) read() {
	defer close(w.frames)
	r := bufio.NewReaderSize(w.process.Stdout, 1<<16)
	for {
		f, err := readFrame(r, maxFrame)
		if err != nil {
			w.err = err
			return
		}
		select {
		case w.frames <- f:
		case <-w.gone:
			w.err = errors.New("it was stopped")
			return
		}
	}
}

// stop ends the child with its process group, and returns when both it and the reading of its frames have ended.
func (w *worker) stop() {
	w.stopped.Do(func() {
		close(w.gone)
		w.process.Kill()
		for range w.frames {
		}
		w.process.Stdout.Close()
	})
}

// exit is how the child ended, after its stream has.
func (w *worker) exit() reach.Exit {
	w.stop()
	return w.process.Wait()
}

// lastWords is the end of what the child wrote to standard error. It is for the log and decides nothing.
func lastWords(p *reach.Process) string {
	const most = 2 << 10
	text := p.Stderr()
	return text[max(0, len(text)-most):]
}

// ended reports whether an error says that the stream has ended, rather than that something else came on it.
func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
