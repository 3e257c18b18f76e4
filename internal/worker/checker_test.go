package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/worker"
	"github.com/catalogd/catalogd/registry"
)

const moduleFile = "module: \"example.com/catalog@v0\"\nlanguage: version: \"v0.17.0\"\n"

// packaged is a build of one package of these files.
func packaged(digest string, files map[string]string, tags ...string) *registry.Build {
	b := &registry.Build{Sources: map[string][]byte{}}
	p := registry.Package{Dir: "catalog", Digest: digest, Tags: tags}
	for name, data := range with(files, "cue.mod/module.cue", moduleFile) {
		sum := registry.Sum([]byte(data))
		b.Sources[sum] = []byte(data)
		p.Files = append(p.Files, registry.PackageFile{Name: name, Place: name, Sum: sum})
	}
	b.Packages = []registry.Package{p}
	return b
}

// remainder is what CUE checks of a tool's arguments in the package.
func remainder(digest, tool string) contract.Remainder {
	return contract.Remainder{Package: "catalog", Path: "tools." + tool + ".args", Digest: digest}
}

// lossy declares a tool with these arguments.
func lossy(name, args string) string {
	return fmt.Sprintf("tools: %q: {description: \"d\", effect: \"read\", "+
		"binding: jq: program: \".\", args: %s}\n", name, args)
}

// slow takes a few microseconds to check for a small n, and practically for ever for a large one.
const slow = `{n!: int, if len([for i in list.Range(0, n, 1) for j in list.Range(0, n, 1) {i + j}]) > 3 {m?: int}}`

const endlessCall = `{"n":100000}`

func remainders() map[string]string {
	return map[string]string{
		"catalog/a.cue": "package catalog\n\nimport (\n\t\"list\"\n\t\"example.com/catalog/lib\"\n)\n\n" +
			lossy("bound", `{start!: int, end!: >start, #N: lib.#Small, small?: #N}`) +
			lossy("get-names", `{first!: string, last: *_last | string, full: "\(first) \(last)"}`) +
			lossy("slow", slow) + lossy("closed", `{n!: int, o?: {a?: <n}}`),
		"catalog.cue": "package catalog\n\n_last: *\"Byron\" | string @tag(last)\n",
		"lib/lib.cue": "package lib\n\n#Small: int & <10\n",
	}
}

func checker(t testing.TB, cfg worker.CheckerConfig) *worker.Checker {
	t.Helper()
	cfg.Args, cfg.Schema = []string{"compile-worker"}, schema(t)
	c := worker.NewChecker(cfg)
	t.Cleanup(c.Close)
	return c
}

// generous is a deadline that a loaded machine keeps too.
const generous = 20 * time.Second

// checks is what a Checker and an InProcessChecker have in common.
type checks interface {
	Hold(*registry.Build) func()
	Rest(r contract.Remainder, open bool) contract.Rest
}

func TestChecks(t *testing.T) {
	t.Parallel()
	for kind, c := range map[string]checks{
		"children":   checker(t, worker.CheckerConfig{Deadline: generous}),
		"in process": worker.NewInProcessChecker(schema(t)),
	} {
		t.Run(kind, func(t *testing.T) {
			defer c.Hold(packaged("d", remainders()))()
			defer c.Hold(packaged("tagged", remainders(), "last=King"))()
			for _, test := range []struct{ digest, tool, args, filled, says string }{
				{"d", "bound", `{"end":7,"start":5}`, `{"end":7,"start":5}`, ""},
				{"d", "bound", `{"end":3,"start":5}`, "", "/end: got the number 3, expected > start, which is 5"},
				{"d", "bound", `{"end":7,"small":12,"start":5}`, "", "/small: got the number 12, expected int & <10"},
				{"d", "get-names", `{"first":"Ada"}`, `{"first":"Ada","full":"Ada Byron","last":"Byron"}`, ""},
				{"tagged", "get-names", `{"first":"Ada"}`, `{"first":"Ada","full":"Ada King","last":"King"}`, ""},
				{"d", "closed", `{"n":1,"o":{"b":1}}`, "", "/o/b: got the number 1"},
				{"d", "slow", `{"n":1}`, `{"n":1}`, ""},
			} {
				filled, found, err := c.Rest(remainder(test.digest, test.tool), false)(t.Context(), json.RawMessage(test.args))
				said := ""
				for _, v := range found {
					said += v.String()
				}
				if err != nil || string(filled) != test.filled || !strings.Contains(said, test.says) || (said == "") != (test.says == "") {
					t.Errorf("%s %s: got %s %q %v, want %s %q", test.tool, test.args, filled, said, err, test.filled, test.says)
				}
			}
			for _, r := range []contract.Remainder{
				remainder("other", "bound"), remainder("d", "none"),
				{Digest: "d", Path: "tools.bound.binding"}, {Digest: "d", Path: "x"},
			} {
				if _, _, err := c.Rest(r, false)(t.Context(), json.RawMessage(`{}`)); err == nil {
					t.Errorf("%v: got no error, want one", r)
				}
			}
		})
	}
}

