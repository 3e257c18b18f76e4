package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/catalogd/catalogd/internal/jq"
)

// runProgramChild is the whole run of a child that runs jq programs. It answers one request after the other;
// an error of one is in its answer. It returns the exit status.
func runProgramChild(first frame, in io.Reader, stdout io.Writer) int {
	out := &sender{frameWriter{out: stdout}}
	var setup programSetup
	if err := first.decode(frameProgramSetup, &setup); err != nil {
		return refuse(err)
	}
	var runner jq.InProcess
	// The first use of the time zone reads its file, which the sandbox denies.
	if _, err := runner.Run(context.Background(), "now | localtime", []byte("null"), 1<<10); err != nil {
		return refuse(err)
	}
	frames := make(chan frame, 1)
	out.startWork(setup.Memory, func() int {
		return receive(in, func(f frame) error { frames <- f; return nil })
	}, func(int64) {})
	for f := range frames {
		var q programRequest
		if err := f.decode(frameProgram, &q); err != nil {
			return refuse(err)
		}
		out.send(frameProgramRan, runProgram(&runner, q))
		if inUse() > setup.Memory/2 {
			debug.FreeOSMemory() // so that the next program has the memory that it may use
		}
	}
	return exitEnded
}

func runProgram(runner *jq.InProcess, q programRequest) (result programResult) {
	defer func() {
		if p := recover(); p != nil {
			result = programResult{Failed: fmt.Sprintf("the jq program ended by a fault of its interpreter: %.1000v", p)}
		}
	}()
	out, err := runner.Run(context.Background(), q.Source, q.Input, q.Limit)
	switch {
	case errors.As(err, new(jq.TooLargeError)) || len(out) > maxChildFrame/2:
		return programResult{TooLarge: true}
	case errors.Is(err, jq.ErrNoOutput):
		return programResult{}
	case err != nil:
		return programResult{Failed: err.Error()}
	}
	return programResult{Output: out}
}
