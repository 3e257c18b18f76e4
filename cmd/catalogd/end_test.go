package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/catalogd/catalogd"
)

// listPolicy puts a list policy into a starter catalog that allows every tool under the condition.
func listPolicy(t *testing.T, condition string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, catalogd.Starter()); err != nil {
		t.Fatal(err)
	}
	text := "package catalogd.list\n\ndefault allow := false\n\nallow if {\n\tinput.tool.name\n\t" + condition + "\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "policy/list.rego"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "policy/list_test.rego")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return dir
}

// started runs catalogd in a directory until the test ends.
func started(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, out, errs *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, "catalogd", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, ".state"), "GORACE=atexit_sleep_ms=0")
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, errs
	return cmd, out, errs
}

// handles waits until a process takes SIGTERM itself.
func handles(t *testing.T, pid int) {
	t.Helper()
	for range 10_000 {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		_, mask, _ := strings.Cut(string(status), "SigCgt:")
		caught, err := strconv.ParseUint(strings.TrimSpace(strings.SplitN(mask, "\n", 2)[0]), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if caught>>(uint(syscall.SIGTERM)-1)&1 == 1 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it does not take SIGTERM")
}

// TestEnds: SIGTERM ends every command, in the middle of a decision that would take an hour too.
func TestEnds(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("whether a process takes a signal is read in /proc")
	}
	t.Parallel()
	dir := listPolicy(t, "count([1 | some i in numbers.range(1, 1000000); some j in numbers.range(1, 1000000); i * j == 7]) > 0")
	for _, args := range [][]string{{"check"}, {"matrix"}, {"diff", "."}, {"test"}, {"serve", "--addr", "127.0.0.1:0"}, {"stdio"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			cmd, out, errs := started(t, dir, append(args, "--decision-timeout", "1h")...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			handles(t, cmd.Process.Pid)
			time.Sleep(time.Second) // at any moment it is to end
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 2 {
				t.Errorf("%v, want exit status 2\n%s%s", err, out, errs)
			}
			if strings.Contains(errs.String(), "not ended in time") {
				t.Errorf("it was ended by force: %s", errs)
			}
		})
	}
}

// starve gives a process little time until it ends: it is stopped for a fifth of a second whenever it has
// worked for a hundredth.
func starve(process *os.Process) {
	for {
		for begin, worked := time.Now(), ticks(process.Pid); ticks(process.Pid) == worked && time.Since(begin) < time.Second; {
			time.Sleep(time.Millisecond)
		}
		if process.Signal(syscall.SIGSTOP) != nil {
			return
		}
		time.Sleep(200 * time.Millisecond)
		if process.Signal(syscall.SIGCONT) != nil {
			return
		}
	}
}

// ticks is how many hundredths of a second a process has worked, 0 where there is none.
func ticks(pid int) (n int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, field := range fields[11:13] {
		used, err := strconv.Atoi(field)
		if err == nil {
			n += used
		}
	}
	return n
}

// lockedBuffer is a buffer that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestStarved: a machine that gives catalogd a twentieth of a processor changes no answer. The policy works
// longer on each decision than the machine lets it at a time, which is well below its deadlines, and takes
// several of them on the clock.
func TestStarved(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what a process has worked is read in /proc")
	}
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	t.Parallel()
	dir := listPolicy(t, "count([1 | some i in numbers.range(1, 150); some j in numbers.range(1, 150); i * j == 7]) > 0")
	files, err := filepath.Glob(filepath.Join(dir, "catalog/*.cue"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	small := "package catalog\n\nbranches: default: {}\n\ntools: current_time: {\n\tdescription: \"x\"\n\teffect: \"read\"\n\tbinding: jq: program: \"1\"\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "catalog/small.cue"), []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := commitAll(dir, "one"); err != nil {
		t.Fatal(err)
	}
	principals := filepath.Join(dir, "principals.yaml")
	if err := os.WriteFile(principals, []byte("principals:\n  - {name: ann, groups: [staff]}\n  - {name: bob}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "--principals", principals}, {"matrix", "--principals", principals}, {"diff", "one", "one", "--principals", principals}, {"list"}, {"test", "--run", "connect_test|current_time"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			run := func(starved bool) string {
				cmd, out, errs := started(t, dir, args...)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if starved {
					go starve(cmd.Process)
				}
				err := cmd.Wait()
				return fmt.Sprintf("%v\n%s%s", err, out, errs)
			}
			want := run(false)
			if strings.Contains(want, "policy_timeout") {
				t.Fatalf("the machine is too slow for this test: %s", want)
			}
			if got := run(true); got != want {
				t.Errorf("starved:\n%s\nwant\n%s", got, want)
			}
		})
	}
	t.Run("serve", func(t *testing.T) {
		t.Parallel()
		run := func(starved bool) string {
			cmd, _, _ := started(t, dir, "serve", "--addr", "127.0.0.1:0", "--state", filepath.Join(t.TempDir(), "state"))
			log := &lockedBuffer{}
			cmd.Stderr = log
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if starved {
				go starve(cmd.Process)
			}
			url := regexp.MustCompile(`"url":"(http://127[^"]*)"`)
			var at []string
			for range 3000 {
				if at = url.FindStringSubmatch(log.String()); at != nil {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			if at == nil {
				t.Fatalf("it does not serve:\n%s", log)
			}
			var status *bytes.Buffer
			for range 3000 {
				asked, out, _ := started(t, dir, "status", "--server", at[1])
				if err := asked.Run(); err != nil {
					t.Errorf("status: %v\n%s%s", err, out, log)
				}
				status = out
				if !strings.Contains(out.String(), "a build runs") {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait()
			return regexp.MustCompile(`since .*|pid .*`).ReplaceAllString(status.String(), "")
		}
		want := run(false)
		if got := run(true); got != want {
			t.Errorf("starved:\n%s\nwant\n%s", got, want)
		}
	})
}
