package compat

import "slices"

// item is what holds for the item at an index.
func (c conjunction) item(i int) (out conjunction) {
	for _, s := range c {
		if item := s.item(i); item != nil {
			out = append(out, item)
		}
	}
	return out
}

func (c conjunction) minItems() int { return c.most(func(s *subschema) int { return s.minItems }) }

// longest is the most items that an array of a conjunction can have; -1 for no limit.
func (c conjunction) longest() int {
	out := c.least(func(s *subschema) int { return s.maxItems })
	for i := 0; i <= c.most(func(s *subschema) int { return len(s.prefix) }) && (out < 0 || i < out); i++ {
		if slices.ContainsFunc(c.item(i), func(s *subschema) bool { return s.never }) {
			return i
		}
	}
	return out
}

func (p *prover) arrays(sub conjunction, super *subschema) (found []gap) {
	longest := sub.longest()
	found = append(found, p.atLeast("minItems", sub.minItems(), super.minItems, sub, super)...)
	found = append(found, p.atMost("maxItems", longest, super.maxItems, sub, super)...)
	declared := max(len(super.prefix), sub.most(func(s *subschema) int { return len(s.prefix) }))
	for i := 0; i <= declared && (longest < 0 || i < longest); i++ {
		if want := super.item(i); want != nil {
			at := step{index: i, array: true, any: i == declared}
			found = append(found, p.descend(at, sub.item(i), want)...)
		}
	}
	contains := func(s *subschema) bool {
		return s.contains != nil && !s.counted && p.proves(conjunction{s.contains}, super.contains)
	}
	if super.contains != nil && (super.counted || !slices.ContainsFunc(sub, contains)) {
		found = append(found, unproved("contains", "what an array must contain can't be compared", sub, super))
	}
	return found
}
