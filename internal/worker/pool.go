package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/fair"
)

// poolConfig says what the children of a pool are. All but uses and log is needed.
type poolConfig struct {
	name  string   // for the log, such as "check worker"
	what  string   // for errors, such as "the process that checks with CUE"
	args  []string // with which this program calls Child
	setup message  // the first to a child
	size  int      // the maximum number of children
	share int      // how many of them one principal may use through one branch; 0 for all
	uses  int      // how many requests a child answers before it is replaced; 0 for no limit
	idle  time.Duration
	log   *slog.Logger
}

// pool is a few children, each of which answers one request at a time. A child that fails a request is killed
// and replaced in the background; no other request fails. The first request starts the first child. A pool is
// safe for concurrent use.
type pool struct {
	poolConfig
	slots   *fair.Places    // one for each child that is answering or starting
	closed  context.Context // ends with close
	end     context.CancelFunc
	closing sync.Once
	wait    sync.WaitGroup // for background work

	mu     sync.Mutex
	ready  []*pooledProcess // the idle children, the most recently used last
	warmed chan struct{}    // of the latest warm, closed when it has ended; nil before

	live    sync.Map // the running children, *pooledProcess
	sandbox atomic.Pointer[[]string]

	answers, kills, timeouts, deaths atomic.Int64
}

// pooledProcess is a child of a pool, with what the parent knows of it.
type pooledProcess struct {
	*childProcess
	packages  map[string]bool // those that a child that checks has, by digest
	uses      int
	idleTimer *time.Timer
}

// PoolStatus describes the children of a Checker or a ProgramRunner.
type PoolStatus struct {
	// PIDs are those of the running children.
	PIDs []int
	// Sandbox is as in Status.
	Sandbox []string
	// Answers counts requests that a child answered, Timeouts those that exceeded a time limit, Kills the
	// children that were killed during a request, and Deaths those that ended by themselves during one.
	Answers, Timeouts, Kills, Deaths int64
}

var errClosed = errors.New("the worker processes have been closed")

func newPool(cfg poolConfig) *pool {
	if cfg.log == nil {
		cfg.log = slog.New(slog.DiscardHandler)
	}
	p := &pool{poolConfig: cfg, slots: fair.New(fair.Limits{Total: cfg.size, Principal: cfg.share, Queue: -1})}
	p.closed, p.end = context.WithCancel(context.Background())
	return p
}

// close kills the children. Every request fails afterwards.
func (p *pool) close() { p.closing.Do(p.closeOnce) }

func (p *pool) closeOnce() {
	p.end()
	p.mu.Lock()
	idle := p.ready
	p.ready = nil
	p.mu.Unlock()
	for _, w := range idle {
		p.discard(w)
	}
	p.slots.Close() // waits for the requests that are being answered
	p.wait.Wait()
}

// status describes the children. It does not wait for a request.
func (p *pool) status() PoolStatus {
	s := PoolStatus{
		Answers: p.answers.Load(), Timeouts: p.timeouts.Load(), Kills: p.kills.Load(), Deaths: p.deaths.Load(),
	}
	if sandbox := p.sandbox.Load(); sandbox != nil {
		s.Sandbox = *sandbox
	}
	p.live.Range(func(w, _ any) bool {
		s.PIDs = append(s.PIDs, w.(*pooledProcess).process.Pid())
		return true
	})
	return s
}

// warm starts a child in the background, unless one runs or starts.
func (p *pool) warm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.warmed != nil {
		select {
		case <-p.warmed:
		default:
			return
		}
	}
	for range p.live.Range {
		return
	}
	nobody := fair.Key{}
	if p.slots.Try(nobody) != nil {
		return
	}
	warmed := make(chan struct{})
	p.warmed = warmed
	p.wait.Go(func() {
		defer close(warmed)
		p.startInSlot(nobody)
	})
}

// do has one child handle a request: the one that was used last, which has the most in its caches, or a new
// one. ask sends the request and reads the answer; answered says that the child sent a frame for it. After an
// error of ask the child is not used again. Where requests wait for a child, whose turn it is depends on for whom
// they are (fair.From); a child that has to be replaced counts to them until the new one is ready.
func (p *pool) do(ctx context.Context, ask func(*pooledProcess) (answered bool, err error)) error {
	who := fair.From(ctx)
	switch err := p.slots.Take(ctx, who, 0); {
	case errors.Is(err, fair.ErrClosed):
		return errClosed
	case err != nil:
		return fmt.Errorf("%s was not free: %w", p.what, err)
	}
	w, fresh, err := p.acquire(ctx)
	if err != nil {
		p.slots.Release(who)
		return err
	}
	answered, err := ask(w)
	if err != nil && !fresh && !answered && ended(err) && !ranOut(w.exit()) {
		// The child had died while it was idle; the request is not the cause.
		p.discard(w)
		if w, err = p.start(ctx); err != nil {
			p.slots.Release(who)
			return err
		}
		_, err = ask(w)
	}
	if err != nil {
		return p.fail(w, who, err)
	}
	p.answers.Add(1)
	if w.uses++; w.uses == p.uses {
		p.replace(w, who, func() {})
		return nil
	}
	p.putBack(w)
	p.slots.Release(who)
	return nil
}

