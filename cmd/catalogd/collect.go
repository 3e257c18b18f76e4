package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// gcPercent is GOGC for a command that serves or compares. A server's live heap is a few MiB, so at Go's default
// of 100 the garbage of one reload starts a dozen collections, and calls wait for each. At 400 the heap may grow
// to five times the live heap (BENCHMARKS.md has the p99 of calls during reloads).
const gcPercent = 400

// collectLess sets GOGC to gcPercent, unless the environment sets it. A command calls it when it begins to
// serve: with Go's default the start takes no longer, and leaves the heap less fragmented. `catalogd diff`, which
// asks two policies thousands of questions, calls it at its start.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

const (
	// quiet is how long a daemon must have allocated next to nothing before unused memory is returned.
	quiet = 2 * time.Second
	// nothing is what an idle daemon allocates in that time for checking files and timers; worthwhile is the
	// garbage that justifies a collection of its own.
	nothing, worthwhile = 2 << 20, 8 << 20
)

// giveBack returns memory to the operating system whenever the daemon becomes idle after work, such as its
// start, until ctx ends. Go would keep it for minutes, and with gcPercent it would not collect before much
// more is used.
func giveBack(ctx context.Context) {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	allocated := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	var last, given uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := allocated()
		if now-last < nothing && now-given > worthwhile {
			debug.FreeOSMemory()
			given = now
		}
		last = now
	}
}
