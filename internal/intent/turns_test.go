package intent

import (
	"testing"
	"time"
)

// TestTurnsKeepTheirOrder: one that is refused while the one before it has not started lets nobody past that.
func TestTurnsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	all := newTurns(Limits{}.withDefaults())
	o := limitKey{"default", "ann", "pay", ""}
	first, refused := all.queue(o), all.queue(o)
	refused.end() // it never starts
	last := all.queue(o)
	started := make(chan struct{})
	go func() {
		last.start()
		close(started)
	}()
	for range 50 {
		select {
		case <-started:
			t.Fatal("the last has started before the first")
		default:
			time.Sleep(time.Millisecond)
		}
	}
	first.start()
	<-started
	first.end()
	last.end()
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.last) != 0 || all.running != 0 || len(all.tools) != 0 {
		t.Errorf("what has ended is remembered: %d, %d, %d", len(all.last), all.running, len(all.tools))
	}
}
