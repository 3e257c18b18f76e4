// Package attempttest makes attempts without an intent, for tests only: no production code imports it, and a test of the
// repository makes sure of that.
package attempttest

import (
	"github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/internal/intent/internal/grant"
)

// New is an attempt with this idempotency key.
func New(key string) attempt.Attempt {
	return attempt.New(grant.New(), attempt.Of{Intent: "test", Number: 1, Key: key})
}

// Of is an attempt of what of says.
func Of(of attempt.Of) attempt.Attempt { return attempt.New(grant.New(), of) }
