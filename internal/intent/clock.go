package intent

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// clock is the store's: the time on the wall when it was opened, and what has passed since, by a counter that
// no setting of the clock moves. A process that opens a store which others have open goes by their clock,
// since the wall's may have been set in between. It is never before the newest time that was written.
type clock struct{ base atomic.Int64 } // the time, in ns of Unix, when uptime was 0

func (c *clock) now() int64 { return c.base.Load() + uptime() }

func (c *clock) notBefore(t int64) {
	for {
		base := c.base.Load()
		behind := t - (base + uptime())
		if behind <= 0 || c.base.CompareAndSwap(base, base+behind) {
			return
		}
	}
}

// Now is the store's time, by which everything in it is dated.
func (s *Store) Now() time.Time { return timeOf(s.clock.now()) }

// timeOf is a time as it is stored; 0 is none.
func timeOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// counter reads a clock that all processes of the machine share and nobody sets.
func counter(id int32) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic("the machine has no monotonic clock: " + err.Error()) // only for an id that the kernel doesn't know
	}
	return ts.Nano()
}
