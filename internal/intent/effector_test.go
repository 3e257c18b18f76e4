package intent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/registry"
)

// bench is an effector on a store of its own.
type bench struct {
	*intent.Effector
	store *intent.Store
}

func openBench(t testing.TB, dir string, change ...func(*intent.EffectorConfig)) bench {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	store, err := intent.Open(t.Context(), intent.Config{Dir: dir, Durability: intent.Process, Serves: true, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	cfg := intent.EffectorConfig{
		Store: store, Log: log, Server: func(intent.Intent) string { return "" }, Begin: allowed(done("resumed")),
		Limits: intent.Limits{Backoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond},
	}
	for _, c := range change {
		c(&cfg)
	}
	b := bench{intent.NewEffector(cfg), store}
	t.Cleanup(func() {
		b.Close(context.Background())
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// allowed is a Begin that says yes, and executes run.
func allowed(run func(context.Context, attempt.Attempt) intent.Ran) intent.Begin {
	return func(context.Context, intent.Intent) intent.Turn {
		return intent.Turn{Timeout: time.Minute, End: func() {}, Execute: func(ctx context.Context, a attempt.Attempt) intent.Ran {
			of, _ := a.Of()
			if err := a.Take(of.Tool, of.Digest); err != nil {
				panic(err)
			}
			return run(ctx, a)
		}}
	}
}

func done(text string) func(context.Context, attempt.Attempt) intent.Ran {
	return func(context.Context, attempt.Attempt) intent.Ran {
		return intent.Ran{State: intent.Succeeded, Result: &registry.Result{Content: []json.RawMessage{registry.Text(text)}}}
	}
}

var ids atomic.Int64

func submission(begin intent.Begin, change ...func(*intent.Submission)) intent.Submission {
	s := intent.Submission{Begin: begin, Wait: time.Minute, Intent: intent.Intent{
		ID: registry.NewCallID(), Branch: "default", Tool: "pay", Principal: "ann", Arguments: json.RawMessage(`{"n":1}`),
		Digest: fmt.Sprint("sha256:", ids.Add(1)), Fingerprint: "p", State: intent.Staged,
	}}
	for _, c := range change {
		c(&s)
	}
	return s
}

// states are those that an intent went through, as they are written down.
func (b bench) states(t *testing.T, id string) (names []intent.State) {
	t.Helper()
	in, err := b.store.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range in.History {
		names = append(names, step.State)
	}
	return names
}

func (b bench) holds(t *testing.T, id string, want ...intent.State) {
	t.Helper()
	if got := b.states(t, id); !slices.Equal(got, want) {
		t.Errorf("the states are %v, want %v", got, want)
	}
}

// TestLives: what comes of one attempt, what is written down of it, and what its caller is answered.
func TestLives(t *testing.T) {
	t.Parallel()
	failed := &registry.Error{Code: registry.Unavailable, Msg: "not there"}
	for _, test := range []struct {
		name   string
		ran    intent.Ran
		again  int // how many attempts a repeatable tool has
		state  intent.State
		stored string
	}{
		{"succeeded", intent.Ran{State: intent.Succeeded, Result: &registry.Result{Content: []json.RawMessage{registry.Text("yes")}}}, 1, intent.Succeeded, ""},
		{"its result is withheld", intent.Ran{State: intent.Succeeded, Err: &registry.Error{Code: registry.ResultDenied, Msg: "no"}}, 1, intent.Succeeded, "no"},
		{"failed", intent.Ran{State: intent.Failed, Result: &registry.Result{IsError: true}, Why: "x"}, 1, intent.Failed, ""},
		{"nothing was sent", intent.Ran{State: intent.Failed, Unsent: true, Err: failed, Why: "x"}, 4, intent.Failed, "not there"},
		{"unknown", intent.Ran{State: intent.Unknown, Err: failed, Why: "x"}, 4, intent.Unknown, "not there"},
	} {
		for _, repeatable := range []bool{false, true} {
			t.Run(fmt.Sprint(test.name, repeatable), func(t *testing.T) {
				t.Parallel()
				b := openBench(t, filepath.Join(t.TempDir(), "intents"))
				var numbers []int
				keys := map[string]bool{}
				s := submission(allowed(func(_ context.Context, a attempt.Attempt) intent.Ran {
					of, _ := a.Of()
					numbers, keys[of.Key] = append(numbers, of.Number), true
					// What is written down is written down before the effect.
					if in, err := b.store.Get(t.Context(), of.Intent); err != nil || in.State != intent.Attempted || in.Attempts != of.Number {
						t.Errorf("when it is executed its record is %+v, %v", in, err)
					}
					return test.ran
				}), func(s *intent.Submission) { s.Intent.Repeatable = repeatable })
				got, err := b.Submit(t.Context(), s)
				if err != nil || got.Err != nil {
					t.Fatal(err, got.Err)
				}
				want := 1
				if repeatable {
					want = test.again
				}
				if len(numbers) != want || numbers[len(numbers)-1] != want || len(keys) != 1 || !keys[s.Intent.ID] {
					t.Errorf("attempts %v with keys %v, want %d with the intent's id", numbers, keys, want)
				}
				if got.Ran == nil || got.Ran.State != test.state || got.Intent.State != test.state {
					t.Errorf("answered %+v", got)
				}
				in, err := b.store.Get(t.Context(), s.Intent.ID)
				if err != nil || in.State != test.state || in.Message != test.stored || in.Ended.IsZero() {
					t.Errorf("stored %+v, %v", in, err)
				}
			})
		}
	}
}

// TestRefused: what is refused, and what nobody has decided yet.
func TestRefused(t *testing.T) {
	t.Parallel()
	b := openBench(t, filepath.Join(t.TempDir(), "intents"))
	no := &registry.Error{Code: registry.Denied, Msg: "no"}
	s := submission(func(context.Context, intent.Intent) intent.Turn { return intent.Turn{Refused: no, End: func() {}} })
	got, err := b.Submit(t.Context(), s)
	if err != nil || got.Ran == nil || got.Ran.Err != no {
		t.Errorf("%+v, %v", got, err)
	}
	b.holds(t, s.Intent.ID, intent.Staged, intent.Refused)
	asked := 0
	s = submission(func(ctx context.Context, in intent.Intent) intent.Turn {
		if asked++; asked < 4 {
			return intent.Turn{Refused: no, Undecided: true, End: func() {}}
		}
		return allowed(done("yes"))(ctx, in)
	})
	if got, err = b.Submit(t.Context(), s); err != nil || got.Intent.State != intent.Succeeded || asked != 4 {
		t.Errorf("%+v, %v after %d questions", got, err, asked)
	}
	b.holds(t, s.Intent.ID, intent.Staged, intent.Released, intent.Attempted, intent.Succeeded)
}

// TestWithdrawn: a caller that goes takes back what has not begun, and nothing else.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	b := openBench(t, filepath.Join(t.TempDir(), "intents"), func(c *intent.EffectorConfig) { c.Limits.Running = 1 })
	begun, finish := make(chan struct{}), make(chan struct{})
	ctx, leave := context.WithCancel(t.Context())
	first := submission(allowed(func(context.Context, attempt.Attempt) intent.Ran {
		close(begun)
		<-finish
		return intent.Ran{State: intent.Succeeded}
	}))
	answers := make(chan intent.Answer, 2)
	submit := func(s intent.Submission) {
		got, err := b.Submit(ctx, s)
		if err != nil {
			t.Error(err)
		}
		answers <- got
	}
	go submit(first)
	<-begun
	second := submission(allowed(done("never")))
	go submit(second)
	for b.Running() < 2 {
		time.Sleep(time.Millisecond)
	}
	leave()
	for range 2 {
		switch got := <-answers; got.Intent.ID {
		case first.Intent.ID:
			if got.Intent.State != intent.Attempted || !got.Intent.Handed || got.Ran != nil {
				t.Errorf("what has begun: %+v", got)
			}
		case second.Intent.ID:
			if got.Intent.State != intent.Cancelled || got.Ran == nil || got.Ran.Err.Code != registry.Cancelled {
				t.Errorf("what has not begun: %+v", got)
			}
		}
	}
	close(finish)
	got, err := b.Await(t.Context(), intent.Intent{ID: first.Intent.ID}, time.Minute)
	if err != nil || got.State != intent.Succeeded {
		t.Errorf("%+v, %v", got, err)
	}
	b.holds(t, second.Intent.ID, intent.Staged, intent.Cancelled)
}

// TestHandles: a wait that is over is answered with a handle, and the same call again by that caller is the same intent.
func TestHandles(t *testing.T) {
	t.Parallel()
	b := openBench(t, filepath.Join(t.TempDir(), "intents"))
	finish := make(chan struct{})
	var runs atomic.Int64
	begin := allowed(func(context.Context, attempt.Attempt) intent.Ran {
		runs.Add(1)
		<-finish
		return intent.Ran{State: intent.Succeeded, Result: &registry.Result{Content: []json.RawMessage{registry.Text("slow")}}}
	})
	s := submission(begin, func(s *intent.Submission) { s.Wait = 0 })
	got, err := b.Submit(t.Context(), s)
	if err != nil || !got.Intent.Handed || got.Intent.State.Ended() {
		t.Fatalf("%+v, %v", got, err)
	}
	again := s
	again.Intent.ID, again.Wait = registry.NewCallID(), time.Minute
	answers := make(chan intent.Answer)
	go func() {
		got, err := b.Submit(t.Context(), again)
		if err != nil {
			t.Error(err)
		}
		answers <- got
	}()
	select {
	case got := <-answers:
		t.Fatalf("answered %+v before its end", got)
	case <-time.After(50 * time.Millisecond):
	}
	close(finish)
	if got := <-answers; got.Intent.ID != s.Intent.ID || !got.Found || got.Intent.State != intent.Succeeded || got.Intent.Result == nil {
		t.Errorf("the same call again: %+v", got)
	}
	third := s
	third.Intent.ID, third.Wait = registry.NewCallID(), time.Minute
	if got, err := b.Submit(t.Context(), third); err != nil || got.Found || got.Intent.ID != third.Intent.ID {
		t.Errorf("after its end: %+v, %v", got, err)
	}
	if runs.Load() != 2 {
		t.Errorf("%d runs, want 2", runs.Load())
	}
}

// keys: a key names one intent, whoever is quicker (F4, F6).
func keys(t *testing.T) {
	t.Parallel()
	b := openBench(t, filepath.Join(t.TempDir(), "intents"))
	var runs atomic.Int64
	begin := allowed(func(context.Context, attempt.Attempt) intent.Ran {
		runs.Add(1)
		time.Sleep(5 * time.Millisecond)
		return intent.Ran{State: intent.Succeeded, Result: &registry.Result{Content: []json.RawMessage{registry.Text("once")}}}
	})
	keyed := func(key, digest, tool, branch string) intent.Submission {
		return submission(begin, func(s *intent.Submission) {
			s.Intent.Key, s.Intent.Digest, s.Intent.Tool, s.Intent.Branch = key, digest, tool, branch
		})
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	named := map[string]bool{}
	for range 50 {
		wg.Go(func() {
			got, err := b.Submit(t.Context(), keyed("k", "d", "pay", "default"))
			if err != nil || got.Intent.State != intent.Succeeded {
				t.Errorf("%+v, %v", got, err)
			}
			mu.Lock()
			defer mu.Unlock()
			named[got.Intent.ID] = true
		})
	}
	wg.Wait()
	if runs.Load() != 1 || len(named) != 1 {
		t.Errorf("%d runs of %d intents, want 1 of 1", runs.Load(), len(named))
	}
	var conflict *intent.ConflictError
	if _, err := b.Submit(t.Context(), keyed("k", "other", "pay", "default")); !errors.As(err, &conflict) {
		t.Errorf("other arguments under the key: %v", err)
	}
	for _, other := range []intent.Submission{keyed("k", "d", "refund", "default"), keyed("k", "d", "pay", "other"), keyed("l", "d", "pay", "default")} {
		if got, err := b.Submit(t.Context(), other); err != nil || got.Found {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if runs.Load() != 4 {
		t.Errorf("%d runs, want 4", runs.Load())
	}
}

// TestApprovals: who may approve, and what comes of it.
func TestApprovals(t *testing.T) {
	t.Parallel()
	b := openBench(t, filepath.Join(t.TempDir(), "intents"))
	running, stop := context.WithCancel(t.Context())
	defer stop()
	go b.Run(running)
	waiting := func(self bool, expires time.Duration) string {
		s := submission(allowed(done("approved")), func(s *intent.Submission) {
			s.Intent.State, s.Intent.Approval = intent.AwaitingApproval, &intent.Approval{Groups: []string{"leads"}, Self: self}
			s.Intent.Expires = b.Now().Add(expires)
		})
		got, err := b.Submit(t.Context(), s)
		if err != nil || got.Intent.State != intent.AwaitingApproval {
			t.Fatalf("%+v, %v", got, err)
		}
		return s.Intent.ID
	}
	ann, lead := intent.Person{Name: "ann"}, intent.Person{Name: "lee", Groups: []string{"leads"}}
	admin := intent.Person{Name: "root", Admin: true}
	id := waiting(false, time.Hour)
	var refused *intent.NotAllowedError
	for who, want := range map[string]error{"ann": refused, "admin": refused} {
		by := ann
		if who == "admin" {
			by = admin
		}
		if _, err := b.Approve(t.Context(), id, by, ""); !errors.As(err, &refused) {
			t.Errorf("%s approves: %v, want %T", who, err, want)
		}
	}
	if _, err := b.Approve(t.Context(), id, intent.Person{Name: "bob"}, ""); !errors.Is(err, intent.ErrUnknown) {
		t.Errorf("a stranger: %v", err)
	}
	if _, err := b.Approve(t.Context(), id, lead, "fine"); err != nil {
		t.Fatal(err)
	}
	got, err := b.Await(t.Context(), intent.Intent{ID: id}, time.Minute)
	if err != nil || got.State != intent.Succeeded || got.Approval.By != "lee" || got.History[1].By != "lee" || got.History[1].Why != "fine" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := b.Approve(t.Context(), id, lead, ""); err == nil {
		t.Error("what has ended was approved")
	}
	id = waiting(true, time.Hour)
	if _, err := b.Refuse(t.Context(), id, ann, "no"); err != nil {
		t.Error(err)
	}
	b.holds(t, id, intent.AwaitingApproval, intent.Refused)
	id = waiting(true, -time.Second)
	if got, err := b.Approve(t.Context(), id, lead, ""); err != nil || got.State != intent.Expired {
		t.Errorf("approved too late: %+v, %v", got, err)
	}
	id = waiting(true, time.Hour)
	if got, err := b.Cancel(t.Context(), id, ann, ""); err != nil || got.State != intent.Cancelled {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestApprovalsAreBounded: a branch has as many intents that wait for an approval as may wait for their turn, and no more.
func TestApprovalsAreBounded(t *testing.T) {
	t.Parallel()
	b := openBench(t, filepath.Join(t.TempDir(), "intents"), func(c *intent.EffectorConfig) { c.Limits.Queue = 3 })
	asks := func(branch, principal string) error {
		_, err := b.Submit(t.Context(), submission(allowed(done("never")), func(s *intent.Submission) {
			s.Intent.Principal, s.Intent.Branch, s.Intent.State, s.Intent.Approval = principal, branch, intent.AwaitingApproval, &intent.Approval{Groups: []string{"leads"}}
		}))
		return err
	}
	for range 3 {
		if err := asks("a", "local"); err != nil {
			t.Fatal(err)
		}
	}
	if err := asks("a", "local"); !errors.Is(err, intent.ErrQueueFull) {
		t.Errorf("one more: %v", err)
	}
	if err := asks("b", "local"); err != nil {
		t.Errorf("another branch: %v", err)
	}
	var got []string
	for _, who := range []string{"ann", "ann", "ann", "bob", "bob"} {
		switch err := asks("c", who); {
		case err == nil:
			got = append(got, who)
		case !errors.Is(err, intent.ErrQueueFull):
			t.Fatal(err)
		}
	}
	if want := []string{"ann", "ann", "bob"}; !slices.Equal(got, want) {
		t.Errorf("of three places %v got one, want %v", got, want)
	}
}

// TestRetryAndResolve: a person goes on where nobody knows.
func TestRetryAndResolve(t *testing.T) {
	t.Parallel()
	b := openBench(t, filepath.Join(t.TempDir(), "intents"))
	running, stop := context.WithCancel(t.Context())
	defer stop()
	go b.Run(running)
	unknown := func() string {
		s := submission(allowed(func(context.Context, attempt.Attempt) intent.Ran {
			return intent.Ran{State: intent.Unknown, Why: "lost"}
		}))
		if _, err := b.Submit(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return s.Intent.ID
	}
	ann, admin := intent.Person{Name: "ann"}, intent.Person{Name: "root", Admin: true}
	id := unknown()
	var refused *intent.NotAllowedError
	if _, err := b.Retry(t.Context(), id, ann, ""); !errors.As(err, &refused) {
		t.Errorf("its caller retries: %v", err)
	}
	if _, err := b.Retry(t.Context(), id, admin, "looked"); err != nil {
		t.Fatal(err)
	}
	for range 18000 {
		if in, err := b.store.Get(t.Context(), id); err != nil || in.State == intent.Succeeded {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.holds(t, id, intent.Staged, intent.Released, intent.Attempted, intent.Unknown, intent.Released, intent.Attempted, intent.Succeeded)
	id = unknown()
	if got, err := b.Resolve(t.Context(), id, admin, intent.Failed, "it was not there"); err != nil || got.State != intent.Failed || !strings.Contains(got.Message, "not there") {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := b.Resolve(t.Context(), id, admin, intent.Succeeded, ""); err == nil {
		t.Error("it was resolved twice")
	}
}

// TestClose: at the end what waits is cancelled, what has begun has its time, and then counts as unknown.
func TestClose(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "intents")
	b := openBench(t, dir, func(c *intent.EffectorConfig) { c.Limits.Running = 1 })
	begun := make(chan struct{})
	hangs := submission(allowed(func(ctx context.Context, _ attempt.Attempt) intent.Ran {
		close(begun)
		<-ctx.Done()
		return intent.Ran{State: intent.Unknown, Why: "broken off"}
	}))
	waits := submission(allowed(done("never")))
	var wg sync.WaitGroup
	for _, s := range []intent.Submission{hangs, waits} {
		wg.Go(func() {
			if got, err := b.Submit(t.Context(), s); err != nil || !got.Intent.State.Ended() {
				t.Errorf("%+v, %v", got, err)
			}
		})
		if s.Intent.ID == hangs.Intent.ID {
			<-begun
		}
	}
	for b.Running() < 2 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	b.Close(ctx)
	wg.Wait()
	b.holds(t, hangs.Intent.ID, intent.Staged, intent.Released, intent.Attempted, intent.Unknown)
	b.holds(t, waits.Intent.ID, intent.Staged, intent.Cancelled)
	if _, err := b.Submit(t.Context(), submission(allowed(done("never")))); err == nil {
		t.Error("it was submitted after the end")
	}
}
