package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/registry"
)

// InProcessChecker checks calls with CUE in this process, one at a time, for programs that embed catalogd
// without child processes. A check that exceeds the deadline, in processor time of the whole process, fails
// for its caller, but its evaluation can't be stopped: while it goes on, it keeps a processor busy, may take
// memory, and every other check fails. Programs that take calls from strangers should use a Checker. It is
// safe for concurrent use.
type InProcessChecker struct {
	deadline, load time.Duration // as in CheckerConfig
	packages       packageStore
	idle           chan *evaluator // has the evaluator while nobody uses it
	has            map[string]bool // the packages that the evaluator has, by digest; for whoever uses it
}

// NewInProcessChecker returns an InProcessChecker for catalogs of this schema.
func NewInProcessChecker(schema []byte) *InProcessChecker {
	defaults := CheckerConfig{}.withDefaults()
	c := &InProcessChecker{
		deadline: defaults.Deadline, load: defaults.Load, idle: make(chan *evaluator, 1), has: map[string]bool{},
	}
	c.idle <- newEvaluator(schema, defaults.Memory)
	return c
}

// Hold is as Checker's.
func (c *InProcessChecker) Hold(b *registry.Build) (release func()) { return c.packages.hold(b) }

// Rest is as Checker's.
func (c *InProcessChecker) Rest(r contract.Remainder, open bool) contract.Rest {
	return func(ctx context.Context, args json.RawMessage) (json.RawMessage, []contract.Violation, error) {
		return c.check(ctx, checkRequest{contractKey{r.Digest, r.Path, open}, args})
	}
}

func (c *InProcessChecker) check(ctx context.Context, q checkRequest) (
	json.RawMessage, []contract.Violation, error,
) {
	waiting := time.NewTimer(c.load)
	defer waiting.Stop()
	var e *evaluator
	select {
	case e = <-c.idle:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("another check with CUE does not end: %w", ctx.Err())
	case <-waiting.C:
		return nil, nil, errors.New("another check with CUE does not end")
	}
	loaded, answered := make(chan struct{}), make(chan checkResult, 1)
	go func() {
		defer func() { c.idle <- e }()
		c.syncPackages(e, q.Contract.Digest)
		_, err := e.value(q.Contract, func() func() { return func() {} })
		close(loaded)
		if err != nil {
			answered <- checkResult{Failed: err.Error()}
			return
		}
		answered <- e.answer(q, func() func() { return func() {} })
	}()
	select {
	case <-loaded:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	clock := startClock(os.Getpid()) // which counts at least the evaluation
	timer := time.NewTimer(c.deadline)
	defer timer.Stop()
	for {
		select {
		case v := <-answered:
			return v.outcome(q.Args)
		case <-timer.C:
			left := clock.left(c.deadline, poolClockFactor)
			if left <= 0 {
				return nil, nil, limitError{limit: c.deadline, step: evaluationOfCheck}
			}
			timer.Reset(left)
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// syncPackages removes from the evaluator the packages that nobody holds, and adds the one with this digest.
func (c *InProcessChecker) syncPackages(e *evaluator, digest string) {
	if removed := c.packages.unheld(c.has); len(removed) > 0 {
		for _, d := range removed {
			delete(c.has, d)
		}
		e.removePackages(removed)
	}
	if p, ok := c.packages.get(digest); ok && !c.has[digest] {
		c.has[digest] = true
		e.addPackage(p.Package, p.Contents)
	}
}
