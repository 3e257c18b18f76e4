package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/catalogd/catalogd/internal/egress"
)

// acquire returns an idle child, or a new one, for which fresh is true.
func (c *Checker) acquire() (w *checkProcess, fresh bool, err error) {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		w = c.idle[n-1]
		c.idle = c.idle[:n-1]
	}
	c.mu.Unlock()
	if w != nil {
		w.idleTimer.Stop()
		return w, false, nil
	}
	w, err = c.start()
	return w, true, err
}

// putBack makes a child available to the next call.
func (c *Checker) putBack(w *checkProcess) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Err() != nil {
		c.wait.Go(func() { c.discard(w) })
		return
	}
	w.idleTimer = time.AfterFunc(c.cfg.Idle, func() { c.endIdle(w) })
	c.idle = append(c.idle, w)
}

// endIdle kills a child that has been idle, unless a call has just acquired it.
func (c *Checker) endIdle(w *checkProcess) {
	c.mu.Lock()
	i := slices.Index(c.idle, w)
	if i >= 0 {
		c.idle = slices.Delete(c.idle, i, i+1)
	}
	c.mu.Unlock()
	if i >= 0 {
		c.discard(w)
	}
}

// start starts a child and waits until it is ready.
func (c *Checker) start() (*checkProcess, error) {
	if c.closed.Err() != nil {
		return nil, errClosed
	}
	setup := checkSetup{Schema: c.cfg.Schema, Memory: c.cfg.Memory}
	p, err := launch(c.closed, egress.Foreground, c.cfg.Args, frameCheckSetup, setup)
	if err != nil {
		return nil, fmt.Errorf("the process that checks with CUE: %w", err)
	}
	w := &checkProcess{childProcess: p, has: map[string]bool{}}
	c.live.Store(w, nil)
	c.sandbox.Store(&p.hello.Sandbox)
	c.cfg.Logger.Info("check worker started", "pid", p.process.Pid(), "sandbox", p.hello.Sandbox)
	return w, nil
}

// discard kills a child.
func (c *Checker) discard(w *checkProcess) {
	w.stop()
	c.live.Delete(w)
}

// fail kills and replaces a child that failed a call. It returns the error of the call.
func (c *Checker) fail(w *checkProcess, err error) error {
	var timeout checkTimeoutError
	switch {
	case errors.As(err, &timeout):
		c.timeouts.Add(1)
		c.kills.Add(1)
	case ended(err):
		c.deaths.Add(1)
	default:
		c.kills.Add(1)
	}
	pid := w.process.Pid()
	c.replaceAfter(w, func() {
		c.cfg.Logger.Warn("check worker ended",
			"pid", pid, "why", err, "exit", w.exit().String(), "stderr", stderrTail(w.process))
	})
	if ended(err) {
		return errors.New("the process that checks with CUE ended in the middle of it")
	}
	return err
}

// replace replaces a child in the background, and frees the slot when the new one is ready.
func (c *Checker) replace(w *checkProcess) { c.replaceAfter(w, func() {}) }

// replaceAfter replaces a child in the background, so that the next call need not wait for the start of the
// new one. It calls killed in between, and frees the slot when the new child is ready.
func (c *Checker) replaceAfter(w *checkProcess, killed func()) {
	c.wait.Go(func() {
		defer func() { <-c.slots }()
		c.discard(w)
		killed()
		next, err := c.start()
		if err != nil {
			if c.closed.Err() == nil {
				c.cfg.Logger.Error("check worker can't be started; the next call tries again", "error", err)
			}
			return
		}
		c.putBack(next)
	})
}

// checkTimeoutError is the error of a call for which a step of the check exceeded its limit. It is a
// context.DeadlineExceeded.
type checkTimeoutError struct {
	limit time.Duration
	step  string
}

const (
	sendingOfPackage  = "the sending of the package for a check with CUE"
	buildingOfPackage = "the building of the package for a check with CUE"
	evaluationOfCheck = "the check of the arguments with CUE"
)

func (e checkTimeoutError) Error() string {
	return fmt.Sprintf("%s took longer than %s", e.step, e.limit)
}

func (e checkTimeoutError) Is(err error) bool { return err == context.DeadlineExceeded }

// ask has one child check one call. answered says that the child sent a frame for it. After an error the
// child can't be used any more.
func (c *Checker) ask(ctx context.Context, w *checkProcess, q checkRequest) (
	v checkResult, answered bool, err error,
) {
	messages, err := c.messages(w, q)
	if err != nil {
		return checkResult{Failed: err.Error()}, true, nil
	}
	for _, m := range messages {
		if err := w.awaitSend(ctx, c.closed, w.send(m.kind, m.body), c.cfg.Load); err != nil {
			return v, false, err
		}
	}
	limit := checkTimeoutError{c.cfg.Deadline, evaluationOfCheck}
	sent := w.send(frameCheck, q)
	timer := time.NewTimer(limit.limit)
	defer timer.Stop()
	work := startClock(w.process.Pid())
	for {
		select {
		case f, ok := <-w.frames:
			switch {
			case !ok:
				return v, answered, w.err
			case f.kind == frameLoading:
				limit = checkTimeoutError{c.cfg.Load, buildingOfPackage}
			case f.kind == frameLoaded:
				limit = checkTimeoutError{c.cfg.Deadline, evaluationOfCheck}
			default:
				err := f.decode(frameChecked, &v)
				return v, true, err
			}
			answered = true
			work = startClock(work.pid)
			timer.Reset(limit.limit)
		case <-sent:
			sent = nil // if that failed, the end of the frames says why
		case <-timer.C:
			left := work.left(limit.limit, checkClockFactor)
			if left <= 0 {
				return v, answered, limit
			}
			timer.Reset(left)
		case <-ctx.Done():
			return v, answered, ctx.Err()
		case <-c.closed.Done():
			return v, answered, errClosed
		}
	}
}

// message is a message to send.
type message struct {
	kind byte
	body any
}

// messages are those that must precede a call: the packages that the child need not keep, and the one that it
// lacks. It records in w what the child then has.
func (c *Checker) messages(w *checkProcess, q checkRequest) (out []message, err error) {
	if removed := c.packages.unheld(w.has); len(removed) > 0 {
		for _, d := range removed {
			delete(w.has, d)
		}
		out = append(out, message{frameForget, forgetPackages{removed}})
	}
	if !w.has[q.Contract.Digest] {
		p, ok := c.packages.get(q.Contract.Digest)
		if !ok {
			return nil, errors.New("the sources of the tool's package are not here any more")
		}
		w.has[q.Contract.Digest] = true
		out = append(out, message{framePackage, p})
	}
	return out, nil
}

// awaitSend waits until a message is sent.
func (w *childProcess) awaitSend(ctx, closed context.Context, sent <-chan error, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-sent:
		if err != nil {
			return fmt.Errorf("%w: %v", io.ErrUnexpectedEOF, err)
		}
		return nil
	case <-timer.C:
		return checkTimeoutError{limit, sendingOfPackage}
	case <-ctx.Done():
		return ctx.Err()
	case <-closed.Done():
		return errClosed
	}
}
