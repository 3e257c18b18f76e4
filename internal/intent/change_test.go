package intent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/registry"
)

func TestIntentComesBackAsItWasStaged(t *testing.T) {
	s := open(t, newDir(t))
	in := anIntent(`{"a":"ü\u0000"}`)
	in.ID, in.Key, in.Repeatable, in.State = strings.Repeat("ab", 16), "order-ü", true, AwaitingApproval
	in.Approval = &Approval{Groups: []string{"ops", "admins"}, Reason: "more than 100 €", Self: true}
	in.Expires = s.Now().Add(time.Hour)
	got := stage(t, s, in)
	want := in
	want.Seq, want.Owner, want.Staged = 1, s.Owner(), got.Staged
	want.History = []Step{{State: AwaitingApproval, At: got.Staged}}
	if d := cmp.Diff(want, got); d != "" || got.Staged.IsZero() {
		t.Fatal("staged: ", d)
	}
	if d := cmp.Diff(want, get(t, s, in.ID)); d != "" {
		t.Fatal("read: ", d)
	}
	approval := *in.Approval
	approval.By, approval.At = "bob", s.Now()
	must(t, s.Change(t.Context(), in.ID, AwaitingApproval, Change{Steps: []Step{{State: Released, By: "bob", Why: "fine"}}, Approval: &approval, Handed: true}))
	result := &registry.Result{
		Content: []json.RawMessage{registry.Text("done\x00")}, Structured: json.RawMessage(`{"id":17}`), IsError: true,
		Fields: map[string]json.RawMessage{"x": json.RawMessage(`1`)},
	}
	must(t, s.Change(t.Context(), in.ID, Released, Change{Steps: steps(Attempted)}))
	must(t, s.Change(t.Context(), in.ID, Attempted, Change{Steps: []Step{{State: Failed, Why: "it said so"}},
		Outcome: &Outcome{Result: result, Code: "upstream", Message: "no"}}))
	got = get(t, s, in.ID)
	want.State, want.Attempts, want.Handed, want.Approval, want.Ended = Failed, 1, true, &approval, got.Ended
	want.Outcome = Outcome{Result: result, Code: "upstream", Message: "no"}
	want.History = append(want.History, Step{Released, got.History[1].At, "bob", "fine"}, Step{Attempted, got.History[2].At, "", ""},
		Step{Failed, got.Ended, "", "it said so"})
	if d := cmp.Diff(want, got); d != "" || got.Ended.Before(got.Staged) {
		t.Fatal("changed: ", d)
	}
	// A person has it tried again: what came of it before is gone, its history is not.
	must(t, s.Change(t.Context(), in.ID, Failed, Change{Steps: []Step{{State: Released, By: "bob"}}}))
	got = get(t, s, in.ID)
	if got.Outcome != (Outcome{}) || !got.Ended.IsZero() || states(got) != "awaiting_approval released attempted failed released" {
		t.Fatalf("retried: %+v", got)
	}
}

