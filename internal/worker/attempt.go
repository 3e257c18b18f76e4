package worker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// mostSteps caps how many steps may run at once; a child runs as many as it has processors.
const mostSteps = 4096

// attempt is one try at one build.
type attempt struct {
	compiler *Compiler
	src      loader.Sources
	sums     []digest      // of src.Files
	limit    time.Duration // of a step; the compiler's by default
	steps    int           // how many may run at once in a child that is started for it; 0: as many as it has processors

	fresh    bool // the child was started for it
	heard    bool // the child has said something
	running  map[uint64]running
	last     stopwatch // of the latest frame but those about memory
	memory   int64     // what the child last said that it uses
	received int64     // bytes of all frames
	changed  part      // the declarations that have come
	problems problem.List
}

// running is a step that has begun and not ended.
type running struct {
	begin
	stopwatch
}

// Why an attempt fails, beside the errors of the child and its streams.
type (
	// lateError: the steps have taken longer than the limit; without steps, there was no sign of life for so long.
	lateError struct{ steps []running }
	// protocolError: what came makes no sense.
	protocolError struct{ error }
	// startError: there is no child.
	startError struct{ error }
)

func (e lateError) Error() string     { return "the time limit has passed" }
func (e protocolError) Unwrap() error { return e.error }
func (e startError) Unwrap() error    { return e.error }

func sums(src loader.Sources) []digest {
	out := make([]digest, len(src.Files))
	for i, f := range src.Files {
		out[i] = sha256.Sum256(f.Data)
	}
	return out
}

// places are the contents by the paths that positions carry.
func (a *attempt) places() map[string]digest {
	out := make(map[string]digest, len(a.src.Files))
	for i, f := range a.src.Files {
		out[f.Place] = a.sums[i]
	}
	return out
}

