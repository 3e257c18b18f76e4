package intent_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/registry"
)

func asking(context.Context, attempt.Attempt) intent.Ran {
	return intent.Ran{State: intent.AwaitingInput, Result: &registry.Result{Input: &registry.Input{}}}
}

// TestContinueElsewhere: the rounds of a call may come to any process of a store; each is sent once, by the process that it
// came to, and what the others still know of the call changes nothing.
func TestContinueElsewhere(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "intents")
	one, other, third := openBench(t, dir), openBench(t, dir), openBench(t, dir)
	s := submission(allowed(asking))
	got, err := other.Submit(t.Context(), s)
	if err != nil || got.Intent.State != intent.AwaitingInput {
		t.Fatalf("%+v, %v", got, err)
	}
	id := s.Intent.ID
	if got, err = third.Continue(t.Context(), id, 1, submission(allowed(asking))); err != nil || got.Intent.State != intent.AwaitingInput || got.Intent.Attempts != 2 {
		t.Fatalf("the second round elsewhere: %+v, %v", got, err)
	}
	for name, b := range map[string]bench{"where it began": other, "where it waits": third, "elsewhere": one} {
		got, err := b.Continue(t.Context(), id, 1, submission(allowed(done("again"))))
		if err == nil && (got.Ran != nil || got.Intent.State != intent.AwaitingInput) || err != nil && !errors.Is(err, intent.ErrNotWaiting) {
			t.Errorf("the second round once more %s: %+v, %v", name, got, err)
		}
	}
	if got, err = other.Continue(t.Context(), id, 2, submission(allowed(asking))); err != nil || got.Intent.State != intent.AwaitingInput {
		t.Fatalf("the third round where it began: %+v, %v", got, err)
	}
	third.Close(t.Context()) // which it no longer concerns
	if got, err = one.Continue(t.Context(), id, 3, submission(allowed(done("thanks")))); err != nil || got.Intent.State != intent.Succeeded || got.Intent.Attempts != 4 {
		t.Errorf("the last round: %+v, %v", got, err)
	}
	other.Close(t.Context())
	one.holds(t, id, intent.Staged, intent.Released, intent.Attempted, intent.AwaitingInput, intent.Attempted, intent.AwaitingInput,
		intent.Attempted, intent.AwaitingInput, intent.Attempted, intent.Succeeded)
	if _, err := one.Continue(t.Context(), "00000000000000000000000000000000", 1, s); !errors.Is(err, intent.ErrUnknown) {
		t.Errorf("an intent of another store: %v", err)
	}
}

// TestContinueOnce: of several processes that get the same answers at once, one sends them.
func TestContinueOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "intents")
	all := []bench{openBench(t, dir), openBench(t, dir), openBench(t, dir)}
	for range 10 {
		s := submission(allowed(asking))
		if _, err := all[0].Submit(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		var sent atomic.Int32
		var wg sync.WaitGroup
		for _, b := range all {
			wg.Go(func() {
				got, err := b.Continue(t.Context(), s.Intent.ID, 1, submission(allowed(func(ctx context.Context, a attempt.Attempt) intent.Ran {
					sent.Add(1)
					return done("thanks")(ctx, a)
				})))
				if err != nil && !errors.Is(err, intent.ErrNotWaiting) || got.Err != nil {
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
		wg.Wait()
		if n := sent.Load(); n != 1 {
			t.Errorf("the answers were sent %d times", n)
		}
	}
}
