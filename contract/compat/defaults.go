package compat

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/internal/jsontype"
	"github.com/catalogd/catalogd/contract/internal/quote"
)

// Where defaults are filled in before a schema is applied, a property with a default is not required. Filling
// in can change what is accepted in other ways too: a default may be invalid itself, or make a key appear
// that another keyword counts, forbids or chooses by. Such schemas are not compared, because what they accept
// depends on more than their keywords.

// refuseInterference gives the document up where a default that is filled in changes more than what is
// required.
func (d *document) refuseInterference() {
	first := ""
	for s := range d.filling() {
		if why := s.interference(); why != "" {
			if why = fmt.Sprintf("at %q a default is filled in %s", s.pointer, why); first == "" || why < first {
				first = why
			}
		}
	}
	if first != "" {
		panic(unreadable(first))
	}
}

// filling are the subschemas at or below which a default is filled in.
func (d *document) filling() map[*subschema]bool {
	found := map[*subschema]bool{}
	for again := true; again; {
		again = false
		for _, s := range d.subschemas {
			below := func(c *subschema) bool { return found[c] }
			if s.fills && !found[s] && (len(s.defaults) > 0 || slices.ContainsFunc(s.filled(), below)) {
				found[s], again = true, true
			}
		}
	}
	return found
}

// filled are the subschemas by which defaults are filled in at or directly below s.
func (s *subschema) filled() (out []*subschema) {
	out = slices.Concat(s.allOf, s.anyOf, s.oneOf, s.prefix)
	for _, c := range []*subschema{s.ref, s.then, s.otherwise, s.items, s.additional} {
		if c != nil {
			out = append(out, c)
		}
	}
	for _, c := range s.properties {
		out = append(out, c)
	}
	for _, c := range s.patterns {
		out = append(out, c)
	}
	return out
}

// interference says what a default that is filled in at or below s may change besides what is required; empty
// for nothing.
func (s *subschema) interference() string {
	counts := s.minProperties > 0 || s.maxProperties >= 0
	own := s.properties != nil || s.patterns != nil || s.additional != nil || s.required != nil || counts
	switch {
	case s.oneOf != nil, s.not != nil, s.when != nil, s.equal["dependentRequired"] != "", len(s.opaque) > 0:
		return "beside a condition on the whole value"
	case s.finite, s.equal["uniqueItems"] != "", s.contains != nil:
		return "in a value that is compared as a whole"
	case len(s.allOf) > 0, len(s.anyOf) > 0 && (own || s.ref != nil), s.ref != nil && own:
		return "where several schemas look at the same value"
	case len(s.defaults) > 0 && (counts || s.names != nil):
		return "where keys are counted or named"
	}
	for _, t := range []jsontype.Set{jsontype.Object, jsontype.Array} {
		count := 0
		for _, branch := range s.anyOf {
			for branch.ref != nil {
				branch = branch.ref
			}
			if !branch.never && branch.types&t != 0 {
				count++
			}
		}
		if count > 1 {
			return "by several alternatives"
		}
	}
	for name, value := range s.defaults {
		for _, matches := range s.matchers {
			if matches(name) {
				return "where several schemas look at the same value"
			}
		}
		if valid, decided := s.properties[name].accepts(value); !decided || !valid {
			return "that its own schema refuses"
		}
	}
	return ""
}

// defaults lists the declared places by pointer, each with its default as JSON; empty for none.
func (d *document) defaults() map[string]string {
	out := map[string]string{}
	d.places(func(s *subschema, place string) {
		for name, p := range s.properties {
			below := place + "/" + escape(name)
			if _, known := out[below]; !known {
				out[below] = ""
			}
			if m, ok := d.find(p.pointer).(map[string]any); ok {
				if v, ok := m["default"]; ok {
					out[below] = canonical(v)
				}
			}
		}
	})
	return out
}

// places visits the subschemas with the places in a value that they are about, outer ones first.
func (d *document) places(visit func(s *subschema, place string)) {
	open, visits := map[*subschema]bool{}, 0
	var walk func(s *subschema, at string)
	walk = func(s *subschema, at string) {
		if visits++; s == nil || open[s] || visits > maxSubschemas {
			return
		}
		open[s] = true
		defer delete(open, s)
		visit(s, at)
		for name, p := range s.properties {
			walk(p, at+"/"+escape(name))
		}
		for i, p := range s.prefix {
			walk(p, at+"/"+strconv.Itoa(i))
		}
		walk(s.items, at+"/*")
		walk(s.additional, at+"/*")
		for _, c := range s.inPlace() {
			walk(c, at)
		}
	}
	walk(d.root, "")
}

// BadDefaults lists the defaults in a schema of an upstream server that their own schemas refuse: a line for
// each, by the place in the arguments. It is for people: such a default is not filled in, and no call is
// refused for it. A schema that can't be read has none.
func BadDefaults(schema []byte) []string {
	d := readDocument(contract.Spec{Schema: schema, Upstream: true}, false)
	if d.broken != "" {
		return nil
	}
	found := map[string]string{}
	d.places(func(s *subschema, at string) {
		m, _ := d.find(s.pointer).(map[string]any)
		v, ok := m["default"]
		if !ok || found[at] != "" {
			return
		}
		if valid, decided := s.accepts(v); decided && !valid {
			where := at
			if where == "" {
				where = "the arguments"
			}
			found[at] = fmt.Sprintf("the default of %s, %s, does not fit its own schema", quote.Clip(where), quote.Clip(canonical(v)))
		}
	})
	var out []string
	for _, line := range found {
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}
