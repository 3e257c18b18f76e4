package intent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func init() {
	// leave brings one intent to each state that is not an end, and waits; with "serve" it is one that serves.
	children["leave"] = func(dir string, args []string) error {
		s, err := Open(context.Background(), Config{Dir: dir, Durability: Process, Serves: len(args) > 0 && args[0] == "serve"})
		if err != nil {
			return err
		}
		fmt.Println(s.Owner())
		for _, state := range []State{Staged, AwaitingApproval, Released, Attempted, AwaitingInput} {
			in := anIntent(fmt.Sprintf(`{"state":%q}`, state))
			if state == AwaitingApproval {
				in.State, in.Approval = state, approvalOf("ops")
			}
			got, _, err := s.Stage(context.Background(), in)
			if err == nil && len(path[state]) > 0 {
				err = s.Change(context.Background(), got.ID, Staged, Change{Steps: steps(path[state]...)})
			}
			if err != nil {
				return err
			}
			fmt.Println(got.ID)
		}
		in := anIntent(`{"state":"approved"}`)
		in.State, in.Approval = AwaitingApproval, approvalOf("ops")
		got, _, err := s.Stage(context.Background(), in)
		if err != nil {
			return err
		}
		given := approvalOf("ops")
		given.By = "bob"
		if err := s.Change(context.Background(), got.ID, AwaitingApproval, Change{Steps: steps(Released), Approval: given}); err != nil {
			return err
		}
		fmt.Println(got.ID)
		untilClosed()
		return nil // without closing the store
	}
	// work lives lives, and says each id before its effect and after its end.
	children["work"] = func(dir string, args []string) error {
		s, err := Open(context.Background(), Config{Dir: dir, Durability: Durability(args[0])})
		if err != nil {
			return err
		}
		var wg sync.WaitGroup
		for c := range 4 {
			wg.Go(func() {
				for n := 0; ; n++ {
					in, _, err := s.Stage(context.Background(), anIntent(fmt.Sprintf(`{"owner":%q,"c":%d,"n":%d}`, s.Owner(), c, n)))
					if err == nil {
						fmt.Println("staged", in.ID)
						err = s.Change(context.Background(), in.ID, Staged, Change{Steps: steps(Released, Attempted)})
					}
					if err == nil {
						fmt.Println("attempted", in.ID)
						err = s.Change(context.Background(), in.ID, Attempted, Change{Steps: steps(Succeeded), Outcome: &Outcome{Message: "m"}})
					}
					if err != nil {
						fmt.Println("failed:", err)
						os.Exit(1)
					}
					fmt.Println("succeeded", in.ID)
				}
			})
		}
		wg.Wait()
		return s.Close()
	}
	// reopen opens and closes a store again and again, with an intent each time.
	children["reopen"] = func(dir string, args []string) error {
		for n := range 30 {
			s, err := Open(context.Background(), Config{Dir: dir, Durability: Process})
			if err != nil {
				return err
			}
			if _, err := s.Recover(context.Background()); err != nil {
				return err
			}
			in, _, err := s.Stage(context.Background(), anIntent(fmt.Sprintf(`{"child":%q,"n":%d}`, args[0], n)))
			if err == nil {
				err = s.Change(context.Background(), in.ID, Staged, Change{Steps: steps(Attempted)})
			}
			if err == nil {
				time.Sleep(time.Duration(n%4) * time.Millisecond)
				err = s.Change(context.Background(), in.ID, Attempted, Change{Steps: steps(Succeeded)})
			}
			if err != nil {
				return fmt.Errorf("round %d: %w", n, err)
			}
			if err := s.Close(); err != nil {
				return err
			}
		}
		return nil
	}
}

