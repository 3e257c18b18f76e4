package worker

import "time"

// A limit for a child counts its processor time, so that a busy machine makes no difference. A child that
// gets no processor, or waits, has exceeded the limit when so many times the limit has passed by the clock.
// A file that is evaluated alone, to find the cause of a limit, has as long as a check.
const (
	poolClockFactor    = 30
	compileClockFactor = 6
)

// workClock measures the time and the processor time of a process since it was started.
type workClock struct {
	pid   int
	since time.Time
	used  time.Duration // at since
	known bool
}

// startClock starts a clock for the process.
func startClock(pid int) workClock {
	used, known := cpuTime(pid)
	return workClock{pid, time.Now(), used, known}
}

// worked reports whether the process has used the limit in processor time; true where that is not known.
func (c workClock) worked(limit time.Duration) bool {
	now, known := cpuTime(c.pid)
	return !known || !c.known || now-c.used >= limit
}

// left is how long it takes at least until the process may exceed the limit; 0 or less when it has.
func (c workClock) left(limit time.Duration, clockFactor int) time.Duration {
	passed := time.Since(c.since)
	if passed < limit {
		return limit - passed
	}
	now, known := cpuTime(c.pid)
	if !known || !c.known || passed > time.Duration(clockFactor)*limit {
		return 0
	}
	if rest := limit - (now - c.used); rest > 0 {
		return max(rest, 10*time.Millisecond) // the resolution of cpuTime
	}
	return 0
}
