package derive

import (
	"fmt"
	"slices"
)

// sharedBytes is the size from which a struct that several arguments refer to by one name is moved to $defs.
// A smaller one is repeated at each use: a model reads it better in place than behind a $ref.
const sharedBytes = 200

// sharing finds the structs that came from a reference and are equal in several places.
type sharing struct {
	*walker
	found map[string]*shared // by all their constraints
}

type shared struct {
	uses int
	def  *definition
}

// share moves repeated definitions in top to $defs, in the order of their first use. Annotations that differ
// between uses (title, description, default, examples) stay at the use.
func (w *walker) share(top *node) {
	s := sharing{w, map[string]*shared{}}
	s.count(top)
	recursive := slices.Clone(w.defs)
	for _, d := range recursive {
		s.count(d.node)
	}
	s.replace(top)
	for _, d := range recursive {
		s.replace(d.node)
	}
}

// count counts the uses. The content of a repeated struct is counted once, because it appears once in $defs.
func (s sharing) count(n *node) {
	if core := n.core(); core != "" {
		if before := s.found[core]; before != nil {
			before.uses++
			return
		}
		s.found[core] = &shared{uses: 1}
	}
	n.children(s.count)
}

func (s sharing) replace(n *node) {
	use := s.found[n.core()]
	if use == nil || use.uses < 2 {
		n.children(s.replace)
		return
	}
	if use.def == nil {
		use.def = &definition{name: s.unused(n.name), node: n.constraints()}
		s.defs = append(s.defs, use.def)
		use.def.node.children(s.replace)
	}
	*n = node{
		ref: use.def, fallback: n.fallback, title: n.title, description: n.description, examples: n.examples,
		deprecated: n.deprecated, writeOnly: n.writeOnly, header: n.header, pos: n.pos,
	}
}

// core returns all constraints of a struct that came from a reference; "" for every other node and for small
// ones.
func (n *node) core() string {
	if n.name == "" || n.ref != nil || len(n.properties) == 0 {
		return ""
	}
	if core := n.constraints().json(); len(core) >= sharedBytes {
		return n.name + string(core)
	}
	return ""
}

// constraints returns n without annotations and without its name.
func (n *node) constraints() *node {
	b := *n
	b.name, b.title, b.description, b.examples, b.deprecated, b.writeOnly, b.header, b.fallback = "", "", "", nil, false, false, "", nil
	return &b
}

// unused returns name, or the first of name2, name3 ... that is not in $defs.
func (w *walker) unused(name string) string {
	taken := func(d *definition) bool { return d.name == name }
	base := name
	for i := 2; slices.ContainsFunc(w.open, taken) || slices.ContainsFunc(w.defs, taken); i++ {
		name = fmt.Sprintf("%s%d", base, i)
	}
	return name
}
