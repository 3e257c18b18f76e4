package compat

import "github.com/catalogd/catalogd/contract/internal/jsontype"

// maxEmptyDepth bounds how deep into members and alternatives empty and types look.
const maxEmptyDepth = 4

// types are the types that values of a conjunction may have. It certainly has no value of any other type.
func (p *prover) types(c conjunction, depth int) jsontype.Set {
	all := jsontype.All
	for _, s := range c {
		if s.never {
			return 0
		}
		all &= s.types
		if s.finite {
			var listed jsontype.Set
			for _, v := range s.enum {
				listed |= jsontype.Of(v)
			}
			all &= listed
		}
	}
	if lower, upper := c.lower(), c.upper(); lower != nil && upper != nil {
		if order := lower.at.Cmp(upper.at); order > 0 || order == 0 && (lower.exclusive || upper.exclusive) {
			all &^= jsontype.Number
		}
	}
	if all&jsontype.Object != 0 && depth < maxEmptyDepth {
		for _, name := range c.required() {
			if p.empty(c.member(name), depth+1) {
				return all &^ jsontype.Object
			}
		}
	}
	return all
}

// empty reports whether a conjunction certainly has no value.
func (p *prover) empty(c conjunction, depth int) bool {
	if *p.steps--; *p.steps < 0 || depth > maxEmptyDepth {
		return false
	}
	c = flatten(c)
	if p.types(c, depth) == 0 {
		return true
	}
	for _, s := range c {
		if s.finite {
			for _, v := range s.enum {
				if p.possible(c, v) {
					return false
				}
			}
			return true
		}
		if s.not != nil && s.not.acceptsAll() {
			return true
		}
	}
	alternatives := c.alternatives()
	for _, a := range alternatives {
		if !p.empty(a, depth+1) {
			return false
		}
	}
	return alternatives != nil
}
