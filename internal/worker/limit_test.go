package worker_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/worker"
	"github.com/catalogd/catalogd/problem"
)

// endless are catalogs whose evaluation never ends, by the rows of docs/robustness.md.
var endless = map[string]string{
	"A7":  laughs(),
	"A8":  interpolations(),
	"A10": "package catalog\n\n#T: {" + strings.Join(disjuncts(10), " | ") + "}\n_x: #T & {args: [{args: [{args: [{args: [{args: [{}, {}]}]}]}]}]}\n",
	"A11": "package catalog\n\nimport \"list\"\n\n_n: len([for i in list.Range(0, 100000000, 1) {i}])\n",
}

func laughs() string {
	b := "package catalog\n\ntools: x: {description: \"x\", effect: \"read\", binding: jq: program: \".\", examples: [{args: x: _a13}]}\n_a0: [1, 2, 3, 4, 5]\n"
	for i := range 13 {
		b += fmt.Sprintf("_a%d: [_a%[2]d, _a%[2]d, _a%[2]d, _a%[2]d, _a%[2]d]\n", i+1, i)
	}
	return b
}

func interpolations() string {
	b := "package catalog\n\n_s0: \"0123456789\"\n"
	for i := range 30 {
		b += fmt.Sprintf("_s%d: \"\\(_s%[2]d)\\(_s%[2]d)\"\n", i+1, i)
	}
	return b
}

func disjuncts(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("{kind: \"%d\", args: [...#T]}", i))
	}
	return out
}

// TestBadInput: the evaluation of an endless catalog is stopped at a limit, the problem names the file, and
// the fixed catalog compiles next.
func TestBadInput(t *testing.T) {
	t.Parallel()
	for id, src := range endless {
		t.Run(id, func(t *testing.T) { // not in parallel: each takes all memory that it is allowed
			c := compiler(t, worker.Config{Timeout: 4 * time.Second, Memory: 256 << 20})
			if _, problems := compile(t, c, good()); len(problems) > 0 {
				t.Fatal(problems.Err())
			}
			first := c.Status().PID
			build, problems := compile(t, c, with(good(), "catalog/b/a.cue", "package catalog\n",
				"catalog/b/bomb.cue", src, "catalog/z/z.cue", "package catalog\n"+tool("last", "Last.")))
			if build != nil || len(problems) != 1 {
				t.Fatalf("got a build: %v, problems %v; want one problem", build != nil, problems)
			}
			p := problems[0]
			// Values that double exceed either limit first.
			if p.Code != problem.LoadTimeout && p.Code != problem.LoadMemory || p.Severity != problem.Error {
				t.Errorf("got %s, want load_timeout or load_memory", p)
			}
			if p.File != "catalog/b/bomb.cue" || !strings.Contains(p.Message, "the evaluation of package catalog/b") {
				t.Errorf("got %s, want the file and the package", p)
			}
			build, problems = compile(t, c, with(good(), "catalog/b/bomb.cue", "package catalog\n"))
			if build == nil || len(problems) > 0 || len(build.Tools) != 2 {
				t.Errorf("after it: %v", problems)
			}
			if now := c.Status().PID; now == 0 || now == first {
				t.Errorf("the child is still the first: %d", now)
			}
			if err := syscall.Kill(first, 0); err == nil {
				t.Errorf("child %d still runs", first)
			}
		})
	}
}

// namesTheNewFile: of a package's files, the problem names the one that has changed since the last build.
func namesTheNewFile(t *testing.T) {
	t.Parallel()
	c := compiler(t, worker.Config{Timeout: 2 * time.Second})
	files := with(good(), "catalog/b/a.cue", "package catalog\n")
	compile(t, c, files)
	_, problems := compile(t, c, with(files, "catalog/b/zz.cue", endless["A11"]))
	if len(problems) != 1 || problems[0].Position != (problem.Position{File: "catalog/b/zz.cue"}) {
		t.Errorf("problems: %v", problems)
	}
}

