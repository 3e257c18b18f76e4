package catalogd

import (
	"io"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/serve"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/internal/worker"
	"github.com/catalogd/catalogd/loader"
)

// CompileWorker is the whole life of the processes that Config.Worker asks for: a program calls it from main when it is
// started with those arguments, with its standard input and output, and exits with what it returns. It keeps itself from
// files, network and programs where the system can do that.
func CompileWorker(in io.Reader, out io.Writer) int { return worker.Child(in, out) }

// parts makes what builds generations. end gives up its connections and its processes; workers says in a Status how the
// latter are.
func (c Config) parts() (b *serve.Builder, workers func(*serve.Status), end func()) {
	b = c.builder()
	if len(c.Worker) == 0 {
		b.Compiler = loader.NewCompiler(loader.Config{Schema: schema, MaxTools: c.Limits.Tools, Logger: c.Log})
		b.Checker = worker.NewInside(schema)
		return b, func(*serve.Status) {}, b.Pool.Close
	}
	w := worker.New(worker.Config{
		Args: c.Worker, Schema: schema, MaxTools: c.Limits.Tools, Timeout: c.CompileTimeout, Memory: c.CompileMemory, Logger: c.Log,
	})
	checker := worker.NewChecker(worker.CheckerConfig{Args: c.Worker, Schema: schema, Load: c.CompileTimeout, Logger: c.Log})
	b.Compiler, b.Checker = w, checker
	workers = func(s *serve.Status) {
		s.Worker = statusOf(w.Status())
		is := checker.Status()
		s.Checker = &serve.CheckerStatus{
			PIDs: append([]int{}, is.PIDs...), Sandbox: is.Sandbox, Packages: is.Packages,
			Checks: is.Checks, Timeouts: is.Timeouts, Kills: is.Kills, Deaths: is.Deaths,
		}
	}
	return b, workers, func() { b.Pool.Close(); w.Close(); checker.Close() }
}

// statusOf is nil until a worker has been started.
func statusOf(s worker.Status) *serve.WorkerStatus {
	if s.Sandbox == nil {
		return nil
	}
	return &serve.WorkerStatus{PID: s.PID, Sandbox: s.Sandbox}
}

func (c Config) builder() *serve.Builder {
	live := serve.NewLive()
	return &serve.Builder{
		Root:   c.Dir,
		Live:   live,
		Pool:   upstream.NewPool(upstream.Config{Version: c.Version, Logger: c.Log, Watch: live.Watch()}),
		Policy: decision.Config{Deadline: c.PolicyDeadline, Logger: c.Log},
		Log:    c.Log,
	}
}
