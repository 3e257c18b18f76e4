package cache_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/internal/cache"
)

func holds(c *cache.Cache[string, int], keys ...string) string {
	var there string
	for _, k := range keys {
		if v, ok := c.Get(k); ok {
			there += fmt.Sprint(k, v, " ")
		}
	}
	return there
}

// What was read since the hand last passed stays; of the others the oldest goes.
func TestEviction(t *testing.T) {
	t.Parallel()
	c := cache.New[string, int](3)
	for i, k := range []string{"a", "b", "c"} {
		c.Put(k, i)
	}
	if _, ok := cache.GetBytes(c, []byte("a")); !ok {
		t.Fatal("a is not cached")
	}
	c.Put("d", 3)
	c.Put("e", 4)
	if got, want := holds(c, "a", "b", "c", "d", "e"), "a0 d3 e4 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c.Put("d", 5)
	if got, want := holds(c, "a", "d", "e"), "a0 d5 e4 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The bound is one of weight, and a value that is over it is alone.
func TestWeighted(t *testing.T) {
	t.Parallel()
	c := cache.Weighted[string](10, func(v int) int { return v })
	c.Put("a", 4)
	c.Put("b", 4)
	c.Put("c", 12)
	if got, want := holds(c, "a", "b", "c"), "c12 "; got != want || c.Weight() != 12 {
		t.Errorf("got %s of weight %d, want %s", got, c.Weight(), want)
	}
	c.Put("a", 4)
	if got, want := holds(c, "a", "b", "c"), "a4 "; got != want || c.Weight() != 4 {
		t.Errorf("got %s of weight %d, want %s", got, c.Weight(), want)
	}
	c.Put("b", 3)
	c.Put("a", 1)
	c.DeleteFunc(func(k string, v int) bool { return k == "a" && v == 1 })
	if got, want := holds(c, "a", "b", "c"), "b3 "; got != want || c.Weight() != 3 {
		t.Errorf("got %s of weight %d, want %s", got, c.Weight(), want)
	}
}

// A value that several ask for is made once, and again after a panic.
func TestDo(t *testing.T) {
	t.Parallel()
	c := cache.New[string, int](2)
	begun, goOn := make(chan struct{}), make(chan struct{})
	var made atomic.Int32
	first := make(chan any)
	go func() {
		defer func() { first <- recover() }()
		c.Do("a", func() int { close(begun); <-goOn; panic("no") })
	}()
	<-begun
	var all sync.WaitGroup
	var wrong atomic.Int32
	for range 8 {
		all.Go(func() {
			if got := c.Do("a", func() int { return int(made.Add(1)) }); got != 1 {
				wrong.Store(int32(got))
			}
		})
	}
	close(goOn)
	if got := <-first; got != "no" {
		t.Errorf("the panic became %v", got)
	}
	all.Wait()
	if made.Load() != 1 || wrong.Load() != 0 {
		t.Errorf("made %d times, and a caller got %d, want 1", made.Load(), wrong.Load())
	}
}

// A cache holds what a map would, or nothing, and never more than its bound.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const most = 20
		c := cache.Weighted[int](most, func(v int) int { return v })
		model := map[int]int{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			k, v := rapid.IntRange(0, 9).Draw(t, "key"), rapid.IntRange(1, most).Draw(t, "value")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				c.DeleteFunc(func(key, _ int) bool { return key == k })
				delete(model, k)
				if got, ok := c.Get(k); ok {
					t.Fatalf("%d is %d after it was deleted", k, got)
				}
			case 1, 2:
				if got, ok := c.Get(k); ok && got != model[k] {
					t.Fatalf("%d is %d, want %d", k, got, model[k])
				}
			default:
				c.Put(k, v)
				model[k] = v
				if got, ok := c.Get(k); !ok || got != v {
					t.Fatalf("%d is %d, %t after %d was put", k, got, ok, v)
				}
			}
			sum := 0
			for k := range model {
				got, ok := c.Get(k)
				if !ok {
					delete(model, k)
				}
				sum += got
			}
			if w := c.Weight(); w > most || w != sum {
				t.Fatalf("the weight is %d, the values add up to %d, at most %d are allowed", w, sum, most)
			}
		}
	})
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	c := cache.New[int, int](16)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 2000 {
				k := (i*7 + g) % 40
				if got := c.Do(k, func() int { return k }); got != k {
					t.Errorf("%d is %d", k, got)
				}
				if i%50 == 0 {
					c.DeleteFunc(func(key, _ int) bool { return key == k })
				}
			}
		})
	}
	all.Wait()
	if c.Weight() > 16 {
		t.Errorf("got %d values, want 16 at most", c.Weight())
	}
}

func BenchmarkGet(b *testing.B) {
	c := cache.New[string, int](1 << 10)
	key := []byte("the parts of an input that a decision depends on")
	c.Put(string(key), 1)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, ok := cache.GetBytes(c, key); !ok {
				b.Fatal("not cached")
			}
		}
	})
}
