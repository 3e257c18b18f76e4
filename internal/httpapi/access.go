package httpapi

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/token"
)

// need is what an endpoint requires of its caller.
type need int

const (
	nothing need = iota // for monitoring of this process
	someone
	admin
)

// authenticate identifies the caller of a request, and answers the request if the caller lacks what n
// requires. A secret is accepted in the Authorization header only: URLs end up in histories and logs (RFC
// 6750, 5.3).
func (a *API) authenticate(w http.ResponseWriter, r *http.Request, n need) (c token.Caller, ok bool) {
	if a.MCP.Tokens == nil {
		return token.Operator(), true
	}
	secret, shown := bearerOf(r.Header)
	if t := a.MCP.Tokens.Find(secret); t != nil {
		if c = token.Bearer(t); n != admin || t.Admin {
			return c, true
		}
		branch := a.addressed(r)
		who := c.Principal
		a.MCP.RecordRefused(decision.AdminRequired, branch, &who, "", "")
		mcpserver.WriteError(w, http.StatusForbidden, "token "+t.Name+" does not have --admin; make one with catalogd token create --admin")
		return token.Caller{}, false
	}
	switch {
	case n == nothing:
		return token.Caller{}, true
	case !shown:
		a.refused(decision.TokenMissing, r)
		a.unauthorized(w, "", "a token is needed: Authorization: Bearer cat_...; the operator makes one with catalogd token create")
	case !a.failures.take(time.Now()):
		a.refused(decision.TokenInvalid, r)
		w.Header().Set("Retry-After", "1")
		mcpserver.WriteError(w, http.StatusTooManyRequests, "too many requests with tokens that are not good; try again later")
	default:
		a.refused(decision.TokenInvalid, r)
		a.unauthorized(w, `, error="invalid_token"`, "the token is not good: it is mistyped, expired, revoked, or was never made here")
	}
	return token.Caller{}, false
}

// opens reports whether the caller may open a branch, and answers the request if not: like one for a branch that does
// not exist.
func (a *API) opens(w http.ResponseWriter, c token.Caller, branch string) bool {
	if _, ok := a.MCP.Root(branch, c); ok {
		return true
	}
	a.MCP.RecordRefused(decision.UnknownBranch, branch, &c.Principal, "", "")
	a.MCP.NoBranch(w, c, branch)
	return false
}

// hosts returns the values of Host that requests may have. Without tokens only local clients are served, by
// the loopback names.
func (a *API) hosts() hosts {
	if a.MCP.Tokens == nil {
		return hosts{}
	}
	return hosts{remote: true, named: a.Hosts}
}

// unauthorized answers a request without a valid token. It doesn't say why a token is invalid.
func (a *API) unauthorized(w http.ResponseWriter, more, text string) {
	a.Metrics.unauthorized.Inc()
	w.Header().Set("WWW-Authenticate", `Bearer realm="catalogd"`+more)
	mcpserver.WriteError(w, http.StatusUnauthorized, text)
}

// bearerOf returns the secret of a request; shown is false if it has none. Two are invalid.
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

// The first failuresAtOnce invalid tokens are answered 401, and then failuresASecond; more are answered 429.
// Valid tokens are never delayed by them, and guessing one is infeasible at any rate: the limit keeps a
// faulty client from flooding what monitors the answers.
const (
	failuresAtOnce  = 100
	failuresASecond = 10
)

// bucket is a token bucket that limits a rate. The zero value is full.
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
