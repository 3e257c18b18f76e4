package invoke

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/cache"
	"github.com/catalogd/catalogd/registry"
)

const (
	// maxRates is how many counts are kept; an evicted count, one of the least recently used, starts again at
	// zero.
	maxRates = 8192
	// maxCounted is how many calls one count remembers; it is what a rate limit can ask for at most.
	maxCounted = 10_000
	// counted is how long a call is remembered.
	counted = time.Hour
)

// Rates counts the calls that were allowed: those of each principal to each tool through each branch, in the
// last hour. It outlives generations. The zero Rates is ready; it is safe for concurrent use.
type Rates struct {
	mu sync.Mutex
	by *cache.Cache[rateKey, *rate] // nil before the first
}

type rateKey struct{ branch, tool, principal string }

// rate is one count: when calls were allowed, the oldest first.
type rate struct{ calls []time.Time }

// of needs the lock.
func (r *Rates) of(call *registry.Call) *rate {
	if r.by == nil {
		r.by = cache.New[rateKey, *rate](maxRates)
	}
	return r.by.Do(rateKey{call.Branch, call.Tool, call.Principal}, func() *rate { return &rate{} })
}

// since is how many of the calls are younger than d.
func (n *rate) since(now time.Time, d time.Duration) int { return len(n.calls) - n.after(now.Add(-d)) }

// after is where those begin that are later than t.
func (n *rate) after(t time.Time) int {
	i, _ := slices.BinarySearchFunc(n.calls, t, func(call, t time.Time) int {
		if call.After(t) {
			return 1
		}
		return -1
	})
	return i
}

// add counts a call, and forgets what is too old or too much. A call that took long to be allowed may have
// begun before those that are counted already, and stands before them.
func (n *rate) add(began time.Time) {
	drop := max(len(n.calls)-n.since(began, counted), len(n.calls)+1-maxCounted)
	n.calls = slices.Delete(n.calls, 0, max(0, drop))
	n.calls = slices.Insert(n.calls, n.after(began), began)
}

// rate is the input of the call decision about the calls before this one.
func (r *Rates) rate(call *registry.Call) decision.Rate {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.of(call)
	return decision.Rate{Minute: n.since(call.Start, time.Minute), Hour: n.since(call.Start, time.Hour)}
}

// Rate is how often a call was made before, for the call decision; call has the fields that it begins with.
func (p *Path) Rate(call *registry.Call) decision.Rate {
	if !p.Counted {
		return decision.Rate{}
	}
	return p.Rates.rate(call)
}

// Limit counts what is asked of a server beside calls of its tools, and was allowed, as a call of call.Tool;
// it refuses what is over the limit.
func (p *Path) Limit(call *registry.Call, limit decision.RateLimit) *registry.Error {
	return p.limit(call, limit)
}

// limit counts a call that was allowed, unless it is over the limit. A policy that neither limits nor looks
// at counts costs nothing.
func (p *Path) limit(call *registry.Call, limit decision.RateLimit) *registry.Error {
	if limit.Calls == 0 && !p.Counted {
		return nil
	}
	p.Rates.mu.Lock()
	defer p.Rates.mu.Unlock()
	n := p.Rates.of(call)
	if limit.Calls > 0 {
		if made := n.since(call.Start, limit.Per); made >= limit.Calls {
			wait := n.calls[len(n.calls)-limit.Calls].Add(limit.Per).Sub(call.Start)
			return &registry.Error{
				Code: registry.RateLimited,
				Msg: fmt.Sprintf("the policy lets you call %q %d times in %v, and that many calls were made; nothing was run. Try again in %d s",
					call.Tool, limit.Calls, limit.Per, int(math.Ceil(wait.Seconds()))),
			}
		}
	}
	n.add(call.Start)
	return nil
}
