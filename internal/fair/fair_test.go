package fair_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/fair"
)

func key(branch, principal, tool string) fair.Key {
	return fair.Key{Branch: branch, Principal: principal, Tool: tool}
}

// Each cap refuses what exceeds it, by its own name, and nothing beside it.
func TestCaps(t *testing.T) {
	t.Parallel()
	all := fair.Limits{Total: 7, AllOfPrincipal: 5, Branch: 4, Principal: 3, Tool: 2}
	for _, test := range []struct {
		taken []fair.Key
		next  fair.Key
		limit fair.Limit // empty if there is a place
		max   int
	}{
		{nil, key("b", "ann", "x"), "", 0},
		{[]fair.Key{key("b", "ann", "x"), key("b", "bob", "x")}, key("b", "cat", "x"), fair.Tool, 2},
		{[]fair.Key{key("b", "ann", "x"), key("b", "bob", "x")}, key("c", "cat", "x"), "", 0},
		{[]fair.Key{key("b", "ann", "x"), key("b", "ann", "y"), key("b", "ann", "z")}, key("b", "ann", "w"), fair.Principal, 3},
		{[]fair.Key{key("b", "ann", "x"), key("b", "ann", "y"), key("b", "ann", "z")}, key("b", "bob", "w"), "", 0},
		{[]fair.Key{key("b", "ann", ""), key("b", "ann", ""), key("b", "ann", "")}, key("b", "bob", ""), "", 0},
		{[]fair.Key{key("b", "ann", "x"), key("b", "ann", "y"), key("b", "bob", "x"), key("b", "bob", "y")}, key("b", "cat", "z"), fair.Branch, 4},
		{[]fair.Key{key("b", "ann", "x"), key("b", "ann", "y"), key("c", "ann", "x"), key("c", "ann", "y"), key("d", "ann", "x")},
			key("e", "ann", "x"), fair.AllOfPrincipal, 5},
		{[]fair.Key{key("b", "ann", "x"), key("b", "ann", "y"), key("c", "ann", "x"), key("c", "ann", "y"), key("d", "ann", "x"),
			key("d", "bob", "x"), key("e", "bob", "x")}, key("e", "cat", "y"), fair.Total, 7},
	} {
		p := fair.New(all)
		for _, k := range test.taken {
			if err := p.Try(k); err != nil {
				t.Fatalf("%v: %+v: %v", test.taken, k, err)
			}
		}
		for _, take := range []func() error{
			func() error { return p.Try(test.next) },
			func() error { return p.Take(context.Background(), test.next, time.Hour) }, // there is no queue
		} {
			err := take()
			var full *fair.FullError
			switch {
			case test.limit == "" && err == nil:
				p.Release(test.next)
			case test.limit == "" || !errors.As(err, &full) || full.Limit != test.limit || full.Max != test.max || full.Waited != 0:
				t.Errorf("%+v after %+v: got %+v, want the limit %q of %d", test.next, test.taken, err, test.limit, test.max)
			}
		}
		for _, k := range test.taken {
			p.Release(k)
		}
		if err := p.Try(test.next); err != nil {
			t.Errorf("%+v after all were released: %v", test.next, err)
		}
	}
}

// line queues keys for one place, one after the other, and returns the order in which they are served.
type line struct {
	t      *testing.T
	places *fair.Places
	served chan string
	done   sync.WaitGroup
}

func (l *line) wait(name string, k fair.Key) {
	l.t.Helper()
	before := l.places.Waiting()
	l.done.Go(func() {
		err := l.places.Take(context.Background(), k, time.Hour)
		if err != nil {
			l.served <- name + " refused"
			return
		}
		l.served <- name
		l.places.Release(k)
	})
	for l.places.Waiting() == before {
		time.Sleep(time.Millisecond)
	}
}

func (l *line) order(n int) (names []string) {
	for range n {
		names = append(names, <-l.served)
	}
	l.done.Wait()
	return names
}

