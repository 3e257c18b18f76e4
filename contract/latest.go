package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// maxConverted is how many schemas the document that Latest writes may have.
const maxConverted = 10_000

// Latest is the schema that says in draft 2020-12 what another says in its own draft (04, 06, 07, 2019-09 or
// 2020-12, by its $schema, else by the keywords that it uses): the same values are valid. It is written for
// whoever reads a schema without a validator: there are no identifiers and anchors, every $ref is
// #/$defs/NAME with a NAME of letters, digits, _, . and -, and $defs stands only at the top. Annotations,
// unknown keywords and the order of keys stay; format and contentEncoding are annotations, as in 2020-12.
//
// An error means that the schema is none, refers to what is not in it, or is too large: more than 10,000
// schemas once what is referred to is written out.
func Latest(schema json.RawMessage) (json.RawMessage, error) {
	v, err := latest(schema)
	if err != nil {
		return nil, err
	}
	return appendOrdered(make([]byte, 0, len(schema)), v), nil
}

func latest(schema json.RawMessage) (any, error) {
	top, err := readOrdered(schema)
	if err != nil {
		return nil, err
	}
	return convert(top)
}

// convert is what Latest does with a schema that has been read.
func convert(top any) (any, error) {
	refs, err := readReferences(top)
	if err != nil {
		return nil, err
	}
	c := &converter{refs: refs, names: map[string]string{}, taken: map[string]bool{}, left: maxConverted}
	c.unevaluatedItems = refs.order[0].draft == draft2019 && mentioned(top, "unevaluatedItems")
	out, err := c.top()
	if err != nil {
		return nil, err
	}
	defs := &ordered{}
	for i := 0; i < len(c.targets); i++ { // each may add further ones
		v, _ := refs.at(c.targets[i])
		converted, err := c.schema(v, c.targets[i])
		if err != nil {
			return nil, err
		}
		defs.members = append(defs.members, orderedMember{c.names[c.targets[i]], converted})
	}
	if o, ok := out.(*ordered); ok && len(defs.members) > 0 {
		o.members = append(o.members, orderedMember{"$defs", defs})
	}
	return out, nil
}

func mentioned(top any, keyword string) (found bool) {
	eachSchema(top, "", func(o *ordered, _ string) {
		_, has := o.find(keyword)
		found = found || has
	})
	return found
}

type converter struct {
	refs *references
	// names are those in $defs of what is referred to, by pointer; targets lists the pointers in the order of
	// finding.
	names   map[string]string
	taken   map[string]bool
	targets []string
	left    int
	// unevaluatedItems: the document is of draft 2019-09 and has the keyword.
	unevaluatedItems bool
}

// top converts the whole document. One of an older draft that is a reference and nothing else by its rules is
// what it refers to, so that its properties stand at the top.
func (c *converter) top() (any, error) {
	v, pointer := c.refs.top, ""
	for seen := map[string]bool{}; !seen[pointer]; {
		seen[pointer] = true
		o, _ := v.(*ordered)
		in := c.refs.around(pointer)
		if o == nil || in.draft >= draft2019 {
			break
		}
		ref, ok := o.get("$ref").(string)
		if _, meta := draftNamed(ref); !ok || meta {
			break
		}
		to, _, err := c.refs.resolve(in, ref)
		if err != nil {
			return nil, err
		}
		pointer = to
		v, _ = c.refs.at(to)
	}
	return c.schema(v, pointer)
}

// schema converts what stands at a pointer.
func (c *converter) schema(v any, pointer string) (any, error) {
	if c.left--; c.left < 0 {
		return nil, fmt.Errorf("it has more than %d schemas once what is referred to is written out", maxConverted)
	}
	o, ok := v.(*ordered)
	if !ok {
		if _, isBool := v.(bool); isBool {
			return v, nil
		}
		return nil, fmt.Errorf("a schema must be an object, true or false, not %s, at %s",
			describe(unordered(v)), place(pointer))
	}
	in := c.refs.around(pointer)
	s := &conversion{converter: c, in: in, draft: in.draft, from: o, pointer: pointer, to: &ordered{}}
	if ref, ok := o.get("$ref").(string); ok && in.draft < draft2019 {
		s.reference(ref)
	}
	for _, m := range o.members {
		if s.err != nil {
			return nil, s.err
		}
		s.keyword(m.key, m.value)
	}
	s.finish()
	return s.to, s.err
}

