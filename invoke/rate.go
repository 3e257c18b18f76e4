package invoke

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/cache"
	"github.com/catalogd/catalogd/registry"
)

const (
	// maxRates is the maximum number of counts. One of the least recently used is evicted and starts again at
	// zero.
	maxRates = 8192
	// maxCounted is the maximum number of calls in one count, and so the maximum of a rate limit.
	maxCounted = 10_000
	// counted is the time after which a call is no longer counted.
	counted = time.Hour
)

// Rates counts the allowed calls of the last hour for each branch, tool and principal. It outlives
// generations. The zero Rates is ready to use. It is safe for concurrent use.
type Rates struct {
	mu sync.Mutex
	by *cache.Cache[rateKey, *rate] // nil before the first
}

type rateKey struct{ branch, tool, principal string }

// rate is one count: the start times of allowed calls, the oldest first.
type rate struct{ calls []time.Time }

// of returns the count of a call. r.mu must be held.
func (r *Rates) of(call *registry.Call) *rate {
	if r.by == nil {
		r.by = cache.New[rateKey, *rate](maxRates)
	}
	// By the name in the catalog, so that a count survives a rename.
	return r.by.Do(rateKey{call.Branch, cmp.Or(call.Declared, call.Tool), call.Principal}, func() *rate { return &rate{} })
}

// since returns the number of calls younger than d.
func (n *rate) since(now time.Time, d time.Duration) int { return len(n.calls) - n.after(now.Add(-d)) }

// after returns the index of the first call later than t.
func (n *rate) after(t time.Time) int {
	i, _ := slices.BinarySearchFunc(n.calls, t, func(call, t time.Time) int {
		if call.After(t) {
			return 1
		}
		return -1
	})
	return i
}

// add counts a call, and drops calls that are too old or too many. A call whose decision took long may be
// older than calls that are counted already; it is inserted before them.
func (n *rate) add(began time.Time) {
	drop := max(len(n.calls)-n.since(began, counted), len(n.calls)+1-maxCounted)
	n.calls = slices.Delete(n.calls, 0, max(0, drop))
	n.calls = slices.Insert(n.calls, n.after(began), began)
}

// rate returns the counts before this call, for the call decision.
func (r *Rates) rate(call *registry.Call) decision.Rate {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.of(call)
	return decision.Rate{Minute: n.since(call.Start, time.Minute), Hour: n.since(call.Start, time.Hour)}
}

// Rate returns the counts before this call, for the call decision. Of call it reads Branch, Tool, Declared,
// Principal and Start.
func (p *Path) Rate(call *registry.Call) decision.Rate {
	if !p.Counted {
		return decision.Rate{}
	}
	return p.Rates.rate(call)
}

// Limit counts an allowed call, or an allowed request to a server as a call of call.Tool, or returns an error
// if it exceeds a rate limit of the decision. It does nothing if the policy neither limits this call nor reads
// counts.
func (p *Path) Limit(call *registry.Call, allowed decision.Decision) *registry.Error {
	limits := allowed.RateLimits()
	if len(limits) == 0 && !p.Counted {
		return nil
	}
	p.Rates.mu.Lock()
	defer p.Rates.mu.Unlock()
	n := p.Rates.of(call)
	var refused *registry.Error // by the limit that is reached for longest
	for _, limit := range limits {
		made := n.since(call.Start, limit.Per)
		if made < limit.Calls {
			continue
		}
		wait := n.calls[len(n.calls)-limit.Calls].Add(limit.Per).Sub(call.Start)
		if refused != nil && refused.RetryAfter >= wait {
			continue
		}
		refused = &registry.Error{
			Code: registry.RateLimited, Limit: "rate_limit", RetryAfter: wait,
			Msg: fmt.Sprintf("the policy lets you call %q %d times in %v, and that many calls were made; nothing was run. Try again in %d s",
				call.Tool, limit.Calls, limit.Per, registry.Seconds(wait)),
		}
	}
	if refused != nil {
		return refused
	}
	n.add(call.Start)
	return nil
}
