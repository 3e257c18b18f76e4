package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/internal/reach"
	"github.com/catalogd/catalogd/problem"
)

// heavy is the part of the memory limit from which on a death is put down to memory, however it came: a single allocation
// can go from there beyond every limit between two looks, and then the Go runtime or the kernel ends the child.
const heavy = 4

// explain makes the problem of a failed attempt, and says in the log what happened to the child. It ends the child.
func (a *attempt) explain(ctx context.Context, err error) problem.List {
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
	var late lateError
	isLate := errors.As(err, &late)
	exit := c.worker.exit() // its last words are for the log and decide nothing
	c.cfg.Logger.Warn("compile worker ended", "pid", c.worker.process.Pid(), "why", err, "exit", exit.String(), "memory", a.memory, "stderr", lastWords(c.worker.process))
	steps := a.suspects()
	switch {
	case isLate:
		pos, also, what := a.locate(late.steps)
		l.Errorf(problem.LoadTimeout, pos, "", "%s took longer than %s and was ended; CUE may never finish it: take out what doubles, multiplies or generates values, or raise --compile-timeout", what, c.cfg.Timeout)
		l[0].Also = also
	case a.outOfMemory(err, exit):
		pos, also, what := a.locate(steps)
		l.Errorf(problem.LoadMemory, pos, "", "%s needed more than %s of memory and was ended: take out what doubles, multiplies or generates values, or raise --compile-memory", what, size(c.cfg.Memory))
		l[0].Also = also
	default:
		pos, also, what := a.locate(steps)
		how := exit.String()
		if !ended(err) {
			how = err.Error()
		}
		l.Errorf(problem.LoadFailed, pos, "", "%s failed, because the process that compiles the catalog ended (%s); try again, and look into the log", what, how)
		l[0].Also = also
	}
	return l
}

// outOfMemory reports whether the child that ended with err had taken more memory than it may.
func (a *attempt) outOfMemory(err error, exit reach.Exit) bool {
	return ended(err) && (exit.Code == exitMemory || a.memory > a.compiler.cfg.Memory/heavy || len(a.running) > 0 && starved(exit))
}

// crowded reports whether the child ran out of memory while it worked on several steps.
func (a *attempt) crowded(err error) bool {
	if err == nil || !ended(err) || len(a.running) < 2 || a.compiler.worker == nil {
		return false
	}
	exit := a.compiler.worker.exit()
	if !a.outOfMemory(err, exit) {
		return false
	}
	a.compiler.cfg.Logger.Warn("compile worker ended; trying again with one package at a time",
		"pid", a.compiler.worker.process.Pid(), "exit", exit.String(), "memory", a.memory)
	return true
}

// starved reports whether the runtime of a child gave up: the system refused it memory, or a stack took all that one may.
// It does so when one value is larger than all that the child may have, of which the child's own watch has seen nothing.
// The panics of the evaluator are caught in the child, so nothing else that a catalog can do ends it with such a status:
// 2 by Go's runtime, 66 by the race detector's.
func starved(exit reach.Exit) bool {
	switch exit.Code {
	case exitEnded, exitProtocol, exitMemory, exitSpent:
		return false
	}
	return exit.Signal == ""
}

// locate names steps: by the most suspect file of the first, and the first files of the others.
func (a *attempt) locate(steps []running) (pos problem.Position, also []problem.Position, what string) {
	var names []string
	for _, s := range steps {
		file, ok := a.suspect(s.Files)
		if !ok {
			continue // no file of this catalog
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

// suspect is the first of the files that has changed since the last answer, else the first.
func (a *attempt) suspect(files []string) (string, bool) {
	now := a.places()
	first := ""
	for _, f := range files {
		sum, known := now[f]
		if !known {
			continue
		}
		if first == "" {
			first = f
		}
		if before, had := a.compiler.answered[f]; len(a.compiler.answered) > 0 && (!had || before != sum) {
			return f, true
		}
	}
	return first, first != ""
}

func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(s) > 512 {
		return fmt.Sprintf("%.512q", s)
	}
	return s
}

// size writes bytes as people do.
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
