package derive

import (
	"encoding/json"
	"slices"
)

// meet returns the conjunction of a and b in its simplest form: in one schema if the keywords of one can be
// added to the other, else with b under allOf.
func meet(a, b *node) *node {
	switch {
	case a.empty():
		return b
	case b.empty():
		return a
	case a.ref == nil && b.simple():
		if n := a.with(b); n != nil {
			return n
		}
	case b.ref == nil && a.simple():
		if n := b.with(a); n != nil {
			return n
		}
	}
	out := *a
	out.also = append(slices.Clone(a.also), b)
	return &out
}

// empty reports whether n accepts everything and has no annotations.
func (n *node) empty() bool { return string(n.json()) == "{}" }

// simple reports whether n has only keywords that with can add to another node.
func (n *node) simple() bool {
	rest := *n
	rest.types, rest.patterns, rest.not, rest.also = nil, nil, nil, nil
	for _, raw := range rest.raws() {
		*raw = nil
	}
	for _, count := range rest.counts() {
		*count = nil
	}
	return rest.empty()
}

func (n *node) raws() []*json.RawMessage {
	return []*json.RawMessage{&n.minimum, &n.exclusiveMinimum, &n.maximum, &n.exclusiveMaximum, &n.multipleOf}
}

func (n *node) counts() []**int64 {
	return []**int64{&n.minLength, &n.maxLength, &n.minItems, &n.maxItems, &n.minProperties, &n.maxProperties}
}

// with adds a simple node; it returns nil if both have the same keyword with different values.
func (n *node) with(b *node) *node {
	out := *n
	var ok bool
	if out.types, ok = meetTypes(n.types, b.types); !ok {
		return nil
	}
	from := b.raws()
	for i, to := range out.raws() {
		if *to != nil && *from[i] != nil && string(*to) != string(*from[i]) {
			return nil
		}
		if *to == nil {
			*to = *from[i]
		}
	}
	counts := b.counts()
	for i, to := range out.counts() {
		if *to != nil && *counts[i] != nil && **to != **counts[i] {
			return nil
		}
		if *to == nil {
			*to = *counts[i]
		}
	}
	out.patterns = slices.Clone(n.patterns)
	for _, p := range b.patterns {
		out.patterns = appendNew(out.patterns, p)
	}
	out.not = append(slices.Clone(n.not), b.not...)
	out.also = append(slices.Clone(n.also), b.also...)
	return &out
}

// meetTypes returns the types that are in both; an empty list means every type. It returns false if there is
// none in common.
func meetTypes(a, b []string) ([]string, bool) {
	switch {
	case len(a) == 0:
		return b, true
	case len(b) == 0:
		return a, true
	}
	var out []string
	for _, t := range a {
		switch {
		case slices.Contains(b, t):
			out = append(out, t)
		case t == "integer" && slices.Contains(b, "number"), t == "number" && slices.Contains(b, "integer"):
			out = append(out, "integer")
		}
	}
	return out, len(out) > 0
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
