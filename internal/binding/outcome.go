package binding

import (
	"context"
	"errors"
	"fmt"

	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/registry"
)

// The known outcomes of a run without a result of its tool (docs/bindings.md has the table).

// nothingRan is the error of a call that did not start: nothing left this process.
func nothingRan(code registry.ErrorCode, msg string, err error) *registry.Error {
	return &registry.Error{Code: code, Msg: msg, Err: err, Unsent: true}
}

// unsent reports whether err means that nothing left this process.
func unsent(err error) bool {
	var e *egress.UnsentError
	return errors.As(err, &e)
}

// ended is the error of a call that timed out or whose caller cancelled it. Where something was sent it is
// the context's own error, which leaves the outcome unknown.
func ended(ctx context.Context, err error) error {
	switch {
	case !unsent(err):
		return ctx.Err()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nothingRan(registry.Timeout, "the time of the call was up before the tool was begun; nothing was run", ctx.Err())
	}
	return nothingRan(registry.Cancelled, "the call was cancelled before the tool was begun; nothing was run", ctx.Err())
}

// hidden is the error of a call with a side effect that the tool has answered, where the answer can't be
// returned.
func hidden(code registry.ErrorCode, outcome registry.Outcome, msg string) *registry.Error {
	e := &registry.Error{Code: code, Msg: msg}
	if outcome == registry.OutcomeSucceeded {
		e.Answered, e.Msg = outcome, "the tool has run and reports no error, but "+msg
	}
	return e
}

// tooLarge is the message of a result that exceeded the cap.
func tooLarge(what string, limit int64) string {
	return fmt.Sprintf("%s is larger than %d bytes, the most that this tool may answer", what, limit)
}

// askLess is tooLarge for a tool that can be called again.
func askLess(what string, limit int64) *registry.Error {
	return &registry.Error{Code: registry.OutputTooLarge, Msg: tooLarge(what, limit) + "; ask for less"}
}