// TestTransitions tries each step from each state, and each pair of steps: what state.go allows works, and all else is
// refused and changes nothing.
func TestTransitions(t *testing.T) {
	s := open(t, newDir(t))
	for _, from := range States() {
		for i, to := range States() {
			in := inState(t, s, from, anIntent(fmt.Sprintf(`{"from":%q,"to":%d}`, from, i)))
			err := s.Change(t.Context(), in.ID, from, Change{Steps: steps(to)})
			now := get(t, s, in.ID)
			switch want := from.MayBecome(to); {
			case want && (err != nil || now.State != to || len(now.History) != len(in.History)+1 || to.Ended() == now.Ended.IsZero()):
				t.Errorf("%s to %s: got %v and %s, want it done", from, to, err, now.State)
			case !want && (err == nil || !cmp.Equal(in, now)):
				t.Errorf("%s to %s: got %v and %s, want it refused", from, to, err, now.State)
			}
			if want := in.Attempts; to == Attempted && from.MayBecome(to) && now.Attempts != want+1 {
				t.Errorf("%s to %s: %d attempts, want %d", from, to, now.Attempts, want+1)
			}
			if from == to {
				continue
			}
			// Another state is not the one from which it was to go.
			before := get(t, s, in.ID)
			for _, next := range States() {
				if wrong := map[State]State{Staged: Released, Released: Staged}[before.State]; wrong != "" && wrong.MayBecome(next) {
					var moved *MovedError
					err := s.Change(t.Context(), in.ID, wrong, Change{Steps: steps(next)})
					if !errors.As(err, &moved) || moved.Have != before.State || moved.From != wrong {
						t.Errorf("%s as if %s to %s: got %v, want a MovedError", before.State, wrong, next, err)
					}
				}
			}
			if after := get(t, s, in.ID); !cmp.Equal(before, after) {
				t.Errorf("a refused change changed %s", cmp.Diff(before, after))
			}
		}
	}
	// Several steps at once are one change, or none.
	in := stage(t, s, anIntent(`{"several":1}`))
	if err := s.Change(t.Context(), in.ID, Staged, Change{Steps: steps(Released, Attempted, Cancelled)}); err == nil {
		t.Error("staged, released, attempted, cancelled: want it refused")
	}
	if got := get(t, s, in.ID); !cmp.Equal(in, got) {
		t.Errorf("a refused change changed %s", cmp.Diff(in, got))
	}
	must(t, s.Change(t.Context(), in.ID, Staged, Change{Steps: steps(Released, Attempted, Succeeded)}))
	if got := get(t, s, in.ID); states(got) != "staged released attempted succeeded" {
		t.Errorf("got %s", states(got))
	}
	// Outcomes belong to ends.
	in = stage(t, s, anIntent(`{"outcome":1}`))
	for _, c := range []Change{{Outcome: &Outcome{}}, {Steps: steps(Released), Outcome: &Outcome{}}} {
		if err := s.Change(t.Context(), in.ID, Staged, c); err == nil {
			t.Errorf("%+v: want it refused", c)
		}
	}
	for _, id := range []string{strings.Repeat("0", 32), "", "x", strings.Repeat("A", 32)} {
		if err := s.Change(t.Context(), id, Staged, Change{Steps: steps(Released)}); !errors.Is(err, ErrUnknown) {
			t.Errorf("change of %q: got %v, want ErrUnknown", id, err)
		}
		if _, err := s.Get(t.Context(), id); !errors.Is(err, ErrUnknown) {
			t.Errorf("get of %q: got %v, want ErrUnknown", id, err)
		}
		if _, err := s.Claim(t.Context(), id); !errors.Is(err, ErrUnknown) {
			t.Errorf("claim of %q: got %v, want ErrUnknown", id, err)
		}
	}
}

func TestStageRefusesWhatIsNotNew(t *testing.T) {
	s := open(t, newDir(t))
	there := stage(t, s, anIntent(`{}`))
	for name, spoil := range map[string]func(*Intent){
		"a state in between":        func(in *Intent) { in.State = Released },
		"no state":                  func(in *Intent) { in.State = "" },
		"an id that is none":        func(in *Intent) { in.ID = "42" },
		"an id that is taken":       func(in *Intent) { in.ID = there.ID },
		"no branch":                 func(in *Intent) { in.Branch = "" },
		"no tool":                   func(in *Intent) { in.Tool = "" },
		"no digest":                 func(in *Intent) { in.Digest = "" },
		"no approval to wait for":   func(in *Intent) { in.State = AwaitingApproval },
		"attempts":                  func(in *Intent) { in.Attempts = 1 },
		"an outcome":                func(in *Intent) { in.Message = "done" },
		"a history of other states": func(in *Intent) { in.History = steps(AwaitingApproval) },
		"an impossible history":     func(in *Intent) { in.History = steps(Attempted, Staged) },
	} {
		in := anIntent(`{"new":true}`)
		spoil(&in)
		if got, made, err := s.Stage(t.Context(), in); err == nil || made || got.ID != "" {
			t.Errorf("%s: got %v, %v, want it refused", name, got.ID, made)
		}
	}
	counts, err := s.Counts(t.Context())
	if err != nil || counts[Staged] != 1 {
		t.Fatalf("counts %v, %v, want one staged", counts, err)
	}
}

