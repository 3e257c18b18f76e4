package decisionlog

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/catalogd/catalogd/internal/cache"
)

// Refused attempts of one principal are logged up to attemptsAtOnce and then attemptsASecond; more are only
// counted, and the log reports how many every sayEvery. So nobody can fill the log, or hide others' attempts
// behind their own. All unknown callers together are one principal.
const (
	attemptsAtOnce  = 100
	attemptsASecond = 10
	sayEvery        = 10 * time.Second
)

// maxQuotas is how many principals are tracked; the quota of an evicted one starts again.
const maxQuotas = 10_000

type quotas struct {
	mu         sync.Mutex
	by         *cache.Cache[string, *quota]
	suppressed atomic.Uint64
}

type quota struct {
	used float64
	last time.Time
}

// take reports whether one more attempt of the principal is to be logged, and counts it if not.
func (q *quotas) take(principal string, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	of := q.by.Do(principal, func() *quota { return &quota{last: now} })
	of.used = max(0, of.used-attemptsASecond*now.Sub(of.last).Seconds())
	of.last = now
	if of.used+1 > attemptsAtOnce {
		q.suppressed.Add(1)
		return false
	}
	of.used++
	return true
}
