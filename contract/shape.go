package contract

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// shape is what Check needs of a schema besides the verdict: where defaults go, where numbers are integers, and how to
// say in plain words what is accepted. It is read from the same bytes that the validator is compiled from.
type shape struct {
	types      []string
	ref        string
	target     *shape // of ref
	properties map[string]*shape
	defaults   []filling
	patterns   []patterned
	additional *shape
	prefix     []*shape
	items      *shape
	anyOf      []*shape
	allOf      []*shape
	enum       []any // a const is an enum of one
	words      string
	// never: the schema is false, which nothing satisfies.
	never bool
	// inert: nothing to fill in or to normalise below, so fill stops here.
	inert bool
}

type filling struct {
	name  string
	value any
}

type patterned struct {
	re *regexp.Regexp
	*shape
}

// shapes reads the whole schema; $ref may only point into its own $defs.
func shapes(schema any) (*shape, error) {
	r := shapeReader{defs: map[string]*shape{}}
	top, err := r.read(schema)
	if err != nil {
		return nil, err
	}
	for _, s := range r.refs {
		if s.target = r.defs[s.ref]; s.target == nil {
			return nil, fmt.Errorf("$ref %q: no such definition", s.ref)
		}
	}
	settle(r.all)
	return top, nil
}

type shapeReader struct {
	defs map[string]*shape
	refs []*shape
	all  []*shape
}

func (r *shapeReader) read(schema any) (*shape, error) {
	s := &shape{}
	r.all = append(r.all, s)
	m, ok := schema.(map[string]any)
	if !ok {
		switch schema {
		case true:
			s.words = "any value"
			return s, nil
		case false:
			s.never, s.words = true, "nothing"
			return s, nil
		}
		return nil, fmt.Errorf("a schema must be an object, true or false, not %s", describe(schema))
	}
	var err error
	sub := func(v any) *shape {
		if v == nil || err != nil {
			return nil
		}
		var c *shape
		c, err = r.read(v)
		return c
	}
	list := func(v any) (out []*shape) {
		items, _ := v.([]any)
		for _, item := range items {
			out = append(out, sub(item))
		}
		return out
	}
	if defs, ok := m["$defs"].(map[string]any); ok {
		for name, def := range defs {
			r.defs["#/$defs/"+escapePointer(name)] = sub(def)
		}
	}
	if s.ref, ok = m["$ref"].(string); ok {
		r.refs = append(r.refs, s)
	}
	switch t := m["type"].(type) {
	case string:
		s.types = []string{t}
	case []any:
		for _, name := range t {
			s.types = append(s.types, fmt.Sprint(name))
		}
	}
	if c, ok := m["const"]; ok {
		s.enum = []any{c}
	} else {
		s.enum, _ = m["enum"].([]any)
	}
	if properties, ok := m["properties"].(map[string]any); ok {
		s.properties = make(map[string]*shape, len(properties))
		for name, property := range properties {
			s.properties[name] = sub(property)
			if p, ok := property.(map[string]any); ok {
				if d, ok := p["default"]; ok {
					s.defaults = append(s.defaults, filling{name, d})
				}
			}
		}
	}
	if patterns, ok := m["patternProperties"].(map[string]any); ok {
		for pattern, schema := range patterns {
			re, err := regexp.Compile(pattern)
			if err != nil {
				return nil, fmt.Errorf("patternProperties: %w", err)
			}
			s.patterns = append(s.patterns, patterned{re, sub(schema)})
		}
	}
	s.additional, s.items = sub(m["additionalProperties"]), sub(m["items"])
	s.prefix, s.anyOf, s.allOf = list(m["prefixItems"]), list(m["anyOf"]), list(m["allOf"])
	s.words = s.describe(m)
	return s, err
}

// settle marks what is inert. A shape is inert until something says otherwise, and what stands around a shape that is
// not inert is not inert either; recursion needs the repetition.
func settle(all []*shape) {
	for _, s := range all {
		s.inert = len(s.defaults) == 0 && !s.wholeOnly() && !slices.ContainsFunc(s.enum, isNumber)
	}
	for again := true; again; {
		again = false
		for _, s := range all {
			if s.inert && slices.ContainsFunc(s.children(), func(c *shape) bool { return c != nil && !c.inert }) {
				s.inert, again = false, true
			}
		}
	}
}

