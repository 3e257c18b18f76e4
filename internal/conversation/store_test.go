package conversation_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/registry"
)

var (
	ann = conversation.Owner{Name: "ann"}
	bob = conversation.Owner{Name: "bob"}
)

// clock is a clock that a test sets.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func open(t *testing.T, cfg conversation.Config) (*conversation.Store, *clock) {
	t.Helper()
	c := &clock{at: time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)}
	cfg.Now = c.now
	s, err := conversation.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // a test may have closed it
	return s, c
}

func showsNothing(conversation.Branch) []string { return nil }

// fork forks a declared branch, or a conversation branch.
func fork(t *testing.T, s *conversation.Store, from string, of conversation.Owner, ttl time.Duration) conversation.Branch {
	t.Helper()
	root := from
	if conversation.IsName(from) {
		root = ""
	}
	b, err := s.Create(conversation.Branch{From: from, Owner: of}, root, ttl, showsNothing)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func exists(s *conversation.Store, b conversation.Branch) bool {
	_, ok := s.Chain(b.Name, b.Owner)
	return ok
}

func TestChain(t *testing.T) {
	t.Parallel()
	s, _ := open(t, conversation.Config{})
	one := fork(t, s, "research", ann, 0)
	two := fork(t, s, one.Name, ann, 0)
	chain, ok := s.Chain(two.Name, ann)
	if !ok || len(chain) != 2 || chain[0].Name != one.Name || chain[1].Name != two.Name {
		t.Errorf("got %v, %v, want the two forks in order", chain, ok)
	}
	if two.Root != "research" || two.Depth != 2 || !conversation.IsName(two.Name) {
		t.Errorf("got root %q, depth %d, name %q", two.Root, two.Depth, two.Name)
	}
	for name, of := range map[string]conversation.Owner{
		one.Name: bob, two.Name: {Name: "ann", Local: true}, "research": ann, "session-" + strings.Repeat("a", 26): ann, "": ann,
	} {
		if _, ok := s.Chain(name, of); ok {
			t.Errorf("%q of %v exists, want nothing", name, of)
		}
	}
	if _, err := s.Create(conversation.Branch{From: one.Name, Owner: bob}, "", 0, showsNothing); !errors.Is(err, conversation.ErrUnknown) {
		t.Errorf("a fork of another's branch: %v, want ErrUnknown", err)
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	s, c := open(t, conversation.Config{})
	changes := 0
	s.OnChange(func() { changes++ })
	short := fork(t, s, "research", ann, time.Minute)
	below := fork(t, s, short.Name, ann, time.Hour)
	long := fork(t, s, "research", ann, time.Hour)
	if below.Expires.After(short.Expires) {
		t.Errorf("a fork ends at %v, after its parent at %v", below.Expires, short.Expires)
	}
	extended, err := s.Change(long.Name, ann, 2*time.Hour, func(*conversation.Branch) error { return nil })
	if err != nil || extended.Expires.Sub(long.Expires) != time.Hour {
		t.Errorf("extended to %v (%v), want an hour after %v", extended.Expires, err, long.Expires)
	}
	if kept, err := s.Change(long.Name, ann, time.Second, func(*conversation.Branch) error { return nil }); err != nil || kept.Expires != extended.Expires {
		t.Errorf("a shorter time: %v, %v, want %v as before", kept.Expires, err, extended.Expires)
	}
	c.pass(time.Minute)
	if exists(s, short) || exists(s, below) || !exists(s, long) {
		t.Error("after a minute: want only the one that is kept for an hour")
	}
	before := changes
	s.Sweep()
	if changes != before+1 || len(s.All()) != 1 {
		t.Errorf("a sweep told of %d changes and left %d branches, want 1 and 1", changes-before, len(s.All()))
	}
	if _, err := s.Change(short.Name, ann, time.Hour, func(*conversation.Branch) error { return nil }); !errors.Is(err, conversation.ErrUnknown) {
		t.Errorf("a change of an expired branch: %v, want ErrUnknown", err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	s, c := open(t, conversation.Config{Limits: conversation.Limits{Owner: 3, All: 4, Depth: 2, Bytes: 400}})
	one := fork(t, s, "research", ann, time.Minute)
	two := fork(t, s, one.Name, ann, 0)
	create := func(b conversation.Branch, root string, ttl time.Duration) error {
		_, err := s.Create(b, root, ttl, showsNothing)
		return err
	}
	limited := func(what string, err error, says string) {
		t.Helper()
		if !errors.Is(err, conversation.ErrLimit) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want a limit that says %q", what, err, says)
		}
	}
	limited("a third fork of forks", create(conversation.Branch{From: two.Name, Owner: ann}, "", 0), "forks of forks")
	fork(t, s, "research", ann, 0)
	limited("a fourth of one owner", create(conversation.Branch{From: "research", Owner: ann}, "research", 0), "you have 3")
	fork(t, s, "research", bob, 0)
	limited("a fifth in all", create(conversation.Branch{From: "research", Owner: bob}, "research", 0), "this catalogd has 4")
	c.pass(time.Minute)
	fork(t, s, "research", bob, 0) // the first two have expired
	var invalid *conversation.InvalidError
	for what, b := range map[string]conversation.Branch{
		"a label of the catalog's":  {Labels: map[string]string{"team": "admin"}},
		"a label with a line break": {Labels: map[string]string{"session/note": "a\nb"}},
		"an empty name":             {Terms: conversation.Terms{Select: &registry.Selector{Names: []string{" "}}}},
		"too large":                 {Labels: map[string]string{"session/note": strings.Repeat("x", 250)}},
	} {
		b.From, b.Owner = "research", bob
		if err := create(b, "research", 0); !errors.As(err, &invalid) {
			t.Errorf("%s: %v, want it to be invalid", what, err)
		}
	}
	for _, ttl := range []time.Duration{-time.Second, time.Millisecond, 8 * 24 * time.Hour} {
		if err := create(conversation.Branch{From: "research", Owner: bob}, "research", ttl); !errors.As(err, &invalid) {
			t.Errorf("ttl %v: %v, want it to be invalid", ttl, err)
		}
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	s, _ := open(t, conversation.Config{Dir: t.TempDir()})
	one := fork(t, s, "research", ann, 0)
	two := fork(t, s, one.Name, ann, 0)
	three := fork(t, s, two.Name, ann, 0)
	if err := s.Delete(two.Name, bob, false); !errors.Is(err, conversation.ErrUnknown) || !exists(s, three) {
		t.Errorf("deleted by another: %v, want ErrUnknown", err)
	}
	if err := s.Delete(two.Name, bob, true); err != nil || !exists(s, one) || exists(s, two) || exists(s, three) {
		t.Errorf("deleted by an admin: %v, want the second and the third gone", err)
	}
}

// TestRestart checks that branches survive a restart as they were, and that a damaged file costs its own branch
// and those below it.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "conversations")
	s, _ := open(t, conversation.Config{Dir: dir})
	terms := conversation.Terms{Select: &registry.Selector{Names: []string{"get_*"}}, Tools: map[string]bool{"get_secret": false},
		Functions: conversation.Functions{"get_weather": new(registry.Entry)}}
	kept, err := s.Create(conversation.Branch{From: "research", Owner: ann, Terms: terms, Labels: map[string]string{"session/mode": "quiet"}},
		"research", 0, func(conversation.Branch) []string { return []string{"get_weather"} })
	if err != nil {
		t.Fatal(err)
	}
	damaged := fork(t, s, "research", ann, 0)
	orphan := fork(t, s, damaged.Name, ann, 0)
	newer := fork(t, s, "research", ann, 0)
	if _, err := conversation.Open(conversation.Config{Dir: dir}); !errors.Is(err, conversation.ErrInUse) {
		t.Errorf("opened twice: %v, want ErrInUse", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, damaged.Name+".json")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file of a branch has mode %v (%v), want 0600", info.Mode(), err)
	}
	if err := os.Truncate(file, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	rewrite(t, filepath.Join(dir, newer.Name+".json"), `"version":1`, `"version":1,"narrowed_by_a_later_version":{}`)
	if err := os.WriteFile(filepath.Join(dir, ".new-unfinished"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	again, _ := open(t, conversation.Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	all := again.All()
	if len(all) != 1 {
		t.Fatalf("got %d branches, want the one whose file is whole", len(all))
	}
	all[0].Revision, kept.Functions = kept.Revision, conversation.Functions{"get_weather": nil} // only its name is stored
	if !reflect.DeepEqual(all[0], kept) {
		t.Errorf("got %+v, want %+v", all[0], kept)
	}
	if exists(again, damaged) || exists(again, orphan) || exists(again, newer) {
		t.Error("a damaged branch, one below it or one of a later version exists")
	}
	for _, name := range []string{damaged.Name, newer.Name} {
		if !strings.Contains(log.String(), name+".unusable") {
			t.Errorf("the log does not say that the file of %s was set aside: %s", name, &log)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); name == orphan.Name+".json" || strings.HasPrefix(name, ".new-") {
			t.Errorf("%s is still there", name)
		}
	}
}

func rewrite(t *testing.T, file, from, to string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(data), from, to, 1)
	if changed == string(data) {
		t.Fatalf("%s has no %q", file, from)
	}
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCopies checks that nothing that is handed in or to a change is shared with the store.
func TestCopies(t *testing.T) {
	t.Parallel()
	s, _ := open(t, conversation.Config{})
	in := conversation.Branch{From: "research", Owner: ann, Labels: map[string]string{"session/mode": "quiet"},
		Terms: conversation.Terms{Hide: &registry.Selector{Names: []string{"wipe"}}}}
	made, err := s.Create(in, "research", 0, showsNothing)
	if err != nil {
		t.Fatal(err)
	}
	in.Labels["session/mode"], in.Hide.Names[0] = "loud", "nothing"
	var late *conversation.Branch
	if _, err := s.Change(made.Name, ann, 0, func(b *conversation.Branch) error {
		b.Labels["session/mode"], b.Tools = "loud", map[string]bool{"clock": false}
		late = b
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	late.Tools["clock"], late.Hide.Names[0] = true, "nothing"
	chain, _ := s.Chain(made.Name, ann)
	if got := chain[0]; got.Labels["session/mode"] != "quiet" || got.Hide.Names[0] != "wipe" || got.Tools["clock"] {
		t.Errorf("got %+v, want what was stored", got)
	}
}

// TestConcurrentChanges checks that no change is lost among changes, forks and sweeps.
func TestConcurrentChanges(t *testing.T) {
	t.Parallel()
	s, _ := open(t, conversation.Config{})
	b := fork(t, s, "research", ann, 0)
	var all sync.WaitGroup
	for _, tool := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		all.Go(func() {
			if _, err := s.Change(b.Name, ann, 0, func(b *conversation.Branch) error {
				if b.Tools == nil {
					b.Tools = map[string]bool{}
				}
				b.Tools[tool] = true
				return nil
			}); err != nil {
				t.Error(err)
			}
			fork(t, s, b.Name, ann, 0)
			s.Sweep()
		})
	}
	all.Wait()
	if chain, ok := s.Chain(b.Name, ann); !ok || len(chain[0].Tools) != 8 || len(s.All()) != 9 {
		t.Errorf("got %+v and %d branches, want the 8 changes and 9", chain, len(s.All()))
	}
}
