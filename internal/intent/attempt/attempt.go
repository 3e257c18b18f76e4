// Package attempt has Attempt, the permission to run a tool with a side effect once. Only internal/intent can
// make one, and it does so after it has committed the state Attempted of the intent.
package attempt

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/catalogd/catalogd/internal/intent/internal/grant"
)

// Attempt permits one run of one tool with one set of arguments. The zero Attempt permits nothing. It is safe
// for concurrent use; copies share their state.
type Attempt struct{ it *permission }

type permission struct {
	Of
	taken atomic.Bool
}

// Of says which run an attempt permits.
type Of struct {
	// Intent is the id of the intent, and Number the number of the attempt, from 1.
	Intent string
	Number int
	// Tool is the name of the tool, and Digest the digest of its arguments (contract.Args.Digest).
	Tool, Digest string
	// Key is the idempotency key that is sent with the call. It is the same for all attempts of an intent,
	// and never empty.
	Key string
}

// New makes an attempt. The key comes from grant.New, which only internal/intent and its tests may import;
// with an invalid key New returns the zero Attempt.
func New(key grant.Key, of Of) Attempt {
	if !key.Valid() {
		return Attempt{}
	}
	return Attempt{&permission{Of: of}}
}

// Take marks the attempt as used. It returns an error if the attempt is zero, is for another tool or other
// arguments, or was used before.
func (a Attempt) Take(tool, digest string) error {
	switch {
	case a.it == nil:
		return errors.New("a tool with side effects can be run only by an attempt of an intent")
	case a.it.Tool != tool || a.it.Digest != digest:
		return fmt.Errorf("the attempt of intent %s is for another tool or other arguments (of tool %q)", a.it.Intent, a.it.Tool)
	case !a.it.taken.CompareAndSwap(false, true):
		return fmt.Errorf("attempt %d of intent %s was used before", a.it.Number, a.it.Intent)
	}
	return nil
}

// Of returns what the attempt permits; ok is false for the zero Attempt.
func (a Attempt) Of() (of Of, ok bool) {
	if a.it == nil {
		return Of{}, false
	}
	return a.it.Of, true
}
