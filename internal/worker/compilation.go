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

	"github.com/catalogd/catalogd/internal/progress"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// maxSteps caps how many steps a child may report as running at once.
const maxSteps = 4096

// compilation is one attempt to compile one snapshot.
type compilation struct {
	compiler *Compiler
	src      loader.Sources
	sums     []digest      // of src.Files
	limit    time.Duration // of a step; the compiler's by default
	factor   int           // of the clock, for limit; compileClockFactor by default
	steps    int           // how many a child started for it runs at once; 0: one a processor

	fresh    bool // the child was started for it
	answered bool // the child has sent a frame
	running  map[uint64]runningStep
	step     *progress.Step // of the build, which gets the number of tools
	last     workClock      // since the latest frame that was not a frameMemory
	memory   int64          // what the child last reported that it uses
	received int64          // bytes of all frames
	changed  part           // the declarations received so far
	problems problem.List
}

// runningStep is a step that has begun and not ended.
type runningStep struct {
	stepBegan
	workClock
}

// Why a compilation fails, besides the errors of the child and its streams.
type (
	// timeoutError: the steps exceeded the limit; without steps, no frame came for that long. worked is false
	// where the child did not get the processor for so long.
	timeoutError struct {
		steps  []runningStep
		worked bool
	}
	// protocolError: the child sent something that is not of the protocol.
	protocolError struct{ error }
	// startError: no child could be started.
	startError struct{ error }
)

func (e timeoutError) Error() string  { return "the time limit has passed" }
func (e protocolError) Unwrap() error { return e.error }
func (e startError) Unwrap() error    { return e.error }

func sums(src loader.Sources) []digest {
	out := make([]digest, len(src.Files))
	for i, f := range src.Files {
		out[i] = sha256.Sum256(f.Data)
	}
	return out
}

// sumsByPlace are the digests of the files by the paths that positions have.
func (a *compilation) sumsByPlace() map[string]digest {
	out := make(map[string]digest, len(a.src.Files))
	for i, f := range a.src.Files {
		out[f.Place] = a.sums[i]
	}
	return out
}

// run has the child compile. The build and the error are both nil where the compiler returned no build.
func (a *compilation) run(ctx context.Context) (*registry.Build, error) {
	c := a.compiler
	a.step = progress.Current(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.child == nil {
		p, err := c.start(ctx, a.steps)
		if err != nil {
			return nil, startError{err}
		}
		c.child, a.fresh = p, true
	}
	p := c.child
	sent := p.send(frameRequest, a.request(p))
	a.running, a.last = map[uint64]runningStep{}, startClock(p.process.Pid())
	timer := time.NewTimer(cmp.Or(a.limit, c.cfg.Timeout))
	defer timer.Stop()
	for {
		select {
		case f, ok := <-p.frames:
			if !ok {
				return nil, p.err
			}
			if !f.aside() { // which may be of the build before, and shows no progress
				a.last, a.answered = startClock(p.process.Pid()), true
			}
			answer, err := a.handle(f)
			if err != nil {
				return nil, err
			}
			if answer != nil {
				return a.finish(p, answer)
			}
		case <-sent:
			sent = nil // if that failed, the end of the frames says why
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

// request is what the child needs to compile. It records in p what the child then has.
func (a *compilation) request(p *compileProcess) request {
	r := request{Refused: a.src.Refused, Tags: a.src.Tags}
	has := make(map[digest]bool, len(a.src.Files))
	for i, f := range a.src.Files {
		r.Files = append(r.Files, requestFile{f.Name, f.Place, a.sums[i]})
		if !p.contents[a.sums[i]] && !has[a.sums[i]] {
			r.Contents = append(r.Contents, f.Data)
		}
		has[a.sums[i]] = true
	}
	p.contents = has
	return r
}

// left is the time until something may exceed the limit, or the timeoutError of what has.
func (a *compilation) left() (time.Duration, error) {
	limit, factor := cmp.Or(a.limit, a.compiler.cfg.Timeout), cmp.Or(a.factor, compileClockFactor)
	if len(a.running) == 0 {
		if left := a.last.left(limit, factor); left > 0 {
			return left, nil
		}
		return 0, timeoutError{worked: a.last.worked(limit)}
	}
	var late []runningStep
	worked := false
	soonest := limit
	for _, r := range a.running {
		left := r.left(limit, factor)
		soonest = min(soonest, left)
		if left <= 0 {
			late = append(late, r)
			worked = worked || r.worked(limit)
		}
	}
	if len(late) > 0 {
		return 0, timeoutError{late, worked}
	}
	return soonest, nil
}

// aside reports whether a frame is of what goes on beside the steps, and comes whether or not they get on.
func (f frame) aside() bool { return f.kind == frameMemory || f.kind == frameRead }

// handle handles one frame of the child; it returns the frameDone that completes the answer. The bytes of all
// frames are bounded, so a child that begins and ends steps for ever is found too.
func (a *compilation) handle(f frame) (*done, error) {
	if !f.aside() { // which come for as long as a build lasts
		a.received += int64(frameHeader + len(f.payload))
	}
	if a.received > a.compiler.cfg.Memory {
		return nil, protocolError{errors.New("the answer is larger than the memory limit")}
	}
	var err error
	switch f.kind {
	case frameBegin:
		var b stepBegan
		err = f.decode(frameBegin, &b)
		if _, again := a.running[b.ID]; err == nil && (again || len(a.running) == maxSteps) {
			err = errors.New("a step begins twice, or there are too many")
		}
		a.running[b.ID] = runningStep{b, startClock(a.last.pid)}
	case frameEnd:
		var e stepEnded
		err = f.decode(frameEnd, &e)
		if _, ok := a.running[e.ID]; err == nil && !ok {
			err = errors.New("a step ends that has not begun")
		}
		delete(a.running, e.ID)
	case frameMemory:
		var m memory
		err = f.decode(frameMemory, &m)
		a.memory = m.Bytes
	case frameRead:
		var r toolsRead
		err = f.decode(frameRead, &r)
		a.step.Set(r.Done, r.Of)
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

// finish applies a complete answer to the build before.
func (a *compilation) finish(p *compileProcess, answer *done) (*registry.Build, error) {
	if answer.NoBuild {
		return nil, nil
	}
	next := &registry.Build{}
	var err [3]error
	next.Tools, err[0] = tools.patch(p.build.Tools, a.changed.Tools, answer.Tools)
	next.Servers, err[1] = servers.patch(p.build.Servers, a.changed.Servers, answer.Servers)
	next.Branches, err[2] = branches.patch(p.build.Branches, a.changed.Branches, answer.Branches)
	if err := errors.Join(append(err[:], a.addPackages(next))...); err != nil {
		return nil, protocolError{err}
	}
	p.build = next
	copied := *next
	return &copied, nil
}

// addPackages adds the received packages to the build, with the sources that were sent to the child.
func (a *compilation) addPackages(next *registry.Build) error {
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

// childWasGone reports whether the child had ended before it was asked, so that a new child may succeed.
func (a *compilation) childWasGone(err error) bool {
	var start startError
	var late timeoutError
	var protocol protocolError
	return err != nil && !a.fresh && !a.answered &&
		!errors.As(err, &start) && !errors.As(err, &late) && !errors.As(err, &protocol) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// runningSteps are the steps that were running, the longest first.
func (a *compilation) runningSteps() []runningStep {
	var out []runningStep
	for _, r := range a.running {
		out = append(out, r)
	}
	slices.SortFunc(out, func(x, y runningStep) int {
		return cmp.Or(x.since.Compare(y.since), cmp.Compare(x.ID, y.ID))
	})
	return out
}
