package invoke_test

import (
	"strings"
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

// Of several limits that are reached, the longest wait counts: after it the call is let through.
func TestRateLimitWaitIsTheLongest(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	hour := decision.Decision{Allow: true, RateLimit: decision.RateLimit{Calls: 2, Per: time.Hour}}
	minute := decision.Decision{Allow: true, RateLimit: decision.RateLimit{Calls: 1, Per: time.Minute}}
	for _, both := range []decision.Decision{hour.And(minute), minute.And(hour)} {
		path := &invoke.Path{Rates: &invoke.Rates{}}
		at := func(after time.Duration) *registry.Error {
			return path.Limit(&registry.Call{Branch: "b", Tool: "t", Principal: "ann", Start: begin.Add(after)}, both)
		}
		for _, after := range []time.Duration{0, 2 * time.Minute} {
			if err := at(after); err != nil {
				t.Fatal(err)
			}
		}
		err := at(2*time.Minute + time.Nanosecond)
		if err == nil || err.RetryAfter != 58*time.Minute-time.Nanosecond || !strings.Contains(err.Msg, "2 times in 1h0m0s") || !strings.Contains(err.Msg, "in 3480 s") {
			t.Errorf("%v: got %v, want to wait 58 minutes, in whole seconds, rounded up", both.RateLimits(), err)
			continue
		}
		if err := at(2*time.Minute + 3480*time.Second); err != nil {
			t.Errorf("%v: refused after the wait: %v", both.RateLimits(), err)
		}
	}
}