// deadOwner kills an owner with kill -9 at each state that an intent can be left in.
func deadOwner(t *testing.T) {
	dir := newDir(t)
	c := start(t, "leave", dir)
	owner := c.says()
	ids := map[string]string{}
	for _, state := range []string{"staged", "awaiting_approval", "released", "attempted", "awaiting_input", "approved"} {
		ids[state] = c.says()
	}
	s := open(t, dir)
	before := map[string]Intent{}
	for state, id := range ids {
		before[state] = get(t, s, id)
		if before[state].Owner != owner {
			t.Fatalf("%s is %q's, want %q", state, before[state].Owner, owner)
		}
	}
	// While it lives nothing of it is touched.
	changed, err := s.Recover(t.Context())
	if err != nil || len(changed) > 0 || !s.Alive(owner) {
		t.Fatalf("of a live owner %d were recovered, %v (alive: %v)", len(changed), err, s.Alive(owner))
	}
	self := s.Owner()
	for name, try := range map[string]func() error{
		"its attempted": func() error {
			return s.Change(t.Context(), ids["attempted"], Attempted, Change{Steps: steps(Succeeded)})
		},
		"its awaiting_input": func() error {
			return s.Change(t.Context(), ids["awaiting_input"], AwaitingInput, Change{Steps: steps(Unknown)})
		},
		"attempting its released": func() error {
			return s.Change(t.Context(), ids["released"], Released, Change{Steps: steps(Attempted)})
		},
		"taking its released": func() error {
			return s.Change(t.Context(), ids["released"], Released, Change{Owner: &self})
		},
		"taking and attempting its staged": func() error {
			return s.Change(t.Context(), ids["staged"], Staged, Change{Steps: steps(Attempted), Owner: &self})
		},
		"claiming its approved": func() error { _, err := s.Claim(t.Context(), ids["approved"]); return err },
	} {
		var owned *OwnedError
		if err := try(); !errors.As(err, &owned) || owned.Owner != owner {
			t.Errorf("%s: got %v, want an OwnedError", name, err)
		}
	}
	for state, id := range ids {
		if now := get(t, s, id); !cmp.Equal(before[state], now) {
			t.Errorf("%s of a live owner changed: %s", state, cmp.Diff(before[state], now))
		}
	}
	c.kill()
	if s.Alive(owner) {
		t.Fatal("it was killed, and is said to live")
	}
	changed, err = s.Recover(t.Context())
	must(t, err)
	want := map[string]State{"staged": Cancelled, "awaiting_approval": AwaitingApproval, "released": Cancelled, "attempted": Unknown,
		"awaiting_input": Unknown, "approved": Released}
	for state, id := range ids {
		now := get(t, s, id)
		if now.State != want[state] {
			t.Errorf("%s of a dead owner is %s, want %s", state, now.State, want[state])
		}
		found := false
		for _, in := range changed {
			found = found || in.ID == id && cmp.Equal(in, now)
		}
		if found != (state != "awaiting_approval") {
			t.Errorf("%s: returned as changed: %v", state, found)
		}
		if wantOwner := map[bool]string{true: "", false: owner}[state == "approved"]; now.Owner != wantOwner {
			t.Errorf("%s: owner %q, want %q", state, now.Owner, wantOwner)
		}
	}
	if len(changed) != 5 {
		t.Errorf("%d were changed, want 5", len(changed))
	}
	if files, err := os.ReadDir(filepath.Join(dir, ownersName)); err != nil || len(files) != 1 {
		t.Errorf("%d files of owners, %v, want this process's alone", len(files), err)
	}
	if again, err := s.Recover(t.Context()); err != nil || len(again) > 0 {
		t.Errorf("a second time %d were changed, %v", len(again), err)
	}
	// Nobody owns what was approved: it must be claimed before it is attempted.
	var owned *OwnedError
	if err := s.Change(t.Context(), ids["approved"], Released, Change{Steps: steps(Attempted)}); !errors.As(err, &owned) {
		t.Errorf("attempting what nobody owns: got %v, want an OwnedError", err)
	}
	got, err := s.Claim(t.Context(), ids["approved"])
	if err != nil || got.Owner != self || !cmp.Equal(got, get(t, s, got.ID)) {
		t.Fatalf("claimed: %+v, %v", got, err)
	}
	must(t, s.Change(t.Context(), got.ID, Released, Change{Steps: steps(Attempted)}))
	var moved *MovedError
	if _, err := s.Claim(t.Context(), got.ID); !errors.As(err, &moved) {
		t.Errorf("claiming what is attempted: got %v, want a MovedError", err)
	}
	// What nobody approved is its own process's alone.
	in := inState(t, s, Released, anIntent(`{"own":1}`))
	if _, err := s.Claim(t.Context(), in.ID); err == nil {
		t.Error("claiming what nobody approved: want an error")
	}
	checkCounts(t, s)
}

