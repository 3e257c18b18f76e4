package daemon

import (
	"bytes"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// footprint is what a process holds that could leak.
type footprint struct{ goroutines, files, children int }

func measure(t testing.TB) footprint {
	t.Helper()
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	// The decision engine keeps idle workers for the life of the process, as many as it has needed at once.
	workers := bytes.Count(stacks, []byte("created by github.com/catalogd/catalogd/decision.takeWorker"))
	f := footprint{goroutines: runtime.NumGoroutine() - workers}
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		f.files = len(fds)
	}
	f.children = len(harness.Children(os.Getpid()))
	return f
}

// returns waits until the process holds no more than it did.
func returns(t testing.TB, when string, want footprint) {
	t.Helper()
	var got footprint
	for end := time.Now().Add(harness.Timeout); ; time.Sleep(20 * time.Millisecond) {
		got = measure(t)
		if got.goroutines <= want.goroutines && got.files <= want.files && got.children <= want.children {
			return
		}
		if time.Now().After(end) {
			break
		}
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	t.Errorf("%s: got %+v in use, want at most %+v\n%s", when, got, want, stacks)
}