// TestCheckDeadline: an argument with which CUE never finishes costs its own call and a child, and nothing
// else.
func TestCheckDeadline(t *testing.T) {
	t.Parallel()
	c := checker(t, worker.CheckerConfig{Deadline: 2 * time.Second})
	defer c.Hold(packaged("d", remainders()))()
	slow, bound := c.Rest(remainder("d", "slow"), false), c.Rest(remainder("d", "bound"), false)
	for range 3 {
		_, _, err := slow(t.Context(), json.RawMessage(endlessCall))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "2s") {
			t.Fatal(err)
		}
		if _, found, err := bound(t.Context(), json.RawMessage(`{"end":7,"start":5}`)); err != nil || found != nil {
			t.Fatal(found, err)
		}
	}
	if s := c.Status(); s.Timeouts != 3 || s.Kills != 3 || s.Answers != 3 || len(s.PIDs) > 2 {
		t.Errorf("%+v", s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := slow(ctx, json.RawMessage(endlessCall)); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestCheckKilled kills a child in the middle of a check.
func TestCheckKilled(t *testing.T) {
	t.Parallel()
	c := checker(t, worker.CheckerConfig{Deadline: generous})
	defer c.Hold(packaged("d", remainders()))()
	ended := make(chan error, 1)
	go func() {
		_, _, err := c.Rest(remainder("d", "slow"), false)(t.Context(), json.RawMessage(endlessCall))
		ended <- err
	}()
	var pid int
	eventually(t, func() bool { pids := c.Status().PIDs; pid = append(pids, 0)[0]; return pid != 0 })
	syscall.Kill(pid, syscall.SIGKILL)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "ended in the middle") {
		t.Error(err)
	}
	if _, found, err := c.Rest(remainder("d", "bound"), false)(t.Context(), json.RawMessage(`{"end":7,"start":5}`)); err != nil || found != nil {
		t.Error(found, err)
	}
	eventually(t, func() bool { s := c.Status(); return s.Deaths == 1 && !slices.Contains(s.PIDs, pid) })
	// A child that is killed while it is idle costs no call.
	for _, pid := range c.Status().PIDs {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	for range 4 {
		if _, found, err := c.Rest(remainder("d", "bound"), false)(t.Context(), json.RawMessage(`{"end":7,"start":5}`)); err != nil || found != nil {
			t.Error(found, err)
		}
	}
}

// TestCheckMemory: an argument with which CUE takes too much memory ends the child before the deadline.
func TestCheckMemory(t *testing.T) {
	t.Parallel()
	c := checker(t, worker.CheckerConfig{Deadline: time.Minute, Memory: 96 << 20})
	defer c.Hold(packaged("d", remainders()))()
	if _, _, err := c.Rest(remainder("d", "slow"), false)(t.Context(), json.RawMessage(endlessCall)); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, _, err := c.Rest(remainder("d", "bound"), false)(t.Context(), json.RawMessage(`{"end":7,"start":5}`)); err != nil {
		t.Error(err)
	}
}

// TestCheckLeaks kills 200 children and looks for leaked processes, descriptors and goroutines.
func TestCheckLeaks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("descriptors are counted in /proc")
	}
	descriptors := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before, routines := descriptors(), runtime.NumGoroutine()
	c := checker(t, worker.CheckerConfig{Size: 4, Deadline: time.Millisecond})
	release := c.Hold(packaged("d", remainders()))
	var pids sync.Map
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for c.Status().Kills < 200 {
				c.Rest(remainder("d", "slow"), false)(t.Context(), json.RawMessage(endlessCall))
				for _, pid := range c.Status().PIDs {
					pids.Store(pid, nil)
				}
			}
		})
	}
	callers.Wait()
	if n := len(c.Status().PIDs); n > 4 {
		t.Errorf("%d children", n)
	}
	release()
	c.Close()
	if s := c.Status(); len(s.PIDs) != 0 || s.Packages != 0 {
		t.Errorf("%+v", s)
	}
	pids.Range(func(pid, _ any) bool {
		if err := syscall.Kill(pid.(int), 0); err == nil {
			t.Errorf("child %d still runs", pid)
		}
		return true
	})
	eventually(t, func() bool { return descriptors() <= before && runtime.NumGoroutine() <= routines })
}

