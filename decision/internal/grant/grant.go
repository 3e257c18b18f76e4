// Package grant holds the key without which no trust can be made. It lies under decision/internal, so the compiler lets
// no package outside decision/ have it: a trust.Trust is unforgeable by construction.
package grant

// Key is needed by trust.New.
type Key struct{}
