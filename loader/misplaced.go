package loader

import (
	"fmt"
	"slices"
	"strings"
)

// unknownField is the message about a field that s doesn't have: where a field of that name belongs, a similar name,
// or the names that there are.
func (s *shape) unknownField(name string) string {
	if where := s.belongs(name); where != "" {
		return fmt.Sprintf("there is no field %q here; it belongs %s", name, where)
	}
	return unknownField(name, s.names())
}

func unknownField(name string, known []string) string {
	if n := nearest(name, known); n != "" {
		return fmt.Sprintf("there is no field %q here; did you mean %q?", name, n)
	}
	return fmt.Sprintf("there is no field %q here; there are %s", name, strings.Join(known, ", "))
}

// belongs says where above or below s a field of that name is; empty if nowhere. Of what is above, the nearest counts
// first; of what is below, all of the uppermost level that has it.
func (s *shape) belongs(name string) string {
	for inner := s; inner.above != nil; inner = inner.above {
		if inner.above.fields[name] == nil {
			continue
		}
		if path := inner.above.path(); path != "" {
			return "in " + path
		}
		return fmt.Sprintf("beside %s, not in it", inner.label)
	}
	for level := []*shape{s}; len(level) > 0; {
		var next []*shape
		var found []string
		for _, of := range level {
			for _, label := range of.names() {
				f := of.fields[label]
				if f.fields[name] != nil {
					found = append(found, f.path())
				}
				next = append(next, f)
			}
		}
		if found != nil {
			return "in " + orList(found)
		}
		level = next
	}
	return ""
}

// path is where s stands in its definition, such as binding.http; empty for the definition itself.
func (s *shape) path() string {
	var labels []string
	for ; s.above != nil; s = s.above {
		labels = append(labels, s.label)
	}
	slices.Reverse(labels)
	return strings.Join(labels, ".")
}

// orList joins names as alternatives: a, b or c.
func orList(names []string) string {
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " or " + names[n]
	}
	return names[0]
}
