package catalogd

import (
	"io"
	"slices"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/internal/worker"
	"github.com/catalogd/catalogd/loader"
)

// CompileWorker is the main function of the child processes that Config.Worker asks for. A program calls it
// when it is started with those arguments, with its standard input and output, and exits with the code that
// it returns. Where the system supports it, the process denies itself files, network and other programs.
func CompileWorker(in io.Reader, out io.Writer) int { return worker.Child(in, out) }

// builder makes what builds generations. addStatus fills in the state of the worker processes. closeBuilder
// closes the builder's connections and ends its processes.
func (c Config) builder() (b *generation.Builder, addStatus func(*Status), closeBuilder func()) {
	live, homes := generation.NewLive(), egress.NewHomes("", c.Dir)
	pool := upstream.NewPool(upstream.Config{Version: c.Version, Logger: c.Log, Homes: homes, Watch: live.Watch()})
	b = &generation.Builder{
		Root:       c.Dir,
		Live:       live,
		Pool:       pool,
		Homes:      homes,
		Policy:     decision.Config{Deadline: c.PolicyDeadline, Build: c.BuildDeadline, Logger: c.Log},
		Log:        c.Log,
		Functions:  generation.Functions{By: c.functions(), Elsewhere: c.FunctionsElsewhere},
		Processors: slices.Clone(c.Processors),
	}
	if len(c.Worker) == 0 {
		b.Compiler = loader.NewCompiler(loader.Config{Schema: schema, MaxTools: c.Limits.Tools, Logger: c.Log})
		b.Checker = worker.NewInProcessChecker(schema) // and b.JQ runs in this process, too
		return b, func(*Status) {}, func() { pool.Close(); homes.Close() }
	}
	compiler := worker.New(worker.Config{
		Args: c.Worker, Schema: schema, MaxTools: c.Limits.Tools,
		Timeout: c.CompileTimeout, Memory: c.CompileMemory, Logger: c.Log,
	})
	checker := worker.NewChecker(worker.CheckerConfig{
		Args: c.Worker, Schema: schema, Load: c.CompileTimeout, Logger: c.Log,
	})
	programs := worker.NewProgramRunner(worker.ProgramRunnerConfig{Args: c.Worker, Logger: c.Log})
	b.Compiler, b.Checker, b.JQ = compiler, checker, programs
	addStatus = func(s *Status) {
		if w := compiler.Status(); w.Sandbox != nil { // one was started
			s.Worker = &WorkerStatus{PID: w.PID, Sandbox: w.Sandbox}
		}
		w := checker.Status()
		s.Checker = &CheckerStatus{
			PIDs: append([]int{}, w.PIDs...), Sandbox: w.Sandbox, Packages: w.Packages,
			Checks: w.Answers, Timeouts: w.Timeouts, Kills: w.Kills, Deaths: w.Deaths,
		}
		p := programs.Status()
		s.JQ = &JQStatus{
			PIDs: append([]int{}, p.PIDs...), Sandbox: p.Sandbox,
			Runs: p.Answers, Timeouts: p.Timeouts, Kills: p.Kills, Deaths: p.Deaths,
		}
	}
	return b, addStatus, func() { pool.Close(); homes.Close(); compiler.Close(); checker.Close(); programs.Close() }
}
