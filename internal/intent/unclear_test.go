package intent_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/registry"
)

// TestRetriedStaysUnclear: where nobody knows what came of an attempt, one that a person has made after it and that fails
// does not tell either. What a person has found out does.
func TestRetriedStaysUnclear(t *testing.T) {
	t.Parallel()
	unsent := allowed(func(context.Context, attempt.Attempt) intent.Ran {
		return intent.Ran{State: intent.Failed, Unsent: true, Err: &registry.Error{Code: registry.Unavailable, Msg: "not there"}, Why: "not there"}
	})
	b := openBench(t, filepath.Join(t.TempDir(), "intents"), func(c *intent.EffectorConfig) { c.Begin = unsent })
	admin := intent.Person{Name: "root", Admin: true}
	for _, test := range []struct {
		name   string
		before intent.State
		found  intent.State // by a person; empty for nothing
		want   intent.State
	}{
		{"unknown", intent.Unknown, "", intent.Unknown},
		{"unknown, and then found to have failed", intent.Unknown, intent.Failed, intent.Failed},
		{"failed", intent.Failed, "", intent.Failed},
	} {
		s := submission(allowed(func(context.Context, attempt.Attempt) intent.Ran {
			return intent.Ran{State: test.before, Err: &registry.Error{Code: registry.BindingFailed, Msg: "lost"}, Why: "lost"}
		}))
		if _, err := b.Submit(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if test.found != "" {
			if _, err := b.Resolve(t.Context(), s.Intent.ID, admin, test.found, ""); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Retry(t.Context(), s.Intent.ID, admin, ""); err != nil {
			t.Fatal(err)
		}
		got, err := b.Resume(t.Context(), s.Intent.ID, time.Minute)
		if err != nil || got.Intent.State != test.want || got.Intent.Attempts != 2 {
			t.Errorf("%s: %s after %d attempts, %v; want %s", test.name, got.Intent.State, got.Intent.Attempts, err, test.want)
		}
	}
}
