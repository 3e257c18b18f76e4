package intent

import "golang.org/x/sys/unix"

// uptime returns the nanoseconds since the machine was started, including the time it was suspended.
func uptime() int64 { return counter(unix.CLOCK_BOOTTIME) }