// define is the name in $defs of what a pointer leads to.
func (c *converter) define(pointer string) string {
	if name, ok := c.names[pointer]; ok {
		return name
	}
	path := steps(pointer)
	base := "root"
	if len(path) > 0 {
		base = strings.Map(func(r rune) rune {
			if r < 0x80 && (word(byte(r)) || r == '.' || r == '-') {
				return r
			}
			return '_'
		}, path[len(path)-1])
	}
	if base == "" {
		base = "_"
	}
	name := base
	for i := 2; c.taken[name]; i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	c.taken[name], c.names[pointer] = true, name
	c.targets = append(c.targets, pointer)
	return name
}

func word(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// conversion is one schema on its way into draft 2020-12.
type conversion struct {
	*converter
	in       *resource
	draft    draft
	pointer  string
	from, to *ordered
	// more are schemas that hold beside the others, for keywords that can't stand twice.
	more []any
	err  error
}

func (s *conversion) set(key string, v any) {
	s.to.members = append(s.to.members, orderedMember{key, v})
}

// refer adds a reference to what a pointer leads to.
func (s *conversion) refer(pointer string, _ *resource, err error) {
	if err == nil {
		if v, _ := s.refs.at(pointer); !isSchema(v) {
			err = fmt.Errorf("a $ref leads to %s, which is no schema", place(pointer))
		}
	}
	if err != nil {
		s.err = err
		return
	}
	ref := "#/$defs/" + s.define(pointer)
	if _, has := s.to.find("$ref"); has {
		s.more = append(s.more, &ordered{[]orderedMember{{"$ref", ref}}})
		return
	}
	s.set("$ref", ref)
}

func isSchema(v any) bool {
	switch v.(type) {
	case *ordered, bool:
		return true
	}
	return false
}

// keyword converts one keyword; what has no meaning in the schema's draft is left out where 2020-12 gives it
// one.
func (s *conversion) keyword(key string, v any) {
	list, isList := v.([]any)
	object, isObject := v.(*ordered)
	_, isBool := v.(bool)
	switch key {
	case "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment":
		s.set(key, v)
		return
	}
	if _, refers := s.from.get("$ref").(string); refers && s.draft < draft2019 {
		return // nothing counts beside it
	}
	switch key {
	case "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "definitions",
		"$defs", "additionalItems", "contentSchema": // what they say is said where it counts
	case "$ref":
		if ref, ok := v.(string); ok {
			s.reference(ref)
		}
	case "$dynamicRef":
		if ref, ok := v.(string); ok && s.draft == draft2020 {
			pointer, err := s.refs.dynamicTo(s.in, ref)
			s.refer(pointer, nil, err)
		}
	case "$recursiveRef":
		if s.draft == draft2019 {
			pointer, err := s.refs.recursiveTo(s.in)
			s.refer(pointer, nil, err)
		}
	case "allOf", "anyOf", "oneOf":
		s.set(key, s.list(key, list))
	case "properties", "patternProperties":
		s.named(key, v)
	case "dependentSchemas":
		if s.draft >= draft2019 {
			s.named(key, v)
		}
	case "dependentRequired", "minContains", "maxContains":
		if s.draft >= draft2019 && !(s.unevaluatedItems && key != "dependentRequired") {
			s.set(key, v)
		}
	case "unevaluatedItems", "unevaluatedProperties":
		if s.draft >= draft2019 {
			s.one(key, v)
		}
	case "not", "additionalProperties":
		s.one(key, v)
	case "if", "then", "else":
		if s.draft >= draft07 {
			s.one(key, v)
		}
	case "contains":
		s.contains(v)
	case "propertyNames":
		if s.draft >= draft06 {
			s.one(key, v)
		}
	case "const":
		if s.draft >= draft06 {
			s.set(key, v)
		}
	case "items":
		s.items(v, list, isList)
	case "prefixItems":
		if s.draft == draft2020 {
			s.set(key, s.list(key, list))
		}
	case "dependencies":
		if isObject && s.draft < draft2019 {
			s.dependencies(object)
		}
	case "exclusiveMinimum", "exclusiveMaximum":
		bound := map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}[key]
		if n := s.from.get(bound); v == true && isNumber(n) {
			s.set(key, n)
		} else if !isBool {
			s.set(key, v)
		}
	case "minimum", "maximum":
		exclusive := map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}[key]
		if s.from.get(exclusive) != true {
			s.set(key, v)
		}
	case "required":
		if !isBool { // of draft 03, where it is the property that says so
			s.set(key, v)
		}
	default:
		s.set(key, v)
	}
}