// acquire returns an idle child, or a new one, for which fresh is true.
func (p *pool) acquire(ctx context.Context) (w *pooledProcess, fresh bool, err error) {
	w, warmed := p.takeReady()
	if w == nil && warmed != nil {
		select {
		case <-warmed:
			w, _ = p.takeReady()
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
	if w != nil {
		w.idleTimer.Stop()
		return w, false, nil
	}
	w, err = p.start(ctx)
	return w, true, err
}

// takeReady returns the idle child that was used last, or nil, and warmed.
func (p *pool) takeReady() (w *pooledProcess, warmed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.ready); n > 0 {
		w = p.ready[n-1]
		p.ready = p.ready[:n-1]
	}
	return w, p.warmed
}

// putBack makes a child available to the next request.
func (p *pool) putBack(w *pooledProcess) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Err() != nil {
		p.wait.Go(func() { p.discard(w) })
		return
	}
	w.idleTimer = time.AfterFunc(p.idle, func() { p.endIdle(w) })
	p.ready = append(p.ready, w)
}

// endIdle kills a child that has been idle, unless a request has just acquired it.
func (p *pool) endIdle(w *pooledProcess) {
	p.mu.Lock()
	i := slices.Index(p.ready, w)
	if i >= 0 {
		p.ready = slices.Delete(p.ready, i, i+1)
	}
	p.mu.Unlock()
	if i >= 0 {
		p.discard(w)
	}
}

// start starts a child and waits until it is ready.
func (p *pool) start(ctx context.Context) (*pooledProcess, error) {
	if p.closed.Err() != nil {
		return nil, errClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.closed, cancel)()
	child, err := launch(ctx, egress.Foreground, p.args, p.setup.kind, p.setup.body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.what, err)
	}
	w := &pooledProcess{childProcess: child, packages: map[string]bool{}}
	p.live.Store(w, nil)
	child.logStart(p.log, p.name, p.sandbox.Swap(&child.hello.Sandbox) == nil)
	return w, nil
}

// discard kills a child.
func (p *pool) discard(w *pooledProcess) {
	w.stop()
	p.live.Delete(w)
}

// fail kills and replaces a child that failed a request. It returns the error of the request: a limitError, a
// deathError, or err.
func (p *pool) fail(w *pooledProcess, who fair.Key, err error) error {
	why := err
	var timeout limitError
	switch {
	case errors.As(err, &timeout):
		p.timeouts.Add(1)
		p.kills.Add(1)
	case ended(err):
		p.deaths.Add(1)
		err = deathError{p.what, w.exit()}
	default:
		p.kills.Add(1)
	}
	p.replace(w, who, func() {
		p.log.Warn(p.name+" ended",
			"pid", w.process.Pid(), "why", why, "exit", w.exit().String(), "stderr", stderrTail(w.process))
	})
	return err
}

// replace replaces a child in the background, so that the next request need not wait for the start of the new
// one. It calls killed in between, and frees the slot, which who had taken, when the new child is ready.
func (p *pool) replace(w *pooledProcess, who fair.Key, killed func()) {
	p.wait.Go(func() {
		p.discard(w)
		killed()
		p.startInSlot(who)
	})
}

// startInSlot starts a child, and frees the slot, which who had taken, when it is ready.
func (p *pool) startInSlot(who fair.Key) {
	defer p.slots.Release(who)
	w, err := p.start(p.closed)
	if err != nil {
		if p.closed.Err() == nil {
			p.log.Error(p.name+" can't be started; the next request tries again", "error", err)
		}
		return
	}
	p.putBack(w)
}

// deathError is the error of a request during which the child ended by itself.
type deathError struct {
	what string
	exit egress.Exit
}

func (e deathError) Error() string { return e.what + " ended in the middle of it" }

// limitError is the error of a request for which a step exceeded its time limit. It is a
// context.DeadlineExceeded.
type limitError struct {
	limit time.Duration
	step  string
	// starved says that the child did not use that much processor time: the machine was busy, or the child stopped.
	starved bool
}

func (e limitError) Error() string { return fmt.Sprintf("%s took longer than %s", e.step, e.limit) }

func (e limitError) Is(err error) bool { return err == context.DeadlineExceeded }

// message is a message to send.
type message struct {
	kind byte
	body any
}

// clockDelay is the part of a limit after which its clock is started, because reading it takes a tenth of the
// time of a short request.
const clockDelay = 10

// exchange sends a request to a child and has handle look at each frame that comes, until it returns done.
// limit is that of the child's work, until handle returns another. answered says that a frame came.
func (p *pool) exchange(ctx context.Context, w *pooledProcess, request message, limit limitError,
	handle func(frame) (next limitError, done bool, err error)) (answered bool, err error) {
	sent := w.send(request.kind, request.body)
	timer := time.NewTimer(limit.limit / clockDelay)
	defer timer.Stop()
	var work workClock // not started yet
	for {
		select {
		case f, ok := <-w.frames:
			if !ok {
				return answered, w.err
			}
			answered = true
			next, done, err := handle(f)
			if done || err != nil {
				return answered, err
			}
			limit, work = next, workClock{}
			timer.Reset(limit.limit / clockDelay)
		case <-sent:
			sent = nil // if that failed, the end of the frames says why
		case <-timer.C:
			if work == (workClock{}) {
				work = startClock(w.process.Pid())
			}
			left := work.left(limit.limit, poolClockFactor)
			if left <= 0 {
				limit.starved = !work.worked(limit.limit)
				return answered, limit
			}
			timer.Reset(left)
		case <-ctx.Done():
			return answered, ctx.Err()
		case <-p.closed.Done():
			return answered, errClosed
		}
	}
}

// deliver sends a message that is not answered, and waits until it is sent.
func (p *pool) deliver(ctx context.Context, w *pooledProcess, m message, limit limitError) error {
	timer := time.NewTimer(limit.limit)
	defer timer.Stop()
	select {
	case err := <-w.send(m.kind, m.body):
		if err != nil {
			return fmt.Errorf("%w: %v", io.ErrUnexpectedEOF, err)
		}
		return nil
	case <-timer.C:
		return limit
	case <-ctx.Done():
		return ctx.Err()
	case <-p.closed.Done():
		return errClosed
	}
}
