//go:build !linux

package intent

import "golang.org/x/sys/unix"

// uptime counts nanoseconds since some time after which the machine was started (on macOS while it sleeps,
// too).
func uptime() int64 { return counter(unix.CLOCK_MONOTONIC) }
