package upstream_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

// openWith is open with the pool's own configuration.
func openWith(t *testing.T, cfg upstream.Config, s registry.Server, terms trust.Terms, branches ...string) (*upstream.Pool, *upstream.Set) {
	t.Helper()
	root := t.TempDir()
	pool := upstream.NewPool(cfg)
	t.Cleanup(pool.Close)
	up := trusted(t, s, root, terms)
	up.Branches = branches
	return pool, pool.Open(root, []upstream.Upstream{up})
}

func breaker(pool *upstream.Pool) string { return pool.Status()[0].Breaker }

// TestBreaker: an HTTP server that fails every call is left alone after some, is tried with one call, and is called again
// when that is answered.
func TestBreaker(t *testing.T) {
	t.Parallel()
	var healthy atomic.Bool
	tries, release := make(chan struct{}), make(chan struct{})
	s := &script{}
	s.call = func(w http.ResponseWriter, _ *http.Request, id string) {
		switch n := s.calls.Load(); {
		case n == 4: // the probe that fails
			tries <- struct{}{}
			<-release
			http.Error(w, "down", http.StatusBadGateway)
		case healthy.Load():
			ok(w, id)
		default:
			http.Error(w, "down", http.StatusBadGateway)
		}
	}
	pool, set := openWith(t, upstream.Config{BreakAfter: 3, MaxBackoff: 50 * time.Millisecond}, serve(t, s), loopback)
	for range 3 {
		if got := breaker(pool); got != "closed" {
			t.Errorf("the breaker is %s", got)
		}
		_, err := call(t, set, "echo", `{}`)
		fails(t, err, registry.Unavailable, "502 Bad Gateway", "unavailable since 20")
	}
	// It is open for 50 ms, which a slow machine may have slept through already: whoever finds it half-open is the probe.
	probe := make(chan error, 1)
	eventually(t, "half-open", func() bool { return breaker(pool) == "half-open" })
	go func() { _, err := call(t, set, "echo", `{}`); probe <- err }()
	<-tries
	for range 3 {
		_, err := call(t, set, "echo", `{}`)
		fails(t, err, registry.Unavailable, "502 Bad Gateway", "one call is trying now", "nothing was sent", "unavailable since 20")
	}
	if n := s.calls.Load(); n != 4 {
		t.Errorf("the server got %d calls, 3 and a probe were to reach it", n)
	}
	close(release)
	fails(t, <-probe, registry.Unavailable, "502")
	healthy.Store(true)
	eventually(t, "an answer", func() bool { _, err := call(t, set, "echo", `{}`); return err == nil })
	if st := pool.Status()[0]; st.Breaker != "closed" || st.LastError != "" || !st.RetryAt.IsZero() {
		t.Errorf("after an answer: %+v", st)
	}
	if n := pool.Status()[0].Tally(); n.Calls != uint64(s.calls.Load()) || n.Failures != 4 || n.Refused < 3 || n.Connects != 1 {
		t.Errorf("counted %+v, the server got %d calls", n, s.calls.Load())
	}
}

// TestBreakerOpen: while it is open, nothing is sent, and the error says since when and until when.
func TestBreakerOpen(t *testing.T) {
	t.Parallel()
	s := &script{call: func(w http.ResponseWriter, _ *http.Request, id string) {
		http.Error(w, "", http.StatusServiceUnavailable)
	}}
	pool, set := openWith(t, upstream.Config{BreakAfter: 2, MaxBackoff: time.Hour}, serve(t, s), loopback)
	for range 5 {
		_, err := call(t, set, "echo", `{}`)
		fails(t, err, registry.Unavailable, "503", "unavailable since 20")
	}
	_, err := call(t, set, "echo", `{}`)
	fails(t, err, registry.Unavailable, "failed 2 times in a row", "next attempt in ")
	if n := s.calls.Load(); n != 2 {
		t.Errorf("the server got %d calls", n)
	}
	if st := pool.Status()[0]; st.Breaker != "open" || time.Until(st.RetryAt) < 50*time.Minute {
		t.Errorf("status %+v", st)
	}
}