func keyNamesOneIntent(t *testing.T) {
	s := open(t, newDir(t))
	// Fifty at once: one is made, and the others get it.
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids, makes := map[string]bool{}, 0
	for range 50 {
		wg.Go(func() {
			in := anIntent(`{"n":1}`)
			in.Key = "k"
			got, made, err := s.Stage(context.Background(), in)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			ids[got.ID] = true
			if made {
				makes++
			}
		})
	}
	wg.Wait()
	if len(ids) != 1 || makes != 1 {
		t.Fatalf("fifty at once made %d and got %d, want 1 and 1", makes, len(ids))
	}
	var id string
	for id = range ids {
	}
	// One after the other, also after its end, and with what came of it.
	must(t, s.Change(t.Context(), id, Staged, Change{Steps: steps(Attempted)}))
	must(t, s.Change(t.Context(), id, Attempted, Change{Steps: steps(Succeeded), Outcome: &Outcome{Result: textResult("17")}}))
	again := anIntent(`{"n":1}`)
	again.Key = "k"
	got, made, err := s.Stage(t.Context(), again)
	if err != nil || made || got.ID != id || got.State != Succeeded || !cmp.Equal(got.Result, textResult("17")) {
		t.Fatalf("again: got %+v, %v, %v", got, made, err)
	}
	other := anIntent(`{"n":2}`)
	other.Key = "k"
	var conflict *ConflictError
	if _, made, err := s.Stage(t.Context(), other); !errors.As(err, &conflict) || made || conflict.Intent != id || conflict.Key != "k" {
		t.Fatalf("other arguments: got %v, want a ConflictError", err)
	}
	// It is good for one principal, branch and tool.
	for name, elsewhere := range map[string]func(*Intent){
		"another branch":    func(in *Intent) { in.Branch = "other" },
		"another principal": func(in *Intent) { in.Principal = "bob" },
		"another tool":      func(in *Intent) { in.Tool = "orders.delete" },
		"another key":       func(in *Intent) { in.Key = "K" },
		"no key":            func(in *Intent) { in.Key = "" },
	} {
		in := again
		elsewhere(&in)
		if got, made, err := s.Stage(t.Context(), in); err != nil || !made || got.ID == id {
			t.Errorf("%s: got %s, %v, %v, want another intent", name, got.ID, made, err)
		}
	}
}

func keysThatAreRefused(t *testing.T) {
	s := open(t, newDir(t))
	for _, c := range []struct {
		key string
		ok  bool
	}{
		{strings.Repeat("k", 256), true}, {strings.Repeat("k", 257), false}, {strings.Repeat("k", 10<<10), false},
		{"bestellung-ü-注文", true}, {strings.Repeat("ü", 128), true}, {strings.Repeat("ü", 129), false}, {" ", false}, {" a", false},
		{"a\x00", false}, {"a\n", false}, {"\x7f", false}, {"\u0085", false}, {"\xff", false}, {"a\xc3", false},
	} {
		in := anIntent(fmt.Sprintf(`{"k":%q}`, c.key))
		in.Key = c.key
		got, made, err := s.Stage(t.Context(), in)
		if (err == nil) != c.ok || made != c.ok || (registry.CheckIdempotencyKey(c.key) == nil) != c.ok {
			t.Errorf("key of %d bytes %.20q: got %v, %v, want ok %v", len(c.key), c.key, made, err, c.ok)
		}
		if c.ok && get(t, s, got.ID).Key != c.key {
			t.Errorf("key %.20q came back as %.20q", c.key, get(t, s, got.ID).Key)
		}
	}
	if registry.CheckIdempotencyKey("") == nil {
		t.Error("the empty key: want it refused")
	}
}

func TestKeyIsKeptForItsRetention(t *testing.T) {
	wall := time.Now()
	dir := newDir(t)
	keyed := func(n int) Intent {
		in := anIntent(fmt.Sprintf(`{"n":%d}`, n))
		in.Key = "k"
		return in
	}
	at := func(after time.Duration, do func(s *Store)) {
		s, err := Open(t.Context(), Config{Dir: dir, Durability: Process, wall: func() time.Time { return wall.Add(after) }})
		must(t, err)
		do(s)
		must(t, s.Close())
	}
	var first Intent
	at(0, func(s *Store) { first = stage(t, s, keyed(1)) })
	at(48*time.Hour, func(s *Store) { // unfinished, it keeps its key
		if got, made, err := s.Stage(t.Context(), keyed(1)); err != nil || made || got.ID != first.ID {
			t.Errorf("unfinished after two days: got %s, %v, %v, want the first", got.ID, made, err)
		}
		must(t, s.Change(t.Context(), first.ID, Staged, Change{Steps: steps(Refused)}))
		first = stage(t, s, keyed(2))
		must(t, s.Change(t.Context(), first.ID, Staged, Change{Steps: steps(Refused)}))
	})
	at(48*time.Hour+23*time.Hour, func(s *Store) {
		if got, made, err := s.Stage(t.Context(), keyed(2)); err != nil || made || got.ID != first.ID {
			t.Errorf("after 23 h: got %s, %v, %v, want the first", got.ID, made, err)
		}
	})
	at(48*time.Hour+25*time.Hour, func(s *Store) {
		if got, made, err := s.Stage(t.Context(), keyed(3)); err != nil || !made || got.ID == first.ID {
			t.Errorf("after 25 h: got %s, %v, %v, want another", got.ID, made, err)
		}
	})
}

