package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/registry"
)

// Inside checks calls with CUE in this process, one at a time, for programs that embed catalogd without a worker. It keeps
// to the deadline for the caller, but an evaluation can't be ended: one that never ends keeps a processor and grows, and
// until it has ended every other check fails. Whoever takes calls from strangers wants a Checker. It is safe for concurrent
// use.
type Inside struct {
	deadline time.Duration
	held     held
	turn     chan *evaluator // holds the evaluator while it is free
	has      map[string]bool // what it has; of whoever has the evaluator
}

// NewInside returns an Inside for catalogs of this schema.
func NewInside(schema []byte) *Inside {
	i := &Inside{deadline: CheckerConfig{}.withDefaults().Deadline, turn: make(chan *evaluator, 1), has: map[string]bool{}}
	i.turn <- newEvaluator(schema, 256<<20)
	return i
}

// Hold and Rest are as Checker's.
func (i *Inside) Hold(b *registry.Build) (release func()) { return i.held.hold(b) }

func (i *Inside) Rest(r contract.Remainder, open bool) contract.Rest {
	return func(ctx context.Context, args json.RawMessage) (json.RawMessage, []contract.Violation, error) {
		return i.check(ctx, rule{r.Digest, r.Path, open}, args)
	}
}

func (i *Inside) check(ctx context.Context, r rule, args json.RawMessage) (json.RawMessage, []contract.Violation, error) {
	waiting := time.NewTimer(CheckerConfig{}.withDefaults().Load)
	defer waiting.Stop()
	var e *evaluator
	select {
	case e = <-i.turn:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("another check with CUE does not end: %w", ctx.Err())
	case <-waiting.C:
		return nil, nil, fmt.Errorf("another check with CUE does not end")
	}
	answered, begun := make(chan verdict, 1), make(chan struct{})
	go func() {
		defer func() { i.turn <- e }()
		if gone := i.held.gone(i.has); len(gone) > 0 {
			for _, d := range gone {
				delete(i.has, d)
			}
			e.forget(gone)
		}
		if p, ok := i.held.pack(r.Digest); ok && !i.has[r.Digest] {
			i.has[r.Digest] = true
			e.take(p.Package, p.Contents)
		}
		_, err := e.value(r, func() func() { return func() {} })
		close(begun)
		if err != nil {
			answered <- verdict{Failed: err.Error()}
			return
		}
		answered <- e.answer(question{r, args}, func() func() { return func() {} })
	}()
	select {
	case <-begun:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	late := time.NewTimer(i.deadline)
	defer late.Stop()
	select {
	case v := <-answered:
		return v.outcome(args)
	case <-late.C:
		return nil, nil, tooLate{i.deadline, "the check of the arguments with CUE"}
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}
