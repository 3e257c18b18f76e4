package intent

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/registry"
)

// model is a store in plain Go: what the stores of a test must say.
type model struct {
	intents []*Intent // the oldest first
	live    map[string]bool
	now     time.Duration // since the beginning, by what was let pass
	staged  map[string]time.Duration
}

const modelKeys = 24 * time.Hour

// repeated is what staging an intent again returns; nil where it makes a new one.
func (m *model) repeated(in Intent) *Intent {
	for _, there := range slices.Backward(m.intents) {
		if there.Branch != in.Branch || there.Principal != in.Principal || there.Tool != in.Tool {
			continue
		}
		if in.Key != "" {
			if there.Key == in.Key && (!there.State.Ended() || m.now-m.staged[there.ID] < modelKeys) {
				return there
			}
		} else if there.Digest == in.Digest && there.Handed && !there.State.Ended() {
			return there
		}
	}
	return nil
}

// change is what becomes of a change: the kind of its error, and where that is "" the model is changed.
func (m *model) change(self string, in *Intent, from State, c Change) string {
	state, attempts := from, 0
	for _, step := range c.Steps {
		if !state.MayBecome(step.State) {
			return "invalid"
		}
		state = step.State
		if state == Attempted {
			attempts++
		}
	}
	if c.Outcome != nil && (len(c.Steps) == 0 || !state.Ended()) || c.Owner != nil && *c.Owner != "" && *c.Owner != self {
		return "invalid"
	}
	if in.State != from {
		return "moved"
	}
	others := in.Owner != self && m.live[in.Owner]
	after := in.Owner
	if c.Owner != nil {
		after = *c.Owner
	}
	switch {
	case others && (from.Begun() || c.Owner != nil):
		return "owned"
	case attempts > 0 && in.Owner != self && after != self:
		return "owned"
	}
	if c.Outcome != nil {
		in.Outcome = *c.Outcome
	} else if from.Ended() && !state.Ended() {
		in.Outcome = Outcome{}
	}
	in.State, in.Owner, in.Attempts, in.Handed = state, after, in.Attempts+attempts, in.Handed || c.Handed
	in.History = append(in.History, c.Steps...)
	if c.Approval != nil {
		in.Approval = c.Approval
	}
	if c.Expires != nil {
		in.Expires = *c.Expires
	}
	return ""
}

// recover is what becomes of what dead owners left; it returns the ids of what it changes.
func (m *model) recover() []string {
	var changed []string
	for _, in := range m.intents {
		dead := in.Owner != "" && !m.live[in.Owner]
		end := func(to State, code registry.ErrorCode, why string) {
			in.State, in.Outcome = to, Outcome{Code: code, Message: why}
			in.History = append(in.History, Step{State: to})
			changed = append(changed, in.ID)
		}
		switch {
		case in.State == AwaitingApproval && in.Approval != nil && in.Approval.Reason == "soon" && m.now-m.staged[in.ID] >= time.Hour:
			end(Expired, registry.ApprovalExpired, "nobody approved it in time; nothing was run")
		case !dead || in.State.Ended() || in.State == AwaitingApproval:
		case in.State == Released && in.byPerson():
			in.Owner = ""
			changed = append(changed, in.ID)
		case in.State.Begun(), in.Attempts > 0:
			end(Unknown, registry.OutcomeUnknown, "its process ended before the outcome was known")
		default:
			end(Cancelled, registry.Cancelled, "its process ended before it was executed")
		}
	}
	return changed
}

// kindOf names an error as the model does.
func kindOf(err error) string {
	var moved *MovedError
	var owned *OwnedError
	var conflict *ConflictError
	var failed *StoreError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &moved):
		return "moved"
	case errors.As(err, &owned):
		return "owned"
	case errors.As(err, &conflict):
		return "conflict"
	case errors.As(err, &failed):
		return "failed: " + err.Error()
	}
	return "invalid"
}

// plain is an intent without its times, which the model does not know.
func plain(in Intent) Intent {
	in.Staged, in.Ended, in.Expires = time.Time{}, time.Time{}, time.Time{}
	in.History = slices.Clone(in.History)
	for i := range in.History {
		in.History[i].At, in.History[i].Why = time.Time{}, ""
	}
	return in
}

