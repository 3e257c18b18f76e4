package worker

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"
)

// TestLimitCountsProcessorTime: a process that has not used the limit in processor time has not exceeded it
// before clockFactor times the limit has passed.
func TestLimitCountsProcessorTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processor time of other processes is read on Linux alone")
	}
	const limit = time.Hour
	s := startClock(os.Getpid())
	if !s.known {
		t.Fatal("the processor time of this process can't be read")
	}
	s.since = time.Now().Add(-2 * limit) // two limits ago, and nothing worked since
	if left := s.left(limit, 6); left < limit/2 {
		t.Errorf("after two limits without work: %s left, want about %s", left, limit)
	}
	if left := s.left(limit, 1); left > 0 {
		t.Errorf("after more than clockFactor limits: %s left, want none", left)
	}
	s.used -= limit // and it has worked for one
	if left := s.left(limit, 6); left > 0 {
		t.Errorf("after a limit of work: %s left, want none", left)
	}
	a := &compilation{compiler: New(Config{}), limit: limit, running: map[uint64]runningStep{1: {workClock: s}}}
	var late timeoutError
	if _, err := a.left(); !errors.As(err, &late) || !late.worked {
		t.Errorf("a step after a limit of work: got %+v, want a timeoutError that has worked", err)
	}
	s.used += limit
	s.since = time.Now().Add(-2 * compileClockFactor * limit)
	a.running[1] = runningStep{workClock: s}
	if _, err := a.left(); !errors.As(err, &late) || late.worked {
		t.Errorf("a step that got no processor: got %+v, want a timeoutError that has not worked", err)
	}
	a.running, a.last = nil, s
	if _, err := a.left(); !errors.As(err, &late) || late.worked {
		t.Errorf("a child that got no processor between two steps: got %+v, want a timeoutError that has not worked", err)
	}
	s.known = false
	if left := s.left(limit, 6); left > 0 {
		t.Errorf("where the processor time is unknown: %s left, want none", left)
	}
}
