package intent

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// clock is the clock of a store: the wall time when the store was opened plus the time since then by a
// monotonic counter, so setting the wall clock doesn't affect it. A process that opens a store which other
// processes have open takes their clock, because the wall clock may have been set in between. The clock never
// returns a time before the newest time in the store.
type clock struct{ base atomic.Int64 } // Unix time in ns at which uptime was 0

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

// Now returns the time of the store's clock, which sets all times in the store.
func (s *Store) Now() time.Time { return timeOf(s.clock.now()) }

// timeOf converts a stored time, in Unix nanoseconds; 0 is the zero time.
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

// counter reads, in nanoseconds, a clock that all processes of the machine share and that can't be set.
func counter(id int32) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic("the machine has no monotonic clock: " + err.Error()) // only for an id that the kernel doesn't know
	}
	return ts.Nano()
}
