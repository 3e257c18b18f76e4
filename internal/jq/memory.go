package jq

import (
	"context"
	"fmt"
	"runtime/metrics"
	"time"
)

const (
	// maxGrowth caps how much the process's heap may grow while a program runs, in bytes. The heap is shared
	// by the whole process, so the cap is far above the daemon's other allocations in that time, and far
	// below what endangers the process.
	maxGrowth = 256 << 20
	// look is the interval between heap checks of a running program; a program that ends sooner costs only a
	// timer.
	look = 10 * time.Millisecond
)

// MemoryError reports that a program was stopped because the heap grew by more than Limit bytes while it ran.
type MemoryError struct{ Limit uint64 }

func (e MemoryError) Error() string {
	return fmt.Sprintf("the jq program was stopped, because it needs more than %d MiB of memory", e.Limit>>20)
}

// watchMemory cancels with a MemoryError when the heap has grown by growth bytes since the first check, until
// stop is called. gojq checks its context before each step, so a program that grows step by step ends; a
// single step that allocates without end does not.
func watchMemory(cancel context.CancelCauseFunc, growth uint64) (stop func()) {
	w := &memoryWatch{cancel: cancel, growth: growth, done: make(chan struct{})}
	timer := time.AfterFunc(look, w.run)
	return func() {
		if !timer.Stop() {
			close(w.done)
		}
	}
}

type memoryWatch struct {
	cancel context.CancelCauseFunc
	growth uint64
	done   chan struct{}
}

// run checks the heap until the program has ended.
func (w *memoryWatch) run() {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for start := heap(); ; {
		select {
		case <-w.done:
			return
		case <-tick.C:
			if now := heap(); now > start+w.growth {
				w.cancel(MemoryError{w.growth})
				return
			}
		}
	}
}

// heap returns the bytes of live objects and of those not swept yet.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
