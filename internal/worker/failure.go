package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/problem"
)

// suspectShare is the share of the memory limit (a quarter) above which any death counts as one by memory: a
// single allocation can exceed the limit between two looks at the memory, and then the Go runtime or the
// kernel ends the child.
const suspectShare = 4

// failure is the problem of a failed compilation. It kills the child and logs what happened to it.
func (a *compilation) failure(ctx context.Context, err error) problem.List {
	c := a.compiler
	var l problem.List
	root := problem.Position{File: "."}
	if ended := ctx.Err(); ended != nil {
		l.Errorf(problem.LoadFailed, root, "", "the build was ended before it was done: %v", ended)
		return l
	}
	var start startError
	if errors.As(err, &start) {
		l.Errorf(problem.LoadFailed, root, "", "the process that compiles the catalog failed: %v", err)
		return l
	}
	var late timeoutError
	isLate := errors.As(err, &late)
	exit := c.child.exit()
	c.cfg.Logger.Warn("compile worker ended", "pid", c.child.process.Pid(), "why", err, "exit", exit.String(),
		"memory", a.memory, "stderr", stderrTail(c.child.process))
	steps := a.runningSteps()
	switch {
	case isLate:
		pos, also, what := a.locate(late.steps)
		l.Errorf(problem.LoadTimeout, pos, "", "%s took longer than %s and was ended; CUE may never finish it: "+
			"take out what doubles, multiplies or generates values, or raise --compile-timeout", what, c.cfg.Timeout)
		l[0].Also = also
	case a.outOfMemory(err, exit):
		pos, also, what := a.locate(steps)
		l.Errorf(problem.LoadMemory, pos, "", "%s needed more than %s of memory and was ended: "+
			"take out what doubles, multiplies or generates values, or raise --compile-memory",
			what, size(c.cfg.Memory))
		l[0].Also = also
	default:
		pos, also, what := a.locate(steps)
		how := exit.String()
		if !ended(err) {
			how = err.Error()
		}
		l.Errorf(problem.LoadFailed, pos, "", "%s failed, because the process that compiles the catalog "+
			"ended (%s); try again, and look into the log", what, how)
		l[0].Also = also
	}
	return l
}

// outOfMemory reports whether the child that ended with err had exceeded its memory limit.
func (a *compilation) outOfMemory(err error, exit egress.Exit) bool {
	return ended(err) && (exit.Code == exitMemory || a.memory > a.compiler.cfg.Memory/suspectShare ||
		len(a.running) > 0 && runtimeGaveUp(exit))
}

// ranOutTogether reports whether the child ran out of memory while several steps were running.
func (a *compilation) ranOutTogether(err error) bool {
	if err == nil || !ended(err) || len(a.running) < 2 || a.compiler.child == nil {
		return false
	}
	exit := a.compiler.child.exit()
	if !a.outOfMemory(err, exit) {
		return false
	}
	a.compiler.cfg.Logger.Warn("compile worker ended; trying again with one package at a time",
		"pid", a.compiler.child.process.Pid(), "exit", exit.String(), "memory", a.memory)
	return true
}

// runtimeGaveUp reports whether the Go runtime ended the child: the system refused it memory, or a stack
// exceeded its limit. That happens when one value needs more than the child may use, before the child looks
// at its memory again. The child recovers panics of the evaluator, so a catalog can't cause such an exit
// status in another way: 2 of the Go runtime, 66 of the race detector's.
func runtimeGaveUp(exit egress.Exit) bool {
	switch exit.Code {
	case exitEnded, exitProtocol, exitMemory, exitSpent:
		return false
	}
	return exit.Signal == ""
}

// ranOut reports whether a child that answers requests ended because it needed too much memory or stack.
func ranOut(exit egress.Exit) bool { return exit.Code == exitMemory || runtimeGaveUp(exit) }

// locate describes steps: the likely file of the first, those of the others, and what the steps were.
func (a *compilation) locate(steps []runningStep) (
	pos problem.Position, also []problem.Position, what string,
) {
	var names []string
	for _, s := range steps {
		file, ok := a.likelyFile(s.Files)
		if !ok {
			continue // none of its files is in this catalog
		}
		at := problem.Position{File: file}
		if s.Package == "" {
			names = append(names, "the reading of the file")
		} else {
			names = append(names, fmt.Sprintf("the evaluation of package %s", printable(s.Package)))
		}
		if !pos.IsValid() {
			pos = at
		} else if at != pos && !slices.Contains(also, at) {
			also = append(also, at)
		}
	}
	switch len(names) {
	case 0:
		return problem.Position{File: "."}, nil, "the compilation of the catalog"
	case 1:
		return pos, also, names[0]
	}
	return pos, also, strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// likelyFile is the first of the files that has changed since the last build, else the first.
func (a *compilation) likelyFile(files []string) (string, bool) {
	now := a.sumsByPlace()
	first := ""
	for _, f := range files {
		sum, known := now[f]
		if !known {
			continue
		}
		if first == "" {
			first = f
		}
		before, had := a.compiler.lastSources[f]
		if len(a.compiler.lastSources) > 0 && (!had || before != sum) {
			return f, true
		}
	}
	return first, first != ""
}

// printable quotes what would disturb a message.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(s) > 512 {
		return fmt.Sprintf("%.512q", s)
	}
	return s
}

// size is n bytes for people, such as 1 GiB.
func size(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return fmt.Sprintf("%d %s", n/unit.bytes, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
