package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// shape is what Check needs of a schema besides the verdict: where defaults go, where numbers are integers,
// what is secret, and how to say in plain words what is accepted. It is read from the same bytes that the
// validator is compiled from.
type shape struct {
	schema     map[string]any // nil for true and false
	types      []string
	ref        string
	target     *shape // of ref
	properties map[string]*shape
	defaults   []filling
	patterns   []patterned
	additional *shape
	prefix     []*shape
	items      *shape
	anyOf      []*shape // and oneOf: the alternatives
	allOf      []*shape
	when       *shape     // if
	test       *predicate // the same, where that is simple
	then       *shape
	otherwise  *shape // else
	names      *shape // propertyNames
	// judged and each are shapes that never fill in anything: judged constrain the value itself, each the
	// values in it.
	judged, each []*shape
	enum         []any // a const is an enum of one
	// secret: the values here and below are never disclosed.
	secret bool
	// never: the schema is false, which nothing satisfies.
	never bool
	// inert: nothing to fill in or to normalise below, so fill stops here.
	inert bool
	// multiplies: what is asked here may cost more than the value is large (see multiply).
	multiplies bool
	// validator decides whether a value is accepted here; link sets it.
	validator *jsonschema.Schema
}

type filling struct {
	name  string
	value any
}

type patterned struct {
	re jsonschema.Regexp
	*shape
}

// shapes reads the whole schema; $ref may only point into its own $defs. all is every shape in it.
func shapes(schema any, upstream bool, patterns *engine) (top *shape, all []*shape, err error) {
	r := shapeReader{defs: map[string]*shape{}, upstream: upstream, patterns: patterns}
	if top, err = r.read(schema); err != nil {
		return nil, nil, err
	}
	for _, s := range r.refs {
		if s.target = r.defs[s.ref]; s.target == nil {
			return nil, nil, fmt.Errorf("$ref %q: no such definition", s.ref)
		}
	}
	settle(r.all)
	multiply(r.all)
	return top, r.all, nil
}

type shapeReader struct {
	defs map[string]*shape
	refs []*shape
	all  []*shape
	// upstream is as in Spec.
	upstream bool
	patterns *engine
}

func (r *shapeReader) read(schema any) (*shape, error) {
	s := &shape{}
	r.all = append(r.all, s)
	m, ok := schema.(map[string]any)
	if !ok {
		switch schema {
		case true:
			return s, nil
		case false:
			s.never = true
			return s, nil
		}
		return nil, fmt.Errorf("a schema must be an object, true or false, not %s", describe(schema))
	}
	if err := asserted(m); err != nil && !r.upstream {
		return nil, err
	}
	s.schema = m
	s.secret = m["writeOnly"] == true
	var err error
	sub := func(v any) *shape {
		if v == nil || err != nil {
			return nil
		}
		var c *shape
		c, err = r.read(v)
		return c
	}
	list := func(keyword string) (out []*shape) {
		items, _ := m[keyword].([]any)
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
				d, ok := p["default"]
				if required, _ := m["required"].([]any); r.upstream && slices.Contains(required, any(name)) {
					ok = false // what a server requires, a call must have
				}
				if ok {
					s.defaults = append(s.defaults, filling{name, d})
				}
			}
		}
	}
	if patterns, ok := m["patternProperties"].(map[string]any); ok {
		for pattern, schema := range patterns {
			re, err := r.patterns.compile(pattern)
			if err != nil {
				return nil, fmt.Errorf("patternProperties: %w", err)
			}
			s.patterns = append(s.patterns, patterned{re, sub(schema)})
		}
	}
	s.additional, s.items, s.names = sub(m["additionalProperties"]), sub(m["items"]), sub(m["propertyNames"])
	s.prefix, s.allOf = list("prefixItems"), list("allOf")
	s.anyOf = append(list("anyOf"), list("oneOf")...)
	if s.when = sub(m["if"]); s.when != nil {
		s.test = readPredicate(m["if"])
		s.then, s.otherwise = sub(m["then"]), sub(m["else"])
	}
	s.judged = []*shape{sub(m["not"])}
	for _, keyword := range []string{"dependentSchemas", "dependencies"} {
		named, _ := m[keyword].(map[string]any)
		for _, v := range named {
			if _, names := v.([]any); !names {
				s.judged = append(s.judged, sub(v))
			}
		}
	}
	for _, keyword := range []string{"contains", "unevaluatedProperties", "unevaluatedItems"} {
		s.each = append(s.each, sub(m[keyword]))
	}
	return s, err
}