// TestRandomHistories has two stores on one folder, which open and close, do random things, and compares each answer, and
// in the end everything, with the model. A close without its end is a death: intents are left as they are.
func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := newDir(t)
		m := &model{live: map[string]bool{}, staged: map[string]time.Duration{}}
		var stores [2]*Store
		reopen := func(i int) {
			if s := stores[i]; s != nil {
				m.live[s.Owner()] = false
				if err := s.Close(); err != nil {
					rt.Fatal(err)
				}
			}
			s, err := Open(context.Background(), Config{Dir: dir, Durability: Process, KeyRetention: modelKeys, MaxResult: 200,
				wall: func() time.Time { return time.Now().Add(m.now) }})
			if err != nil {
				rt.Fatal(err)
			}
			// It goes by the clock of the other, as that one's file says it; what the test let pass is not in there.
			s.clock.notBefore(time.Now().Add(m.now).UnixNano())
			stores[i] = s
			m.live[s.Owner()] = true
		}
		reopen(0)
		reopen(1)
		defer func() {
			for _, s := range stores {
				if err := s.Close(); err != nil {
					rt.Error(err)
				}
			}
		}()
		which := func(rt *rapid.T) (int, *Store) {
			i := rapid.IntRange(0, 1).Draw(rt, "store")
			return i, stores[i]
		}
		pick := func(rt *rapid.T) *Intent {
			if len(m.intents) == 0 {
				rt.Skip("no intent")
			}
			return rapid.SampledFrom(m.intents).Draw(rt, "intent")
		}
		rt.Repeat(map[string]func(*rapid.T){
			"stage": func(rt *rapid.T) {
				_, s := which(rt)
				in := anIntent(rapid.SampledFrom([]string{`{"n":1}`, `{"n":2}`}).Draw(rt, "args"))
				in.Principal = rapid.SampledFrom([]string{"alice", "bob"}).Draw(rt, "principal")
				in.Tool = rapid.SampledFrom([]string{"t1", "t2"}).Draw(rt, "tool")
				in.Key = rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(rt, "key")
				if rapid.Bool().Draw(rt, "approval") {
					in.State, in.Approval = AwaitingApproval, approvalOf("ops")
					if rapid.Bool().Draw(rt, "expires") {
						in.Approval.Reason, in.Expires = "soon", s.Now().Add(time.Hour)
					}
				}
				got, made, err := s.Stage(context.Background(), in)
				there := m.repeated(in)
				switch {
				case there != nil && there.Digest != in.Digest:
					if kindOf(err) != "conflict" {
						rt.Fatalf("got %v, want a conflict with %s", err, there.ID)
					}
				case err != nil:
					rt.Fatal(err)
				case there != nil:
					if made || !cmp.Equal(plain(got), plain(*there)) {
						rt.Fatalf("made %v: %s", made, cmp.Diff(plain(*there), plain(got)))
					}
				case !made:
					rt.Fatalf("got %s, want a new one", got.ID)
				default:
					in.ID, in.Seq, in.Owner, in.History = got.ID, int64(len(m.intents)+1), s.Owner(), steps(in.State)
					if !cmp.Equal(plain(got), plain(in)) {
						rt.Fatal(cmp.Diff(plain(in), plain(got)))
					}
					m.intents, m.staged[in.ID] = append(m.intents, &in), m.now
				}
			},
			"change": func(rt *rapid.T) {
				_, s := which(rt)
				in := pick(rt)
				if rapid.IntRange(0, 3).Draw(rt, "by its owner") > 0 {
					for _, its := range stores {
						if its.Owner() == in.Owner {
							s = its
						}
					}
				}
				from := in.State
				if rapid.IntRange(0, 5).Draw(rt, "elsewhere") == 0 {
					from = rapid.SampledFrom(States()).Draw(rt, "from")
				}
				var c Change
				at := from
				for range rapid.IntRange(0, 3).Draw(rt, "steps") {
					to := rapid.SampledFrom(States()).Draw(rt, "to")
					if next := next[at]; len(next) > 0 && rapid.IntRange(0, 7).Draw(rt, "allowed") > 0 {
						to = rapid.SampledFrom(next).Draw(rt, "next")
					}
					c.Steps, at = append(c.Steps, Step{State: to, By: rapid.SampledFrom([]string{"", "bob"}).Draw(rt, "by")}), to
				}
				if at.Ended() && rapid.Bool().Draw(rt, "outcome") {
					c.Outcome = &Outcome{Message: "m", Result: textResult("r")}
				}
				if rapid.IntRange(0, 3).Draw(rt, "owner") == 0 {
					owner := rapid.SampledFrom([]string{"", s.Owner(), "another"}).Draw(rt, "to owner")
					c.Owner = &owner
				}
				if in.Approval != nil && rapid.Bool().Draw(rt, "approve") {
					given := *in.Approval
					given.By = "bob"
					c.Approval = &given
				}
				c.Handed = rapid.IntRange(0, 3).Draw(rt, "handed") == 0
				err := s.Change(context.Background(), in.ID, from, c)
				if want := m.change(s.Owner(), in, from, c); kindOf(err) != want {
					rt.Fatalf("got %v, want %q", err, want)
				}
			},
			"claim": func(rt *rapid.T) {
				_, s := which(rt)
				in := pick(rt)
				got, err := s.Claim(context.Background(), in.ID)
				want := ""
				switch {
				case in.State == Released && !in.byPerson():
					want = "owned"
				default:
					self := s.Owner()
					want = m.change(self, in, Released, Change{Owner: &self})
				}
				if kindOf(err) != want || err == nil && !cmp.Equal(plain(got), plain(*in)) {
					rt.Fatalf("got %v, want %q: %s", err, want, cmp.Diff(plain(*in), plain(got)))
				}
			},
			"recover": func(rt *rapid.T) {
				_, s := which(rt)
				changed, err := s.Recover(context.Background())
				if err != nil {
					rt.Fatal(err)
				}
				var got []string
				for _, in := range changed {
					got = append(got, in.ID)
				}
				want := m.recover()
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					rt.Fatalf("changed %v, want %v", got, want)
				}
			},
			"reopen": func(rt *rapid.T) {
				i, _ := which(rt)
				reopen(i)
			},
			"wait": func(rt *rapid.T) {
				d := time.Duration(rapid.IntRange(1, 20).Draw(rt, "hours")) * time.Hour
				m.now += d
				for _, s := range stores {
					s.clock.base.Add(int64(d))
				}
			},
			"": func(rt *rapid.T) { // after each
				_, s := which(rt)
				counts, err := s.Counts(context.Background())
				if err != nil {
					rt.Fatal(err)
				}
				want := map[State]int64{}
				for _, state := range States() {
					want[state] = 0
				}
				for _, in := range m.intents {
					want[in.State]++
				}
				if !cmp.Equal(counts, want) {
					rt.Fatal(cmp.Diff(want, counts))
				}
				list, err := s.List(context.Background(), Filter{})
				if err != nil || len(list) != len(m.intents) {
					rt.Fatalf("%d are listed, %v, want %d", len(list), err, len(m.intents))
				}
				for i, in := range m.intents {
					if got := list[len(list)-1-i]; got.ID != in.ID || got.State != in.State {
						rt.Fatalf("intent %d is %s, want %s", in.Seq, got.State, in.State)
					}
				}
			},
		})
		for _, in := range m.intents {
			got, err := stores[0].Get(context.Background(), in.ID)
			if err != nil || !cmp.Equal(plain(got), plain(*in)) {
				rt.Fatalf("%v: %s", err, cmp.Diff(plain(*in), plain(got)))
			}
			if got.State.Ended() == got.Ended.IsZero() {
				rt.Fatalf("it is %s and ended at %s", got.State, got.Ended)
			}
		}
		if owners, err := filepath.Glob(filepath.Join(dir, ownersName, "*")); err != nil || len(owners) != 2 {
			rt.Fatalf("owners %v, %v, want two", owners, err)
		}
	})
}
