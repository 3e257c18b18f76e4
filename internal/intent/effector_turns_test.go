package intent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/internal/intent/attempt"
)

// TestTurns: branches take turns, a tool has its share, and what one caller asks of one tool starts in order.
func TestTurns(t *testing.T) {
	t.Parallel()
	b := openBench(t, filepath.Join(t.TempDir(), "intents"), func(c *intent.EffectorConfig) { c.Limits.Running, c.Limits.Tool, c.Limits.Queue = 4, 1, 40 })
	b.Pause(true)
	var mu sync.Mutex
	var order []string
	most, now := 0, 0
	other := make(chan struct{}) // closed when the other branch's has begun
	run := func(name string) intent.Begin {
		return allowed(func(context.Context, attempt.Attempt) intent.Ran {
			mu.Lock()
			order = append(order, name)
			now++
			most = max(most, now)
			mu.Unlock()
			switch name {
			case "b":
				close(other)
			case "a5":
				select {
				case <-other:
				case <-time.After(time.Minute):
					t.Error("the other branch still waits while the sixth of the first runs")
				}
			}
			time.Sleep(2 * time.Millisecond)
			mu.Lock()
			now--
			mu.Unlock()
			return intent.Ran{State: intent.Succeeded}
		})
	}
	var wg sync.WaitGroup
	for i := range 40 {
		s := submission(run(fmt.Sprint("a", i)), func(s *intent.Submission) { s.Intent.Branch, s.Intent.Principal = "a", "local" })
		wg.Go(func() {
			if _, err := b.Submit(t.Context(), s); err != nil {
				t.Error(err)
			}
		})
		for b.Running() != i+1 {
			time.Sleep(time.Millisecond)
		}
	}
	if _, err := b.Submit(t.Context(), submission(run("more"), func(s *intent.Submission) { s.Intent.Branch, s.Intent.Principal = "a", "local" })); !errors.Is(err, intent.ErrQueueFull) {
		t.Errorf("one more than fits: %v", err)
	}
	wg.Go(func() {
		if _, err := b.Submit(t.Context(), submission(run("b"), func(s *intent.Submission) { s.Intent.Branch, s.Intent.Tool = "b", "other" })); err != nil {
			t.Error(err)
		}
	})
	for b.Running() != 41 {
		time.Sleep(time.Millisecond)
	}
	b.Pause(false)
	wg.Wait()
	order = slices.DeleteFunc(order, func(s string) bool { return s == "b" })
	for i, name := range order {
		if name != fmt.Sprint("a", i) {
			t.Fatalf("they started in the order %v", order)
		}
	}
	if most > 2 { // one of each tool
		t.Errorf("got %d at once, want at most 2", most)
	}
}

// TestManyWait: approved intents that a dead process left are executed at the next start, a few at a time, each once.
func TestManyWait(t *testing.T) {
	t.Parallel()
	const n = 800
	dir := filepath.Join(t.TempDir(), "intents")
	store, err := intent.Open(t.Context(), intent.Config{Dir: dir, Durability: intent.Process, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := i; j < n; j += 16 {
				s := submission(nil, func(s *intent.Submission) {
					s.Intent.State, s.Intent.Approval = intent.AwaitingApproval, &intent.Approval{Groups: []string{"leads"}}
				})
				if _, _, err := store.Stage(t.Context(), s.Intent); err != nil {
					t.Error(err)
				}
				given := *s.Intent.Approval
				given.By = "lee"
				if err := store.Change(t.Context(), s.Intent.ID, intent.AwaitingApproval, intent.Change{Steps: []intent.Step{{State: intent.Released, By: "lee"}}, Approval: &given}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	var runs, most atomic.Int64
	var b bench
	b = openBench(t, dir, func(c *intent.EffectorConfig) {
		c.Begin = allowed(func(context.Context, attempt.Attempt) intent.Ran {
			most.Store(max(most.Load(), int64(b.Running())))
			runs.Add(1)
			return intent.Ran{State: intent.Succeeded}
		})
	})
	if err := b.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(t.Context())
	defer stop()
	go b.Run(running)
	for {
		counts, err := b.store.Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if counts[intent.Succeeded] == n {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if runs.Load() != n || most.Load() > 100 {
		t.Errorf("%d runs, %d at once; want %d, some tens at once", runs.Load(), most.Load(), n)
	}
}
