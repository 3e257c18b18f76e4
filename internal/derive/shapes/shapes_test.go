package shapes_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	kindsShown = flag.Int("kinds", 20, "how many kinds of faults TestShapes shows")
	oneShape   = flag.Int("shape", -1, "the number of the only shape that TestShapes tries")
	oneByOne   = flag.Bool("each", false, "compile shapes one by one and show each before, to find one that kills")
)

const (
	// batch is how many shapes are compiled together.
	batch = 40
	// patience is how long a batch, and a shape, may take. CUE can't be stopped: what takes longer is left running.
	patience = time.Minute
)

// sample is how many shapes of each family the short version has.
var sample = []int{600, 600, 250, 200, 200, 150, 200, 100}

// TestShapes holds what catalogd makes of each shape to what CUE says of it. CATALOGD_SHAPES=all takes every
// shape, a duration as many as there is time for; otherwise it is a fixed sample of each family.
func TestShapes(t *testing.T) {
	u := newUniverse()
	var until time.Time
	switch long := os.Getenv("CATALOGD_SHAPES"); long {
	case "", "all":
	default:
		d, err := time.ParseDuration(long)
		if err != nil {
			t.Fatalf("CATALOGD_SHAPES=%s: want all, or a duration", long)
		}
		until = time.Now().Add(d)
	}
	work := make(chan []shape)
	go func() {
		defer close(work)
		var next []shape
		for s := range u.pick(os.Getenv("CATALOGD_SHAPES") != "", *oneShape) {
			if next = append(next, s); len(next) == batch {
				work <- next
				next = nil
			}
			if !until.IsZero() && time.Now().After(until) {
				break
			}
		}
		if len(next) > 0 {
			work <- next
		}
	}()
	total := newTally()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 2 {
		c := newCatalog(t)
		wg.Go(func() {
			for shapes := range work {
				examineAll(t.Context(), t, c, shapes, func(o outcome) {
					mu.Lock()
					defer mu.Unlock()
					total.add(o)
				})
			}
		})
	}
	wg.Wait()
	var out strings.Builder
	total.write(&out, *kindsShown)
	if len(total.findings) > 0 {
		t.Error(out.String())
	} else {
		t.Log(out.String())
	}
	if total.shapes == 0 {
		t.Error("no shape was tried")
	}
}

// examineAll compiles the shapes together and examines each.
func examineAll(ctx context.Context, t *testing.T, c *catalog, shapes []shape, each func(outcome)) {
	if *oneByOne && len(shapes) > 1 {
		for _, s := range shapes {
			fmt.Fprintf(os.Stderr, "shape %d\n%s\n", s.number, indent(s.source()))
			examineAll(ctx, t, c, []shape{s}, each)
		}
		return
	}
	if *oneShape >= 0 {
		s := shapes[0]
		t.Logf("strictness %s\n%s\n%s", s.strictness, indent(s.source()), strings.Join(calls(s.args), "\n"))
	}
	type answer struct {
		all     map[int]compiled
		release func()
		err     error
	}
	now := *c
	got, ok := within(patience, func() (a answer) {
		a.all, a.release, a.err = now.compile(ctx, shapes)
		return a
	})
	if !ok {
		*c = *newCatalog(t) // the old one is busy for ever
		if len(shapes) == 1 {
			each(outcome{shape: shapes[0], endless: true})
			return
		}
		got.err = fmt.Errorf("not compiled within %s", patience)
	}
	all, release, err := got.all, got.release, got.err
	if release != nil {
		defer release()
	}
	if err != nil {
		if len(shapes) == 1 {
			t.Errorf("shape %d: %v\n%s", shapes[0].number, err, shapes[0].source())
			return
		}
		for _, s := range shapes { // one of them keeps the others from being compiled
			examineAll(ctx, t, c, []shape{s}, each)
		}
		return
	}
	for _, s := range shapes {
		type answer struct {
			o   outcome
			err error
		}
		got, ok := within(patience, func() (a answer) {
			a.o, a.err = examine(ctx, s, all[s.number])
			return a
		})
		if !ok {
			// The batch's other contracts may share a checker that is busy for ever, so they are left out.
			*c = *newCatalog(t)
			each(outcome{shape: s, endless: true})
			return
		}
		o, err := got.o, got.err
		if err != nil {
			t.Errorf("shape %d: %v\n%s", s.number, err, s.source())
			continue
		}
		each(o)
	}
}

// within is what f returns, if it does so in time; else f is left running.
func within[T any](d time.Duration, f func() T) (v T, ok bool) {
	done := make(chan T, 1)
	go func() { done <- f() }()
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case v = <-done:
		return v, true
	case <-late.C:
		return v, false
	}
}
