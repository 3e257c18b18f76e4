package contract

import "slices"

// applicable appends to out the subschemas that apply to v: s, the targets of its $ref and allOf, the
// alternative that branch selects, and then or else. The recursion ends because New refuses references that
// lead back to themselves at the same value.
func (s *shape) applicable(v any, w *work, out []*shape) []*shape {
	if s == nil || slices.Contains(out, s) {
		return out
	}
	out = append(out, s)
	out = s.target.applicable(v, w, out)
	for _, part := range s.allOf {
		out = part.applicable(v, w, out)
	}
	out = s.branch(v).applicable(v, w, out)
	return s.consequence(v, w).applicable(v, w, out)
}

// at returns the subschemas that apply at a path below v, and the value there; nil if there is no such value.
func (s *shape) at(v any, path []string) ([]*shape, any) {
	return applicableAt(s.applicable(v, nil, nil), v, path)
}

// applicableAt is like at, starting from the subschemas that apply to v.
func applicableAt(here []*shape, v any, path []string) ([]*shape, any) {
	for _, step := range path {
		var next []*shape
		child, ok := any(nil), false
		switch parent := v.(type) {
		case map[string]any:
			child, ok = parent[step]
			for _, h := range here {
				for _, m := range h.members(step) {
					next = m.applicable(child, nil, next)
				}
			}
		case []any:
			i := smallInt(step)
			if ok = i < len(parent); ok {
				child = parent[i]
				for _, h := range here {
					next = h.item(i).applicable(child, nil, next)
				}
			}
		}
		if !ok {
			return nil, nil
		}
		here, v = next, child
	}
	return here, v
}

// branch returns the alternative that an object or array fits; nil if it fits none or several.
func (s *shape) branch(v any) (one *shape) {
	if kind := kindOf(v); kind != "object" && kind != "array" {
		return nil
	}
	for _, b := range s.anyOf {
		if b.fits(v) {
			if one != nil {
				return nil
			}
			one = b
		}
	}
	return one
}

// hides reports whether the value at path may be a secret: whether it, or a value that contains it, is
// declared as one in any alternative or condition.
func (s *shape) hides(path []string) bool {
	here := s.possible(nil)
	for {
		if slices.ContainsFunc(here, func(h *shape) bool { return h.secret }) {
			return true
		}
		if len(path) == 0 || len(here) == 0 {
			return false
		}
		var below []*shape
		for _, h := range here {
			for _, m := range h.members(path[0]) {
				below = m.possible(below)
			}
			for _, item := range append(h.prefix, h.items) {
				below = item.possible(below)
			}
		}
		here, path = below, path[1:]
	}
}

// besideSecret reports whether a value below path may be a secret. A misspelt key at path, or a wrong value
// in its place, may then be that secret.
func (s *shape) besideSecret(path []string) bool {
	here := s.possible(nil)
	for _, step := range path {
		var below []*shape
		for _, h := range here {
			for _, m := range h.members(step) {
				below = m.possible(below)
			}
			for _, item := range append(h.prefix, h.items) {
				below = item.possible(below)
			}
		}
		here = below
	}
	seen := map[*shape]bool{}
	for len(here) > 0 {
		s := here[0]
		here = here[1:]
		if s == nil || seen[s] {
			continue
		}
		if seen[s] = true; s.secret {
			return true
		}
		here = append(here, s.children()...)
	}
	return false
}

// possible appends to out all shapes that may apply to the same value as s, whatever the value.
func (s *shape) possible(out []*shape) []*shape {
	if s == nil || slices.Contains(out, s) {
		return out
	}
	out = append(out, s)
	for _, list := range [][]*shape{{s.target, s.then, s.otherwise}, s.allOf, s.anyOf} {
		for _, c := range list {
			out = c.possible(out)
		}
	}
	return out
}

// declared returns the sorted names of the properties of all shapes.
func declared(here []*shape) (names []string) {
	for _, s := range here {
		for name, p := range s.properties {
			if !p.never {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
