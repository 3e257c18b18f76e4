package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/fair"
	"github.com/catalogd/catalogd/internal/jq"
	"github.com/catalogd/catalogd/internal/worker"
)

// mebibyte is the limit of an output in these tests.
const mebibyte = 1 << 20

func programRunner(t testing.TB, cfg worker.ProgramRunnerConfig) *worker.ProgramRunner {
	t.Helper()
	cfg.Args = []string{"compile-worker"}
	r := worker.NewProgramRunner(cfg)
	t.Cleanup(r.Close)
	return r
}

// works runs a program that needs little.
func works(t *testing.T, r jq.Runner) {
	t.Helper()
	if out, err := r.Run(t.Context(), ".n + 1", json.RawMessage(`{"n":9007199254740993}`), mebibyte); err != nil || string(out) != "9007199254740994" {
		t.Errorf("got %s, %v", out, err)
	}
}

// TestProgramsAsInProcess: a program's output or error in a child is that in this process.
func TestProgramsAsInProcess(t *testing.T) {
	t.Parallel()
	r, here := programRunner(t, worker.ProgramRunnerConfig{Deadline: time.Minute}), new(jq.InProcess)
	for _, test := range []struct{ program, in string }{
		{`.`, `{"b":[1,-0,1e2,0.10000000000000000555,123456789012345678901234567890],"a":"<\u0000\u2028é🙂>"}`},
		{`.n * 10`, `{"n":123456789012345678901234567890}`},
		{`empty`, `null`},
		{`halt`, `null`},
		{`null`, `1`},
		{`""`, `1`},
		{`.a.b`, `{"a":1}`},
		{`error({a: 1})`, `null`},
		{`error("x" * 100000)`, `null`},
		{`)`, `null`},
		{`"\u0001" * 1048576`, `null`},
		{`"x" * 1048577`, `null`},
		{`[range(600000)]`, `null`},
		{`length`, `"` + strings.Repeat("x", 4<<20) + `"`},
		{`reduce range(2000) as $i (0; [.])`, `null`},
		{`[$ENV, env.PATH, env.TZ]`, `null`},
		{`0, 1720000000 | [localtime, strflocaltime("%Y-%m-%dT%H:%M:%S %z %Z")]`, `null`},
		{`"2024-07-03 10:00" | strptime("%Y-%m-%d %H:%M") | mktime`, `null`},
		{`[limit(5; repeat(1))] | tojson | test("^.1")`, `null`},
	} {
		got, gotErr := r.Run(t.Context(), test.program, json.RawMessage(test.in), mebibyte)
		want, wantErr := here.Run(t.Context(), test.program, json.RawMessage(test.in), mebibyte)
		if string(got) != string(want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			t.Errorf("%s: got %.100s, %v; want %.100s, %v", test.program, got, gotErr, want, wantErr)
		}
	}
	if s := r.Status(); s.Answers != 19 || s.Kills+s.Deaths+s.Timeouts != 0 || len(s.PIDs) != 1 {
		t.Errorf("%+v", s)
	}
}

// TestProgramTimeZone: a program has the time zone of this process, though its child can read no file.
func TestProgramTimeZone(t *testing.T) {
	zone, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Skip(err)
	}
	t.Setenv("TZ", "Asia/Kolkata")
	r := programRunner(t, worker.ProgramRunnerConfig{Deadline: time.Minute})
	out, err := r.Run(t.Context(), `1720000000 | strflocaltime("%H:%M %Z")`, json.RawMessage("null"), mebibyte)
	if want := time.Unix(1720000000, 0).In(zone).Format(`"15:04 MST"`); err != nil || string(out) != want {
		t.Errorf("got %s, %v; want %s", out, err, want)
	}
}

