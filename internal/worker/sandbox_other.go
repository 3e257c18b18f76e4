//go:build !linux

package worker

// confine has nothing to take away with on this system: that sources come over the pipe and that the child opens
// nothing is by construction alone.
func confine(int64) []string { return []string{} }
