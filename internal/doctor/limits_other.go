//go:build !linux

package doctor

// Limits checks what the system lets a daemon use. On this system that is the limit of open files.
func Limits(string, int64) []Finding { return []Finding{Files()} }
