package intent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

// waysTo are the changes by which an intent comes into a state; those through an approval begin there.
var waysTo = map[string][]State{
	"staged":            {Staged},
	"awaiting_approval": {AwaitingApproval},
	"released":          {AwaitingApproval, Released},
	"attempted":         {Staged, Released, Attempted},
	"between attempts":  {Staged, Released, Attempted, Released},
	"awaiting_input":    {Staged, Released, Attempted, AwaitingInput},
	"succeeded":         {Staged, Released, Attempted, Succeeded},
	"failed":            {Staged, Released, Attempted, Failed},
	"unknown":           {Staged, Released, Attempted, Unknown},
	"refused":           {AwaitingApproval, Refused},
	"cancelled":         {Staged, Cancelled},
	"expired":           {AwaitingApproval, Expired},
}

func idle(t testing.TB, s *Store) *Effector {
	e := NewEffector(EffectorConfig{Store: s, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { e.Close(context.Background()) })
	return e
}

// come stages an intent and brings it along a way.
func come(t testing.TB, s *Store, in Intent, way []State) Intent {
	t.Helper()
	in.State = way[0]
	in = stage(t, s, in)
	owner := s.Owner()
	for i, to := range way[1:] {
		if err := s.Change(t.Context(), in.ID, way[i], Change{Steps: steps(to), Owner: &owner}); err != nil {
			t.Fatal(err)
		}
	}
	return get(t, s, in.ID)
}

// What May names is what a person can do: each action is tried in each state, by each kind of person.
func TestMayIsWhatCanBeDone(t *testing.T) {
	t.Parallel()
	s := open(t, newDir(t))
	e := idle(t, s)
	people := map[string]Person{
		"its caller":              {Name: "ann", Credential: "a"},
		"another token of hers":   {Name: "ann", Credential: "other"},
		"somebody":                {Name: "eve", Credential: "e"},
		"somebody of the group":   {Name: "bob", Credential: "b", Groups: []string{"x", "ops"}},
		"an admin":                {Name: "root", Credential: "r", Admin: true},
		"an admin of the group":   {Name: "boss", Credential: "r", Groups: []string{"ops"}, Admin: true},
		"its caller of the group": {Name: "ann", Credential: "a", Groups: []string{"ops"}},
	}
	approvals := map[string]*Approval{"by a group": {Groups: []string{"ops"}}, "by its caller": {Groups: []string{"ops"}, Self: true}}
	n, allowed := 0, 0
	for state, way := range waysTo {
		for asks, approval := range approvals {
			for who, p := range people {
				for _, action := range []Action{ToApprove, ToRefuse, ToCancel, ToRetry, ToResolve} {
					n++
					in := anIntent(fmt.Sprintf(`{"n":%d}`, n))
					in.Principal, in.Credential = "ann", "a"
					if way[0] == AwaitingApproval {
						a := *approval
						in.Approval = &a
					}
					in = come(t, s, in, way)
					may := slices.Contains(p.May(in), action)
					var err error
					switch action {
					case ToApprove:
						_, err = e.Approve(t.Context(), in.ID, p, "")
					case ToRefuse:
						_, err = e.Refuse(t.Context(), in.ID, p, "")
					case ToCancel:
						_, err = e.Cancel(t.Context(), in.ID, p, "")
					case ToRetry:
						_, err = e.Retry(t.Context(), in.ID, p, "")
					case ToResolve:
						_, err = e.Resolve(t.Context(), in.ID, p, Succeeded, "")
					}
					if may {
						allowed++
					}
					if may != (err == nil) {
						t.Errorf("%s (approval %s), %s, %s: may %v, and got %v", state, asks, who, action, may, err)
					}
					if !p.Sees(in) && !errors.Is(err, ErrUnknown) {
						t.Errorf("%s, %s, %s: %v tells that there is one", state, who, action, err)
					}
				}
			}
		}
	}
	if allowed < 50 {
		t.Errorf("%d of %d were allowed", allowed, n)
	}
}

// A token that was made anew under the same name does not let its bearer approve its own call.
func TestOwnCallWithAnotherToken(t *testing.T) {
	t.Parallel()
	s := open(t, newDir(t))
	e := idle(t, s)
	in := anIntent(`{}`)
	in.Principal, in.Credential, in.State, in.Approval = "ann", "a", AwaitingApproval, &Approval{Groups: []string{"ops"}}
	in = stage(t, s, in)
	for credential, want := range map[string]string{"a": "may not approve it", "other": "no such intent"} {
		got, err := e.Approve(t.Context(), in.ID, Person{Name: "ann", Credential: credential, Groups: []string{"ops"}}, "")
		if err == nil || !strings.Contains(err.Error(), want) || get(t, s, in.ID).State != AwaitingApproval {
			t.Errorf("with token %s: %s, %v; want %q", credential, got.State, err, want)
		}
	}
}

// A page has only what its reader may know of, in order, each once, and the pages have all of that.
func TestPagesHaveWhatIsSeen(t *testing.T) {
	t.Parallel()
	s := open(t, newDir(t))
	e := idle(t, s)
	var want []string
	for i := range 700 {
		in := anIntent(fmt.Sprintf(`{"n":%d}`, i))
		in.Principal, in.State = "ann", Staged
		if i%7 == 0 {
			in.Principal = "bob"
		}
		if in = stage(t, s, in); in.Principal == "bob" {
			want = append(want, in.ID)
		}
	}
	slices.Reverse(want)
	for _, limit := range []int{1, 30, 99, 100, 101, 500} {
		var got []string
		f := Filter{Limit: limit}
		for pages := 0; ; pages++ {
			page, before, err := e.Page(t.Context(), f, Person{Name: "bob", Credential: "c"})
			if err != nil || len(page) > limit || pages > len(want)+3 {
				t.Fatalf("limit %d: %d on the %d. page, %v", limit, len(page), pages, err)
			}
			for _, in := range page {
				got = append(got, in.ID)
			}
			if before == 0 {
				break
			}
			if f.Before != 0 && before >= f.Before {
				t.Fatalf("the page before %d goes on at %d", f.Before, before)
			}
			f.Before = before
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %d intents in pages, want the %d of bob, the newest first", limit, len(got), len(want))
		}
	}
	if page, before, err := e.Page(t.Context(), Filter{Limit: 500}, Person{Name: "eve"}); err != nil || len(page) != 0 || before != 0 {
		t.Errorf("eve sees %d, before %d, %v", len(page), before, err)
	}
}

// However long the history of others, one page costs no more than a part of it.
func TestPageIsBounded(t *testing.T) {
	t.Parallel()
	s := open(t, newDir(t))
	e := idle(t, s)
	for i := range maxRead + 10 {
		in := anIntent(fmt.Sprintf(`{"n":%d}`, i))
		in.Principal, in.State = "ann", Staged
		stage(t, s, in)
	}
	page, before, err := e.Page(t.Context(), Filter{Limit: 10}, Person{Name: "eve"})
	if err != nil || len(page) != 0 || before == 0 {
		t.Fatalf("%d intents, before %d, %v; want none, and to be asked to go on", len(page), before, err)
	}
	if _, before, err = e.Page(t.Context(), Filter{Limit: 10, Before: before}, Person{Name: "eve"}); err != nil || before != 0 {
		t.Errorf("before %d, %v; want the end", before, err)
	}
}

// What a person retries, another process may execute than the one that staged it, whether it was approved or not.
func TestRetriedIsClaimed(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	s := open(t, dir)
	for _, way := range [][]State{{Staged, Released, Attempted, Unknown}, {AwaitingApproval, Released, Attempted, Failed}} {
		first, err := Open(t.Context(), Config{Dir: dir, Durability: Process})
		if err != nil {
			t.Fatal(err)
		}
		in := anIntent(fmt.Sprintf(`{"of":%q}`, way[0]))
		if way[0] == AwaitingApproval {
			in.Approval = &Approval{Groups: []string{"ops"}}
		}
		in = come(t, first, in, way)
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		e := idle(t, s)
		if _, err := e.Retry(t.Context(), in.ID, Person{Name: "root", Admin: true}, "maxRead"); err != nil {
			t.Fatal(err)
		}
		if left, err := s.Recover(t.Context()); err != nil || len(left) > 1 {
			t.Fatal(left, err)
		}
		got, err := s.Claim(t.Context(), in.ID)
		if err != nil || got.Owner != s.Owner() {
			t.Errorf("%v: %+v, %v", way, got, err)
		}
	}
}
