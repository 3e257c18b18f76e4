package main

import (
	"os"
	"runtime/debug"
)

// gcPercent is GOGC for a command that serves. Its live heap is a few MiB, so that at Go's default of 100 the garbage of
// one reload starts a dozen collections, and calls wait for each. At 400 the heap may grow to five times what lives
// (BENCHMARKS.md has the p99 of calls during reloads).
const gcPercent = 400

// collectLess sets it, unless the environment says otherwise.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
