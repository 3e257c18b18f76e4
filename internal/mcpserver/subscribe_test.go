package mcpserver

import (
	"context"
	"testing"
)

// counting is a context that counts what waits for its end. Its Done is its own, so that package context asks it.
type counting struct {
	context.Context
	done    chan struct{}
	waiting *int
}

func (c counting) Done() <-chan struct{} { return c.done }

func (c counting) AfterFunc(func()) (stop func() bool) {
	*c.waiting++
	return func() bool {
		*c.waiting--
		return true
	}
}

// A client that subscribes and unsubscribes for ever leaves nothing behind, and each subscription that it had is ended.
func TestSubscriptionsLeaveNothing(t *testing.T) {
	t.Parallel()
	var s subscriptions
	waiting, ended := 0, 0
	ctx := counting{t.Context(), make(chan struct{}), &waiting}
	key := subscriptionKey{session: "one", uri: "x:1"}
	put := func() {
		if !s.put(key, ctx, &subscription{end: func() { ended++ }}) {
			t.Fatal("it is not taken")
		}
	}
	for range 100 {
		put()
		put() // in the place of the first
		if waiting != 1 || len(s.by) != 1 {
			t.Fatalf("%d wait, %d are kept", waiting, len(s.by))
		}
		s.drop(key)
		s.drop(key)
	}
	if waiting != 0 || len(s.by) != 0 || ended != 200 {
		t.Errorf("%d wait, %d are kept, %d of 200 were ended", waiting, len(s.by), ended)
	}
}
