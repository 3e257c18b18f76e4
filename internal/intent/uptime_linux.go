package intent

import "golang.org/x/sys/unix"

// uptime counts nanoseconds since the machine was started, those in which it slept included.
func uptime() int64 { return counter(unix.CLOCK_BOOTTIME) }
