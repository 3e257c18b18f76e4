package intent

import (
	"fmt"
	"testing"
	"time"
)

// clockThatJumps sets the clock on the wall back and forth between and during the lives of processes.
func clockThatJumps(t *testing.T) {
	dir := newDir(t)
	begun := time.Now()
	jump := time.Duration(0)
	wall := func(c *Config) { c.wall = func() time.Time { return time.Now().Add(jump) } }
	near := func(what string, got time.Time, want time.Duration) {
		t.Helper()
		if d := got.Sub(begun) - want; d < -time.Second || d > 10*time.Minute { // the smallest jump is half an hour
			t.Errorf("%s: %s after the beginning, want about %s", what, got.Sub(begun), want)
		}
	}
	first := open(t, dir, wall)
	near("at first", first.Now(), 0)
	waiting := anIntent(`{"waits":1}`)
	waiting.State, waiting.Approval, waiting.Expires = AwaitingApproval, approvalOf("ops"), first.Now().Add(30*time.Minute)
	waiting = stage(t, first, waiting)
	keyed := anIntent(`{"keyed":1}`)
	keyed.Key = "k"
	keyed = stage(t, first, keyed)
	must(t, first.Change(t.Context(), keyed.ID, Staged, Change{Steps: steps(Refused)}))
	unmoved := func(when string, s *Store) {
		t.Helper()
		if changed, err := s.Recover(t.Context()); err != nil || len(changed) > 0 {
			t.Errorf("%s: %d changed, %v: expired early", when, len(changed), err)
		}
		again := anIntent(`{"keyed":1}`)
		again.Key = "k"
		if got, made, err := s.Stage(t.Context(), again); err != nil || made || got.ID != keyed.ID {
			t.Errorf("%s: the key names %s, %v, %v, want the first", when, got.ID, made, err)
		}
	}
	for _, jump = range []time.Duration{-time.Hour, time.Hour, -300 * 24 * time.Hour, 300 * 24 * time.Hour} {
		when := fmt.Sprintf("set by %s while it is open", jump)
		near(when, first.Now(), 0)
		unmoved(when, first)
		// Another process opens it and goes by the clock of the first.
		other := open(t, dir, wall)
		near(when+", another process", other.Now(), 0)
		unmoved(when+", another process", other)
		in := stage(t, other, anIntent(fmt.Sprintf(`{"jump":%d}`, jump)))
		near(when+", staged", in.Staged, 0)
		near(when+", after another's change", first.Now(), 0)
		must(t, other.Change(t.Context(), in.ID, Staged, Change{Steps: steps(Attempted, Succeeded)}))
		must(t, other.Close())
	}
	must(t, first.Close())
	// Set back while nobody has it open, it goes on from the newest time that was written.
	jump = -time.Hour
	s := open(t, dir, wall)
	near("set back while it is closed", s.Now(), 0)
	before := stage(t, s, anIntent(`{"back":1}`))
	if got := s.Now(); got.Before(before.Staged) {
		t.Errorf("now is %s, and %s was written", got, before.Staged)
	}
	if got, err := s.Recover(t.Context()); err != nil || len(got) > 1 { // `jump` staged ones have ended; keyed and waiting stay
		t.Errorf("%d changed, %v", len(got), err)
	}
	must(t, s.Close())
	// What really passes while nobody has it open counts.
	jump = 31 * time.Minute
	s = open(t, dir, wall)
	near("half an hour later", s.Now(), jump)
	if _, err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := get(t, s, waiting.ID); got.State != Expired {
		t.Errorf("it is %s after its time, want expired", got.State)
	}
}

// TestTimesDoNotGoBack: each time that is written is at or after those before it.
func TestTimesDoNotGoBack(t *testing.T) {
	dir := newDir(t)
	a := open(t, dir)
	b := open(t, dir)
	// A process whose clock is ahead, such as one of a machine that was joined wrongly, pulls the others along.
	b.clock.base.Add(int64(10 * time.Minute))
	last := time.Time{}
	for n := range 20 {
		s := []*Store{a, b}[n%2]
		in := inState(t, s, Succeeded, anIntent(fmt.Sprintf(`{"n":%d}`, n)))
		for _, step := range in.History {
			if step.At.Before(last) {
				t.Fatalf("intent %d: %s is %s before what was written last", n, step.State, last.Sub(step.At))
			}
			last = step.At
		}
		if in.Ended.Before(in.Staged) || s.Now().Before(in.Ended) {
			t.Fatalf("staged %s, ended %s, now %s", in.Staged, in.Ended, s.Now())
		}
	}
}

// TestApprovalExpiresByTheStoresClock and only then, whoever owns it.
func TestApprovalExpiresByTheStoresClock(t *testing.T) {
	s := open(t, newDir(t))
	in := anIntent(`{}`)
	in.State, in.Approval, in.Expires = AwaitingApproval, approvalOf("ops"), s.Now().Add(time.Hour)
	in = stage(t, s, in)
	never := anIntent(`{"never":1}`)
	never.State, never.Approval = AwaitingApproval, approvalOf("ops")
	never = stage(t, s, never)
	for _, c := range []struct {
		after time.Duration
		want  State
	}{{0, AwaitingApproval}, {59 * time.Minute, AwaitingApproval}, {time.Minute, Expired}} {
		s.clock.base.Add(int64(c.after))
		_, err := s.Recover(t.Context())
		must(t, err)
		if got := get(t, s, in.ID); got.State != c.want {
			t.Fatalf("after %s more it is %s, want %s", c.after, got.State, c.want)
		}
	}
	if got := get(t, s, never.ID); got.State != AwaitingApproval {
		t.Errorf("without an end it is %s, want awaiting_approval", got.State)
	}
}