// TestClaimedOnce has two stores claim the same intents at once.
func TestClaimedOnce(t *testing.T) {
	dir := newDir(t)
	a, b := open(t, dir), open(t, dir)
	dead, err := Open(t.Context(), Config{Dir: dir, Durability: Process})
	must(t, err)
	var ids []string
	for n := range 50 {
		in := anIntent(fmt.Sprintf(`{"n":%d}`, n))
		in.State, in.Approval = AwaitingApproval, approvalOf("ops")
		in = stage(t, dead, in)
		in.Approval.By = "bob"
		must(t, a.Change(t.Context(), in.ID, AwaitingApproval, Change{Steps: steps(Released), Approval: in.Approval}))
		ids = append(ids, in.ID)
	}
	must(t, dead.Close())
	var wg sync.WaitGroup
	won := make([][]bool, 2)
	for i, s := range []*Store{a, b} {
		won[i] = make([]bool, len(ids))
		for n, id := range ids {
			wg.Go(func() {
				_, err := s.Claim(context.Background(), id)
				var owned *OwnedError
				if err != nil && !errors.As(err, &owned) {
					t.Error(err)
				}
				won[i][n] = err == nil
			})
		}
	}
	wg.Wait()
	for n, id := range ids {
		if won[0][n] == won[1][n] {
			t.Errorf("claimed by the first: %v, by the second: %v", won[0][n], won[1][n])
		}
		if owner := get(t, a, id).Owner; owner != a.Owner() && owner != b.Owner() {
			t.Errorf("owner %q", owner)
		}
	}
}

// TestKilledUnderLoad kills one of two processes that work on one store, over and over. What either was told is in the
// store, each intent ends as it should, and the other is not disturbed.
func TestKilledUnderLoad(t *testing.T) {
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	for _, d := range []Durability{Power, Process} {
		t.Run(string(d), func(t *testing.T) {
			dir := newDir(t)
			s := open(t, dir)
			other := start(t, "work", dir, string(d))
			first := other.says()       // it works before the first kill
			said := map[string]string{} // the last that was said of an intent
			note := func(lines []string) int {
				for _, line := range lines {
					word, id, _ := strings.Cut(line, " ")
					if len(id) != 32 {
						continue // cut off by the kill
					}
					if word == "failed:" {
						t.Fatal(line)
					}
					said[id] = word
				}
				return len(lines)
			}
			note([]string{first})
			for round := range rounds {
				c := start(t, "work", dir, string(d))
				time.Sleep(time.Duration(100+37*round) * time.Millisecond)
				must(t, c.cmd.Process.Kill())
				if note(c.rest()) == 0 {
					t.Log("it was killed before it did anything")
				}
				_ = c.cmd.Wait()
				_, err := s.Recover(t.Context())
				must(t, err)
			}
			must(t, other.cmd.Process.Kill())
			if note(other.rest()) == 0 {
				t.Error("the other process did nothing")
			}
			_ = other.cmd.Wait()
			_, err := s.Recover(t.Context())
			must(t, err)
			for id, word := range said {
				in, err := s.Get(t.Context(), id)
				if err != nil {
					t.Fatalf("%s was said to be %s: %v", id, word, err)
				}
				// What was last said, or what it may have done without having said so yet, and then its owner's death.
				want := map[string][]State{"staged": {Cancelled, Unknown}, "attempted": {Unknown, Succeeded}, "succeeded": {Succeeded}}[word]
				if in.State != want[0] && in.State != want[len(want)-1] {
					t.Errorf("%s was said to be %s, and is %s (%s)", id, word, in.State, states(in))
				}
			}
			unfinished, err := s.unfinished(t.Context())
			if err != nil || len(unfinished) > 0 {
				t.Errorf("%d are unfinished, %v", len(unfinished), err)
			}
			checkCounts(t, s)
			checkIntegrity(t, s)
			t.Logf("%d intents", len(said))
		})
	}
}

func checkIntegrity(t testing.TB, s *Store) {
	t.Helper()
	var answer string
	if err := s.read.QueryRow("PRAGMA integrity_check").Scan(&answer); err != nil || answer != "ok" {
		t.Errorf("integrity: %s, %v", answer, err)
	}
}

// TestLiveOwnerIsNeverTakenForDead has processes come and go, each of which recovers what dead owners left.
func TestLiveOwnerIsNeverTakenForDead(t *testing.T) {
	dir := newDir(t)
	s := open(t, dir)
	var all []*child
	for n := range 3 {
		all = append(all, start(t, "reopen", dir, fmt.Sprint(n)))
	}
	for _, c := range all {
		c.close()
	}
	list, err := s.List(t.Context(), Filter{})
	must(t, err)
	if len(list) != 90 {
		t.Errorf("%d intents, want 90", len(list))
	}
	for _, in := range list {
		if in.State != Succeeded {
			t.Errorf("%s is %s (%s)", in.Arguments, in.State, states(in))
		}
	}
	if files, err := os.ReadDir(filepath.Join(dir, ownersName)); err != nil || len(files) != 1 {
		t.Errorf("%d files of owners, %v, want this process's alone", len(files), err)
	}
}