func TestHandedIntentIsFoundWithoutAKey(t *testing.T) {
	s := open(t, newDir(t))
	first := stage(t, s, anIntent(`{"n":1}`))
	if second := stage(t, s, anIntent(`{"n":1}`)); second.ID == first.ID {
		t.Fatal("the same call twice, and nobody was handed anything: want two intents")
	}
	must(t, s.Change(t.Context(), first.ID, Staged, Change{Handed: true}))
	for _, state := range []State{Staged, Attempted, AwaitingInput, Attempted} {
		if now := get(t, s, first.ID); now.State != state {
			must(t, s.Change(t.Context(), first.ID, now.State, Change{Steps: steps(state)}))
		}
		got, made, err := s.Stage(t.Context(), anIntent(`{"n":1}`))
		if err != nil || made || got.ID != first.ID || got.State != state || !got.Handed {
			t.Fatalf("while it is %s: got %s (%s), %v, %v, want the first", state, got.ID, got.State, made, err)
		}
	}
	for name, other := range map[string]func(*Intent){
		"other arguments":   func(in *Intent) { *in = anIntent(`{"n":2}`) },
		"another principal": func(in *Intent) { in.Principal = "bob" },
		"another branch":    func(in *Intent) { in.Branch = "other" },
		"another tool":      func(in *Intent) { in.Tool = "other" },
		"a key":             func(in *Intent) { in.Key = "k" },
	} {
		in := anIntent(`{"n":1}`)
		other(&in)
		if got, made, err := s.Stage(t.Context(), in); err != nil || !made {
			t.Errorf("%s: got %s, %v, %v, want a new one", name, got.ID, made, err)
		}
	}
	must(t, s.Change(t.Context(), first.ID, Attempted, Change{Steps: steps(Succeeded)}))
	stage(t, s, anIntent(`{"n":1}`))
}

func largeResult(t *testing.T) {
	s := open(t, newDir(t), func(c *Config) { c.MaxResult = 1000 })
	for _, n := range []int{10, 944, 5000, 4 << 20} {
		result := textResult(strings.Repeat("x", n))
		text, err := json.Marshal(result)
		must(t, err)
		in := inState(t, s, Attempted, anIntent(fmt.Sprintf(`{"n":%d}`, n)))
		must(t, s.Change(t.Context(), in.ID, Attempted, Change{Steps: steps(Succeeded), Outcome: &Outcome{Result: result}}))
		want := Outcome{Result: result}
		if len(text) > 1000 {
			sum := sha256.Sum256(text)
			want = Outcome{ResultBytes: int64(len(text)), ResultDigest: "sha256:" + hex.EncodeToString(sum[:])}
		}
		if d := cmp.Diff(want, get(t, s, in.ID).Outcome); d != "" {
			t.Errorf("result of %d bytes: %s", len(text), d)
		}
	}
}

func TestListIsNewestFirstAndByPages(t *testing.T) {
	s := open(t, newDir(t))
	var all []Intent
	for n := range 60 {
		in := anIntent(fmt.Sprintf(`{"n":%d}`, n))
		in.Principal = []string{"alice", "bob", ""}[n%3]
		in.Branch = []string{"default", "other"}[n%2]
		in.Tool = []string{"t1", "t2", "t3", "t4", "t5"}[n%5]
		state := States()[n%len(States())]
		in = inState(t, s, state, in)
		all = append([]Intent{in}, all...)
	}
	filters := []Filter{
		{}, {Limit: 7}, {Principal: "alice"}, {Branch: "other"}, {Tool: "t3"}, {Principal: "bob", Branch: "default"}, {Principal: "nobody"},
		{Before: 20}, {Before: 20, Limit: 3, Principal: "alice"}, {Principal: "bob", Branch: "other", Tool: "t2"},
		{States: []State{Unknown}}, {States: []State{Staged, AwaitingApproval, Released}}, {States: []State{Succeeded, Staged}, Limit: 2},
		{States: []State{Succeeded, Failed}, Principal: "alice"}, {States: []State{Staged, Unknown}, Principal: "alice", Before: 40},
		{States: States(), Limit: 5, Before: 50}, {States: []State{Failed}, Tool: "t1", Branch: "default"},
	}
	for _, f := range filters {
		var want, got []int64
		for _, in := range all {
			if (f.Limit == 0 || len(want) < f.Limit) && f.has(in) {
				want = append(want, in.Seq)
			}
		}
		list, err := s.List(t.Context(), f)
		must(t, err)
		for _, in := range list {
			got = append(got, in.Seq)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%+v: %s", f, d)
		}
	}
	if _, err := s.List(t.Context(), Filter{States: []State{"done"}}); err == nil {
		t.Error("a state that is none: want an error")
	}
}

