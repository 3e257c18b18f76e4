package worker

import (
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
	s.known = false
	if left := s.left(limit, 6); left > 0 {
		t.Errorf("where the processor time is unknown: %s left, want none", left)
	}
}
