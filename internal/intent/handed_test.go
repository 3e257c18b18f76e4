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

// TestAttendedElsewhere: the same call with the same key, while another process executes it, is answered with a handle.
func TestAttendedElsewhere(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "intents")
	a, b := openBench(t, dir), openBench(t, dir)
	begun, end := make(chan struct{}), make(chan struct{})
	s := submission(allowed(func(ctx context.Context, at attempt.Attempt) intent.Ran {
		close(begun)
		<-end
		return done("yes")(ctx, at)
	}), func(s *intent.Submission) { s.Intent.Key = "k" })
	ended := make(chan intent.Answer, 1)
	go func() {
		got, err := a.Submit(t.Context(), s)
		if err != nil {
			t.Error(err)
		}
		ended <- got
	}()
	<-begun
	again := s
	again.Intent.ID, again.Wait = registry.NewCallID(), 10*time.Millisecond
	got, err := b.Submit(t.Context(), again)
	if err != nil || got.Err != nil || !got.Found || got.Intent.ID != s.Intent.ID || got.Intent.State != intent.Attempted {
		t.Errorf("%+v, %v", got, err)
	}
	close(end)
	if got := <-ended; got.Intent.State != intent.Succeeded {
		t.Errorf("%+v", got)
	}
}

// TestHandedOnABadStore: that a handle can't be written down is no reason to say that nothing was run.
func TestHandedOnABadStore(t *testing.T) {
	t.Parallel()
	b := openBench(t, filepath.Join(t.TempDir(), "intents"))
	b.Pause(true)
	s := submission(allowed(done("yes")), func(s *intent.Submission) { s.Wait = 50 * time.Millisecond })
	go func() {
		for b.Running() == 0 {
			time.Sleep(time.Millisecond)
		}
		_ = b.store.Close()
	}()
	got, err := b.Submit(t.Context(), s)
	if err != nil || got.Err != nil || got.Intent.State != intent.Staged {
		t.Errorf("%+v, %v", got, err)
	}
}