func outOfMemory(t *testing.T) {
	t.Parallel()
	c := compiler(t, worker.Config{Memory: 128 << 20, Timeout: time.Minute})
	_, problems := compile(t, c, with(good(), "catalog/b/b.cue", endless["A11"]))
	if len(problems) != 1 || problems[0].Code != problem.LoadMemory || problems[0].File != "catalog/b/b.cue" ||
		!strings.Contains(problems[0].Message, "128 MiB") {
		t.Errorf("problems: %v", problems)
	}
	if _, problems := compile(t, c, good()); len(problems) > 0 {
		t.Errorf("after it: %v", problems)
	}
}

// TestMemoryOfTwoPackages: where memory runs out while two packages are evaluated, the problem names the one
// that took it.
func TestMemoryOfTwoPackages(t *testing.T) {
	t.Parallel()
	slow := "package catalog\n\nimport \"list\"\n\n_n: len([for i in list.Range(0, 15000, 1) {i}])\n"
	bomb := "package catalog\n\nimport \"strings\"\n\n_n: len(strings.Repeat(strings.Repeat(\"a\", 100000), 100000))\n" + tool("bomb", `\(_n)`)
	c := compiler(t, worker.Config{Timeout: 30 * time.Second, Memory: 512 << 20})
	files := with(with(good(), "catalog/a/slow.cue", slow+tool("slow", `\(_n)`)), "catalog/b/bomb.cue", bomb)
	_, problems := compile(t, c, files)
	if len(problems) != 1 || problems[0].Code != problem.LoadMemory || problems[0].File != "catalog/b/bomb.cue" ||
		len(problems[0].Also) > 0 {
		t.Errorf("problems: %v", problems)
	}
}

// TestKilled: a child that somebody kills is a problem during a build, and none between two.
func TestKilled(t *testing.T) {
	t.Parallel()
	c := compiler(t, worker.Config{Timeout: time.Minute})
	compile(t, c, good())
	kill(t, c.Status().PID)
	build, problems := compile(t, c, good())
	if build == nil || len(problems) > 0 {
		t.Fatalf("killed while idle: %v", problems)
	}
	pid := c.Status().PID
	before, known := worker.CPUTime(pid)
	go func() { // when it works on what never ends, in little memory
		for working := before; known && working < before+500*time.Millisecond; working, known = worker.CPUTime(pid) {
			time.Sleep(time.Millisecond)
		}
		kill(t, pid)
	}()
	_, problems = compile(t, c, with(good(), "catalog/b/b.cue", endless["A10"]))
	if len(problems) != 1 || problems[0].Code != problem.LoadFailed || problems[0].File != "catalog/b/b.cue" ||
		!strings.Contains(problems[0].Message, "SIGKILL") {
		t.Errorf("killed in a build: %v", problems)
	}
	if build, problems := compile(t, c, good()); build == nil || len(problems) > 0 {
		t.Errorf("after it: %v", problems)
	}
}

func kill(t *testing.T, pid int) {
	if pid <= 0 {
		t.Error("there is no child")
		return
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(pid, err)
	}
}

// TestCancelled: the end of the context or Close ends a build at once.
func TestCancelled(t *testing.T) {
	t.Parallel()
	c := compiler(t, worker.Config{Timeout: time.Minute})
	s, _ := snapshot(t, with(good(), "catalog/b/b.cue", endless["A7"]))
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if build, problems := c.Compile(ctx, s); build != nil || !problems.HasErrors() {
		t.Error("got a build, want a problem")
	}
	if build, problems := compile(t, c, good()); build == nil || len(problems) > 0 {
		t.Errorf("after it: %v", problems)
	}
	go func() {
		time.Sleep(300 * time.Millisecond)
		c.Close()
	}()
	if build, problems := c.Compile(t.Context(), s); build != nil || !problems.HasErrors() {
		t.Error("got a build, want a problem")
	}
	if build, problems := compile(t, c, good()); build != nil || !problems.HasErrors() {
		t.Error("after Close: got a build, want a problem")
	}
}

