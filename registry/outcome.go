package registry

import "errors"

// Outcome is what is known about the side effect of one run of a tool.
type Outcome string

const (
	// OutcomeUnclear means that the effect may have happened in whole, in part or not at all. It is the
	// outcome of everything that is not known to be one of the others.
	OutcomeUnclear Outcome = "unclear"
	// OutcomeUnsent means that nothing was run: see Error.Unsent.
	OutcomeUnsent Outcome = "unsent"
	// OutcomeSucceeded means that the tool reported success.
	OutcomeSucceeded Outcome = "succeeded"
	// OutcomeFailed means that the tool, or the service that it called, reported refusal or failure.
	OutcomeFailed Outcome = "failed"
)

// OutcomeOf returns the outcome of a run that returned r and err, one of which is nil. It is about this run
// alone: if a further round (Listener.Round) was not sent, the rounds before it were. A Result with Input is
// OutcomeUnclear, because the run has not ended.
func OutcomeOf(r *Result, err error) Outcome {
	if err != nil {
		var e *Error
		switch {
		case !errors.As(err, &e), e.Unsent && e.Answered != "":
			return OutcomeUnclear
		case e.Unsent:
			return OutcomeUnsent
		case e.Answered == OutcomeSucceeded, e.Answered == OutcomeFailed:
			return e.Answered
		}
		return OutcomeUnclear
	}
	switch {
	case r == nil, r.Unclear, r.Input != nil:
		return OutcomeUnclear
	case r.IsError:
		return OutcomeFailed
	}
	return OutcomeSucceeded
}
