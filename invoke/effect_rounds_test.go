package invoke_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// TestEffectRoundsAreOneCallers: what a tool asks is for the caller that it runs for, and not for one that has come with the
// same key; and whoever answers what nobody waits for any more learns what has become of the call, not to call again.
func TestEffectRoundsAreOneCallers(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	f, effector := openEffects(t, &script{answer: func(context.Context) (*registry.Result, error) {
		close(begun)
		<-end
		return &registry.Result{Input: &registry.Input{Kinds: []string{"elicitation"}}}, nil
	}}, registry.Bound{})
	req := invoke.Request{Tool: "forecast", Arguments: json.RawMessage(`{"city":"Oslo"}`), Principal: decision.Local(), Key: "k"}
	calls := make(chan registry.Call, 2)
	go func() { calls <- f.path.Call(t.Context(), req) }()
	<-begun
	second := make(chan registry.Call, 1)
	go func() { second <- f.path.Call(t.Context(), req) }()
	time.Sleep(50 * time.Millisecond) // it waits, or will find the intent as it then is
	close(end)
	first := <-calls
	if first.Status != registry.Waiting || first.Result.Input == nil {
		t.Fatalf("%+v", first)
	}
	if again := <-second; again.Err != nil || again.Result.Input != nil || again.Intent != first.Intent {
		t.Errorf("the same call again is answered %+v", again)
	}
	effector.Close(t.Context())
	req.Intent = first.Intent
	late := f.path.Call(t.Context(), req)
	if late.Err == nil || late.Err.Code != registry.OutcomeUnknown || late.Err.Unsent || late.Intent != first.Intent {
		t.Errorf("late answers: %+v", late)
	}
}