// TestProgramLimits: a program that takes too much time, memory or stack, step by step or in one, fails its own
// run and no other.
func TestProgramLimits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, program, says string }{
		{"time", `def f: f; f`, "more than 3s of processor time"},
		{"memory", `[range(1e10)]`, "more than 96 MiB of memory"},
		{"memory in one step", `"x" * 1000000000 | length`, "more than 96 MiB of memory"},
		{"stack", `reduce range(1000000) as $i (0; [.]) | tojson | length`, "more than 96 MiB of memory"},
		{"stack of an error", `reduce range(1000000) as $i (0; [.]) | error`, "more than 96 MiB of memory"},
	} {
		t.Run(test.name, func(t *testing.T) { // not in parallel: each takes what it is allowed
			cfg := worker.ProgramRunnerConfig{Deadline: 3 * time.Second, Memory: 96 << 20}
			if test.name != "time" {
				cfg.Deadline = time.Minute
			}
			r := programRunner(t, cfg)
			works(t, r)
			first := r.Status().PIDs
			_, err := r.Run(t.Context(), test.program, json.RawMessage("null"), mebibyte)
			if !errors.As(err, new(jq.StoppedError)) || !strings.Contains(fmt.Sprint(err), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
			works(t, r)
			if s := r.Status(); s.Answers != 2 || s.Deaths+s.Timeouts != 1 {
				t.Errorf("%+v", s)
			}
			eventually(t, func() bool { return !slices.Contains(r.Status().PIDs, first[0]) })
		})
	}
}

// TestProgramCancelled: a run ends with its context, and its child with it; others go on meanwhile.
func TestProgramCancelled(t *testing.T) {
	t.Parallel()
	r := programRunner(t, worker.ProgramRunnerConfig{Size: 3, Deadline: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := r.Run(ctx, `def f: f; f`, json.RawMessage("null"), mebibyte)
		ended <- err
	}()
	eventually(t, func() bool { return len(r.Status().PIDs) == 1 })
	busy := r.Status().PIDs[0]
	for range 3 {
		works(t, r)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	eventually(t, func() bool { s := r.Status(); return s.Kills == 1 && !slices.Contains(s.PIDs, busy) })
	works(t, r)
}

// TestProgramChildKilled: a child that somebody kills fails the run that it has, and none while it is idle.
func TestProgramChildKilled(t *testing.T) {
	t.Parallel()
	r := programRunner(t, worker.ProgramRunnerConfig{Size: 1, Deadline: time.Hour})
	ended := make(chan error, 1)
	go func() {
		_, err := r.Run(t.Context(), `def f: f; f`, json.RawMessage("null"), mebibyte)
		ended <- err
	}()
	eventually(t, func() bool { return len(r.Status().PIDs) == 1 })
	kill(t, r.Status().PIDs[0])
	if err := <-ended; !errors.As(err, new(jq.UnavailableError)) || !strings.Contains(err.Error(), "ended in the middle") {
		t.Errorf("got %v, want an UnavailableError", err)
	}
	works(t, r)
	for range 3 {
		for _, pid := range r.Status().PIDs {
			kill(t, pid)
		}
		works(t, r)
	}
	r.Close()
	if _, err := r.Run(t.Context(), ".", json.RawMessage("null"), mebibyte); !errors.As(err, new(jq.UnavailableError)) {
		t.Errorf("after Close: got %v, want an UnavailableError", err)
	}
}

// TestProgramWarm: the first run uses the child that Warm has started.
func TestProgramWarm(t *testing.T) {
	t.Parallel()
	r := programRunner(t, worker.ProgramRunnerConfig{Deadline: time.Minute})
	r.Warm()
	r.Warm()
	works(t, r)
	if s := r.Status(); len(s.PIDs) != 1 || s.Answers != 1 {
		t.Errorf("after the first run: %+v", s)
	}
	r.Close()
	r.Warm()
	if s := r.Status(); len(s.PIDs) != 0 {
		t.Errorf("after Close: %+v", s)
	}
}

// TestProgramManyCallers: many callers share the children, each with its own programs, while some are killed.
func TestProgramManyCallers(t *testing.T) {
	t.Parallel()
	r := programRunner(t, worker.ProgramRunnerConfig{Size: 3, Deadline: time.Minute})
	var callers sync.WaitGroup
	for n := range 16 {
		callers.Go(func() {
			for k := range 50 {
				if n == 0 && k%10 == 9 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					if _, err := r.Run(ctx, `def f: f; f`, json.RawMessage("null"), mebibyte); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
					}
					cancel()
					continue
				}
				out, err := r.Run(t.Context(), fmt.Sprintf(". + %d", k), json.RawMessage(fmt.Sprint(n)), mebibyte)
				if err != nil || string(out) != fmt.Sprint(n+k) {
					t.Errorf("%d + %d: got %s, %v", n, k, out, err)
				}
			}
		})
	}
	callers.Wait()
	pids := r.Status().PIDs
	r.Close()
	for _, pid := range pids {
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("child %d still runs", pid)
		}
	}
}