// run has the child compile. The build is nil without an error where the compiler made none.
func (a *attempt) run(ctx context.Context) (*registry.Build, error) {
	c := a.compiler
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.worker == nil {
		w, err := c.start(ctx, a.steps)
		if err != nil {
			return nil, startError{err}
		}
		c.worker, a.fresh = w, true
	}
	w := c.worker
	sent := w.send(frameRequest, a.request(w))
	a.running, a.last = map[uint64]running{}, watchWork(w.process.Pid())
	timer := time.NewTimer(cmp.Or(a.limit, c.cfg.Timeout))
	defer timer.Stop()
	for {
		select {
		case f, ok := <-w.frames:
			if !ok {
				return nil, w.err
			}
			if f.kind != frameMemory { // which may be from before, and says nothing of how far the build is
				a.last, a.heard = watchWork(w.process.Pid()), true
			}
			answer, err := a.take(f)
			if err != nil {
				return nil, err
			}
			if answer != nil {
				return a.finish(w, answer)
			}
		case <-sent:
			sent = nil // where that failed, the end of the frames says why
		case <-timer.C:
			left, late := a.left()
			if late != nil {
				return nil, late
			}
			timer.Reset(left)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// request is what the child needs, and notes that it then has it.
func (a *attempt) request(w *compiling) request {
	r := request{Refused: a.src.Refused, Tags: a.src.Tags}
	has := make(map[digest]bool, len(a.src.Files))
	for i, f := range a.src.Files {
		r.Files = append(r.Files, file{f.Name, f.Place, a.sums[i]})
		if !w.contents[a.sums[i]] && !has[a.sums[i]] {
			r.Contents = append(r.Contents, f.Data)
		}
		has[a.sums[i]] = true
	}
	w.contents = has
	return r
}

// left is the time until something is late, or what is.
func (a *attempt) left() (time.Duration, error) {
	limit := cmp.Or(a.limit, a.compiler.cfg.Timeout)
	if len(a.running) == 0 {
		if left := a.last.left(limit, compilePatience); left > 0 {
			return left, nil
		}
		return 0, lateError{}
	}
	var late []running
	soonest := limit
	for _, r := range a.running {
		left := r.left(limit, compilePatience)
		soonest = min(soonest, left)
		if left <= 0 {
			late = append(late, r)
		}
	}
	if len(late) > 0 {
		return 0, lateError{late}
	}
	return soonest, nil
}

// take takes in one frame of the child; the answer is not nil when it is complete. What the frames of one build may bring
// is bounded, steps without end included.
func (a *attempt) take(f frame) (*done, error) {
	if f.kind != frameMemory { // these come for as long as a build lasts
		a.received += int64(frameHead + len(f.payload))
	}
	if a.received > a.compiler.cfg.Memory {
		return nil, protocolError{errors.New("the answer is larger than the memory limit")}
	}
	var err error
	switch f.kind {
	case frameBegin:
		var b begin
		err = f.decode(frameBegin, &b)
		if _, again := a.running[b.ID]; err == nil && (again || len(a.running) == mostSteps) {
			err = errors.New("a step begins twice, or there are too many")
		}
		a.running[b.ID] = running{b, watchWork(a.last.pid)}
	case frameEnd:
		var e end
		err = f.decode(frameEnd, &e)
		if _, ok := a.running[e.ID]; err == nil && !ok {
			err = errors.New("a step ends that has not begun")
		}
		delete(a.running, e.ID)
	case frameMemory:
		var m memory
		err = f.decode(frameMemory, &m)
		a.memory = m.Bytes
	case framePart:
		var p part
		err = f.decode(framePart, &p)
		a.problems = append(a.problems, p.Problems...)
		a.changed.Tools = append(a.changed.Tools, p.Tools...)
		a.changed.Servers = append(a.changed.Servers, p.Servers...)
		a.changed.Branches = append(a.changed.Branches, p.Branches...)
		a.changed.Packages = append(a.changed.Packages, p.Packages...)
	default:
		answer := &done{}
		if err = f.decode(frameDone, answer); err == nil {
			return answer, nil
		}
	}
	if err != nil {
		return nil, protocolError{err}
	}
	return nil, nil
}

// finish applies a complete answer to the one before.
func (a *attempt) finish(w *compiling, answer *done) (*registry.Build, error) {
	if answer.NoBuild {
		return nil, nil
	}
	next := &registry.Build{}
	var err [3]error
	next.Tools, err[0] = tools.patch(w.build.Tools, a.changed.Tools, answer.Tools)
	next.Servers, err[1] = servers.patch(w.build.Servers, a.changed.Servers, answer.Servers)
	next.Branches, err[2] = branches.patch(w.build.Branches, a.changed.Branches, answer.Branches)
	if err := errors.Join(append(err[:], a.pack(next))...); err != nil {
		return nil, protocolError{err}
	}
	w.build = next
	copied := *next
	return &copied, nil
}

// pack puts the packages that came into the build, with the sources that were sent for it.
func (a *attempt) pack(next *registry.Build) error {
	if len(a.changed.Packages) == 0 {
		return nil
	}
	sent := make(map[string][]byte, len(a.sums))
	for i, sum := range a.sums {
		sent[hex.EncodeToString(sum[:])] = a.src.Files[i].Data
	}
	next.Packages, next.Sources = a.changed.Packages, map[string][]byte{}
	for _, p := range next.Packages {
		for _, f := range p.Files {
			data, ok := sent[f.Sum]
			if !ok {
				return fmt.Errorf("package %s has a file %s that was not sent", p.Dir, f.Name)
			}
			next.Sources[f.Sum] = data
		}
	}
	return nil
}

// stale reports whether a new child may well do what this one failed at: it had ended before it was asked.
func (a *attempt) stale(err error) bool {
	var start startError
	var late lateError
	var protocol protocolError
	return err != nil && !a.fresh && !a.heard && !errors.As(err, &start) && !errors.As(err, &late) && !errors.As(err, &protocol) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// suspects are the steps that were running, the longest first.
func (a *attempt) suspects() []running {
	var out []running
	for _, r := range a.running {
		out = append(out, r)
	}
	slices.SortFunc(out, func(x, y running) int { return cmp.Or(x.since.Compare(y.since), cmp.Compare(x.ID, y.ID)) })
	return out
}
