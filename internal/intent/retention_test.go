package intent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// left are the arguments of what is in the store, the oldest first.
func left(t *testing.T, s *Store) string {
	t.Helper()
	list, err := s.List(t.Context(), Filter{})
	must(t, err)
	var all []string
	for _, in := range list {
		all = append([]string{string(in.Arguments)}, all...)
	}
	return strings.Join(all, " ")
}

func sweep(t *testing.T, s *Store, want int64) {
	t.Helper()
	if n, err := s.Sweep(t.Context()); err != nil || n != want {
		t.Fatalf("swept %d, %v, want %d", n, err, want)
	}
	checkCounts(t, s)
}

func TestSweepByAge(t *testing.T) {
	s := open(t, newDir(t))
	for n, state := range States() {
		inState(t, s, state, anIntent(fmt.Sprint(n)))
	}
	waited := stage(t, s, anIntent(`"late"`))
	keyed := anIntent(`"keyed"`)
	keyed.Key = "k"
	inState(t, s, Succeeded, keyed)
	sweep(t, s, 0)
	s.clock.base.Add(int64(20 * 24 * time.Hour))
	must(t, s.Change(t.Context(), waited.ID, Staged, Change{Steps: steps(Refused)})) // it was staged long ago and has just ended
	sweep(t, s, 0)
	s.clock.base.Add(int64(10*24*time.Hour - time.Minute))
	sweep(t, s, 0)
	young := inState(t, s, Succeeded, anIntent(`"young"`))
	s.clock.base.Add(int64(time.Minute))
	// 5 Succeeded, 6 Failed, 8 Refused, 9 Cancelled, 10 Expired and the keyed one are old; 7 is Unknown.
	sweep(t, s, 6)
	if got, want := left(t, s), `0 1 2 3 4 7 "late" "young"`; got != want {
		t.Errorf("left are %s, want %s", got, want)
	}
	s.clock.base.Add(int64(30 * 24 * time.Hour))
	sweep(t, s, 1)
	if got, want := left(t, s), `0 1 2 3 4 7 "young"`; got != want { // the newest stays, so that its number is not used again
		t.Errorf("left are %s, want %s", got, want)
	}
	if next := stage(t, s, anIntent(`"next"`)); next.Seq != young.Seq+1 {
		t.Errorf("the next has number %d, want %d", next.Seq, young.Seq+1)
	}
	sweep(t, s, 1)
}

func TestSweepByCount(t *testing.T) {
	s := open(t, newDir(t), func(c *Config) { c.MaxCount = 5 })
	inState(t, s, Unknown, anIntent(`"unknown"`))
	inState(t, s, Attempted, anIntent(`"attempted"`))
	keyed := anIntent(`"keyed"`)
	keyed.Key = "k"
	inState(t, s, Succeeded, keyed)
	for n := range 450 {
		inState(t, s, Succeeded, anIntent(fmt.Sprint(n)))
	}
	sweep(t, s, 446)
	if got, want := left(t, s), `"unknown" "attempted" "keyed" 446 447 448 449`; got != want {
		t.Errorf("left are %s, want %s", got, want)
	}
	again := keyed
	if _, made, err := s.Stage(t.Context(), again); err != nil || made {
		t.Errorf("the key's intent was swept: %v, %v", made, err)
	}
	s.clock.base.Add(int64(25 * time.Hour)) // the key's retention is over
	inState(t, s, Succeeded, anIntent(`"new"`))
	sweep(t, s, 1)
	if got, want := left(t, s), `"unknown" "attempted" 446 447 448 449 "new"`; got != want {
		t.Errorf("left are %s, want %s", got, want)
	}
}

func TestSweepByBytes(t *testing.T) {
	s := open(t, newDir(t), func(c *Config) { c.MaxBytes = 2 << 20 })
	for n := range 800 {
		inState(t, s, Succeeded, anIntent(fmt.Sprintf(`"%d %s"`, n, strings.Repeat("x", 5000))))
	}
	before, err := s.bytesUsed(t.Context())
	must(t, err)
	n, err := s.Sweep(t.Context())
	must(t, err)
	after, err := s.bytesUsed(t.Context())
	must(t, err)
	if before < 4<<20 || after > 2<<20 || after < 1<<20 || n < 300 || n > 700 {
		t.Errorf("%d of 800 were swept, %d bytes are left of %d, want a bit under 2 MiB", n, after, before)
	}
	list, err := s.List(t.Context(), Filter{})
	must(t, err)
	if list[0].Seq != 800 || list[len(list)-1].Seq != n+1 {
		t.Errorf("left are %d to %d, want the newest %d", list[len(list)-1].Seq, list[0].Seq, 800-n)
	}
	checkCounts(t, s)
	checkIntegrity(t, s)
}

// TestSweepHoldsUpNoWriter sweeps many while others write, and another process sweeps as well.
func TestSweepHoldsUpNoWriter(t *testing.T) {
	dir := newDir(t)
	many(t, dir, 20_000)
	s := open(t, dir, func(c *Config) { c.MaxCount = 100 })
	other := open(t, dir, func(c *Config) { c.MaxCount = 100 })
	var wg sync.WaitGroup
	var swept [2]int64
	for i, store := range []*Store{s, other} {
		wg.Go(func() {
			n, err := store.Sweep(context.Background())
			if err != nil {
				t.Error(err)
			}
			swept[i] = n
		})
	}
	worst, lives, sweeping := time.Duration(0), 0, time.Now()
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for swept := false; !swept; lives++ {
		begun := time.Now()
		live(t, s, 1, lives)
		worst = max(worst, time.Since(begun))
		select {
		case <-done:
			swept = true
		default:
		}
	}
	if lives < 5 {
		t.Errorf("%d lives while it swept, want some", lives)
	}
	if took := time.Since(sweeping); worst > 5*time.Second && worst > took/2 {
		t.Errorf("a life took %s of the %s that the sweep took, want less than half", worst, took)
	}
	t.Logf("%d lives, the longest %s; swept %d", lives, worst, swept)
	// Both may have looked before either removed its last hundred.
	if n := int64(20_000+lives) - swept[0] - swept[1]; n > int64(100+lives) || n < 100-sweepChunk {
		t.Errorf("swept %d of %d, so %d are left, want about 100", swept, 20_000+lives, n)
	}
	checkCounts(t, s)
}