// TestCheckManyCallers: 64 callers share two children, which are replaced after 150 checks, and a thousand
// tools.
func TestCheckManyCallers(t *testing.T) {
	t.Parallel()
	c := checker(t, worker.CheckerConfig{Deadline: generous, Checks: 150})
	for p := range 10 {
		src := "package catalog\n"
		for i := range 100 {
			src += lossy(fmt.Sprintf("t%d", i), fmt.Sprintf(`{start!: int, end!: >(start + %d)}`, i))
		}
		defer c.Hold(packaged(fmt.Sprint("p", p), map[string]string{"catalog/a.cue": src}))()
	}
	var callers sync.WaitGroup
	most := make([]int, 64)
	for n := range 64 {
		callers.Go(func() {
			for k := range 8 {
				tool := (n*17 + k*5) % 100
				rest := c.Rest(remainder(fmt.Sprint("p", (n+k)%10), fmt.Sprint("t", tool)), false)
				_, found, err := rest(t.Context(), json.RawMessage(fmt.Sprintf(`{"end":%d,"start":1}`, tool+1+k%2)))
				if err != nil || (len(found) == 0) != (k%2 == 1) {
					t.Errorf("%d %d: %v %v", n, k, found, err)
				}
				most[n] = max(most[n], len(c.Status().PIDs))
			}
		})
	}
	callers.Wait()
	if s := c.Status(); slices.Max(most) > 2 || s.Answers != 64*8 || s.Deaths+s.Kills+s.Timeouts != 0 {
		t.Errorf("%d children, %+v", slices.Max(most), s)
	}
}

// TestCheckRelease: a package is checked as long as some build holds it.
func TestCheckRelease(t *testing.T) {
	t.Parallel()
	c := checker(t, worker.CheckerConfig{Size: 1, Deadline: generous})
	one, two := c.Hold(packaged("d", remainders())), c.Hold(packaged("d", remainders()))
	rest := c.Rest(remainder("d", "bound"), false)
	ask := func() error { _, _, err := rest(t.Context(), json.RawMessage(`{"end":7,"start":5}`)); return err }
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	one()
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	two()
	if err := ask(); err == nil {
		t.Error("after the last release: got no error, want one")
	}
	c.Close()
	if err := ask(); err == nil {
		t.Error("after Close: got no error, want one")
	}
}

// eventually waits until ok returns true.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); {
		if time.Now().After(end) {
			t.Fatal("the condition was not met in 2 minutes")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// BenchmarkRemainder is one check of a call of five arguments in a child, pipe included.
func BenchmarkRemainder(b *testing.B) {
	c := checker(b, worker.CheckerConfig{Deadline: generous})
	defer c.Hold(packaged("d", map[string]string{"catalog/a.cue": "package catalog\n" +
		lossy("x", `{start!: int, end!: >start, first!: string, last: *"x" | string, n: *1 | int & <100}`)}))()
	rest := c.Rest(remainder("d", "x"), false)
	args := json.RawMessage(`{"end":7,"first":"Ada","last":"L","n":3,"start":5}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, found, err := rest(b.Context(), args); err != nil || found != nil {
			b.Fatal(found, err)
		}
	}
}