// TestProbedWhileItStarts has others look whether a starting owner lives all the time.
func TestProbedWhileItStarts(t *testing.T) {
	dir := newDir(t)
	s := open(t, dir)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				all, err := s.owners()
				if err != nil {
					t.Error(err)
					return
				}
				for _, o := range all {
					if !o.live {
						if err := s.forget(o.name); err != nil {
							t.Error(err)
						}
					}
				}
			}
		})
	}
	for range 200 {
		other := &Store{cfg: s.cfg, dir: s.dir}
		must(t, other.register())
		if !s.Alive(other.Owner()) {
			t.Error("an owner that has just begun is said to be dead")
		}
		if same, err := isAt(other.owner.path, other.owner.file); err != nil || !same {
			t.Errorf("its file is not there (%v)", err)
		}
		must(t, other.owner.end())
		if s.Alive(other.Owner()) {
			t.Error("an owner that has ended is said to live")
		}
	}
	close(stop)
	wg.Wait()
}

// TestNameOfAnOwnerIsNotItsProcess: a dead owner's file whose process number is a living one's, and files that are nobody's.
func TestNameOfAnOwnerIsNotItsProcess(t *testing.T) {
	dir := newDir(t)
	s := open(t, dir)
	owners := filepath.Join(dir, ownersName)
	must(t, os.WriteFile(filepath.Join(owners, "OLD.lock"), fmt.Appendf(nil, `{"pid":%d,"serves":true}`, os.Getpid()), 0o600))
	must(t, os.WriteFile(filepath.Join(owners, "EMPTY.lock"), nil, 0o600))
	must(t, os.Symlink("/etc/hostname", filepath.Join(owners, "LINK.lock")))
	for _, name := range []string{"OLD", "EMPTY", "NEVER", "", "../owners/OLD"} {
		if s.Alive(name) {
			t.Errorf("%q is said to live", name)
		}
	}
	if serves, err := s.Servers(t.Context()); err != nil || serves {
		t.Errorf("a dead owner serves: %v, %v", serves, err)
	}
	if _, err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"OLD.lock": false, "EMPTY.lock": false, "LINK.lock": true, s.Owner() + ".lock": true} {
		if _, err := os.Lstat(filepath.Join(owners, name)); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", name, err == nil, want)
		}
	}
}

func TestServers(t *testing.T) {
	dir := newDir(t)
	s := open(t, dir)
	ask := func(want bool) {
		t.Helper()
		if got, err := s.Servers(t.Context()); err != nil || got != want {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
	ask(false)
	plain := start(t, "leave", dir)
	plain.says()
	ask(false)
	serving := start(t, "leave", dir, "serve")
	serving.says()
	ask(true)
	serving.kill()
	ask(false)
}

// TestLockSurvivesChildren: a program that the owner started does not keep it alive.
func TestLockSurvivesChildren(t *testing.T) {
	dir := newDir(t)
	s := open(t, dir)
	info, err := unix.FcntlInt(s.owner.file.Fd(), unix.F_GETFD, 0)
	if err != nil || info&unix.FD_CLOEXEC == 0 {
		t.Fatalf("the lock's descriptor is inherited (%#x, %v)", info, err)
	}
}

func TestChangedTellsOfOtherProcesses(t *testing.T) {
	dir := newDir(t)
	s, other := open(t, dir), open(t, dir)
	quiet := func(when string) {
		t.Helper()
		select {
		case <-s.Changed():
			t.Fatalf("%s: told of a change", when)
		case <-time.After(3 * pollEvery):
		}
	}
	told := func(when string) {
		t.Helper()
		select {
		case <-s.Changed():
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s: not told", when)
		}
	}
	told("the other's opening")
	quiet("nothing happened")
	stage(t, s, anIntent(`{"own":1}`))
	quiet("its own change")
	stage(t, other, anIntent(`{"other":1}`))
	told("the other's change")
	quiet("nothing more happened")
	stage(t, other, anIntent(`{"other":2}`)) // while nobody asks
	time.Sleep(2 * pollEvery)
	told("a change that was made before it asked")
}
