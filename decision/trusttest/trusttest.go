// Package trusttest makes trust without a decision, for tests only: no production code imports it, and a test
// of the repository makes sure of that.
package trusttest

import (
	"github.com/catalogd/catalogd/decision/internal/grant"
	"github.com/catalogd/catalogd/decision/trust"
)

// New makes a Trust for target with these terms. If terms have no entry name, it is "test".
func New(target trust.Target, terms trust.Terms) trust.Trust {
	if terms.Entry == "" {
		terms.Entry = "test"
	}
	return trust.New(grant.Issue(), target, terms)
}
