package invoke_test

import (
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// A call that was slow to be allowed is counted behind calls that began after it; all the same the later ones count.
func TestRateOfCallsOutOfOrder(t *testing.T) {
	t.Parallel()
	path := &invoke.Path{Rates: &invoke.Rates{}}
	begin := time.Now()
	made := func(after time.Duration, calls int) *registry.Error {
		call := &registry.Call{Branch: "b", Tool: "t", Principal: "ann", Start: begin.Add(after)}
		return path.Limit(call, decision.Decision{Allow: true, RateLimit: decision.RateLimit{Calls: calls, Per: time.Minute}})
	}
	for _, after := range []time.Duration{50 * time.Second, 0} {
		if err := made(after, 5); err != nil {
			t.Fatal(err)
		}
	}
	if err := made(70*time.Second, 1); err == nil || err.Code != registry.RateLimited {
		t.Errorf("the call 20 s ago is forgotten: %v", err)
	}
	if err := made(70*time.Second, 2); err != nil {
		t.Errorf("the call 70 s ago counts: %v", err)
	}
}
