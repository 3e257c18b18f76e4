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

// mostBlamed caps how many files of a package are tried by themselves.
const mostBlamed = 100

// blame makes a problem of a limit that the evaluation of one package has met name the file that is the cause. CUE doesn't
// say what it was at, so each file of the package is evaluated without the others, for a part of the limit: the one that
// does not end then is it. Where none is, the problem stays as it is: several files are the cause together. One file
// that alone has changed since the last answer is blamed without that.
func (c *Compiler) blame(ctx context.Context, a *attempt, l problem.List) {
	if len(l) != 1 || l[0].Code != problem.LoadTimeout && l[0].Code != problem.LoadMemory || len(a.running) != 1 {
		return
	}
	step := a.suspects()[0]
	known := a.places()
	files := slices.DeleteFunc(slices.Clone(step.Files), func(f string) bool { _, ok := known[f]; return !ok })
	candidates := slices.DeleteFunc(slices.Clone(files), func(f string) bool {
		before, had := c.answered[f]
		return had && before == known[f]
	})
	if len(files) < 2 || len(candidates) < 2 || len(candidates) > mostBlamed {
		return // the one that has changed is named
	}
	end := time.Now().Add(c.cfg.Timeout)
	for _, file := range candidates {
		if ctx.Err() != nil || time.Now().After(end) {
			return
		}
		src := a.src
		src.Files = slices.DeleteFunc(slices.Clone(a.src.Files), func(f loader.SourceFile) bool {
			return f.Place != file && slices.Contains(files, f.Place)
		})
		alone := &attempt{compiler: c, src: src, sums: sums(src), steps: 1, limit: c.cfg.Timeout / 4}
		_, err := alone.run(ctx)
		if err == nil {
			continue
		}
		var late lateError
		guilty := errors.As(err, &late) || c.worker != nil && alone.outOfMemory(err, c.worker.exit())
		c.discard()
		if guilty {
			l[0].Also = nil
			l[0].Message = fmt.Sprintf("%s; by itself this file is the cause", l[0].Message)
			l[0].File = file
			return
		}
	}
}
