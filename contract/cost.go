package contract

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/contract/internal/quote"
)

// The time of a validation can be exponential in the size of the schema or of the value. Forty definitions
// that each refer twice to the next one take years for a call of two bytes. New refuses such schemas. Two
// alternatives that refer to themselves take years for a call of sixty levels. Such schemas are common
// (expressions in expressions), so Check refuses the call if validating it would cost more than maxWork.

const (
	// maxWeight is the maximum number of schemas that apply to one value.
	maxWeight = 2000
	// maxWork is the maximum number of schemas that are applied in the check of one call.
	maxWork = 1_000_000
)

// checkCost returns an error for a schema that is too expensive to validate: one with a reference that leads
// back to itself at the same value, or with more than maxWeight schemas at one value. It ignores references
// that lead nowhere.
func checkCost(schema any) error {
	w := weigher{top: schema, known: map[string]int{}}
	return w.everywhere(schema, "")
}

type weigher struct {
	top   any
	known map[string]int // weights by $ref; open while one is being weighed
}

const open = -1

// everywhere weighs each schema in a document.
func (w *weigher) everywhere(v any, pointer string) error {
	switch v := v.(type) {
	case map[string]any:
		n, err := w.weigh(v)
		if err == nil && n > maxWeight {
			err = fmt.Errorf("more than %d schemas would apply to one value", maxWeight)
		}
		if err != nil {
			if pointer != "" {
				err = fmt.Errorf("%w, at %s", err, quote.Clip(pointer))
			}
			return err
		}
		for _, keyword := range slices.Sorted(maps.Keys(v)) {
			switch keyword {
			case "const", "enum", "default", "examples":
			case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
				named, _ := v[keyword].(map[string]any)
				for _, name := range slices.Sorted(maps.Keys(named)) {
					if err := w.everywhere(named[name], pointer+"/"+keyword+"/"+escapePointer(name)); err != nil {
						return err
					}
				}
			default:
				if err := w.everywhere(v[keyword], pointer+"/"+escapePointer(keyword)); err != nil {
					return err
				}
			}
		}
	case []any:
		for i, item := range v {
			if err := w.everywhere(item, pointer+"/"+strconv.Itoa(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// weigh returns the number of schemas that apply to the same value as this one, including it, but at most
// maxWeight+1.
func (w *weigher) weigh(schema any) (n int, err error) {
	n = 1
	m, _ := schema.(map[string]any)
	add := func(v any) {
		if v == nil || err != nil || n > maxWeight {
			return
		}
		var more int
		more, err = w.weigh(v)
		n += more
	}
	for _, keyword := range []string{"if", "then", "else", "not"} {
		add(m[keyword])
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := m[keyword].([]any)
		for _, item := range list {
			add(item)
		}
	}
	for _, keyword := range []string{"dependentSchemas", "dependencies"} {
		named, _ := m[keyword].(map[string]any)
		for _, v := range named {
			add(v)
		}
	}
	if ref, ok := m["$ref"].(string); ok && err == nil {
		more, known := w.known[ref]
		switch {
		case more == open:
			return n, fmt.Errorf("$ref %q leads back to itself", quote.Clip(ref))
		case !known:
			w.known[ref] = open
			if more, err = w.weigh(w.target(ref)); err != nil {
				return n, err
			}
			w.known[ref] = more
		}
		n += more
	}
	return min(n, maxWeight+1), err
}

// target returns the schema to which a $ref into the document refers; nil if there is none.
func (w *weigher) target(ref string) any {
	at, v := strings.TrimPrefix(ref, "#"), w.top
	for _, step := range steps(at) {
		switch parent := v.(type) {
		case map[string]any:
			v = parent[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(parent) {
				return nil
			}
			v = parent[i]
		default:
			return nil
		}
	}
	return v
}

// work is the remaining budget for the check of one call, in applied schemas. A nil work is unlimited, for
// values that have been checked already.
type work struct {
	left int
	// numbers makes fill only normalise integers, without filling in defaults.
	numbers bool
}

func (w *work) spend(n int) (more bool) {
	if w == nil {
		return true
	}
	w.left -= n
	return w.left >= 0
}

func (w *work) spent() bool { return w != nil && w.left < 0 }

// tooCostly returns the violation for arguments that exceed the budget.
func tooCostly() []Violation {
	return []Violation{{Got: "arguments that would take too long to check", Expected: "fewer values in fewer levels"}}
}

// multiply marks the shapes for which the number of applied schemas is not bounded by maxWeight: those that
// refer to themselves, and those that are too large with all references expanded.
func multiply(all []*shape) {
	weights := make(map[*shape]int, len(all))
	var weigh func(s *shape) int
	weigh = func(s *shape) int {
		if n, known := weights[s]; known {
			return n
		}
		weights[s] = maxWeight + 1 // until it is known, so that a cycle exceeds maxWeight
		n := 1
		for _, c := range slices.Concat(s.children(), s.judged, s.each, []*shape{s.when, s.names}) {
			if c != nil {
				n = min(n+weigh(c), maxWeight+1)
			}
		}
		weights[s] = n
		return n
	}
	for _, s := range all {
		s.multiplies = weigh(s) > maxWeight
	}
}

// cost returns the number of schemas that a validator applies to v and its parts at s, up to limit.
func (s *shape) cost(v any, limit int) int {
	n := 1
	visit := func(c *shape, v any) {
		if c != nil && n < limit {
			n += c.cost(v, limit-n)
		}
	}
	for _, c := range slices.Concat([]*shape{s.target, s.when, s.then, s.otherwise}, s.judged, s.allOf, s.anyOf) {
		visit(c, v)
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			for _, c := range s.members(name) {
				visit(c, member)
			}
			for _, c := range s.each {
				visit(c, member)
			}
			visit(s.names, name)
		}
	case []any:
		for i, item := range v {
			visit(s.item(i), item)
			for _, c := range s.each {
				visit(c, item)
			}
		}
	}
	return n
}

// accepts reports whether the validator accepts v. It returns false if the budget is exceeded.
func (s *shape) accepts(v any, w *work) bool {
	if s.validator == nil {
		return false
	}
	if w != nil && s.multiplies && !w.spend(s.cost(v, w.left+1)) {
		return false
	}
	return s.validator.Validate(v) == nil
}
