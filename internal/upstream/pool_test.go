package upstream_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/decision/trusttest"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

// eventually waits for what other processes and goroutines do soon.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 18000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("still not: %s", what)
}

func gone(pid int) bool { return syscall.Kill(pid, 0) == syscall.ESRCH }

func pidOf(t *testing.T, set *upstream.Set, tool string) int {
	t.Helper()
	pid, err := strconv.Atoi(text(t, set, tool, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestReload(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pool := upstream.NewPool(upstream.Config{})
	defer pool.Close()
	s := stdioServer(t, "good")
	first := pool.Open(root, []upstream.Upstream{trusted(t, s, root, trust.Terms{})})
	if st := pool.Status(); len(st) != 1 || st[0].State != upstream.Idle || st[0].Pid != 0 {
		t.Errorf("before any call: %+v", st)
	}
	pid := pidOf(t, first, "pid")

	// The same declaration, somewhere else in the file.
	same := s
	same.Pos.Line = 99
	second := pool.Open(root, []upstream.Upstream{trusted(t, same, root, trust.Terms{})})
	first.Close()
	if got := pidOf(t, second, "pid"); got != pid {
		t.Errorf("an unchanged server has the process %d, had %d", got, pid)
	}
	_, err := call(t, first, "pid", `{}`)
	if err != nil {
		// A closed Set refers to a link that another holds; whether it answers is not promised.
		fails(t, err, registry.Unavailable)
	}

	// Other terms of trust, with a call in flight on the old ones.
	file := filepath.Join(t.TempDir(), "go")
	answer := make(chan string, 1)
	go func() { answer <- text(t, second, "wait", fmt.Sprintf(`{"File":%q}`, file)) }()
	eventually(t, "a call in flight", func() bool { return pool.Status()[0].Calls == 1 })
	third := pool.Open(root, []upstream.Upstream{trusted(t, s, root, trust.Terms{Entry: "other"})})
	closed := make(chan struct{})
	go func() { second.Close(); close(closed) }()
	eventually(t, "draining", func() bool {
		st := pool.Status()
		return len(st) == 2 && (st[0].State == upstream.Draining || st[1].State == upstream.Draining)
	})
	if other := pidOf(t, third, "pid"); other == pid {
		t.Error("the process of other terms was kept")
	}
	if gone(pid) {
		t.Error("the old process ended under a call")
	}
	_, err = call(t, second, "echo", `{}`)
	fails(t, err, registry.Unavailable, "generation was closed")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-answer; got != "waited" {
		t.Errorf("the call in flight: %s", got)
	}
	<-closed
	if !gone(pid) {
		t.Errorf("the old process %d is still there", pid)
	}
	third.Close()
	third.Close()
	if st := pool.Status(); len(st) != 0 {
		t.Errorf("after the last set: %+v", st)
	}
}

// TestOtherTermsAreAnotherConnection: no connection outlives the terms that it was made on, whichever of them changes.
func TestOtherTermsAreAnotherConnection(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pool := upstream.NewPool(upstream.Config{})
	defer pool.Close()
	s := stdioServer(t, "good")
	for i, terms := range []trust.Terms{
		{}, {Entry: "other"}, {Env: []string{"A"}}, {Env: []string{"A"}, Fixed: map[string]string{"A": "1"}}, {FromCall: []string{"a"}}, {Stdin: true},
		{MaxConnections: 1}, {Interpreter: true}, {Unpinned: true}, {InTree: true}, {Addresses: []string{"10.0.0.0/8"}},
		{SHA256: strings.Repeat("0a", 32)},
	} {
		base := pool.Open(root, []upstream.Upstream{trusted(t, s, root, trust.Terms{})})
		other := pool.Open(root, []upstream.Upstream{trusted(t, s, root, terms)})
		if got, want := len(pool.Status()), min(i, 1)+1; got != want {
			t.Errorf("%+v: %d connections, want %d", terms, got, want)
		}
		other.Close()
		base.Close()
	}
}

func processGroupsEnd(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"good", "stubborn"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			pool, set := open(t, stdioServer(t, mode), trust.Terms{})
			pid, grandchild := pidOf(t, set, "pid"), pidOf(t, set, "grandchild")
			if st := pool.Status()[0]; st.Pid != pid || st.State != upstream.Ready {
				t.Errorf("status %+v", st)
			}
			set.Close()
			if !gone(pid) {
				t.Errorf("the child %d is still there", pid)
			}
			eventually(t, "the grandchild's end", func() bool { return gone(grandchild) || zombie(grandchild) })
		})
	}
	t.Run("crash", func(t *testing.T) {
		t.Parallel()
		_, set := open(t, stdioServer(t, "good"), trust.Terms{})
		grandchild := pidOf(t, set, "grandchild")
		_, err := call(t, set, "crash", `{}`)
		fails(t, err, registry.Unavailable, "exit status 3")
		eventually(t, "the grandchild's end", func() bool { return gone(grandchild) || zombie(grandchild) })
	})
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		pool, set := open(t, stdioServer(t, "good"), trust.Terms{})
		text(t, set, "crash-after", `{}`)
		eventually(t, "the loss to show", func() bool {
			st := pool.Status()[0]
			return st.State == upstream.Failed && strings.Contains(st.LastError, "exit status 0")
		})
		text(t, set, "echo", `{}`)
		if st := pool.Status()[0]; st.State != upstream.Ready || st.LastError != "" {
			t.Errorf("status %+v", st)
		}
	})
}

