package intent

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/intent/attempt"
)

// TestLostIsEnded: what could not be written down, because the store was not to be written for a while, is ended once it is:
// as it came out, or it was not run. It is not executed then.
func TestLostIsEnded(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		approved bool
		in       func(spoil func()) Turn // what spoils the store when
		want     State
		runs     int
	}{
		{"before it began", false, func(spoil func()) Turn { spoil(); return Turn{} }, Cancelled, 0},
		{"before it began, approved by its caller", true, func(spoil func()) Turn { spoil(); return Turn{} }, Cancelled, 0},
		{"after it began", false, func(spoil func()) Turn {
			return Turn{Execute: func(context.Context, attempt.Attempt) Ran { spoil(); return Ran{State: Succeeded} }}
		}, Succeeded, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, newDir(t))
			e := idle(t, s)
			runs := 0
			begin := func(context.Context, Intent) Turn {
				turn := test.in(func() { s.lost.Store(&StoreError{Op: "commit", Path: "x", Err: errors.New("no room")}) })
				execute := turn.Execute
				turn.Timeout, turn.End = time.Minute, func() {}
				turn.Execute = func(ctx context.Context, a attempt.Attempt) Ran {
					runs++
					return execute(ctx, a)
				}
				return turn
			}
			e.cfg.Begin = begin
			sub := Submission{Begin: begin, Wait: time.Minute, Intent: anIntent(`{}`)}
			var got Answer
			var err error
			if test.approved {
				sub.Intent.State, sub.Intent.Approval = AwaitingApproval, &Approval{Self: true}
				if got, err = e.Submit(t.Context(), sub); err == nil {
					got, err = e.ApproveSubmitted(t.Context(), got.Intent.ID, Person{Name: sub.Intent.Principal, Credential: sub.Intent.Credential}, sub)
				}
			} else {
				got, err = e.Submit(t.Context(), sub)
			}
			if err != nil || got.Err == nil {
				t.Fatalf("%+v, %v", got, err)
			}
			if err := e.endLost(t.Context()); err == nil {
				t.Error("the store can't be written, and what was lost is ended")
			}
			s.lost.Store(nil)
			must(t, e.resume(t.Context()))
			must(t, e.endLost(t.Context()))
			if in := get(t, s, got.Intent.ID); in.State != test.want || (in.Message == "") != (test.want == Succeeded) || runs != test.runs {
				t.Errorf("%s (%s) after %d runs, want %s after %d", in.State, in.Message, runs, test.want, test.runs)
			}
			if len(e.lost) != 0 || e.Running() != 0 {
				t.Error("it is remembered")
			}
			checkCounts(t, s)
		})
	}
}
