package decision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// And returns the decision where two branches must allow the same thing: it allows only if both do, with the
// obligations of both. The shorter timeout counts, each rate limit, what both relay, everything that one of
// them redacts, the smaller result, and an approval if one of them requires one. Two approvals that no one
// person could give deny with UnsupportedObligation.
func (d Decision) And(other Decision) Decision {
	switch {
	case !d.Allow:
		return d
	case !other.Allow:
		return other
	}
	both := d
	both.Timeout = least(d.Timeout, other.Timeout)
	both.MaxBytes = least(d.MaxBytes, other.MaxBytes)
	both.Relay, both.Hosts = common(d.Relay, other.Relay), common(d.Hosts, other.Hosts)
	both.Redact = union(d.Redact, other.Redact)
	both.RedactPatterns = union(d.RedactPatterns, other.RedactPatterns)
	both.RateLimit, both.further = RateLimit{}, nil
	for _, l := range slices.Concat(d.RateLimits(), other.RateLimits()) {
		if both.RateLimit == (RateLimit{}) {
			both.RateLimit = l
		} else if !slices.Contains(both.RateLimits(), l) {
			both.further = append(both.further, l)
		}
	}
	approval, ok := bothApprove(d.RequireApproval, other.RequireApproval)
	if !ok {
		return deny(d.Point, UnsupportedObligation, fmt.Sprintf(
			"the branch and one that it was forked from require approvals that no one person can give: %s, and %s",
			d.RequireApproval, other.RequireApproval))
	}
	both.RequireApproval = approval
	return both
}

// RateLimits returns every rate limit that an allowed Call has to keep to: RateLimit, and those of And.
func (d Decision) RateLimits() []RateLimit {
	if d.RateLimit == (RateLimit{}) {
		return nil
	}
	return append([]RateLimit{d.RateLimit}, d.further...)
}

// bothApprove returns the approval that satisfies both; ok is false if there is none.
func bothApprove(a, b *Approval) (_ *Approval, ok bool) {
	if a == nil || b == nil {
		return cmp.Or(a, b), true
	}
	both := &Approval{
		Groups: common(a.Groups, b.Groups), Self: a.Self && b.Self, Reason: a.Reason, Expires: min(a.Expires, b.Expires),
	}
	if b.Reason != "" && b.Reason != a.Reason {
		both.Reason = strings.TrimPrefix(a.Reason+"; "+b.Reason, "; ")
	}
	return both, len(both.Groups) > 0 || both.Self
}

// least returns the smaller of two limits, of which 0 is none.
func least[T time.Duration | int](a, b T) T {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// common returns what two sorted lists have in common; not nil unless a is.
func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

// union returns what one of two sorted lists has, sorted; nil if that is nothing.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
