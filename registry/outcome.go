package registry

import "errors"

// Outcome is what is known of one run of a tool with a side effect.
type Outcome string

// The outcomes. What is not known to be one of the others is unclear.
const (
	// OutcomeUnclear: the tool may have done what it was asked, in whole, in part or not at all.
	OutcomeUnclear Outcome = "unclear"
	// OutcomeUnsent: nothing was run, because nothing left this process or the receiver's protocol refused it
	// unread.
	OutcomeUnsent Outcome = "unsent"
	// OutcomeSucceeded: the tool answered that it did what it was asked.
	OutcomeSucceeded Outcome = "succeeded"
	// OutcomeFailed: the tool, or the service that it asked, answered that it refuses or has failed.
	OutcomeFailed Outcome = "failed"
)

// OutcomeOf says what is known of a run that ended with r and err, of which one is nil. It speaks of this run
// alone: of a further round (Listener.Round) that was not sent, the rounds before it were. A Result with
// Input is no end: the tool waits to be called again.
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
