package lint

import "slices"

// dataEffect is the effect of another value in the data: of a collection that has only more members or only
// fewer.
func (s *effects) dataEffect(next *effects, path []string, old, now any, had, has bool) Effect {
	before, ok1 := elements(old, had)
	after, ok2 := elements(now, has)
	if !ok1 || !ok2 {
		return Undecided
	}
	grown, shrunk := !subset(after, before), !subset(before, after)
	switch {
	case !grown && !shrunk:
		return Neutral
	case grown && shrunk, had != has && s.conditional(path), had != has && next.conditional(path):
		return Undecided
	}
	effect := s.growthOf(path)
	if other := next.growthOf(path); other != effect {
		return Undecided
	}
	if shrunk {
		return effect.inverse()
	}
	return effect
}

// conditional reports whether a rule has the value at the path as a condition.
func (s *effects) conditional(path []string) bool {
	return slices.ContainsFunc(s.data, func(u dataUse) bool { return u.how == exists && len(u.path) == len(path) && overlaps(u.path, path) })
}

// elements are those of a list, as JSON. A missing value counts as an empty list.
func elements(v any, there bool) (out []string, ok bool) {
	list, ok := v.([]any)
	for _, elem := range list {
		out = append(out, jsonText(elem))
	}
	return out, ok || !there
}

// growthOf is the effect of more members of the list at path.
func (s *effects) growthOf(path []string) Effect {
	effect, seen := Neutral, false
	for _, u := range s.data {
		if !overlaps(u.path, path) {
			continue
		}
		exact, above := len(u.path) == len(path), len(u.path) < len(path)
		if above && u.how != used || !exact && !above && u.element {
			continue // the use of each element is recorded by itself
		}
		e := u.effect
		if u.how != member || u.keys || !exact {
			e = Undecided
		}
		if seen && e != effect {
			return Undecided
		}
		effect, seen = e, true
	}
	return effect
}

func overlaps(use []step, path []string) bool {
	for i := range min(len(use), len(path)) {
		if !use[i].any && use[i].name != path[i] {
			return false
		}
	}
	return true
}
