package main

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// gcPercent is GOGC for a command that serves. Its live heap is a few MiB, so that at Go's default of 100 the garbage of
// one reload starts a dozen collections, and calls wait for each. At 400 the heap may grow to five times what lives
// (BENCHMARKS.md has the p99 of calls during reloads).
const gcPercent = 400

// collectLess sets it, unless the environment says otherwise. A command calls it once it serves: a start that collects as Go
// does takes no longer, and leaves its heap less full of holes.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

const (
	// quiet is how long a daemon must have allocated next to nothing before what it doesn't use is given back.
	quiet = 2 * time.Second
	// nothing is what an idle daemon allocates in that time, looking at files and the clock; worthwhile is the garbage that
	// is worth a collection of its own.
	nothing, worthwhile = 2 << 20, 8 << 20
)

// giveBack returns memory to the system whenever the daemon has become quiet after work, such as its start, until ctx ends.
// Go would keep it for minutes, and with gcPercent collect nothing at all before much more is used. The pages of the program
// go as well, unless the system says no, which is logged once.
func giveBack(ctx context.Context, log *slog.Logger) {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	allocated := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	var last, given uint64
	unmap := unmapProgram
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := allocated()
		if now-last < nothing && now-given > worthwhile {
			debug.FreeOSMemory()
			if err := unmap(); err != nil {
				log.Info("the pages of the program stay resident", "error", err)
				unmap = func() error { return nil }
			}
			given = now
		}
		last = now
	}
}
