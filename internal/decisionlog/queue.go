package decisionlog

import (
	"sync"
	"time"

	"github.com/catalogd/catalogd/decision"
)

// maxWaiting bounds the bytes of arguments and results in the queue; a single event may be larger.
const maxWaiting = 64 << 20

// queue is the bounded queue of events between callers and the writer. The writer is woken once for all
// events that are added until it takes them.
type queue struct {
	mu      sync.Mutex
	room    sync.Cond // signalled when there is room or the queue is closed
	max     int
	events  []decision.Event
	spare   []decision.Event // the slice taken before, to be reused
	bytes   int
	dropped uint64
	closed  bool

	filling chan struct{} // has an element where there is an event
	full    chan struct{} // has an element where half of the room is taken, or the queue is closed
}

func (q *queue) init(most int) {
	q.max, q.room.L = most, &q.mu
	q.filling, q.full = make(chan struct{}, 1), make(chan struct{}, 1)
}

// add adds an event. If the queue is full it waits, or drops the event and counts it.
func (q *queue) add(e decision.Event, wait bool) {
	n := size(e)
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && (len(q.events) >= q.max || len(q.events) > 0 && q.bytes+n > maxWaiting) {
		if !wait {
			q.dropped++
			return
		}
		signal(q.full)
		q.room.Wait()
	}
	if q.closed {
		return
	}
	q.events, q.bytes = append(q.events, e), q.bytes+n
	if len(q.events) == 1 {
		signal(q.filling)
	}
	if 2*len(q.events) >= q.max || 2*q.bytes >= maxWaiting {
		signal(q.full)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// size returns how many bytes of arguments and results an event holds.
func size(e decision.Event) (n int) {
	switch in := e.Input.(type) {
	case decision.CallInput:
		n = len(in.Arguments)
	case decision.ResultInput:
		n = len(in.Arguments) + len(in.Result.Structured)
		for _, text := range in.Result.Text {
			n += len(text)
		}
	case decision.ReleaseInput:
		n = len(in.Arguments)
	}
	return n
}

// wait returns gather after the first event, earlier when the queue is half full or closed. open is false
// once it is closed.
func (q *queue) wait(gather time.Duration) (open bool) {
	select {
	case <-q.filling:
		enough := time.NewTimer(gather)
		select {
		case <-enough.C:
		case <-q.full:
		}
		enough.Stop()
	case <-q.full:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.closed
}

// take removes and returns all events. They are valid until the next call.
func (q *queue) take() []decision.Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.events
	q.events, q.spare, q.bytes = q.spare[:0], taken, 0
	q.room.Broadcast()
	return taken
}

// close refuses further events and wakes callers that wait for room.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.room.Broadcast()
	signal(q.full)
}

func (q *queue) counts() (waiting int, dropped uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.events), q.dropped
}
