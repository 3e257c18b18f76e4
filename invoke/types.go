package invoke

import (
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/internal/secret"
)

// Types of internal packages in this package's exported fields and functions, for programs that embed
// catalogd.
type (
	// Effector executes intents; it alone makes attempts.
	Effector = intent.Effector
	// Submission is a call of a tool with a side effect that the call decision has allowed.
	Submission = intent.Submission
	// Answer is the state of an intent when a call returns.
	Answer = intent.Answer
	// Begin begins a turn of an intent: it pins the generation and asks for the release decision.
	Begin = intent.Begin
	// Turn says whether an intent may be executed now, and how.
	Turn = intent.Turn
	// Ran is the outcome of one attempt.
	Ran = intent.Ran
	// Person is a person who decides about intents.
	Person = intent.Person
	// Masker replaces the values of secret arguments in texts.
	Masker = secret.Masker
)
