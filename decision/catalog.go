package decision

import (
	"context"
	"io/fs"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/problem"
)

// Catalog is what a policy decides about, to check it against.
type Catalog struct {
	// Tools, Branches and Servers are all that is declared.
	Tools    []Tool
	Branches []Branch
	Servers  []string
	// Incomplete says that servers have tools that are not known yet; names of tools and tags are then not checked.
	Incomplete bool
	// Trusted names the trust entries through which something is reached.
	Trusted []string
	// Reached are the questions that the connect decision is asked for what is declared.
	Reached []ConnectInput
	// Principals are fixtures of who calls; without any, rules about principals are not judged.
	Principals []Principal
	// Shipped is the root of the starter catalog, whose rules are not judged where they stand as they are there; it may be nil.
	Shipped fs.FS
}

// CheckCatalog warns of what the policy says about names that the catalog doesn't have, of trust entries through which
// nothing is reached, and of rules that are true for nothing that is declared. It takes as long as asking that may take:
// for checks, not for reloads.
func (e *Engine) CheckCatalog(ctx context.Context, c Catalog) problem.List {
	return slices.Concat(e.checkNames(c), e.unusedTrust(c), e.idleRules(ctx, c)).Sorted()
}

// unusedTrust warns of entries of data.trust.entries that no decision answered with, where the connect policy reads them.
func (e *Engine) unusedTrust(c Catalog) (problems problem.List) {
	entries := ast.MustParseRef("data.trust.entries")
	reads := false
	for _, module := range closure(e.modules, pointSpec{point: Connect}.path()) {
		ast.WalkRefs(module, func(r ast.Ref) bool {
			reads = reads || r.HasPrefix(entries)
			return reads
		})
	}
	for _, entry := range e.trustEntries() {
		if reads && !slices.Contains(c.Trusted, entry.value) {
			problems.Warnf(problem.UnusedTrust, entry.pos, "data.trust.entries."+entry.value,
				"nothing is reached through the trust entry %q: mend it, or take it out; `catalogd trust` shows what is asked", entry.value)
		}
	}
	return problems
}
