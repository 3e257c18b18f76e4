package registry

import "github.com/catalogd/catalogd/internal/intent/attempt"

type (
	// Attempt is a capability to run one tool with a side effect once, with one set of arguments. Only the
	// effector, which records the attempt first, can make one.
	Attempt = attempt.Attempt
	// AttemptSubject says what an Attempt may run.
	AttemptSubject = attempt.Of
)
