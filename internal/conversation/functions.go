package conversation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/catalogd/catalogd/registry"
)

// Functions are Go functions of the program, as tools by their names. A function is in memory alone, so its JSON is
// its name, and after a restart its tool is nil until the program adds it again.
type Functions map[string]*registry.Entry

// MarshalJSON writes the names, in order.
func (f Functions) MarshalJSON() ([]byte, error) { return json.Marshal(slices.Sorted(maps.Keys(f))) }

// UnmarshalJSON reads the names.
func (f *Functions) UnmarshalJSON(data []byte) error {
	var names []string
	if err := json.Unmarshal(data, &names); err != nil {
		return err
	}
	*f = Functions{}
	for _, name := range names {
		if !registry.ValidName(name) {
			return fmt.Errorf("%q is not a name of a tool", registry.Shown(name))
		}
		(*f)[name] = nil
	}
	return nil
}

// PutFunction adds a Go function to the branch. If the branch has one of its name already, the error wraps
// registry.ErrDuplicate, or with update that is replaced. One that was lost by a restart is only named, and added
// again.
func (t *Terms) PutFunction(function *registry.Entry, update bool) error {
	name := function.Name()
	if t.Functions[name] != nil && !update {
		return fmt.Errorf("%w %q: the program has added a Go function of this name to this branch already; ReplaceFunc replaces it",
			registry.ErrDuplicate, name)
	}
	if t.Functions == nil {
		t.Functions = Functions{}
	}
	t.Functions[name] = function
	return nil
}
