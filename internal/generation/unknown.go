package generation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// unknown returns the operator's error for a tool that the catalog doesn't have.
func (g *Generation) unknown(tool string) error {
	if invoke.Builtin(tool) {
		return fmt.Errorf("%q is a built-in tool, which no file declares: a branch lists it beside a tool with a "+
			"side effect, where the list and call decisions allow it (policy/access/data.yaml: deny)", tool)
	}
	for _, d := range g.inputs.degraded {
		if d.Name == tool {
			return fmt.Errorf("the catalog has no tool %q: %q of server %q is left out: %s",
				tool, d.Tool, d.Server, d.Reason)
		}
	}
	because := g.inputs.whyLeftOut(tool)
	var names []string
	for _, e := range g.registry.Entries() {
		names = append(names, e.Name())
	}
	err := fmt.Errorf("the catalog has no tool %q", tool)
	if because != "" {
		err = fmt.Errorf("%w: %s", err, because)
	}
	if near := registry.Nearest(tool, names); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
	}
	return err
}

// UnknownBranch returns the operator's error for a branch that doesn't exist.
func (g *Generation) UnknownBranch(name string) error {
	all := g.Branches()
	return &UnknownBranchError{Name: name, Nearest: registry.Nearest(name, all), Branches: all}
}

// UnknownBranchOf is UnknownBranch for who acts for a principal, and may open every declared branch: it names the
// principal's conversation branches as well.
func (g *Generation) UnknownBranchOf(name string, p decision.Principal) error {
	return g.UnknownBranchFor(name, p, func(string) bool { return true })
}

// UnknownConversation returns the error for a conversation branch that a principal doesn't have: UnknownBranchOf, or
// what can't be done with a declared branch.
func (g *Generation) UnknownConversation(name string, p decision.Principal) error {
	if _, declared := g.paths[name]; declared {
		return fmt.Errorf("branch %s is declared in the catalog, and only its files change it; fork it", name)
	}
	return g.UnknownBranchOf(name, p)
}

// UnknownBranchFor returns the error for a branch that doesn't exist for a principal. It names the declared branches
// that opens reports true for, and the principal's own conversation branches of them, and no others: a branch that
// the principal may not open is answered like one that does not exist.
func (g *Generation) UnknownBranchFor(
	name string, p decision.Principal, opens func(declared string) bool,
) *UnknownBranchError {
	all := slices.DeleteFunc(g.Branches(), func(b string) bool { return !opens(b) })
	for _, c := range g.conversations.Owned(OwnerOf(p)) {
		if _, served := g.paths[c.Root]; served && opens(c.Root) {
			all = append(all, c.Name)
		}
	}
	return &UnknownBranchError{Name: name, Nearest: registry.Nearest(name, all), Branches: all}
}

// UnknownBranchError reports that there is no branch of that name.
type UnknownBranchError struct {
	Name string
	// Nearest holds similar names, Branches all names that may be known to who has asked.
	Nearest, Branches []string
}

// listedBranches is how many branches the error of an unknown one names.
const listedBranches = 20

func (e *UnknownBranchError) Error() string {
	msg := fmt.Sprintf("there is no branch %q", registry.Shown(e.Name))
	switch {
	case len(e.Nearest) > 0:
		msg += "; did you mean " + strings.Join(e.Nearest, " or ") + "?"
	case len(e.Branches) > listedBranches:
		msg += fmt.Sprintf("; there are %s and %d more",
			strings.Join(e.Branches[:listedBranches], ", "), len(e.Branches)-listedBranches)
	case len(e.Branches) == 1:
		msg += "; there is " + e.Branches[0]
	case len(e.Branches) > 0:
		msg += "; there are " + strings.Join(e.Branches, ", ")
	}
	return msg
}
