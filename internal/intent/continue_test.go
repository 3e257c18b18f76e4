package intent_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/registry"
)

func asking(context.Context, attempt.Attempt) intent.Ran {
	return intent.Ran{State: intent.AwaitingInput, Result: &registry.Result{Input: &registry.Input{}}}
}

// TestContinueElsewhere: the rounds of a call may come to any process of a store; each is sent once, by the
// process that it came to, and what the others still know of the call changes nothing.
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

// TestRounds: a tool that asks its caller is attempted again with the answers, as the same intent; a caller
// that does not come back leaves it unknown.
func TestRounds(t *testing.T) {
	t.Parallel()
	b := openBench(t, filepath.Join(t.TempDir(), "intents"))
	asks := allowed(func(context.Context, attempt.Attempt) intent.Ran {
		return intent.Ran{State: intent.AwaitingInput, Result: &registry.Result{Input: &registry.Input{}}}
	})
	s := submission(asks)
	got, err := b.Submit(t.Context(), s)
	if err != nil || got.Intent.State != intent.AwaitingInput || got.Ran == nil || got.Ran.Result.Input == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	got, err = b.Continue(t.Context(), s.Intent.ID, 1, submission(allowed(done("thanks"))))
	if err != nil || got.Intent.State != intent.Succeeded || got.Intent.Attempts != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	b.holds(t, s.Intent.ID, intent.Staged, intent.Released, intent.Attempted, intent.AwaitingInput, intent.Attempted, intent.Succeeded)
	if _, err := b.Continue(t.Context(), s.Intent.ID, 1, submission(asks)); !errors.Is(err, intent.ErrNotWaiting) {
		t.Errorf("answers that nobody waits for: %v", err)
	}
	b = openBench(t, filepath.Join(t.TempDir(), "intents"), func(c *intent.EffectorConfig) { c.Limits.InputTimeout = 50 * time.Millisecond })
	s = submission(asks)
	if _, err := b.Submit(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Await(t.Context(), intent.Intent{ID: s.Intent.ID}, time.Minute); err != nil || got.State != intent.Unknown {
		t.Errorf("abandoned: %+v, %v", got, err)
	}
}

// TestRoundUndecided: a round about which the policy has not decided in time is asked about again: a busy machine makes
// nothing unknown.
func TestRoundUndecided(t *testing.T) {
	t.Parallel()
	b := openBench(t, filepath.Join(t.TempDir(), "intents"))
	s := submission(allowed(func(context.Context, attempt.Attempt) intent.Ran {
		return intent.Ran{State: intent.AwaitingInput, Result: &registry.Result{Input: &registry.Input{}}}
	}))
	if _, err := b.Submit(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	asked := 0
	got, err := b.Continue(t.Context(), s.Intent.ID, 1, submission(func(ctx context.Context, in intent.Intent) intent.Turn {
		if asked++; asked < 4 {
			return intent.Turn{Refused: &registry.Error{Code: registry.Timeout, Msg: "not yet"}, Undecided: true, End: func() {}}
		}
		return allowed(done("thanks"))(ctx, in)
	}))
	if err != nil || got.Intent.State != intent.Succeeded || asked != 4 {
		t.Errorf("got %s, %v after %d questions, want succeeded after 4", got.Intent.State, err, asked)
	}
}
