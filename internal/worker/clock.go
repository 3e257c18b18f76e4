package worker

import "time"

// A deadline for a child counts the child's processor time, so that how busy the machine is decides nothing. A child that
// gets no processor, or waits for something, is ended all the same when the deadline has passed so many times on the clock.
const (
	checkPatience   = 30
	compilePatience = 6
)

// stopwatch measures the work of a child.
type stopwatch struct {
	pid   int
	since time.Time
	used  time.Duration // at since
	known bool
}

func watchWork(pid int) stopwatch {
	used, known := processorTime(pid)
	return stopwatch{pid, time.Now(), used, known}
}

// left is how long to wait at least until the work may have taken the limit; not above zero when it has.
func (s stopwatch) left(limit time.Duration, patience int) time.Duration {
	passed := time.Since(s.since)
	if passed < limit {
		return limit - passed
	}
	now, known := processorTime(s.pid)
	if !known || !s.known || passed > time.Duration(patience)*limit {
		return 0
	}
	if rest := limit - (now - s.used); rest > 0 {
		return max(rest, 10*time.Millisecond) // the unit of the clock
	}
	return 0
}
