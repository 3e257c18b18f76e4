package shapes_test

import (
	"encoding/json"
	"slices"
)

// maxNested is how many samples of one value are used where it stands inside another, maxCalls how many calls
// of one shape.
const (
	maxNested = 12
	maxCalls  = 30
)

// objects are JSON objects of the fields: every combination where these are few; else each field's samples in
// turn beside the others' first, and beside nothing. At the end come an undeclared key, and no object.
func objects(fields []field) []any {
	product := 1
	for _, f := range fields {
		product *= 1 + len(f.samples)
	}
	var all []any
	if product <= maxCalls {
		all = []any{object{}}
		for _, f := range fields {
			var next []any
			for _, o := range all {
				for _, s := range f.samples {
					next = append(next, with(o, f.name, s))
				}
				next = append(next, o)
			}
			all = next
		}
	} else {
		full, second := any(object{}), any(object{})
		for _, f := range fields {
			full = with(full, f.name, f.samples[0])
			second = with(second, f.name, f.samples[1%len(f.samples)])
		}
		all = []any{full, object{}, second}
		for _, f := range fields {
			all = append(all, without(full, f.name), without(second, f.name))
		}
		for _, f := range fields {
			for _, s := range f.samples {
				all = append(all, with(full, f.name, s), with(second, f.name, s), with(object{}, f.name, s))
			}
		}
		for i, f := range fields {
			for _, g := range fields[i+1:] {
				for _, s := range f.samples {
					for _, t := range g.samples {
						all = append(all, with(with(full, f.name, s), g.name, t))
						all = append(all, with(with(object{}, f.name, s), g.name, t))
					}
				}
			}
		}
	}
	return append(distinct(all), with(all[0], "zz", 1), with(all[0], "zz", "s"), with(object{}, "zz", 1))
}

func with(o any, name string, v any) any {
	n := object{}
	for k, old := range o.(object) {
		n[k] = old
	}
	n[name] = v
	return n
}

func without(o any, name string) any {
	n := object{}
	for k, old := range o.(object) {
		if k != name {
			n[k] = old
		}
	}
	return n
}

func distinct(all []any) (kept []any) {
	seen := map[string]bool{}
	for _, v := range all {
		if text := encode(v); !seen[text] {
			seen[text] = true
			kept = append(kept, v)
		}
	}
	return kept
}

// encode is v as JSON, its keys in order.
func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // samples are plain data
	}
	return string(b)
}

// some is at most n of all: the first third, the last three, and the rest spread over what is between.
func some(all []any, n int) []any {
	if len(all) <= n {
		return all
	}
	head, tail := n/3, 3
	kept := slices.Clone(all[:head])
	between, rest := all[head:len(all)-tail], n-head-tail
	for i := range rest {
		kept = append(kept, between[i*len(between)/rest])
	}
	return append(kept, all[len(all)-tail:]...)
}

// nested are the samples of v where it stands inside another value: also something that is no struct.
func nested(v value) []any {
	all := some(v.samples, maxNested)
	if v.object && !v.loose {
		all = append(slices.Clone(all), "s", nil)
	}
	return distinct(all)
}

// calls are the arguments that a shape is asked about.
func calls(v value) []string {
	var all []any
	for _, s := range distinct(v.samples) {
		if _, ok := s.(object); ok {
			all = append(all, s)
		}
	}
	var out []string
	for _, s := range some(all, maxCalls) {
		out = append(out, encode(s))
	}
	return out
}
