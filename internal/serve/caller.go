package serve

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/token"
)

// caller is who sends a request.
type caller struct {
	principal decision.Principal
	// token is what the caller has shown: nil for the operator on this machine, who needs none.
	token *token.Token
}

// operator is the caller of every request where there are no tokens, and of stdio.
func operator() caller { return caller{principal: decision.Local()} }

func bearer(t *token.Token) caller {
	groups := slices.Clone(t.Groups)
	if groups == nil {
		groups = []string{}
	}
	return caller{decision.Principal{Name: t.Name, Groups: groups, Admin: t.Admin}, t}
}

// opens reports whether the caller may know that there is a branch of that name.
func (c caller) opens(branch string) bool { return c.token == nil || c.token.Opens(branch) }

// key tells callers apart: what one has open, no other can use.
func (c caller) key() token.Hash {
	if c.token == nil {
		return token.Hash{}
	}
	return c.token.Hash
}

// stillIs reports whether a token that is good now is the same caller's, and still opens the branch.
func (c caller) stillIs(now *token.Token, branch string) bool {
	return now != nil && now.Opens(branch) && now.Name == c.token.Name && now.Admin == c.token.Admin && slices.Equal(now.Groups, c.token.Groups)
}

// need is what an endpoint asks of its caller.
type need int

const (
	nothing need = iota // for what watches over this process
	someone
	admin
)

// admit tells who sends a request, and answers it where that is not enough. A secret counts in the Authorization header
// alone: what stands in an address ends up in histories and logs (RFC 6750, 5.3).
func (f *Front) admit(w http.ResponseWriter, r *http.Request, n need) (c caller, ok bool) {
	if f.Tokens == nil {
		return operator(), true
	}
	secret, shown := bearerOf(r.Header)
	if t := f.Tokens.Find(secret); t != nil {
		if c = bearer(t); n != admin || t.Admin {
			return c, true
		}
		writeError(w, http.StatusForbidden, "token "+t.Name+" is no admin's; make one with catalogd token create --admin")
		return caller{}, false
	}
	switch {
	case n == nothing:
		return caller{}, true
	case !shown:
		f.unauthorized(w, "", "a token is needed: Authorization: Bearer cat_...; the operator makes one with catalogd token create")
	case !f.failures.take(time.Now()):
		w.Header().Set("Retry-After", "1")
		writeError(w, http.StatusTooManyRequests, "too many requests with tokens that are not good; try again later")
	default:
		f.unauthorized(w, `, error="invalid_token"`, "the token is not good: it is mistyped, expired, revoked, or was never made here")
	}
	return caller{}, false
}

// hosts are the values of Host that requests may have. Without tokens only this machine is served, by its own names.
func (f *Front) hosts() hosts {
	if f.Tokens == nil {
		return hosts{}
	}
	return hosts{remote: true, named: f.Hosts}
}

// unauthorized is the answer to a request that shows no token, or none that is good. Why it isn't is told to nobody.
func (f *Front) unauthorized(w http.ResponseWriter, more, text string) {
	f.metrics.unauthorized.Inc()
	w.Header().Set("WWW-Authenticate", `Bearer realm="catalogd"`+more)
	writeError(w, http.StatusUnauthorized, text)
}

// bearerOf is the secret that a request shows; shown is false where it shows none. Two can't both be meant.
func bearerOf(h http.Header) (secret string, shown bool) {
	values := h["Authorization"]
	if len(values) != 1 {
		return "", len(values) > 1
	}
	scheme, secret, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", true
	}
	return strings.TrimLeft(secret, " "), true
}

// The first failuresAtOnce tokens that are not good are answered 401, and then failuresASecond; more are answered 429. A
// good token is never held up by them, and guessing one is hopeless at any rate: this keeps a client that has gone wrong
// from filling what watches the answers.
const (
	failuresAtOnce  = 100
	failuresASecond = 10
)

// bucket lets through what comes at a bounded rate. Its zero value is full.
type bucket struct {
	mu   sync.Mutex
	used float64
	last time.Time
}

func (b *bucket) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = max(0, b.used-failuresASecond*now.Sub(b.last).Seconds())
	b.last = now
	if b.used+1 > failuresAtOnce {
		return false
	}
	b.used++
	return true
}

// Reauthorize ends what callers have open whose token is gone, has expired, or is not what it was; calls in flight end by
// themselves. It is called after the tokens have changed.
func (f *Front) Reauthorize() {
	if f.Tokens == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, b := range f.branches {
		if !f.authorized(b) {
			b.end()
			delete(f.branches, at)
		}
	}
	for b := range f.attached {
		if !f.authorized(b) {
			b.end()
		}
	}
}

// authorized reports whether the caller of a branch may go on with it.
func (f *Front) authorized(b *branch) bool {
	return b.caller.token == nil || b.caller.stillIs(f.Tokens.Get(b.caller.token.Hash), b.name)
}
