package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
)

// maxCandidates caps how many files of a package are evaluated alone.
const maxCandidates = 100

// searchTime is how many times the limit of a package its cause is searched for.
const searchTime = 10

// findCause makes the problem of a package that exceeded a limit name the file that is the cause. CUE doesn't
// say what it was evaluating, so each file of the package is evaluated without the others for a part of the
// limit: the first that exceeds it is the cause. If none does, several files are the cause together and the
// problem stays as it is. If only one file has changed since the last build, the problem names it already.
func (c *Compiler) findCause(ctx context.Context, a *compilation, l problem.List) {
	if len(l) != 1 || len(a.running) != 1 {
		return
	}
	if l[0].Code != problem.LoadTimeout && l[0].Code != problem.LoadMemory {
		return
	}
	step := a.runningSteps()[0]
	known := a.sumsByPlace()
	files := slices.DeleteFunc(slices.Clone(step.Files), func(f string) bool {
		_, ok := known[f]
		return !ok
	})
	candidates := slices.DeleteFunc(slices.Clone(files), func(f string) bool {
		before, had := c.lastSources[f]
		return had && before == known[f]
	})
	if len(files) < 2 || len(candidates) < 2 || len(candidates) > maxCandidates {
		return
	}
	// By the clock, while steps count processor time: a busy machine must not keep the cause from being named.
	end := time.Now().Add(searchTime * c.cfg.Timeout)
	for _, file := range candidates {
		if ctx.Err() != nil || time.Now().After(end) {
			return
		}
		src := a.src
		src.Files = slices.DeleteFunc(slices.Clone(a.src.Files), func(f loader.SourceFile) bool {
			return f.Place != file && slices.Contains(files, f.Place)
		})
		alone := &compilation{compiler: c, src: src, sums: sums(src), steps: 1, limit: c.cfg.Timeout / 4, factor: poolClockFactor}
		_, err := alone.run(ctx)
		if err == nil {
			continue
		}
		// A file that got no processor on a busy machine is not the cause for that.
		var late timeoutError
		isCause := errors.As(err, &late) && late.worked || c.child != nil && alone.outOfMemory(err, c.child.exit())
		c.discard()
		if isCause {
			l[0].Also = nil
			l[0].Message = fmt.Sprintf("%s; by itself this file is the cause", l[0].Message)
			l[0].File = file
			return
		}
	}
}
