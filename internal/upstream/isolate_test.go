package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

// callAs calls for a branch.
func callAs(ctx context.Context, set *upstream.Set, branch, tool, args string) (string, error) {
	r, err := set.Call(ctx, "fake", tool, json.RawMessage(args), registry.Listener{Branch: branch})
	if err != nil {
		return "", err
	}
	var block struct{ Text string }
	err = json.Unmarshal(r.Content[0], &block)
	return block.Text, err
}

func textAs(t *testing.T, set *upstream.Set, branch, tool string) string {
	t.Helper()
	s, err := callAs(t.Context(), set, branch, tool, `{}`)
	if err != nil {
		t.Fatalf("%s for %s: %v", tool, branch, err)
	}
	return s
}

func isolated(s registry.Server, limit int) registry.Server {
	s.Isolate, s.MaxConnections = registry.ByBranch, limit
	return s
}

func TestIsolateStdio(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pool := upstream.NewPool(upstream.Config{})
	defer pool.Close()
	up := trusted(t, isolated(stdioServer(t, "good"), 4), root, trust.Terms{})
	up.Branches = []string{"a", "b", "c"}
	set := pool.Open(root, []upstream.Upstream{up})
	a, b := textAs(t, set, "a", "pid"), textAs(t, set, "b", "pid")
	if a == b {
		t.Errorf("two branches share the process %s", a)
	}
	if again := textAs(t, set, "a", "pid"); again != a {
		t.Errorf("a branch's second call went to the process %s, its first to %s", again, a)
	}
	if _, err := callAs(t.Context(), set, "nobody", "pid", `{}`); err == nil {
		t.Error("a branch that the generation doesn't have was served")
	}
	states := map[string]upstream.State{}
	for _, st := range pool.Status() {
		states[st.Branch] = st.State
	}
	if len(states) != 3 || states["a"] != upstream.Ready || states["b"] != upstream.Ready || states["c"] != upstream.Idle {
		t.Errorf("states %v", states)
	}

	// A reload that takes a branch away keeps the others' connections.
	up.Branches = []string{"a", "d"}
	next := pool.Open(root, []upstream.Upstream{up})
	set.Close()
	if again := textAs(t, next, "a", "pid"); again != a {
		t.Errorf("after a reload the process is %s, was %s", again, a)
	}
	if n := len(pool.Status()); n != 2 {
		t.Errorf("links after the reload: %d", n)
	}
	// Shared, they are one.
	up.Server.Isolate, up.Server.Digest = "", "sha256:shared"
	shared := pool.Open(root, []upstream.Upstream{up})
	next.Close()
	if a, d := textAs(t, shared, "a", "pid"), textAs(t, shared, "d", "pid"); a != d {
		t.Errorf("without isolate the branches have the processes %s and %s", a, d)
	}
}

// TestIsolateKeepsTheLimit: the limit is the server's. A process without calls makes room, one with calls doesn't.
func TestIsolateKeepsTheLimit(t *testing.T) {
	t.Parallel()
	pool, set := openWith(t, upstream.Config{}, isolated(stdioServer(t, "good"), 1), trust.Terms{Entry: "local", MaxConnections: 3}, "a", "b")
	for _, branch := range []string{"a", "b", "a"} {
		textAs(t, set, branch, "echo")
		if pids := children(t); len(running(pool)) > 1 {
			t.Errorf("running %v, children %v", running(pool), pids)
		}
	}
	file := filepath.Join(t.TempDir(), "go")
	held := make(chan error, 1)
	go func() {
		_, err := callAs(t.Context(), set, "a", "wait", fmt.Sprintf(`{"File":%q}`, file))
		held <- err
	}()
	eventually(t, "a call in flight", func() bool { return calls(pool, "a") == 1 })
	ctx := overdue(t, func() bool { return pool.Status()[1].Waiting == 1 })
	_, err := callAs(ctx, set, "b", "echo", `{}`)
	fails(t, err, registry.Timeout, "all of its 1 processes were busy", "wait for one: 1", "nothing was sent",
		"maxConnections of the server's declaration is 1", `max_connections of trust entry "local" is 3`)
	waits := make(chan error, 1)
	go func() { _, err := callAs(t.Context(), set, "b", "echo", `{}`); waits <- err }()
	eventually(t, "a call that waits", func() bool { return pool.Status()[1].Waiting == 1 && calls(pool, "b") == 1 })
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, done := range []chan error{held, waits} {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// running are the branches that have a process.
func running(pool *upstream.Pool) (branches []string) {
	for _, st := range pool.Status() {
		if st.Pid != 0 {
			branches = append(branches, st.Branch)
		}
	}
	return branches
}

func calls(pool *upstream.Pool, branch string) int {
	for _, st := range pool.Status() {
		if st.Branch == branch {
			return st.Calls
		}
	}
	return -1
}

// TestIsolateHTTP: the server sees an initialize for each branch, each branch's calls on its own session, and not more
// calls at once than its limit.
func TestIsolateHTTP(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	sessions := map[string]bool{}
	var running, most atomic.Int32
	s := &script{}
	s.call = func(w http.ResponseWriter, r *http.Request, id string) {
		n := running.Add(1)
		defer running.Add(-1)
		mu.Lock()
		sessions[r.Header.Get("Mcp-Session-Id")] = true
		most.Store(max(most.Load(), n))
		mu.Unlock()
		time.Sleep(5 * time.Millisecond) // long enough for a third to come, were it let
		ok(w, id)
	}
	_, set := openWith(t, upstream.Config{}, isolated(serve(t, s), 2), loopback, "a", "b")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := callAs(t.Context(), set, []string{"a", "b"}[i%2], "echo", `{}`); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := s.sessions.Load(); n != 2 {
		t.Errorf("the server saw %d initialises, want one for each of two branches", n)
	}
	if len(sessions) != 2 || most.Load() > 2 {
		t.Errorf("sessions in use: %v; calls at once: %d", sessions, most.Load())
	}
}

// TestEager: an eager server is connected without a call, and only it.
func TestEager(t *testing.T) {
	t.Parallel()
	eager, lazy := stdioServer(t, "good"), stdioServer(t, "good")
	eager.Eager, eager.Name = true, "eager"
	bad := stdioServer(t, "usage")
	bad.Eager, bad.Name = true, "bad"
	root := t.TempDir()
	pool := upstream.NewPool(upstream.Config{Backoff: time.Hour, MaxBackoff: time.Hour})
	defer pool.Close()
	set := pool.Open(root, []upstream.Upstream{trusted(t, eager, root, trust.Terms{}), trusted(t, lazy, root, trust.Terms{}), trusted(t, bad, root, trust.Terms{})})
	set.Connect()
	state := func(name string) upstream.Status {
		for _, st := range pool.Status() {
			if st.Server == name {
				return st
			}
		}
		return upstream.Status{}
	}
	eventually(t, "the eager server to be ready", func() bool { return state("eager").State == upstream.Ready })
	eventually(t, "the bad server to fail", func() bool { return state("bad").State == upstream.Failed })
	if st := state("fake"); st.State != upstream.Idle || st.Pid != 0 {
		t.Errorf("the lazy server: %+v", st)
	}
	pid := state("eager").Pid
	set.Connect()
	if n := state("eager").Tally().Connects; n != 1 || state("eager").Pid != pid {
		t.Errorf("asked again: %d connections, pid %d, was %d", n, state("eager").Pid, pid)
	}
	if st := state("eager"); st.Tally().Calls != 0 {
		t.Errorf("counted %+v", st.Tally())
	}
}
