package decision

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The deadline of an evaluation counts processor time, so that a busy machine changes no decision. Wall time
// counts for at most the first meterAfter; then the evaluation locks its thread and reads the thread's clock.
// Where threads have no clock, wall time counts. An evaluation that has not ended grace after its deadline is
// cancelled by wall time.
const (
	meterAfter = 10 * time.Millisecond
	leastGrace = 5 * time.Second
)

// grace is ten deadlines, and at least leastGrace: enough for an evaluation that gets a tenth of a processor.
func grace(deadline time.Duration) time.Duration { return max(leastGrace, 10*deadline) }

// The evaluator checks for cancellation at every step, but not inside built-ins. A policy that calls only
// fastBuiltins is evaluated on the caller's goroutine. Any other is evaluated on a worker goroutine, and the
// caller abandons an evaluation that doesn't end: cancelGrace after the caller's context is done, or grace
// after the deadline. While maxOverdue abandoned evaluations of a point run, the point answers PolicyTimeout
// without an evaluation.
const (
	cancelGrace = time.Second
	maxOverdue  = 4
)

// evaluation is one running query, and its topdown.Cancel.
type evaluation struct {
	ctx    context.Context
	budget time.Duration
	begin  time.Time
	state  atomic.Int32

	// Owned by the goroutine that evaluates.
	steps   uint
	over    bool
	metered bool
	clock   func() time.Duration
	since   time.Duration // the clock when the metering began
}

// The states of an evaluation. It either ends or is abandoned, whichever comes first.
const (
	running int32 = iota
	stopped
	ended
	abandoned
)

// Cancel is topdown.Cancel's.
func (v *evaluation) Cancel() { v.state.CompareAndSwap(running, stopped) }

// Cancelled is topdown.Cancel's: the evaluator calls it at each step. The clocks are read at every eighth.
func (v *evaluation) Cancelled() bool {
	if v.over || v.state.Load() != running {
		return true
	}
	if v.steps++; v.steps%8 == 0 {
		v.over = v.ctx.Err() != nil || v.expired()
	}
	return v.over
}

// expired reports whether the evaluation has used up its deadline.
func (v *evaluation) expired() bool {
	passed := time.Since(v.begin)
	switch {
	case v.metered:
		return v.clock()-v.since > v.budget || passed > v.budget+grace(v.budget)
	case passed > min(meterAfter, v.budget):
		v.metered = true
		runtime.LockOSThread()
		v.clock = threadClock()
		v.since = v.clock()
	}
	return false
}

// clockOfPassing is wall time, for systems without thread clocks.
func clockOfPassing() func() time.Duration {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}

// evaluatorPanic is a panic of the evaluator.
type evaluatorPanic struct{ stack []byte }

func (*evaluatorPanic) Error() string { return "the evaluator panicked" }

var (
	// errAbandoned: the evaluation did not end, and still uses what it was given.
	errAbandoned = errors.New("the evaluation has not ended")
	// errDeadline: it was cancelled at its deadline.
	errDeadline = errors.New("the evaluation has had its time")
	// errTooManyOverdue: it was not begun, because of maxOverdue.
	errTooManyOverdue = errors.New("evaluations that are overdue still run")
)

// run runs work, which must use the evaluation as its topdown.Cancel. It returns what work returns, or
// errAbandoned.
func (p *compiledPoint) run(ctx context.Context, deadline time.Duration, work func(*evaluation) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := job{p, &evaluation{ctx: ctx, budget: deadline, begin: time.Now()}, work}
	if p.fast {
		return j.evaluate()
	}
	if p.overdue.Load() >= maxOverdue {
		return errTooManyOverdue
	}
	w := takeWorker()
	w.jobs <- j
	w.timer.Reset(deadline + grace(deadline))
	withdrawn := ctx.Done()
	for {
		select {
		case err := <-w.done:
			w.release()
			return err
		case <-withdrawn:
			withdrawn = nil
			j.v.Cancel()
			w.timer.Reset(cancelGrace)
		case <-w.timer.C:
			if overdue.abandon(j) {
				return errAbandoned
			}
			withdrawn = nil // it has just ended
		}
	}
}

// job is an evaluation and what it does.
type job struct {
	point *compiledPoint
	v     *evaluation
	work  func(*evaluation) error
}

func (j job) evaluate() (err error) {
	defer func() {
		if j.v.metered {
			runtime.UnlockOSThread()
		}
		if recover() != nil {
			err = &evaluatorPanic{debug.Stack()}
		}
	}()
	if err = j.work(j.v); err != nil && j.v.over {
		err = errDeadline // whatever it says
	}
	return err
}

// worker evaluates one query after the other, on a goroutine that has grown its stack.
type worker struct {
	jobs  chan job
	done  chan error
	timer *time.Timer // of whoever asks
}

// idleWorkers wait for the next evaluation; at most maxIdle are kept.
var idleWorkers struct {
	sync.Mutex
	all []*worker
}

const maxIdle = 32

func takeWorker() *worker {
	idleWorkers.Lock()
	defer idleWorkers.Unlock()
	if n := len(idleWorkers.all); n > 0 {
		w := idleWorkers.all[n-1]
		idleWorkers.all = idleWorkers.all[:n-1]
		return w
	}
	w := &worker{jobs: make(chan job), done: make(chan error, 1), timer: time.NewTimer(time.Hour)}
	go w.loop()
	return w
}

// release returns the worker to idleWorkers.
func (w *worker) release() {
	w.timer.Stop()
	idleWorkers.Lock()
	defer idleWorkers.Unlock()
	if len(idleWorkers.all) < maxIdle {
		idleWorkers.all = append(idleWorkers.all, w)
		return
	}
	close(w.jobs)
}

// loop evaluates until the worker is closed or its evaluation was abandoned.
func (w *worker) loop() {
	for j := range w.jobs {
		err := j.evaluate()
		if j.v.state.Swap(ended) == abandoned {
			overdue.finish(j)
			return
		}
		w.done <- err
	}
}

// Overdue is an evaluation that did not end by its deadline, was abandoned and still runs.
type Overdue struct {
	// Point is the decision point that is evaluated.
	Point Point `json:"point"`
	// Since is when the evaluation began.
	Since time.Time `json:"since"`
}

// OverdueEvaluations are those of all policies of this process, the oldest first.
func OverdueEvaluations() []Overdue { return overdue.list() }

// overdueEvaluations are the abandoned evaluations that still run.
type overdueEvaluations struct {
	mu  sync.Mutex
	all map[*evaluation]Overdue
}

var overdue = overdueEvaluations{all: map[*evaluation]Overdue{}}

// abandon records an evaluation as abandoned; it reports false if that has ended.
func (o *overdueEvaluations) abandon(j job) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if j.v.state.Swap(abandoned) == ended {
		return false
	}
	j.point.overdue.Add(1)
	o.all[j.v] = Overdue{j.point.spec.point, time.Now()}
	return true
}

func (o *overdueEvaluations) finish(j job) {
	o.mu.Lock()
	defer o.mu.Unlock()
	j.point.overdue.Add(-1)
	delete(o.all, j.v)
}

func (o *overdueEvaluations) list() []Overdue {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.SortedFunc(maps.Values(o.all), func(a, b Overdue) int { return a.Since.Compare(b.Since) })
}
