package contract

import (
	"encoding/json"
	"maps"
	"slices"
)

// kinds are those that s takes, through references, parts and alternatives.
func (s *shape) kinds() kinds {
	if s == nil {
		return allKinds
	}
	k := kinds(allKinds)
	if s.never {
		return 0
	}
	if len(s.types) > 0 {
		k = 0
		for _, name := range s.types {
			k |= kindNames[name]
		}
	}
	if len(s.enum) > 0 {
		var listed kinds
		for _, v := range s.enum {
			listed |= kindsOf(v)
		}
		k &= listed
	}
	if s.target != nil {
		k &= s.target.kinds()
	}
	if len(s.anyOf) > 0 {
		var some kinds
		for _, b := range s.anyOf {
			some |= b.kinds()
		}
		k &= some
	}
	for _, part := range s.allOf {
		k &= part.kinds()
	}
	return k
}

// coerce turns v into the kind that is declared where its own isn't, at every depth: the text of a number into the number,
// "true" and "false" into booleans, a number into its digits as text, and one value into a list of it. Nothing else is
// turned into anything, and what has a declared kind stays as it is (docs/arguments.md has the table). here holds for v.
// It changes maps and arrays in place.
func coerce(v any, here []*shape, w *work) any {
	if len(here) == 0 || !w.spend(len(here)) {
		return v
	}
	declared := kinds(allKinds)
	for _, s := range here {
		declared &= s.kinds()
	}
	if kindsOf(v)&declared == 0 {
		v = turned(v, declared)
	}
	switch v := v.(type) {
	case map[string]any:
		// What a member becomes may decide on an alternative or a condition, and so on what holds for the others.
		var before []*shape
		for again := range 2 {
			var now []*shape
			for _, s := range here {
				now = s.holding(v, w, now)
			}
			if again > 0 && slices.Equal(now, before) {
				break
			}
			before = now
			for _, name := range slices.Sorted(maps.Keys(v)) {
				var below []*shape
				for _, s := range now {
					below = append(below, s.members(name)...)
				}
				v[name] = coerce(v[name], below, w)
			}
		}
	case []any:
		var now []*shape
		for _, s := range here {
			now = s.holding(v, w, now)
		}
		for i := range v {
			var below []*shape
			for _, s := range now {
				if item := s.item(i); item != nil {
					below = append(below, item)
				}
			}
			v[i] = coerce(v[i], below, w)
		}
	}
	return v
}

func turned(v any, to kinds) any {
	switch v := v.(type) {
	case string:
		if n, ok := numberIn(v); ok && kindsOf(n)&to != 0 {
			return n
		}
		if to&booleanKind != 0 && (v == "true" || v == "false") {
			return v == "true"
		}
	case json.Number:
		if to&stringKind != 0 {
			return string(v)
		}
	}
	if to&arrayKind != 0 && v != nil {
		return []any{v}
	}
	return v
}

// numberIn reads text that is a JSON number and nothing else, within the limits of numbers.
func numberIn(s string) (json.Number, bool) {
	if s == "" || len(s) > maxNumber || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return "", false
	}
	if last := s[len(s)-1]; last < '0' || last > '9' {
		return "", false
	}
	v, found := decode([]byte(s))
	n, ok := v.(json.Number)
	return n, ok && len(found) == 0
}