// zombie: a container may have no init that reaps orphans.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestPoolCloseEndsCallsInFlight(t *testing.T) {
	t.Parallel()
	pool, set := open(t, stdioServer(t, "good"), trust.Terms{})
	pid := pidOf(t, set, "pid")
	failed := make(chan error, 1)
	go func() {
		_, err := call(t, set, "hang", `{}`)
		failed <- err
	}()
	eventually(t, "a call in flight", func() bool { return pool.Status()[0].Calls == 1 })
	pool.Close()
	fails(t, <-failed, registry.Unavailable, "closes its connections")
	if !gone(pid) {
		t.Error("the process is still there")
	}
	set.Close()
	_, err := call(t, pool.Open(t.TempDir(), nil), "echo", `{}`)
	fails(t, err, registry.Unavailable)
}

// TestNothingLeaks reloads servers and kills them, as often as CATALOGD_RELOADS says (`make churn`), and looks for what is
// left: orphans, zombies, descriptors, goroutines. It runs alone, for it counts what the whole process has.
func TestNothingLeaks(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 5
	}
	if n := os.Getenv("CATALOGD_RELOADS"); n != "" {
		var err error
		if rounds, err = strconv.Atoi(n); err != nil {
			t.Fatalf("CATALOGD_RELOADS: %v", err)
		}
	}
	root := t.TempDir()
	pool := upstream.NewPool(upstream.Config{Backoff: time.Millisecond, MaxBackoff: time.Millisecond})
	modern := httpServer(t, mcpServer(), false)
	// Under the race detector each child would sleep a second before it ends.
	quick := map[string]registry.Value{"GORACE": {Literal: "atexit_sleep_ms=0"}}
	var before *upstream.Set // as a daemon: the next generation is there before the last one goes
	round := func(i int) {
		s := stdioServer(t, "good")
		bad := stdioServer(t, "usage")
		web, apart := modern, stdioServer(t, "good")
		bad.Name, web.Name, apart.Name = "bad", "web", "apart"
		s.Eager, apart.Isolate = i%2 == 0, registry.ByBranch
		apart.Digest = "sha256:apart" // the one that no reload changes
		s.Stdio.Env, bad.Stdio.Env, apart.Stdio.Env = quick, quick, quick
		for _, d := range []*registry.Server{&s, &bad, &web} {
			d.Digest = fmt.Sprint("sha256:", i)
		}
		branches := trusted(t, apart, root, trust.Terms{})
		branches.Branches = []string{"a", "b"}
		set := pool.Open(root, []upstream.Upstream{
			trusted(t, s, root, trust.Terms{}), trusted(t, bad, root, trust.Terms{}), trusted(t, web, root, loopback), branches,
		})
		set.Connect()
		if before != nil {
			before.Close()
		}
		before = set
		pid := pidOf(t, set, "pid")
		if _, err := set.Call(t.Context(), "web", "echo", nil, registry.Listener{}); err != nil {
			t.Error(err)
		}
		if i%2 == 0 { // from outside, under a call
			failed := make(chan error, 1)
			go func() { _, err := call(t, set, "hang", `{}`); failed <- err }()
			eventually(t, "a call in flight", func() bool { return inFlight(pool, "fake") == 1 })
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			fails(t, <-failed, registry.Unavailable, "SIGKILL")
			text(t, set, "echo", `{}`)
		}
		if i%5 == 0 {
			_, _ = set.Call(t.Context(), "bad", "echo", nil, registry.Listener{})
			text(t, set, "grandchild", `{}`)
			if left := strings.Join(leftovers(t), "\n"); i == 0 && !strings.Contains(left, "-fake sleeper") {
				t.Errorf("a grandchild that runs is not among the processes:\n%s", left)
			}
			_, _ = call(t, set, "crash", `{}`)
			_, _ = set.Call(t.Context(), "apart", "grandchild", nil, registry.Listener{Branch: "ab"[i/5%2 : i/5%2+1]})
		}
	}
	end := func() {
		before.Close()
		before = nil
	}
	round(0)
	end()
	// A killed grandchild may still be there for a moment.
	eventually(t, "the end of all processes of one round", func() bool { return len(leftovers(t)) == 0 })
	goroutines, descriptors := runtime.NumGoroutine(), openDescriptors(t)
	for i := range rounds {
		round(i + 1)
		if t.Failed() {
			break
		}
		if (i+1)%100 == 0 {
			t.Logf("%d rounds: %d goroutines, %d descriptors", i+1, runtime.NumGoroutine(), openDescriptors(t))
		}
	}
	end()
	settled := func() bool {
		return runtime.NumGoroutine() <= goroutines+2 && openDescriptors(t) <= descriptors+2 && len(leftovers(t)) == 0
	}
	for range 12000 {
		if settled() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !settled() {
		stacks := make([]byte, 1<<20)
		t.Errorf("after %d rounds: %d goroutines (%d), %d descriptors (%d), processes %v\n%s", rounds,
			runtime.NumGoroutine(), goroutines, openDescriptors(t), descriptors, leftovers(t), stacks[:runtime.Stack(stacks, true)])
	}
	pool.Close()
}