// Who waits for one place: a flood of one caller or through one branch is served in turns with the others.
func TestTurns(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		waiting []string // branch/principal
		want    []string
	}{
		"one caller": {[]string{"b/ann", "b/ann", "b/ann"}, []string{"b/ann", "b/ann", "b/ann"}},
		"principals of a branch": {
			[]string{"b/ann", "b/ann", "b/ann", "b/bob", "b/bob"},
			[]string{"b/ann", "b/bob", "b/ann", "b/bob", "b/ann"},
		},
		"branches of one principal": {
			[]string{"b/ann", "b/ann", "b/ann", "c/ann", "c/ann"},
			[]string{"b/ann", "c/ann", "b/ann", "c/ann", "b/ann"},
		},
		"a principal gains nothing by more branches": {
			[]string{"b/ann", "c/ann", "d/ann", "b/bob", "b/bob"},
			[]string{"b/ann", "b/bob", "c/ann", "b/bob", "d/ann"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := key("first", "holder", "")
			l := &line{t: t, places: fair.New(fair.Limits{Total: 1, Queue: -1}), served: make(chan string, 10)}
			if err := l.places.Try(first); err != nil {
				t.Fatal(err)
			}
			for _, who := range test.waiting {
				l.wait(who, key(who[:1], who[2:], ""))
			}
			l.places.Release(first)
			if got := l.order(len(test.waiting)); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// A place that only some of those who wait may have goes to one of them.
func TestTheBlockedDontBlock(t *testing.T) {
	t.Parallel()
	p := fair.New(fair.Limits{Total: 2, Tool: 1, Queue: -1})
	slow, other := key("b", "ann", "slow"), key("b", "ann", "other")
	for _, k := range []fair.Key{slow, other} {
		if err := p.Try(k); err != nil {
			t.Fatal(err)
		}
	}
	l := &line{t: t, places: p, served: make(chan string, 2)}
	l.wait("slow", slow)
	l.wait("quick", key("b", "bob", "quick"))
	p.Release(other)
	if got := <-l.served; got != "quick" {
		t.Errorf("%s was served, want quick", got)
	}
	p.Release(slow)
	if got := l.order(1); got[0] != "slow" {
		t.Errorf("%v", got)
	}
}

// A full queue has room for whoever has a shorter line than another in it.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	p := fair.New(fair.Limits{Branch: 1, Queue: 3})
	ann, bob := key("b", "ann", "x"), key("b", "bob", "x")
	if err := p.Try(ann); err != nil {
		t.Fatal(err)
	}
	l := &line{t: t, places: p, served: make(chan string, 10)}
	for i := range 3 {
		l.wait(fmt.Sprint("ann", i), ann)
	}
	var full *fair.FullError
	if err := p.Take(context.Background(), ann, time.Hour); !errors.As(err, &full) || full.Limit != fair.Branch || full.Max != 1 {
		t.Errorf("a fourth: %v", err)
	}
	other := key("c", "ann", "x")
	if err := p.Take(context.Background(), other, time.Hour); err != nil {
		t.Errorf("on another branch: %v", err)
	}
	p.Release(other)
	l.done.Go(func() {
		if err := p.Take(context.Background(), bob, time.Hour); err != nil {
			l.served <- "bob refused"
			return
		}
		l.served <- "bob"
		p.Release(bob)
	})
	if got := <-l.served; got != "ann2 refused" {
		t.Errorf("got %s, want the last of the longest line refused", got)
	}
	p.Release(ann)
	if got := l.order(3); !slices.Equal(got, []string{"bob", "ann0", "ann1"}) {
		t.Errorf("got %v", got)
	}
}

func TestWaitingEnds(t *testing.T) {
	t.Parallel()
	p := fair.New(fair.Limits{Total: 1, Queue: -1})
	k := key("b", "ann", "x")
	if err := p.Try(k); err != nil {
		t.Fatal(err)
	}
	var full *fair.FullError
	if err := p.Take(context.Background(), k, time.Millisecond); !errors.As(err, &full) || full.Waited != time.Millisecond || full.Limit != fair.Total {
		t.Errorf("waiting in the queue: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.Take(ctx, k, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	ended := make(chan error)
	go func() { ended <- p.Take(context.Background(), k, 0) }()
	for p.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	closed := make(chan struct{})
	go func() { p.Close(); close(closed) }()
	if err := <-ended; !errors.Is(err, fair.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	select {
	case <-closed:
		t.Error("Close did not wait for the place that is taken")
	default:
	}
	p.Release(k)
	<-closed
	if err := p.Take(context.Background(), k, 0); !errors.Is(err, fair.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Whatever is taken, waited for, cancelled and released at once, no cap is exceeded and nothing is left.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	limits := fair.Limits{Total: 6, AllOfPrincipal: 4, Branch: 4, Principal: 3, Tool: 2, Queue: 5}
	p := fair.New(limits)
	var mu sync.Mutex
	var running []fair.Key
	count := func(same func(fair.Key) bool) (n int) {
		for _, k := range running {
			if same(k) {
				n++
			}
		}
		return n
	}
	var callers sync.WaitGroup
	for range 30 {
		callers.Go(func() {
			for range 200 {
				k := key(fmt.Sprint(rand.IntN(3)), fmt.Sprint(rand.IntN(3)), fmt.Sprint(rand.IntN(3)))
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(int(time.Millisecond))))
				if p.Take(ctx, k, time.Duration(1+rand.IntN(int(time.Millisecond)))) == nil {
					mu.Lock()
					running = append(running, k)
					for _, got := range []struct{ n, most int }{
						{len(running), limits.Total},
						{count(func(o fair.Key) bool { return o.Principal == k.Principal }), limits.AllOfPrincipal},
						{count(func(o fair.Key) bool { return o.Branch == k.Branch }), limits.Branch},
						{count(func(o fair.Key) bool { return o.Branch == k.Branch && o.Principal == k.Principal }), limits.Principal},
						{count(func(o fair.Key) bool { return o.Branch == k.Branch && o.Tool == k.Tool }), limits.Tool},
					} {
						if got.n > got.most {
							t.Errorf("%d run, of at most %d", got.n, got.most)
						}
					}
					mu.Unlock()
					time.Sleep(time.Duration(rand.IntN(int(200 * time.Microsecond))))
					mu.Lock()
					running = slices.Delete(running, slices.Index(running, k), slices.Index(running, k)+1)
					mu.Unlock()
					p.Release(k)
				}
				cancel()
			}
		})
	}
	callers.Wait()
	if n := p.Waiting(); n != 0 {
		t.Errorf("%d wait still", n)
	}
	if n := p.Remembered(); n != 0 {
		t.Errorf("%d keys are remembered although nothing is taken", n)
	}
}

func BenchmarkTake(b *testing.B) {
	p := fair.New(fair.Limits{Total: 1024, AllOfPrincipal: 512, Branch: 256, Principal: 128, Tool: 128, Queue: 64})
	k := key("default", "local", "slugify")
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Take(context.Background(), k, time.Second); err != nil {
			b.Fatal(err)
		}
		p.Release(k)
	}
}
