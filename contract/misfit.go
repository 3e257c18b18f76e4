package contract

import (
	"fmt"
	"slices"
)

// BadDefaults says which defaults in a schema of an upstream server their own schemas refuse, a line each, by
// the place in the arguments. It is for people: such a default is filled in nowhere, and no call is refused
// for it. A schema that can't be read has none.
func BadDefaults(schema []byte) []string {
	d := readDocument(Spec{Schema: schema, Upstream: true}, false)
	if d.broken != "" {
		return nil
	}
	found := map[string]string{}
	d.places(func(n *node, at string) {
		m, _ := d.find(n.pointer).(map[string]any)
		v, ok := m["default"]
		if !ok || found[at] != "" {
			return
		}
		if accepted, sure := n.accepts(v); sure && !accepted {
			where := at
			if where == "" {
				where = "the arguments"
			}
			found[at] = fmt.Sprintf("the default of %s, %s, does not fit its own schema", clip(where), clip(text(v)))
		}
	})
	var out []string
	for _, line := range found {
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}
