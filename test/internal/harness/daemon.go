package harness

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/loader"
)

// The revisions of MCP that most tests speak: the one without sessions, and an older one with them.
const (
	Modern = "2026-07-28"
	Legacy = "2025-06-18"
)

// Timeout bounds every wait for something that must happen. Tests assert nothing about how long it takes.
const Timeout = 3 * time.Minute

// Daemon is a catalog in this process that watches its files and serves on a loopback port.
type Daemon struct {
	*catalogd.Catalog
	Dir, URL string
	Log      *Log
	// End shuts the daemon down; a second time it does nothing.
	End  func()
	tags []string
}

// Serve opens the catalog in cfg.Dir, and watches and serves it until the test ends or End is called.
func Serve(t testing.TB, cfg catalogd.Config) *Daemon {
	t.Helper()
	if cfg.Timing.Quiet == 0 {
		cfg.Timing.Quiet = 20 * time.Millisecond
	}
	if cfg.Timing.Poll == 0 {
		cfg.Timing.Poll = time.Second
	}
	// The machine that runs the tests may be busy, and a decision that is late is a denial.
	cfg.PolicyDeadline = 10 * time.Second
	r := &Daemon{Dir: cfg.Dir, tags: cfg.Tags, Log: &Log{}}
	cfg.Log = slog.New(slog.NewJSONHandler(r.Log, nil))
	c, err := catalogd.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Catalog = c
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.URL = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	parts.Go(func() {
		if err := c.Serve(ctx, ln); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	r.End = sync.OnceFunc(func() {
		cancel()
		parts.Wait()
		c.Close()
	})
	t.Cleanup(r.End)
	return r
}

// Digest names the files as they are now.
func (r *Daemon) Digest(t testing.TB) string {
	t.Helper()
	snap, problems := loader.Dir{Root: r.Dir, Tags: r.tags}.Snapshot(t.Context())
	if snap == nil {
		t.Fatal(problems.Err())
	}
	return snap.Digest()
}

// Settled waits until the files as they are now are served or refused, and reports whether they are served.
func (r *Daemon) Settled(t testing.TB) (served bool) {
	t.Helper()
	digest := r.Digest(t)
	Await(t, "the files to be served or refused", func() bool {
		s := r.Status()
		served = s.Failed == nil && s.Generation.ID == digest
		return served || s.Failed != nil && s.Failed.Digest == digest
	})
	return served
}

// Await polls until done, and fails the test after Timeout.
func Await(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(Timeout); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out after %v waiting for %s", Timeout, what)
		}
	}
}

// Log keeps what is written to it.
type Log struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (j *Log) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines.Write(p)
}

func (j *Log) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines.String()
}
