// Package cache keeps values that can be made again, up to a bound.
//
// A Cache evicts by second chance (the clock algorithm): a value that was read since the hand last passed it
// stays. So reading takes a shared lock and moves nothing, which is why this is not hashicorp/golang-lru: its
// Get takes an exclusive lock, it has no bound by bytes, and a key made of bytes has to be copied to be looked
// up. maypok86/otter evicts in the background, so its bound is exceeded for a while and its contents depend on
// timing; it allocates more, for statistics, expiry and loading that nothing here needs.
package cache

import (
	"sync"
	"sync/atomic"
)

// Cache is a map of bounded weight, safe for concurrent use. Make one with New or Weighted.
type Cache[K comparable, V any] struct {
	most   int
	weight func(V) int

	mu     sync.RWMutex
	by     map[K]*entry[K, V]
	ring   []*entry[K, V]
	hand   int // the place in ring that is examined next
	total  int
	making map[K]*making[V]
}

type entry[K comparable, V any] struct {
	key    K
	value  V
	weight int
	at     int         // place in ring
	used   atomic.Bool // read since the hand last passed
}

// making is a value that Do is making; made is set before done is closed, unless making it panicked.
type making[V any] struct {
	done  chan struct{}
	value V
	made  bool
}

// New returns a cache of at most that many values.
func New[K comparable, V any](most int) *Cache[K, V] {
	return Weighted[K](most, func(V) int { return 1 })
}

// Weighted returns a cache of values whose weights, such as their bytes, sum up to at most that much. A value
// that is heavier than the cache is kept until the next one is.
func Weighted[K comparable, V any](most int, weight func(V) int) *Cache[K, V] {
	return &Cache[K, V]{most: most, weight: weight, by: map[K]*entry[K, V]{}, making: map[K]*making[V]{}}
}

// Get returns the value of a key, if it is cached.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.by[key].read()
}

// GetBytes is Get for a key that is at hand as bytes, which are not copied.
func GetBytes[V any](c *Cache[string, V], key []byte) (value V, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.by[string(key)].read()
}

func (e *entry[K, V]) read() (value V, ok bool) {
	if e == nil {
		return value, false
	}
	if !e.used.Load() {
		e.used.Store(true)
	}
	return e.value, true
}

// Put caches a value, and evicts others where that is over the bound.
func (c *Cache[K, V]) Put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	weight := c.weight(value)
	e := c.by[key]
	if e == nil {
		e = &entry[K, V]{key: key, at: len(c.ring)}
		c.by[key], c.ring = e, append(c.ring, e)
	}
	c.total += weight - e.weight
	e.value, e.weight = value, weight
	for c.total > c.most && len(c.ring) > 1 {
		c.hand %= len(c.ring)
		if old := c.ring[c.hand]; old != e && !old.used.Swap(false) {
			c.remove(old)
		}
		c.hand++ // past what remove put there: the newest
	}
}

// remove puts the last entry of the ring in the place of e.
func (c *Cache[K, V]) remove(e *entry[K, V]) {
	end := len(c.ring) - 1
	last := c.ring[end]
	c.ring[e.at], last.at = last, e.at
	c.ring[end] = nil
	c.ring = c.ring[:end]
	delete(c.by, e.key)
	c.total -= e.weight
}

// Do returns the value of a key, made by the function if it is not cached. One caller makes it; others that ask
// for it meanwhile wait. If the function panics, one of those tries again.
func (c *Cache[K, V]) Do(key K, f func() V) V {
	for {
		if value, ok := c.Get(key); ok {
			return value
		}
		m := &making[V]{done: make(chan struct{})}
		if other := c.begin(key, m); other == m {
			defer c.end(key, m)
			if m.value, m.made = c.Get(key); !m.made { // else another caller was faster
				m.value = f()
				m.made = true
			}
			return m.value
		} else if <-other.done; other.made {
			return other.value
		}
	}
}

// begin returns m, or who is making the value already.
func (c *Cache[K, V]) begin(key K, m *making[V]) *making[V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.making[key]; other != nil {
		return other
	}
	c.making[key] = m
	return m
}

func (c *Cache[K, V]) end(key K, m *making[V]) {
	if m.made {
		c.Put(key, m.value)
	}
	c.mu.Lock()
	delete(c.making, key)
	c.mu.Unlock()
	close(m.done)
}

// DeleteFunc removes the values for which drop returns true; it must not use the cache.
func (c *Cache[K, V]) DeleteFunc(drop func(K, V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.ring) - 1; i >= 0; i-- {
		if e := c.ring[i]; drop(e.key, e.value) {
			c.remove(e)
		}
	}
}

// All returns a copy of what is cached. It counts for nothing as read.
func (c *Cache[K, V]) All() map[K]V {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make(map[K]V, len(c.by))
	for key, e := range c.by {
		all[key] = e.value
	}
	return all
}
