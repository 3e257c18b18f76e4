package egress

import (
	"net/http"
	"slices"

	"github.com/catalogd/catalogd/decision/trust"
)

// baseHeaders are the headers that any declaration may send to an address that it may reach: they say in what
// form and language the two sides write and which program asks, and not who may do what. Any other may route
// the request, change its method, or speak for somebody (X-Forwarded-For, X-HTTP-Method-Override, Cookie), so
// the trust entry names it. The list is docs/policy.md's, and that of policy/catalogd/entries.rego.
var baseHeaders = []string{"Accept", "Accept-Language", "Content-Type", "User-Agent"}

// BaseHeaders are the headers that a declaration may send to every address that it may reach, in canonical
// form.
func BaseHeaders() []string { return slices.Clone(baseHeaders) }

// BaseHeader reports whether a declaration may send the header to every address that it may reach, in any
// case.
func BaseHeader(name string) bool {
	return slices.Contains(baseHeaders, http.CanonicalHeaderKey(name))
}

// unnamedHeaders are the target's headers that are neither of the base nor named by tr.
func unnamedHeaders(tr trust.Trust, target trust.Target) []string {
	granted := tr.Headers()
	for i, name := range granted {
		granted[i] = http.CanonicalHeaderKey(name)
	}
	return slices.DeleteFunc(slices.Clone(target.Headers), func(name string) bool {
		return BaseHeader(name) || slices.Contains(granted, http.CanonicalHeaderKey(name))
	})
}
