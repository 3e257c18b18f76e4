//go:build !linux && !darwin

package decision

import "time"

func threadClock() func() time.Duration { return clockOfPassing() }
