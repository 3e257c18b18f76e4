package contract

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/contract/internal/quote"
)

// A schema is small and what a validator does with it need not be: forty definitions that name the next one
// twice keep it busy for years, with a call of two bytes; so do two alternatives that refer to themselves,
// with a call of sixty levels. The first kind is refused when a contract is made, and when one is compared.
// The second is common in good schemas (expressions in expressions), so there it's the call that is refused,
// once checking it costs more than maxWork.

const (
	// maxWeight is how many schemas may be asked about one value.
	maxWeight = 2000
	// maxWork is how many schemas may be asked in the check of one call.
	maxWork = 1_000_000
)

// checkCost refuses a schema that is too much for a validator: a reference that leads back to itself without
// a step into the value, or schemas that multiply at one place. Where a $ref leads is for others to find
// wrong.
func checkCost(schema any) error {
	w := weigher{top: schema, known: map[string]int{}}
	return w.everywhere(schema, "")
}

type weigher struct {
	top   any
	known map[string]int // weights by $ref; open while one is being weighed
}

const open = -1

// everywhere weighs each schema in a document, wherever it stands.
func (w *weigher) everywhere(v any, pointer string) error {
	switch v := v.(type) {
	case map[string]any:
		n, err := w.weigh(v)
		if err == nil && n > maxWeight {
			err = fmt.Errorf("more than %d schemas would be asked about one value", maxWeight)
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

// weigh counts the schemas that are asked about a value together with this one, up to one more than is
// allowed.
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

// target is what a $ref into the document leads to; nil where it leads to nothing.
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

// work is what the check of one call may still cost, in schemas asked. A nil one is without end: it's for
// what has been checked already.
type work struct {
	left int
	// numbers: integers are normalised, and no default is filled in.
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

// tooCostly is the refusal of arguments that cost more.
func tooCostly() []Violation {
	return []Violation{{Got: "arguments that would take too long to check", Expected: "fewer values in fewer levels"}}
}

// multiply marks the shapes that, for a large enough value, ask ever more schemas about one place in it:
// those that refer to themselves, and those that would be too large were their references written out.
func multiply(all []*shape) {
	weights := make(map[*shape]int, len(all))
	var weigh func(s *shape) int
	weigh = func(s *shape) int {
		if n, known := weights[s]; known {
			return n
		}
		weights[s] = maxWeight + 1 // while it's open: whoever comes back to it has gone in a circle
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

// cost is how many schemas a validator asks about v at s, up to limit.
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

// accepts reports whether the validator takes v here. Where that would cost too much, nothing is taken.
func (s *shape) accepts(v any, w *work) bool {
	if s.validator == nil {
		return false
	}
	if w != nil && s.multiplies && !w.spend(s.cost(v, w.left+1)) {
		return false
	}
	return s.validator.Validate(v) == nil
}
