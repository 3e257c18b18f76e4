package daemon

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/catalogd/catalogd/internal/intent"
)

// TestStatusWhileTheStoreOpens: opening the store of intents can take seconds, for which /status does not wait.
func TestStatusWhileTheStoreOpens(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "intents")
	x := NewEffects(EffectsConfig{Store: intent.Config{Dir: dir, Durability: intent.Process}, Log: slog.New(slog.DiscardHandler)})
	x.opening.Lock() // as long as intent.Open has not returned
	opened := make(chan error)
	go func() {
		_, err := x.Effector(t.Context())
		opened <- err
	}()
	if s := x.Status(); s.Dir != dir || s.States != nil || s.Failed != "" {
		t.Errorf("got status %+v, want that of a store that is not open", s)
	}
	x.opening.Unlock()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	if s := x.Status(); s.States == nil {
		t.Errorf("got status %+v, want counts", s)
	}
	if err := x.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := x.Effector(t.Context()); err == nil {
		t.Error("a closed store was opened again")
	}
}
