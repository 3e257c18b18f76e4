package upstream

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// serverPID waits for the child process that is the stdio server, and returns its id.
func serverPID(t testing.TB, r *harness.Daemon) (pid int) {
	t.Helper()
	harness.Await(t, "the server's process", func() bool {
		for _, child := range harness.Children(os.Getpid()) {
			args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
			cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", child)) // empty for one that has just ended
			if err == nil && strings.Contains(string(args), "stdio") && strings.HasPrefix(cwd, filepath.Dir(r.Dir)) {
				pid = child
			}
		}
		return pid != 0
	})
	return pid
}

// wrapServer makes the stdio server of an everything catalog a program of its own: one that has a child itself, in a
// folder by which server finds it. It returns how to find the grandchild.
func wrapServer(t testing.TB, r *harness.Daemon) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("processes are found in /proc")
	}
	home := filepath.Join(filepath.Dir(r.Dir), "home")
	harness.WriteFile(t, filepath.Join(home, "server.mjs"), fmt.Sprintf(`import { spawn } from "node:child_process";
spawn("sleep", ["1000"], { stdio: "ignore" });
await import(%q);
`, filepath.Join(harness.Root(t), harness.EverythingServer)))
	trust := filepath.Join(r.Dir, "policy/trust/data.yaml")
	harness.WriteFile(t, trust, strings.NewReplacer(harness.EverythingServer, "server.mjs", "dir: "+harness.Root(t), "dir: "+home).Replace(harness.ReadFile(t, trust)))
	file := filepath.Join(r.Dir, "catalog/servers.cue")
	harness.WriteFile(t, file, strings.Replace(harness.ReadFile(t, file), `args: [_program, "stdio"], cwd: _root`, fmt.Sprintf(`args: ["server.mjs", "stdio"], cwd: %q`, home), 1))
	if !r.Settled(t) {
		t.Fatalf("%+v", r.Status().Failed)
	}
}

// startServer starts the wrapped server and returns its process and the child of that.
func startServer(t testing.TB, r *harness.Daemon, l *harness.Client) []int {
	t.Helper()
	if got := l.Answer(t.Context(), "everything_echo", map[string]any{"message": "x"}); got != "Echo: x" {
		t.Fatalf("echo: %s", got)
	}
	pid := serverPID(t, r)
	var children []int
	harness.Await(t, "the server's own child", func() bool { children = harness.Children(pid); return len(children) > 0 })
	return append(children, pid)
}

// TestServerIsKilled: a server that dies fails its own calls, which say so, and comes back.
func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	r := everything(t)
	wrapServer(t, r)
	l := harness.Connect(t, r.URL, "default", harness.Modern)
	pids := startServer(t, r, l)
	pid := pids[len(pids)-1]
	waiting := make(chan string, 1)
	go func() { waiting <- l.Answer(context.Background(), "everything_wait", map[string]any{"duration": 300}) }()
	got := ""
	harness.Await(t, "the call that is under way to fail", func() bool {
		// Should the call come late, it meets a new process, which is killed too.
		_ = syscall.Kill(serverPID(t, r), syscall.SIGKILL) // or it has just ended
		select {
		case got = <-waiting:
			return true
		case <-time.After(500 * time.Millisecond):
			return false
		}
	})
	if !strings.HasPrefix(got, "failed: ") || !strings.Contains(got, "everything") {
		t.Errorf("the call that was under way: %s", got)
	}
	if got := l.Answer(t.Context(), "web_echo", map[string]any{"message": "y"}); got != "Echo: y" {
		t.Errorf("another server's: %s", got)
	}
	if _, listed := l.Listing(t)["everything_echo"]; !listed {
		t.Error("the tools of a server that is down are not listed")
	}
	harness.Await(t, "the server to come back", func() bool {
		return l.Answer(t.Context(), "everything_echo", map[string]any{"message": "z"}) == "Echo: z"
	})
	if again := serverPID(t, r); again == pid {
		t.Error("it is the same process")
	}
	harness.AwaitGone(t, "with the one that was killed", pids)
	r.End()
}

// TestServersEnd: a server's process and its children end when its declaration goes, when its trust does, and with the
// daemon.
func TestServersEnd(t *testing.T) {
	t.Parallel()
	r := everything(t)
	wrapServer(t, r)
	l := harness.Connect(t, r.URL, "default", harness.Legacy)
	trust, servers, tools := filepath.Join(r.Dir, "policy/trust/data.yaml"), filepath.Join(r.Dir, "catalog/servers.cue"), filepath.Join(r.Dir, "catalog/stdio.cue")
	for _, test := range []struct {
		name string
		edit func()
	}{
		{"with their declaration", func() {
			if err := os.Remove(tools); err != nil {
				t.Fatal(err)
			}
			text := harness.ReadFile(t, servers)
			from, to := strings.Index(text, "servers: everything: {"), strings.Index(text, "servers: everything_http: {")
			harness.WriteFile(t, servers, text[:from]+text[to:])
		}},
		{"with their trust", func() {
			harness.WriteFile(t, trust, strings.Replace(harness.ReadFile(t, trust), "server.mjs", "other.mjs", 1))
		}},
	} {
		before := map[string]string{trust: harness.ReadFile(t, trust), servers: harness.ReadFile(t, servers), tools: harness.ReadFile(t, tools)}
		pids := startServer(t, r, l)
		test.edit()
		if !r.Settled(t) {
			t.Fatalf("%s: %+v", test.name, r.Status().Failed)
		}
		for name := range l.Listing(t) {
			if strings.HasPrefix(name, "everything_") {
				t.Errorf("%s: %s is listed", test.name, name)
			}
		}
		if got := l.Answer(t.Context(), "everything_echo", map[string]any{"message": "x"}); got != harness.Absent {
			t.Errorf("%s: a call comes to %s", test.name, got)
		}
		if got := l.Answer(t.Context(), "web_echo", map[string]any{"message": "x"}); got != "Echo: x" {
			t.Errorf("%s: the other server's answers %s", test.name, got)
		}
		harness.AwaitGone(t, test.name, pids)
		for name, text := range before {
			harness.WriteFile(t, name, text)
		}
		if !r.Settled(t) {
			t.Fatalf("%s, taken back: %+v", test.name, r.Status().Failed)
		}
	}
	pids := startServer(t, r, l)
	l.End()
	r.End()
	harness.AwaitGone(t, "with the daemon", pids)
}
