//go:build !linux

package intent

import "golang.org/x/sys/unix"

// uptime returns nanoseconds since an unspecified time; on macOS it also counts while the machine sleeps.
func uptime() int64 { return counter(unix.CLOCK_MONOTONIC) }