// has reports whether the filter lets an intent through.
func (f Filter) has(in Intent) bool {
	return (f.Principal == "" || f.Principal == in.Principal) && (f.Branch == "" || f.Branch == in.Branch) && (f.Tool == "" || f.Tool == in.Tool) &&
		(f.Before == 0 || in.Seq < f.Before) && (len(f.States) == 0 || slices.Contains(f.States, in.State))
}

// TestListOfManyScopes lists one tool's intents of more principals than List looks into one by one.
func TestListOfManyScopes(t *testing.T) {
	s := open(t, newDir(t))
	for n := range 2*maxScopes + 20 {
		in := anIntent(fmt.Sprint(n))
		in.Principal, in.Tool = fmt.Sprint("p", n), []string{"t1", "t2"}[n%2]
		inState(t, s, []State{Succeeded, Failed, Succeeded}[n%3], in)
	}
	for _, f := range []Filter{{Tool: "t1"}, {Tool: "t2", Limit: 5, Before: 100}, {Tool: "t1", States: []State{Failed}}, {Branch: "default", Limit: 7}} {
		all, err := s.List(t.Context(), Filter{})
		must(t, err)
		var want, got []int64
		for _, in := range all {
			if f.has(in) && (f.Limit == 0 || len(want) < f.Limit) {
				want = append(want, in.Seq)
			}
		}
		list, err := s.List(t.Context(), f)
		must(t, err)
		for _, in := range list {
			got = append(got, in.Seq)
		}
		if d := cmp.Diff(want, got); d != "" || len(want) == 0 {
			t.Errorf("%+v: %s", f, d)
		}
	}
}

func TestCountsAreThoseOfTheRows(t *testing.T) {
	s := open(t, newDir(t))
	for n := range 40 {
		inState(t, s, States()[n%len(States())], anIntent(fmt.Sprintf(`{"n":%d}`, n)))
	}
	checkCounts(t, s)
}

// checkCounts compares the counts with the rows.
func checkCounts(t testing.TB, s *Store) {
	t.Helper()
	counts, err := s.Counts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range States() {
		var n int64
		if err := s.read.QueryRow("SELECT count(*) FROM intents WHERE state = ?", state.number()).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if counts[state] != n {
			t.Errorf("%s: counted %d, there are %d", state, counts[state], n)
		}
	}
}

// TestStatesHaveNumbers holds the stored numbers to what they were given first.
func TestStatesHaveNumbers(t *testing.T) {
	want := map[State]int{Staged: 1, AwaitingApproval: 2, Released: 3, Attempted: 4, AwaitingInput: 5, Succeeded: 6, Failed: 7, Unknown: 8,
		Refused: 9, Cancelled: 10, Expired: 11}
	for _, state := range States() {
		if state.number() != want[state] {
			t.Errorf("%s has number %d, want %d", state, state.number(), want[state])
		}
	}
	if len(want) != len(stateNumbers) || State("x").number() != 0 {
		t.Errorf("%d states have numbers, want %d", len(stateNumbers), len(want))
	}
}

func TestCancelledCallerChangesNothing(t *testing.T) {
	s := open(t, newDir(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	hold := make(chan struct{})
	held := make(chan struct{})
	go s.do(context.Background(), "hold", func(*batch) error { close(held); <-hold; return nil })
	<-held
	_, made, err := s.Stage(ctx, anIntent(`{}`))
	close(hold)
	if !errors.Is(err, context.Canceled) || made {
		t.Fatalf("got %v, %v, want context.Canceled", made, err)
	}
	stage(t, s, anIntent(`{"n":2}`))
	counts, err := s.Counts(t.Context())
	if err != nil || counts[Staged] != 1 {
		t.Fatalf("counts %v, %v, want one staged", counts, err)
	}
}