// TestOtherPrograms: a child that does not follow the protocol is a problem, whatever it sends.
func TestOtherPrograms(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"not-a-worker", "dies"} {
		c := compiler(t, worker.Config{Args: []string{arg}})
		build, problems := compile(t, c, good())
		if build != nil || len(problems) != 1 || problems[0].Code != problem.LoadFailed {
			t.Errorf("%s: %v", arg, problems)
		}
	}
	for arg, code := range map[string]problem.Code{
		"only-memory": problem.LoadTimeout, "endless-steps": problem.LoadFailed,
	} {
		timeout := 500 * time.Millisecond
		if arg == "endless-steps" { // whose answer becomes too large, however long that takes
			timeout = time.Minute
		}
		log := &levels{}
		c := compiler(t, worker.Config{Args: []string{arg}, Timeout: timeout, Memory: 1 << 20, Logger: slog.New(log)})
		if build, problems := compile(t, c, good()); build != nil || len(problems) != 1 || problems[0].Code != code {
			t.Errorf("%s: %v", arg, problems)
		}
		// These children say that nothing confines them.
		if got := log.of("compile worker started with less of a sandbox"); runtime.GOOS == "linux" && !slices.Equal(got, []slog.Level{slog.LevelWarn}) {
			t.Errorf("%s: the missing sandbox is logged at %v, want one warning", arg, got)
		}
	}
	c := compiler(t, worker.Config{Args: []string{"silent"}})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	s, _ := snapshot(t, good())
	if build, problems := c.Compile(ctx, s); build != nil || !problems.HasErrors() {
		t.Errorf("silent: %v", problems)
	}
}

// TestRecycled: a child that uses too much memory, has built often enough or is idle is replaced, and nothing
// is lost.
func TestRecycled(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]worker.Config{
		"keeps": {Keep: 1}, "often": {Builds: 1}, "idle": {Idle: 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := compiler(t, cfg)
			for range 3 {
				build, problems := compile(t, c, good())
				if build == nil || len(problems) > 0 || len(build.Tools) != 2 {
					t.Fatal(problems)
				}
				for deadline := time.Now().Add(2 * time.Minute); c.Status().PID != 0; time.Sleep(time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatal("the child still runs")
					}
				}
			}
		})
	}
}

// TestNothingLeaks runs builds, kills children and exceeds limits, and looks for leaked processes,
// descriptors and goroutines.
func TestNothingLeaks(t *testing.T) {
	// Not in parallel: it counts what the whole process has.
	c := compiler(t, worker.Config{Memory: 96 << 20, Builds: 7})
	compile(t, c, good())
	before, open := runtime.NumGoroutine(), descriptors(t)
	var pids []int
	for i := range 50 {
		files := good()
		files["catalog/b/b.cue"] += fmt.Sprintf("// %d\n", i)
		switch i % 10 {
		case 3:
			kill(t, c.Status().PID)
		case 7:
			files["catalog/b/b.cue"] = endless["A11"]
		}
		build, problems := compile(t, c, files)
		if want := i%10 != 7; (build != nil) != want {
			t.Fatalf("build %d: %v", i, problems)
		}
		pids = append(pids, c.Status().PID)
	}
	c.Close()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		goroutines, now := runtime.NumGoroutine(), descriptors(t)
		if goroutines <= before && now <= open {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("goroutines %d, then %d; descriptors %d, then %d", before, goroutines, open, now)
		}
	}
	for _, pid := range pids {
		if pid != 0 && syscall.Kill(pid, 0) == nil {
			t.Errorf("child %d still runs", pid)
		}
	}
}

func descriptors(t *testing.T) int {
	dir := "/proc/self/fd"
	if runtime.GOOS != "linux" {
		dir = "/dev/fd"
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// levels is a log that keeps the level of each message.
type levels struct {
	mu  sync.Mutex
	all []slog.Record
}

func (l *levels) Enabled(context.Context, slog.Level) bool { return true }
func (l *levels) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *levels) WithGroup(string) slog.Handler            { return l }
func (l *levels) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r)
	return nil
}

// of returns the levels of the messages that begin so.
func (l *levels) of(message string) (found []slog.Level) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.all {
		if strings.HasPrefix(r.Message, message) {
			found = append(found, r.Level)
		}
	}
	return found
}
