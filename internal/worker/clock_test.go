package worker

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// A deadline is not over as long as the work of a process has not taken it, however much time has passed.
func TestDeadlineCountsWork(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processor time of other processes is read on Linux alone")
	}
	const limit = time.Hour
	s := watchWork(os.Getpid())
	if !s.known {
		t.Fatal("the processor time of this process can't be read")
	}
	s.since = time.Now().Add(-2 * limit) // two limits ago, and nothing worked since
	if left := s.left(limit, 6); left < limit/2 {
		t.Errorf("after two limits without work: %s left, want about %s", left, limit)
	}
	if left := s.left(limit, 1); left > 0 {
		t.Errorf("beyond the patience: %s left, want none", left)
	}
	s.used -= limit // and it has worked for one
	if left := s.left(limit, 6); left > 0 {
		t.Errorf("after a limit of work: %s left, want none", left)
	}
	s.known = false
	if left := s.left(limit, 6); left > 0 {
		t.Errorf("where work is unknown: %s left, want none", left)
	}
}
