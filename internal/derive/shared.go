package derive

import (
	"fmt"
	"slices"
)

// sharedBytes is from which size on a struct that several arguments refer to by one name stands once, in $defs. A smaller
// one is written out wherever it is used: a model reads it better in its place than behind a $ref.
const sharedBytes = 200

// sharing finds the structs that came through a reference and say the same in several places.
type sharing struct {
	*walker
	found map[string]*shared // by all that they constrain
}

type shared struct {
	uses int
	def  *definition
}

// share moves what top says of one definition in several places to $defs, in the order of its first use. What tells the
// uses apart and constrains nothing (title, description, default, examples) stays where it is used.
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

// count counts the uses. What stands inside of a repetition stands in $defs but once.
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
		deprecated: n.deprecated, writeOnly: n.writeOnly, pos: n.pos,
	}
}

// core is all that a struct which came through a reference constrains; empty for every other node and for small ones.
func (n *node) core() string {
	if n.name == "" || n.ref != nil || len(n.properties) == 0 {
		return ""
	}
	if core := n.constraints().json(); len(core) >= sharedBytes {
		return n.name + string(core)
	}
	return ""
}

// constraints is n without what constrains nothing and without its name.
func (n *node) constraints() *node {
	b := *n
	b.name, b.title, b.description, b.examples, b.deprecated, b.writeOnly, b.fallback = "", "", "", nil, false, false, nil
	return &b
}

// unused is name, or the first of name2, name3 ... that no definition has.
func (w *walker) unused(name string) string {
	taken := func(d *definition) bool { return d.name == name }
	base := name
	for i := 2; slices.ContainsFunc(w.open, taken) || slices.ContainsFunc(w.defs, taken); i++ {
		name = fmt.Sprintf("%s%d", base, i)
	}
	return name
}