func (s *shape) children() []*shape {
	out := append([]*shape{s.target, s.additional, s.items}, s.prefix...)
	out = append(append(out, s.anyOf...), s.allOf...)
	for _, p := range s.properties {
		out = append(out, p)
	}
	for _, p := range s.patterns {
		out = append(out, p.shape)
	}
	return out
}

// wholeOnly reports whether a number here must be an integer.
func (s *shape) wholeOnly() bool {
	return slices.Contains(s.types, "integer") && !slices.Contains(s.types, "number")
}

func isNumber(v any) bool { _, ok := v.(json.Number); return ok }

// takes reports whether a value of v's kind can be meant by s.
func (s *shape) takes(v any) bool {
	for s.target != nil {
		s = s.target
	}
	if len(s.types) == 0 {
		return !s.never
	}
	kind := kindOf(v)
	return slices.Contains(s.types, kind) || kind == "number" && slices.Contains(s.types, "integer")
}

// fill returns v with the defaults of s filled in and its integers normalised. It changes maps and arrays in place.
func (s *shape) fill(v any) any {
	if s == nil || s.inert {
		return v
	}
	if s.target != nil {
		v = s.target.fill(v)
	}
	for _, branch := range s.anyOf {
		if branch.takes(v) {
			v = branch.fill(v)
		}
	}
	for _, part := range s.allOf {
		v = part.fill(v)
	}
	switch v := v.(type) {
	case json.Number:
		return s.number(v)
	case map[string]any:
		s.object(v)
	case []any:
		for i := range v {
			v[i] = s.item(i).fill(v[i])
		}
	}
	return v
}

func (s *shape) number(n json.Number) json.Number {
	whole := integer(n)
	if s.wholeOnly() || slices.Contains(s.enum, any(whole)) {
		return whole
	}
	return n
}

func (s *shape) object(object map[string]any) {
	for name, v := range object {
		p, declared := s.properties[name]
		matched := declared
		if declared && !p.inert {
			v = p.fill(v)
			object[name] = v
		}
		for _, pattern := range s.patterns {
			if pattern.re.MatchString(name) {
				matched = true
				v = pattern.fill(v)
				object[name] = v
			}
		}
		if !matched && s.additional != nil {
			object[name] = s.additional.fill(v)
		}
	}
	for _, d := range s.defaults {
		if _, ok := object[d.name]; !ok {
			object[d.name] = d.value
		}
	}
}

func (s *shape) item(i int) *shape {
	if i < len(s.prefix) {
		return s.prefix[i]
	}
	return s.items
}

// at finds the shape that governs the place below v that path leads to, and the value there. The shape is nil where the
// schema says nothing.
func (s *shape) at(v any, path []string) (*shape, any) {
	for s != nil {
		if s.target != nil {
			s = s.target
			continue
		}
		if branch := s.branch(v); branch != nil {
			s = branch
			continue
		}
		if len(path) == 0 {
			return s, v
		}
		step := path[0]
		path = path[1:]
		switch parent := v.(type) {
		case map[string]any:
			v = parent[step]
			s = s.member(step)
		case []any:
			i := smallInt(step)
			if i >= len(parent) {
				return nil, nil
			}
			v, s = parent[i], s.item(i)
		default:
			return nil, nil
		}
	}
	return nil, v
}

// alternatives is at, but stops at the choice between alternatives instead of making it.
func (s *shape) alternatives(v any, path []string) (*shape, any) {
	if len(path) > 0 {
		parent, container := s.at(v, path[:len(path)-1])
		if parent == nil {
			return nil, nil
		}
		last := path[len(path)-1]
		switch c := container.(type) {
		case map[string]any:
			s, v = parent.member(last), c[last]
		case []any:
			i := smallInt(last)
			s, v = parent.item(i), c[i]
		}
	}
	return s, v
}

// branch is the alternative that an object or an array must be meant by, if there is just one.
func (s *shape) branch(v any) (one *shape) {
	if kind := kindOf(v); kind != "object" && kind != "array" {
		return nil
	}
	for _, b := range s.anyOf {
		if b.takes(v) {
			if one != nil {
				return nil
			}
			one = b
		}
	}
	return one
}

func (s *shape) member(name string) *shape {
	if p, ok := s.properties[name]; ok {
		return p
	}
	for _, p := range s.patterns {
		if p.re.MatchString(name) {
			return p.shape
		}
	}
	return s.additional
}

// declared lists the names of the properties, sorted.
func (s *shape) declared() []string {
	names := make([]string, 0, len(s.properties))
	for name := range s.properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func escapePointer(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}
