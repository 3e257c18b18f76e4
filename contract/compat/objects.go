package compat

import (
	"cmp"
	"maps"
	"slices"
)

// required lists the keys that every object of a conjunction has.
func (c conjunction) required() (out []string) {
	for _, s := range c {
		for _, name := range s.required {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// member is what holds for the value of a key.
func (c conjunction) member(name string) (out conjunction) {
	for _, s := range c {
		out = append(out, s.member(name)...)
	}
	return out
}

// matching is what certainly holds for the values of keys that no property declares and that match a pattern.
func (c conjunction) matching(p pattern) (out conjunction) {
	for _, s := range c {
		switch {
		case s.patterns[p] != nil:
			out = append(out, s.patterns[p])
		case s.additional != nil && len(s.patterns) == 0:
			out = append(out, s.additional)
		}
	}
	return out
}

// unmatched is what certainly holds for the values of keys that no property declares and that match no
// pattern.
func (c conjunction) unmatched() (out conjunction) {
	for _, s := range c {
		if s.additional != nil {
			out = append(out, s.additional)
		}
	}
	return out
}

func (p *prover) objects(sub conjunction, super *subschema) (found []gap) {
	required := sub.required()
	for _, name := range super.required {
		if !slices.Contains(required, name) {
			found = append(found, gap{path: []step{{key: name}}, kind: "required", sub: sub, super: super,
				what: p.words("required now", "no longer required")})
		}
	}
	fewest := max(len(required), sub.most(func(s *subschema) int { return s.minProperties }))
	most := sub.least((*subschema).mostProperties)
	found = append(found, p.atLeast("minProperties", fewest, super.minProperties, sub, super)...)
	found = append(found, p.atMost("maxProperties", most, super.maxProperties, sub, super)...)
	found = append(found, p.members(sub, super)...)
	if super.names != nil && !p.namesFit(sub, super.names) {
		found = append(found, unproved("propertyNames", "names that may not be allowed by the other", sub, super))
	}
	return found
}

// closed reports whether s accepts no other keys than its properties.
func (s *subschema) closed() bool {
	return s.additional != nil && s.additional.never && len(s.patterns) == 0
}

// mostProperties is the most keys that an object of s can have; -1 for no limit.
func (s *subschema) mostProperties() int {
	switch {
	case !s.closed():
		return s.maxProperties
	case s.maxProperties >= 0:
		return min(s.maxProperties, len(s.properties))
	}
	return len(s.properties)
}

// members proves for the value of every key: those that either side declares, those of patterns, and all
// others.
func (p *prover) members(sub conjunction, super *subschema) (found []gap) {
	names, patterns := maps.Clone(super.properties), maps.Clone(super.patterns)
	for _, s := range sub {
		names, patterns = union(names, s.properties), union(patterns, s.patterns)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		for _, want := range super.member(name) {
			found = append(found, p.descend(step{key: name}, sub.member(name), want)...)
		}
	}
	for _, pattern := range slices.SortedFunc(maps.Keys(patterns), comparePatterns) {
		if want := cmp.Or(super.patterns[pattern], super.additional); want != nil {
			at := step{key: pattern.text, any: true}
			found = append(found, p.descend(at, sub.matching(pattern), want)...)
		}
	}
	if super.additional != nil {
		found = append(found, p.descend(step{any: true}, sub.unmatched(), super.additional)...)
	}
	return found
}

func union[K comparable, V any](a, b map[K]V) map[K]V {
	if a == nil {
		return maps.Clone(b)
	}
	maps.Copy(a, b)
	return a
}

func comparePatterns(a, b pattern) int {
	if c := cmp.Compare(a.text, b.text); c != 0 || a.upstream == b.upstream {
		return c
	}
	if b.upstream {
		return -1
	}
	return 1
}

// namesFit proves that want accepts the names of all keys of sub.
func (p *prover) namesFit(sub conjunction, want *subschema) bool {
	for _, s := range sub {
		if s.names != nil && p.proves(conjunction{s.names}, want) {
			return true
		}
	}
	i := slices.IndexFunc(sub, (*subschema).closed)
	if i < 0 {
		return false
	}
	for name := range sub[i].properties {
		if valid, decided := want.accepts(name); !valid || !decided {
			return false
		}
	}
	return true
}
