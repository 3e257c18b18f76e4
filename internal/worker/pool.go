package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/catalogd/catalogd/internal/reach"
)

// take is a child that is ready, or a new one. fresh tells which.
func (c *Checker) take() (w *checking, fresh bool, err error) {
	c.mu.Lock()
	if n := len(c.ready); n > 0 {
		w = c.ready[n-1]
		c.ready = c.ready[:n-1]
	}
	c.mu.Unlock()
	if w != nil {
		w.idle.Stop()
		return w, false, nil
	}
	w, err = c.start()
	return w, true, err
}

// giveBack makes a child ready for the next call.
func (c *Checker) giveBack(w *checking) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Err() != nil {
		c.wait.Go(func() { c.discard(w) })
		return
	}
	w.idle = time.AfterFunc(c.cfg.Idle, func() { c.dismiss(w) })
	c.ready = append(c.ready, w)
}

// dismiss ends a child that has had nothing to do, unless it has just been given something.
func (c *Checker) dismiss(w *checking) {
	c.mu.Lock()
	i := slices.Index(c.ready, w)
	if i >= 0 {
		c.ready = slices.Delete(c.ready, i, i+1)
	}
	c.mu.Unlock()
	if i >= 0 {
		c.discard(w)
	}
}

func (c *Checker) start() (*checking, error) {
	if c.closed.Err() != nil {
		return nil, errClosed
	}
	p, err := launch(c.closed, reach.Foreground, c.cfg.Args, frameRules, rules{Schema: c.cfg.Schema, Memory: c.cfg.Memory})
	if err != nil {
		return nil, fmt.Errorf("the process that checks with CUE: %w", err)
	}
	w := &checking{worker: p, has: map[string]bool{}}
	c.live.Store(w, nil)
	c.sandbox.Store(&p.hello.Sandbox)
	c.cfg.Logger.Info("check worker started", "pid", p.process.Pid(), "sandbox", p.hello.Sandbox)
	return w, nil
}

func (c *Checker) discard(w *checking) {
	w.stop()
	c.live.Delete(w)
}

// lose ends a child that failed a call, and says why the call did.
func (c *Checker) lose(w *checking, err error) error {
	var late tooLate
	switch {
	case errors.As(err, &late):
		c.timeouts.Add(1)
		c.kills.Add(1)
	case ended(err):
		c.deaths.Add(1)
	default:
		c.kills.Add(1)
	}
	pid := w.process.Pid()
	c.replaceAfter(w, func() {
		c.cfg.Logger.Warn("check worker ended", "pid", pid, "why", err, "exit", w.exit().String(), "stderr", lastWords(w.process))
	})
	if ended(err) {
		return errors.New("the process that checks with CUE ended in the middle of it")
	}
	return err
}

func (c *Checker) replace(w *checking) { c.replaceAfter(w, func() {}) }

// replaceAfter puts a new child in the place of one, behind the call, so that the next need not wait for its start; the
// slot is free when it is there.
func (c *Checker) replaceAfter(w *checking, say func()) {
	c.wait.Go(func() {
		defer func() { <-c.slots }()
		c.discard(w)
		say()
		next, err := c.start()
		if err != nil {
			if c.closed.Err() == nil {
				c.cfg.Logger.Error("check worker can't be started; the next call tries again", "error", err)
			}
			return
		}
		c.giveBack(next)
	})
}

// tooLate is the error of a call whose check, or the building of whose package, took longer than it may.
type tooLate struct {
	limit time.Duration
	what  string
}

func (e tooLate) Error() string { return fmt.Sprintf("%s took longer than %s", e.what, e.limit) }

// Is makes it a deadline that has passed.
func (e tooLate) Is(err error) bool { return err == context.DeadlineExceeded }

// ask has one child check one call. heard tells that the child said something to it. After an error the child is of no use.
func (c *Checker) ask(ctx context.Context, w *checking, r rule, args json.RawMessage) (v verdict, heard bool, err error) {
	messages, err := c.messages(w, r, args)
	if err != nil {
		return verdict{Failed: err.Error()}, true, nil
	}
	for _, m := range messages[:len(messages)-1] {
		if err := w.await(ctx, c.closed, w.send(m.kind, m.body), c.cfg.Load); err != nil {
			return v, false, err
		}
	}
	limit := tooLate{c.cfg.Deadline, "the check of the arguments with CUE"}
	sent := w.send(messages[len(messages)-1].kind, messages[len(messages)-1].body)
	timer := time.NewTimer(limit.limit)
	defer timer.Stop()
	work := watchWork(w.process.Pid())
	for {
		select {
		case f, ok := <-w.frames:
			switch {
			case !ok:
				return v, heard, w.err
			case f.kind == frameLoading:
				limit = tooLate{c.cfg.Load, "the building of the package for a check with CUE"}
			case f.kind == frameLoaded:
				limit = tooLate{c.cfg.Deadline, "the check of the arguments with CUE"}
			default:
				err := f.decode(frameChecked, &v)
				return v, true, err
			}
			heard = true
			work = watchWork(work.pid)
			timer.Reset(limit.limit)
		case <-sent:
			sent = nil // where that failed, the end of the frames says why
		case <-timer.C:
			left := work.left(limit.limit, checkPatience)
			if left <= 0 {
				return v, heard, limit
			}
			timer.Reset(left)
		case <-ctx.Done():
			return v, heard, ctx.Err()
		case <-c.closed.Done():
			return v, heard, errClosed
		}
	}
}

// message is one that is to be sent.
type message struct {
	kind byte
	body any
}

// messages are what a child must be told for a call: the packages that it has for nothing, the one that it lacks, the call.
func (c *Checker) messages(w *checking, r rule, args json.RawMessage) (out []message, err error) {
	if gone := c.held.gone(w.has); len(gone) > 0 {
		for _, d := range gone {
			delete(w.has, d)
		}
		out = append(out, message{frameForget, forget{gone}})
	}
	if !w.has[r.Digest] {
		p, ok := c.held.pack(r.Digest)
		if !ok {
			return nil, errors.New("the sources of the tool's package are not here any more")
		}
		w.has[r.Digest] = true
		out = append(out, message{framePackage, p})
	}
	return append(out, message{frameCheck, question{r, args}}), nil
}

// await waits until a message is sent.
func (w *worker) await(ctx, closed context.Context, sent <-chan error, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-sent:
		if err != nil {
			return fmt.Errorf("%w: %v", io.ErrUnexpectedEOF, err)
		}
		return nil
	case <-timer.C:
		return tooLate{limit, "the sending of the package for a check with CUE"}
	case <-ctx.Done():
		return ctx.Err()
	case <-closed.Done():
		return errClosed
	}
}
