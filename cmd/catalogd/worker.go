package main

import (
	"os"

	"github.com/catalogd/catalogd"
)

// compileWorker is the name of compileWorkerCmd on the command line.
const compileWorker = "compile-worker"

// compileWorkerCmd is the command with which catalogd starts itself to evaluate CUE or run jq programs in a
// process that it can kill. It is not for direct use.
type compileWorkerCmd struct{}

func (c *compileWorkerCmd) Run(e *env) error {
	if code := catalogd.CompileWorker(e.stdin, e.stdout); code != 0 {
		os.Exit(code)
	}
	return nil
}