// TestBreakerCountsEvents: one crash under many calls is one failure, and what says nothing of the server is none.
func TestBreakerCountsEvents(t *testing.T) {
	t.Parallel()
	pool, set := openWith(t, upstream.Config{BreakAfter: 2, Backoff: time.Millisecond, MaxBackoff: time.Hour}, stdioServer(t, "good"), trust.Terms{})
	text(t, set, "echo", `{}`)
	failed := make(chan error, 10)
	for i := range cap(failed) {
		go func() {
			_, err := call(t, set, "hang", fmt.Sprintf(`{"File":%q}`, filepath.Join(t.TempDir(), fmt.Sprint(i))))
			failed <- err
		}()
	}
	eventually(t, "the calls in flight", func() bool { return pool.Status()[0].Calls == cap(failed) })
	// The pipe's order makes the crash come last.
	_, err := call(t, set, "crash", `{}`)
	fails(t, err, registry.Unavailable, "exit status 3", "unavailable since 20")
	for range cap(failed) {
		fails(t, <-failed, registry.Unavailable)
	}
	if got := breaker(pool); got != "closed" {
		t.Errorf("one crash under 11 calls: the breaker is %s", got)
	}
	if n := pool.Status()[0].Tally().Failures; n != 1 {
		t.Errorf("%d failures, want 1", n)
	}
	// Given up, refused by the server, answered with a shape that is none: the server works.
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := set.Call(ctx, "fake", "hang", []byte(`{}`), registry.Listener{})
		fails(t, err, registry.Cancelled)
		_, err = call(t, set, "refuse", `{}`)
		fails(t, err, registry.BindingFailed)
	}
	if st := pool.Status()[0]; st.LastError != "" {
		t.Errorf("after refusals, which are answers: %+v", st)
	}
	if got := breaker(pool); got != "closed" {
		t.Errorf("calls that say nothing: the breaker is %s", got)
	}
}

// TestBreakerOnSilence: a server that hangs is left alone, too.
func TestBreakerOnSilence(t *testing.T) {
	t.Parallel()
	s := stdioServer(t, "good")
	pool, set := openWith(t, upstream.Config{BreakAfter: 2, MaxBackoff: time.Hour}, s, trust.Terms{})
	text(t, set, "echo", `{}`)
	for i := range 2 {
		file := filepath.Join(t.TempDir(), fmt.Sprint(i))
		ctx := overdue(t, func() bool { _, err := os.Stat(file); return err == nil })
		_, err := set.Call(ctx, "fake", "hang", []byte(fmt.Sprintf(`{"File":%q}`, file)), registry.Listener{})
		fails(t, err, registry.Timeout, "may still run")
	}
	_, err := call(t, set, "echo", `{}`)
	fails(t, err, registry.Unavailable, "did not answer a call in time", "failed 2 times in a row", "next attempt in")
	if pool.Status()[0].Breaker != "open" {
		t.Errorf("status %+v", pool.Status()[0])
	}
}

// TestBreakerOnServersThatDoNotStart: with backoff first, then the breaker.
func TestBreakerOnServersThatDoNotStart(t *testing.T) {
	t.Parallel()
	pool, set := openWith(t, upstream.Config{BreakAfter: 3, Backoff: 10 * time.Millisecond, MaxBackoff: time.Hour}, stdioServer(t, "usage"), trust.Terms{})
	attempts := 0
	eventually(t, "the breaker to open", func() bool {
		_, err := call(t, set, "echo", `{}`)
		fails(t, err, registry.Unavailable, "exit status 2", "unavailable since 20")
		if !strings.Contains(err.Error(), "next attempt in") {
			attempts++
		}
		return breaker(pool) == "open"
	})
	if n := pool.Status()[0].Tally(); n.Failures != 3 || attempts != 3 {
		t.Errorf("%+v, attempts: %d; it was to be tried 3 times", n, attempts)
	}
}
