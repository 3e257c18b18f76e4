package catalogd

import (
	"errors"
	"fmt"
	"slices"

	"github.com/catalogd/catalogd/registry"
)

// AddFunc adds a Go function to the branch, as a tool of the function's name that no file declares. The branch shows
// it, and so do those that are forked from it; no other does. Its calls take the path of every call: the list, call
// and result decisions of every branch from the declared one down, and Config.Processors.
//
// The error wraps registry.ErrDuplicate, and says what has the name, if the branch has such a function already, or the
// catalog or a branch above a tool of that name, shown or not: a function takes no declared tool's place. It is
// another error if the policy, or select or hide of a branch above, does not let the branch show it, with the reason;
// if the function is of effect write, which only a declared tool can be (binding: func); or if it has a Setup or
// Teardown and is not in Config.Functions. Nothing is added then.
//
// The function is kept in memory until it is removed (Remove) or the branch ends. Its name is stored with the branch:
// after a restart Lost has it until the program adds it again. Lost also has it while a reload of the files hides it.
func (c Conversation) AddFunc(f *registry.Function) error { return c.addFunc(f, false) }

// ReplaceFunc is AddFunc for a name for which the branch may have a function already, which it replaces.
func (c Conversation) ReplaceFunc(f *registry.Function) error { return c.addFunc(f, true) }

func (c Conversation) addFunc(f *registry.Function, update bool) error {
	tool, err := c.catalog.toolOf(f)
	if err != nil {
		return err
	}
	g, release := c.catalog.daemon.Pin()
	defer release()
	_, err = g.AddFunction(c.name, c.principal, tool, update)
	return err
}

// toolOf returns the tool of a function that no file declares.
func (c *Catalog) toolOf(f *registry.Function) (*registry.Entry, error) {
	switch {
	case f == nil:
		return nil, errors.New("the function is nil; check the error of registry.Func")
	case f.IsStandIn():
		return nil, fmt.Errorf("function %q only stands in for that of another program, so it can't be called", f.Name())
	case f.Effect() != registry.Read:
		return nil, fmt.Errorf("function %q has effect: %q, and what changes something must outlive its branch and the process: "+
			"declare its tool in the catalog (binding: func: %q), and put it into Config.Functions", f.Name(), f.Effect(), f.Name())
	case f.IsSetUp() && !slices.Contains(c.functions, f):
		return nil, fmt.Errorf("function %q has a Setup or Teardown, which run with the catalog: put it into Config.Functions too", f.Name())
	}
	bound := f.Bound()
	bound.Before, bound.After = registry.BindProcessors(c.processors, f.Name())
	return registry.NewEntry(f.Tool(), bound, nil)
}
