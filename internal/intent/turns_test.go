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

// TestQueueIsShared checks that one principal leaves places of a branch's queue to others, and that the
// operator may take all.
func TestQueueIsShared(t *testing.T) {
	t.Parallel()
	all := newTurns(Limits{}.withDefaults())
	fill := func(branch, principal string) (n int) {
		for all.enter(branch, principal) == nil {
			n++
		}
		return n
	}
	ann, bob, eve := fill("a", "ann"), fill("a", "bob"), fill("a", "eve")
	if ann != 500 || bob != 250 || eve != 125 {
		t.Errorf("of 1,000 places ann got %d, bob %d and eve %d; want 500, 250, 125", ann, bob, eve)
	}
	for range ann {
		all.leave("a", "ann")
	}
	if n := fill("a", "eve"); n == 0 {
		t.Error("eve gets no place of those that ann has left")
	}
	if n := fill("b", "local"); n != 1000 {
		t.Errorf("the operator got %d places, want 1,000", n)
	}
	for range 1000 {
		all.leave("b", "local")
	}
	if _, ok := all.places["b"]; ok {
		t.Error("an empty queue is remembered")
	}
}
