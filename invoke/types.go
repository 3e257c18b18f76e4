package invoke

import (
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/internal/secret"
)

// The types of other packages in the exported fields and functions of this one, named here for programs that
// embed catalogd. A program gets values of them and makes none.
type (
	// Effector executes intents; it alone makes attempts.
	Effector = intent.Effector
	// Submission is a call that an Effector may execute, as far as the call decision goes.
	Submission = intent.Submission
	// Answer is what the caller of a Submission is answered.
	Answer = intent.Answer
	// Begin asks whether an intent may be executed now, and pins the generation that serves now.
	Begin = intent.Begin
	// Turn is the answer of Begin.
	Turn = intent.Turn
	// Ran is the outcome of one attempt.
	Ran = intent.Ran
	// Person is who decides about an intent.
	Person = intent.Person
	// Masker replaces the values of secret arguments in texts.
	Masker = secret.Masker
)
