//go:build !linux

package worker

// confine does nothing on this system, where only the child's code keeps it from opening anything.
func confine(int64) []string { return []string{} }
