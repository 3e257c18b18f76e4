package daemon

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestSoak lets the real program serve for a while, under everything that happens to a daemon at once: eight clients over
// HTTP and two over stdio that call all the time, edits of tools and policy, broken files, SIGKILL of upstream servers,
// clients that do all they can wrong, and at last a storm of 20 edits and SIGHUPs a second. A call of a good client may
// fail only where an edit or a kill explains it, and afterwards the daemon holds what it held before.
//
// CATALOGD_SOAK is how long: 20 s by default, a minute in `make race`, ten in `make soak`. From five minutes on the time
// that a good client waits and that an end takes is asserted, too; shorter runs, on machines that do other things
// besides, only report it. With GOFLAGS=-race the daemon has the race detector, and what it finds fails the test.
func TestSoak(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are found in /proc")
	}
	d, err := time.ParseDuration(cmp.Or(os.Getenv("CATALOGD_SOAK"), "20s"))
	if err != nil {
		t.Fatalf("CATALOGD_SOAK: %v", err)
	}
	before := harness.Children(os.Getpid())
	s := startSoak(t)
	s.long = d >= 5*time.Minute

	s.phase("warm", time.Second)
	s.reload(http.StatusOK)
	quiet := s.phase("quiet", d/5)
	base := s.settled(func(held) bool { return true })
	begin := time.Now()
	loud := s.phase("loud", d*3/5, s.edit, s.kill, s.sendBadRequests, s.sendBadRequests, s.sendBadRequests, s.sendBadRequests, s.sendBadRequests, s.sendBadRequests)
	s.phase("storm", d/5, s.storm)
	end := time.Now()
	s.finalEdit()

	if s.long {
		for kind, all := range loud {
			if p, q := percentile(all, 99), percentile(quiet[kind], 99); p > 3*q && kind != upstreamCall {
				t.Errorf("p99 of %s: %v, more than 3 times the %v of quiet times", kind, p, q)
			}
		}
	}
	s.flat(begin, end)
	slack := 4 * len(s.clients) // idle connections of the clients
	after := s.settled(func(h held) bool {
		return h.goroutines <= base.goroutines+slack && h.files <= base.files+slack && h.workers <= mostWorkers &&
			h.children <= base.children && h.zombies == 0
	})
	t.Logf("held before %+v, after %+v", base, after)
	s.end()
	if left := slices.DeleteFunc(harness.Children(os.Getpid()), func(pid int) bool { return slices.Contains(before, pid) }); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// soak is a daemon under load, and what is known of it.
type soak struct {
	*testing.T
	long     bool
	dir, url string
	daemon   *exec.Cmd
	ended    chan error // what the daemon's Wait says
	log      *daemonLog
	clients  []*soakClient

	// The model. live_tool answers its version: at least served, at most written. While hiding, default may not have it.
	written, served, hides atomic.Int64
	hiding                 atomic.Bool
	late                   atomic.Int64 // decisions that came too late

	mu         sync.Mutex
	kills      []time.Time
	failures   int
	reloads    map[string]int // by outcome
	badAnswers map[string]int // by what was done and answered
	samples    []sample
}

// serve starts the daemon on s.dir, and waits until it serves.
func (s *soak) serve(binary string) {
	s.daemon = exec.Command(binary, "serve", s.dir, "--addr", "127.0.0.1:0", "--format", "json", "--state", filepath.Join(s.TempDir(), "state"))
	s.daemon.Stderr = s.log
	if err := s.daemon.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = s.daemon.Process.Kill() }) // or it has ended
	go func() { s.ended <- s.daemon.Wait() }()
	harness.Await(s, "the daemon to serve", func() bool {
		if s.url = s.log.url(); s.url == "" && len(s.ended) > 0 {
			s.Fatalf("the daemon does not start: %v\n%s", <-s.ended, strings.Join(s.log.lines, "\n"))
		}
		return s.url != ""
	})
}