func inFlight(pool *upstream.Pool, server string) (calls int) {
	for _, st := range pool.Status() {
		if st.Server == server && st.State != upstream.Draining {
			calls += st.Calls
		}
	}
	return calls
}

// leftovers are the processes that this test has begun and that still are: its children, zombies included, and what they
// began, wherever it hangs now.
func leftovers(t *testing.T) (left []string) {
	t.Helper()
	ps := exec.Command("ps", "-e", "-o", "pid=,ppid=,stat=,args=")
	out, err := ps.Output()
	if err != nil {
		t.Fatal(err)
	}
	mine := fmt.Sprintf("-fake sleeper %d", os.Getpid())
	for line := range strings.Lines(string(out)) {
		var pid, ppid int
		var stat string
		if _, err := fmt.Sscan(line, &pid, &ppid, &stat); err != nil || pid == ps.Process.Pid {
			continue
		}
		if ppid == os.Getpid() || strings.Contains(line, mine) && !strings.HasPrefix(stat, "Z") {
			left = append(left, strings.TrimSpace(line))
		}
	}
	return left
}

func openDescriptors(t *testing.T) int {
	t.Helper()
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

// A connection is kept only while the same is granted: with any other terms the server is asked anew, and where they
// aren't enough any more, not at all.
func TestConnectionsEndWithTheirTerms(t *testing.T) {
	t.Setenv("UPSTREAM_TOKEN", "secret")
	root := t.TempDir()
	pool := upstream.NewPool(upstream.Config{Logger: slog.New(slog.DiscardHandler)})
	defer pool.Close()
	s := serve(t, &script{call: func(w http.ResponseWriter, _ *http.Request, id string) { ok(w, id) }})
	s.HTTP.Headers = map[string]registry.Value{"X-Key": {Secret: "env:UPSTREAM_TOKEN"}}
	target, problems := upstream.Target(s, root)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	enough := loopback
	enough.Headers, enough.Secrets = target.Headers, target.Secrets
	set := func(terms trust.Terms) *upstream.Set {
		return pool.Open(root, []upstream.Upstream{{Server: s, Trust: trusttest.New(target, terms)}})
	}
	first := set(enough)
	defer first.Close()
	text(t, first, "echo", `{}`)
	for lacks, terms := range map[string]func(*trust.Terms){
		"headers": func(t *trust.Terms) { t.Headers = nil }, "secrets": func(t *trust.Terms) { t.Secrets = nil },
		"would have to name it, addresses": func(t *trust.Terms) { t.Addresses = nil },
	} {
		fewer := enough
		terms(&fewer)
		next := set(fewer)
		_, err := call(t, next, "echo", `{}`)
		if err == nil || !strings.Contains(err.Error(), lacks) {
			t.Errorf("without %s: %v", lacks, err)
		}
		next.Close()
	}
	text(t, first, "echo", `{}`)
}