// reference adds a $ref. One to a meta-schema is one to any schema: nothing is fetched, and what is sent is
// judged by who asked for it.
func (s *conversion) reference(ref string) {
	if _, meta := draftNamed(ref); meta {
		s.more = append(s.more, &ordered{[]orderedMember{{"type", []any{"object", "boolean"}}}})
		return
	}
	s.refer(s.refs.resolve(s.in, ref))
}

func (s *conversion) below(v any, steps ...string) any {
	if s.err != nil {
		return nil
	}
	pointer := s.pointer
	for _, step := range steps {
		pointer += "/" + escapePointer(step)
	}
	var out any
	out, s.err = s.schema(v, pointer)
	return out
}

func (s *conversion) one(key string, v any) { s.set(key, s.below(v, key)) }

func (s *conversion) list(key string, list []any) []any {
	out := make([]any, len(list))
	for i, item := range list {
		out[i] = s.below(item, key, itoa(i))
	}
	return out
}

func (s *conversion) named(key string, v any) {
	object, ok := v.(*ordered)
	if !ok {
		s.set(key, v) // wrong in every draft, which the validator says
		return
	}
	out := &ordered{}
	for _, m := range object.members {
		out.members = append(out.members, orderedMember{m.key, s.below(m.value, key, m.key)})
	}
	s.set(key, out)
}

// items of draft 2019-09 and before is a list or one schema; a list in a schema of 2020-12, which has none,
// can only mean the same.
func (s *conversion) items(v any, list []any, isList bool) {
	if !isList {
		s.one("items", v)
		return
	}
	if _, has := s.from.find("prefixItems"); has && s.draft == draft2020 {
		s.err = fmt.Errorf("items is a list beside prefixItems, at %s", place(s.pointer))
		return
	}
	if len(list) > 0 {
		s.set("prefixItems", s.list("items", list))
	}
	if further, ok := s.from.find("additionalItems"); ok {
		s.set("items", s.below(further, "additionalItems"))
	}
}

// contains evaluates items in 2020-12, and doesn't in 2019-09: below not, nothing is evaluated.
func (s *conversion) contains(v any) {
	if s.draft < draft06 {
		return
	}
	if !s.unevaluatedItems {
		s.one("contains", v)
		return
	}
	alone := &ordered{[]orderedMember{{"contains", s.below(v, "contains")}}}
	for _, key := range []string{"minContains", "maxContains"} {
		if n, ok := s.from.find(key); ok {
			alone.members = append(alone.members, orderedMember{key, n})
		}
	}
	not := func(v any) any { return &ordered{[]orderedMember{{"not", v}}} }
	s.more = append(s.more, not(not(alone)))
}

func (s *conversion) dependencies(object *ordered) {
	required, schemas := &ordered{}, &ordered{}
	for _, m := range object.members {
		switch v := m.value.(type) {
		case []any:
			required.members = append(required.members, orderedMember{m.key, v})
		case string: // of draft 03
			required.members = append(required.members, orderedMember{m.key, []any{v}})
		default:
			schemas.members = append(schemas.members, orderedMember{m.key, s.below(v, "dependencies", m.key)})
		}
	}
	if len(required.members) > 0 {
		s.set("dependentRequired", required)
	}
	if len(schemas.members) > 0 {
		s.set("dependentSchemas", schemas)
	}
}

// finish adds what holds beside the rest.
func (s *conversion) finish() {
	if len(s.more) == 0 {
		return
	}
	parts, _ := s.to.get("allOf").([]any)
	s.to.set("allOf", slices.Concat(parts, s.more))
}
