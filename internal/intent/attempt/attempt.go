// Package attempt holds Attempt: the leave to run a tool with a side effect once. Only internal/intent makes
// one, after it has written down that it does.
package attempt

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/catalogd/catalogd/internal/intent/internal/grant"
)

// Attempt is one attempt of one intent: leave to run one tool with one set of arguments, once. The zero
// Attempt is leave for nothing. It is safe for concurrent use.
type Attempt struct{ it *leave }

type leave struct {
	Of
	taken atomic.Bool
}

// Of says what an attempt is for.
type Of struct {
	// Intent is the id of the intent, and Number counts its attempts from 1.
	Intent string
	Number int
	// Tool and Digest name the tool and its arguments (contract.Args.Digest).
	Tool, Digest string
	// Key is the idempotency key that goes out with the call: the same for each attempt of the intent, never
	// empty.
	Key string
}

// New makes an attempt, with a key that only internal/intent has; with any other it makes the zero Attempt.
func New(key grant.Key, of Of) Attempt {
	if !key.Valid() {
		return Attempt{}
	}
	return Attempt{&leave{Of: of}}
}

// Take uses the attempt up. It is an error where the attempt is another tool's or for other arguments, or was
// used before.
func (a Attempt) Take(tool, digest string) error {
	switch {
	case a.it == nil:
		return errors.New("there is no attempt of an intent")
	case a.it.Tool != tool || a.it.Digest != digest:
		return fmt.Errorf("the attempt of intent %s is one of tool %q with other arguments", a.it.Intent, a.it.Tool)
	case !a.it.taken.CompareAndSwap(false, true):
		return fmt.Errorf("attempt %d of intent %s was used before", a.it.Number, a.it.Intent)
	}
	return nil
}

// Of says what the attempt is for, and reports whether it is one.
func (a Attempt) Of() (of Of, ok bool) {
	if a.it == nil {
		return Of{}, false
	}
	return a.it.Of, true
}
