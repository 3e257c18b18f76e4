// Package attempttest makes attempts without an intent, for tests only. The repository's imports_test.go
// checks that no production code imports it.
package attempttest

import (
	"github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/internal/intent/internal/grant"
)

// New makes an attempt with this idempotency key, for the empty tool name and digest.
func New(key string) attempt.Attempt {
	return attempt.New(grant.New(), attempt.Of{Intent: "test", Number: 1, Key: key})
}

// Of makes the attempt that of describes.
func Of(of attempt.Of) attempt.Attempt { return attempt.New(grant.New(), of) }