// BenchmarkProgram is one run of a small program in a child, pipe included, and in this process.
func BenchmarkProgram(b *testing.B) {
	in := json.RawMessage(`{"a":1,"b":2,"items":[{"name":"x"},{"name":"y"},{"name":"z"}]}`)
	for _, bench := range []struct {
		name   string
		runner jq.Runner
	}{{"child", programRunner(b, worker.ProgramRunnerConfig{})}, {"in-process", new(jq.InProcess)}} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bench.runner.Run(b.Context(), `{sum: (.a + .b), list: [.items[] | .name]}`, in, mebibyte); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// stopped reports whether each thread of a process has stopped, which takes a while on a busy machine.
func stopped(t *testing.T, pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatal(threads, err)
	}
	return !slices.ContainsFunc(threads, func(name string) bool {
		stat, err := os.ReadFile(name)
		return err == nil && !strings.Contains(string(stat), ") T ")
	})
}

// A program whose process got no processor has not exceeded the limit: its run fails, and nothing is said of the program.
func TestProgramWithoutProcessor(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the processor time of another process is known on Linux only")
	}
	r := programRunner(t, worker.ProgramRunnerConfig{Deadline: 200 * time.Millisecond})
	works(t, r)
	for _, pid := range r.Status().PIDs {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return stopped(t, pid) })
	}
	var unavailable jq.UnavailableError
	if out, err := r.Run(t.Context(), ".n + 1", json.RawMessage(`{"n":1}`), mebibyte); !errors.As(err, &unavailable) {
		t.Errorf("got %s, %v; want an UnavailableError", out, err)
	}
	works(t, r)
}

// TestProgramsTakeTurns: one caller's programs, which run to their end and beyond, leave a child to everybody else; and
// where all are taken, the next free one goes to who has none.
func TestProgramsTakeTurns(t *testing.T) {
	t.Parallel()
	r := programRunner(t, worker.ProgramRunnerConfig{Deadline: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	of := func(ctx context.Context, branch, principal string) context.Context {
		return fair.With(ctx, fair.Key{Branch: branch, Principal: principal})
	}
	flood := func(n int, branch, principal string) {
		for range n {
			running.Go(func() {
				_, err := r.Run(of(ctx, branch, principal), `def f: f; f`, json.RawMessage("null"), mebibyte)
				if !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want %v", err, context.Canceled)
				}
			})
		}
	}
	flood(20, "default", "ann")
	eventually(t, func() bool { return len(r.Status().PIDs) == 3 })
	for _, who := range [][2]string{{"default", "bob"}, {"other", "ann"}, {"", ""}} {
		out, err := r.Run(of(t.Context(), who[0], who[1]), ". + 1", json.RawMessage("1"), mebibyte)
		if err != nil || string(out) != "2" {
			t.Errorf("%v beside the flood: got %s, %v", who, out, err)
		}
	}
	if n := len(r.Status().PIDs); n != 4 {
		t.Errorf("%d children, want 3 for the flood and one for the others", n)
	}
}
