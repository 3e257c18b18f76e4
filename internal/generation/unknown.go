package generation

import (
	"fmt"
	"strings"

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
	var names []string
	for _, e := range g.registry.Entries() {
		names = append(names, e.Name())
	}
	err := fmt.Errorf("the catalog has no tool %q", tool)
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

// UnknownBranchError reports that there is no branch of that name.
type UnknownBranchError struct {
	Name string
	// Nearest holds similar names, Branches all names.
	Nearest, Branches []string
}

func (e *UnknownBranchError) Error() string {
	msg := fmt.Sprintf("there is no branch %q", e.Name)
	switch {
	case len(e.Nearest) > 0:
		msg += "; did you mean " + strings.Join(e.Nearest, " or ") + "?"
	case 0 < len(e.Branches) && len(e.Branches) <= 20:
		msg += "; there are " + strings.Join(e.Branches, ", ")
	}
	return msg
}