// settle marks inert shapes. A shape is inert until something makes it active, and a shape that contains an
// active one is active too; recursion requires the repetition.
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

// children returns the shapes that fill visits next.
func (s *shape) children() []*shape {
	out := append([]*shape{s.target, s.additional, s.items, s.then, s.otherwise}, s.prefix...)
	out = append(append(out, s.anyOf...), s.allOf...)
	for _, p := range s.properties {
		out = append(out, p)
	}
	for _, p := range s.patterns {
		out = append(out, p.shape)
	}
	return out
}

// link assigns to each shape the compiled validator of the same schema.
func (s *shape) link(c *jsonschema.Schema) {
	if s == nil || c == nil || s.validator != nil {
		return
	}
	s.validator = c
	s.target.link(c.Ref)
	for name, p := range s.properties {
		p.link(c.Properties[name])
	}
	for re, p := range c.PatternProperties {
		for _, mine := range s.patterns {
			if mine.re.String() == re.String() {
				mine.link(p)
			}
		}
	}
	if additional, ok := c.AdditionalProperties.(*jsonschema.Schema); ok {
		s.additional.link(additional)
	}
	s.items.link(c.Items2020)
	linkAll(s.prefix, c.PrefixItems)
	linkAll(s.allOf, c.AllOf)
	linkAll(s.anyOf, slices.Concat(c.AnyOf, c.OneOf))
	s.when.link(c.If)
	s.then.link(c.Then)
	s.otherwise.link(c.Else)
	s.names.link(c.PropertyNames)
}

func linkAll(list []*shape, compiled []*jsonschema.Schema) {
	for i := range min(len(list), len(compiled)) {
		list[i].link(compiled[i])
	}
}

// wholeOnly reports whether a number here must be an integer.
func (s *shape) wholeOnly() bool {
	return slices.Contains(s.types, "integer") && !slices.Contains(s.types, "number")
}

func isNumber(v any) bool { _, ok := v.(json.Number); return ok }

// fits reports whether v can be meant for s: s accepts its type, and those of its members that distinguish
// alternatives, such as kind: "circle".
func (s *shape) fits(v any) bool {
	for s.target != nil {
		s = s.target
	}
	if s.never || len(s.types) > 0 && !hasKind(s.types, v) {
		return false
	}
	object, _ := v.(map[string]any)
	for name, p := range s.properties {
		if member, ok := object[name]; ok && len(p.enum) > 0 && !p.lists(member) {
			return false
		}
	}
	return true
}

// lists reports whether the enum of s may contain v; only integers are compared as numbers.
func (s *shape) lists(v any) bool {
	return slices.ContainsFunc(s.enum, func(e any) bool {
		if !simple(e) && !isNumber(e) {
			return true // objects and arrays are not compared here
		}
		if n, ok := e.(json.Number); ok {
			m, number := v.(json.Number)
			return number && (Integer(n) == Integer(m) || strings.ContainsAny(string(n), ".eE"))
		}
		return simple(v) && e == v
	})
}

func hasKind(types []string, v any) bool {
	kind := kindOf(v)
	return slices.Contains(types, kind) || kind == "number" && slices.Contains(types, "integer")
}

// members returns the shapes that apply to a member of an object.
func (s *shape) members(name string) (out []*shape) {
	if p, ok := s.properties[name]; ok {
		out = append(out, p)
	}
	for _, p := range s.patterns {
		if p.re.MatchString(name) {
			out = append(out, p.shape)
		}
	}
	if out == nil && s.additional != nil {
		out = append(out, s.additional)
	}
	return out
}

func (s *shape) item(i int) *shape {
	if i < len(s.prefix) {
		return s.prefix[i]
	}
	return s.items
}

func escapePointer(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}