// startSoak builds the program, starts it on a catalog with a tool of each kind, and connects the good clients.
func startSoak(t *testing.T) *soak {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary := harness.Catalogd(t)
	items := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }))
	t.Cleanup(items.Close)
	s := &soak{T: t, dir: harness.Starter(t), log: &daemonLog{}, ended: make(chan error, 1), reloads: map[string]int{}, badAnswers: map[string]int{}}
	harness.WriteFile(t, filepath.Join(s.dir, "catalog/soak.cue"), fmt.Sprintf(`package catalog

servers: soak: {transport: stdio: {command: %q, args: [%q]}, prefix: "soak_"}

tools: soak_echo: {description: "Echo.", args: message!: string, effect: "read", tags: ["everyday"], binding: mcp: server: "soak"}
tools: item: {description: "An item.", args: id!: string, effect: "read", tags: ["everyday"], binding: http: url: %q}
tools: slow: {description: "Two seconds.", effect: "read", tags: ["everyday"], binding: exec: {command: "sleep", argv: ["2"]}}
`, self, soakUpstream, items.URL+"/items/{id}"))
	trust := filepath.Join(s.dir, "policy/trust/data.yaml")
	harness.WriteFile(t, trust, harness.ReadFile(t, trust)+fmt.Sprintf(`  soak: {command: [%q, %q]}
  sleep: {command: [sleep, "2"]}
  items: {scheme: http, host: 127.0.0.1, port: %s, addresses: [127.0.0.0/8]}
`, self, soakUpstream, items.URL[strings.LastIndexByte(items.URL, ':')+1:]))
	s.next()

	s.serve(binary)
	s.reload(http.StatusOK)
	s.served.Store(s.written.Load())

	for i := range 8 {
		branch, era := []string{"default", "research"}[i%2], []string{harness.Modern, harness.Legacy}[i/4]
		s.clients = append(s.clients, &soakClient{Client: harness.Connect(t, s.url, branch, era).Client, name: era + " of " + branch, branch: branch, http: true})
	}
	for _, era := range []string{harness.Modern, harness.Legacy} {
		s.clients = append(s.clients, s.stdio(binary, era))
	}
	return s
}

// fail reports a failure; after twenty it only counts.
func (s *soak) fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures++; s.failures <= 20 {
		s.Errorf(format, args...)
	}
}

// end ends the daemon with SIGTERM, while a call is in flight and every client listens, and the others by the end of
// their input.
func (s *soak) end() {
	inFlight := make(chan string, 1)
	go func() { inFlight <- s.clients[0].answer("slow", nil) }()
	harness.Await(s, "the call to be in flight", func() bool {
		return slices.ContainsFunc(harness.Children(s.daemon.Process.Pid), func(pid int) bool {
			command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			return err == nil && strings.HasSuffix(string(command), "sleep\x002\x00")
		})
	})
	start := time.Now()
	if err := s.daemon.Process.Signal(syscall.SIGTERM); err != nil {
		s.Fatal(err)
	}
	select {
	case err := <-s.ended:
		took := time.Since(start)
		s.Logf("SIGTERM: ended after %v: %v", took.Round(time.Millisecond), err)
		if err != nil || s.long && took > 5*time.Second {
			s.Errorf("SIGTERM: ended after %v: %v", took, err)
		}
	case <-time.After(harness.Timeout):
		s.Fatal("SIGTERM: the daemon goes on")
	}
	if got := <-inFlight; got != "" {
		s.Errorf("the call in flight: %s", got)
	}
	for _, c := range s.clients {
		c.Close() // its daemon is gone, or goes by this
		if c.process != nil {
			if err := c.process.Wait(); err != nil {
				s.Errorf("%s: %v", c.name, err)
			}
		}
	}
	s.Logf("%d kills; reloads asked for: %v; %d late decisions", len(s.kills), s.reloads, s.late.Load())
	for _, what := range slices.Sorted(maps.Keys(s.badAnswers)) {
		s.Logf("bad clients: %-30s %d", what, s.badAnswers[what])
	}
	for _, line := range s.log.lines {
		s.Errorf("in the log: %s", line)
	}
	if s.failures > 20 {
		s.Errorf("%d failures in all", s.failures)
	}
}
