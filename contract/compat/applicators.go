package compat

import "slices"

// applicators proves the keywords of super that apply subschemas to the same value.
func (p *prover) applicators(sub conjunction, super *subschema) (found []gap) {
	if super.ref != nil {
		found = append(found, p.prove(sub, super.ref)...)
	}
	for _, part := range super.allOf {
		found = append(found, p.prove(sub, part)...)
	}
	if super.anyOf != nil {
		found = append(found, p.alternative(sub, super, super.anyOf, "anyOf")...)
	}
	if super.oneOf != nil && !p.sameOneOf(sub, super) {
		found = append(found, p.alternative(sub, super, super.oneOf, "oneOf")...)
	}
	if super.not != nil && !p.disjoint(sub, super.not) {
		found = append(found, unproved("not", p.changed("nothing of it", "values excluded"), sub, super))
	}
	if super.when != nil {
		found = append(found, p.conditional(sub, super)...)
	}
	return found
}

// alternative proves that all of sub fits one branch of an anyOf or oneOf, and of a oneOf no other.
func (p *prover) alternative(sub conjunction, super *subschema, branches []*subschema, kind string) []gap {
	var near [][]gap
	types := p.types(sub, 0)
	for i, branch := range branches {
		found := p.prove(sub, branch)
		if len(found) == 0 && kind == "oneOf" {
			for j, other := range branches {
				if i != j && !p.disjoint(sub, other) {
					found = append(found, unproved(kind, "alternatives that may overlap", sub, super))
					break
				}
			}
		}
		if len(found) == 0 {
			return nil
		}
		if types&^p.types(conjunction{branch}, 0) == 0 {
			near = append(near, found)
		}
	}
	if len(near) == 1 { // the only branch of the same types: its gaps say best what is missing
		return near[0]
	}
	const what = "some of its values fit no alternative that "
	return []gap{unproved(kind, what+p.words("is there now", "was there before"), sub, super)}
}

// sameOneOf reports whether sub chooses between the same branches as super, in the same order, so that
// whether they overlap is of no matter.
func (p *prover) sameOneOf(sub conjunction, super *subschema) bool {
	same := func(a, b *subschema) bool { return p.proves(conjunction{a}, b) && p.proves(conjunction{b}, a) }
	return slices.ContainsFunc(sub, func(s *subschema) bool {
		return slices.EqualFunc(s.oneOf, super.oneOf, same)
	})
}

// disjoint reports whether no value of sub is valid against other.
func (p *prover) disjoint(sub conjunction, other *subschema) bool {
	if p.empty(append(slices.Clone(sub), other), 0) {
		return true
	}
	return slices.ContainsFunc(sub, func(s *subschema) bool {
		return s.not != nil && p.proves(conjunction{other}, s.not)
	})
}

// conditional proves then for the values for which if holds, and else for all others. Where sub has the same
// if, its own then and else hold for them too.
func (p *prover) conditional(sub conjunction, super *subschema) (found []gap) {
	then, otherwise := append(slices.Clone(sub), super.when), slices.Clone(sub)
	for _, s := range sub {
		if s.when == nil || !sameText(s.when, super.when) {
			continue
		}
		if s.then != nil {
			then = append(then, s.then)
		}
		if s.otherwise != nil {
			otherwise = append(otherwise, s.otherwise)
		}
	}
	if super.then != nil {
		found = p.prove(then, super.then)
	}
	if super.otherwise != nil {
		found = append(found, p.prove(otherwise, super.otherwise)...)
	}
	return found
}
