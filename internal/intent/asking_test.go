package intent_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/registry"
)

// TestCloseWhileAsking: what waits for its caller when the process ends, or asks it then, is unknown once Close returns.
func TestCloseWhileAsking(t *testing.T) {
	t.Parallel()
	b := openBench(t, filepath.Join(t.TempDir(), "intents"))
	asks := intent.Ran{State: intent.AwaitingInput, Result: &registry.Result{Input: &registry.Input{}}}
	waits := submission(allowed(func(context.Context, attempt.Attempt) intent.Ran { return asks }))
	if got, err := b.Submit(t.Context(), waits); err != nil || got.Intent.State != intent.AwaitingInput {
		t.Fatalf("%+v, %v", got, err)
	}
	begun, end := make(chan struct{}), make(chan struct{})
	runs := submission(allowed(func(context.Context, attempt.Attempt) intent.Ran {
		close(begun)
		<-end
		return asks
	}))
	answered, closed := make(chan intent.Answer, 1), make(chan struct{})
	go func() {
		got, err := b.Submit(t.Context(), runs)
		if err != nil {
			t.Error(err)
		}
		answered <- got
	}()
	<-begun
	go func() {
		b.Close(t.Context())
		close(closed)
	}()
	if in, err := b.Await(t.Context(), intent.Intent{ID: waits.Intent.ID}, intent.ProgressEvery); err != nil || in.State != intent.Unknown {
		t.Errorf("%+v, %v", in, err)
	}
	close(end)
	<-closed
	b.holds(t, runs.Intent.ID, intent.Staged, intent.Released, intent.Attempted, intent.AwaitingInput, intent.Unknown)
	if got := <-answered; got.Intent.State != intent.Unknown || got.Ran != nil {
		t.Errorf("answered %+v", got)
	}
}
