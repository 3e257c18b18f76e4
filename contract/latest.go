package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// maxConverted caps the number of schemas in the document that Latest writes.
const maxConverted = 10_000

// Latest converts a schema of draft 04, 06, 07, 2019-09 or 2020-12 (by its $schema, else by the keywords that
// it uses) to an equivalent schema of draft 2020-12: the same values are valid. The result is for readers
// without a validator: it has no identifiers and anchors, every $ref is #/$defs/NAME with a NAME of letters,
// digits, _, . and -, and $defs appears only at the top. Annotations, unknown keywords and the order of keys
// are kept; format and contentEncoding are annotations, as in 2020-12.
//
// It returns an error if the schema is invalid, refers to something outside it, or is too large: more than
// 10,000 schemas after references are expanded.
func Latest(schema json.RawMessage) (json.RawMessage, error) {
	v, err := latest(schema)
	if err != nil {
		return nil, err
	}
	return appendOrdered(make([]byte, 0, len(schema)), v), nil
}

func latest(schema json.RawMessage) (any, error) {
	top, err := decodeOrdered(schema)
	if err != nil {
		return nil, err
	}
	return convert(top)
}

// convert is Latest for a decoded schema.
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
	defs := &strictjson.Object{}
	for i := 0; i < len(c.targets); i++ { // each may append further targets
		v, _ := refs.at(c.targets[i])
		converted, err := c.schema(v, c.targets[i])
		if err != nil {
			return nil, err
		}
		defs.Add(c.names[c.targets[i]], converted)
	}
	if o, ok := out.(*strictjson.Object); ok && len(defs.Members) > 0 {
		o.Add("$defs", defs)
	}
	return out, nil
}

func mentioned(top any, keyword string) (found bool) {
	eachSchema(top, "", func(o *strictjson.Object, _ string) {
		_, has := o.Find(keyword)
		found = found || has
	})
	return found
}

type converter struct {
	refs *references
	// names maps pointers of referenced schemas to their names in $defs; targets lists the pointers in the
	// order of discovery.
	names   map[string]string
	taken   map[string]bool
	targets []string
	left    int
	// unevaluatedItems: the document is of draft 2019-09 and uses the keyword.
	unevaluatedItems bool
}

// top converts the whole document. If a document of an older draft is, by the rules of that draft, only a
// reference, it is replaced by the referenced schema, so that its properties are at the top.
func (c *converter) top() (any, error) {
	v, pointer := c.refs.top, ""
	for seen := map[string]bool{}; !seen[pointer]; {
		seen[pointer] = true
		o, _ := v.(*strictjson.Object)
		in := c.refs.around(pointer)
		if o == nil || in.draft >= draft2019 {
			break
		}
		ref, ok := o.Get("$ref").(string)
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

// schema converts the schema at a pointer.
func (c *converter) schema(v any, pointer string) (any, error) {
	if c.left--; c.left < 0 {
		return nil, fmt.Errorf("it has more than %d schemas once what is referred to is written out", maxConverted)
	}
	o, ok := v.(*strictjson.Object)
	if !ok {
		if _, isBool := v.(bool); isBool {
			return v, nil
		}
		return nil, fmt.Errorf("a schema must be an object, true or false, not %s, at %s",
			describe(unordered(v)), place(pointer))
	}
	in := c.refs.around(pointer)
	s := &conversion{converter: c, in: in, draft: in.draft, from: o, pointer: pointer, to: &strictjson.Object{}}
	if ref, ok := o.Get("$ref").(string); ok && in.draft < draft2019 {
		s.reference(ref)
	}
	for _, m := range o.Members {
		if s.err != nil {
			return nil, s.err
		}
		s.keyword(m.Key, m.Value)
	}
	s.finish()
	return s.to, s.err
}

// define returns the name in $defs of the schema at a pointer.
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

// conversion is one schema during its conversion to draft 2020-12.
type conversion struct {
	*converter
	in       *resource
	draft    draft
	pointer  string
	from, to *strictjson.Object
	// more are schemas that apply in addition, for keywords that can't appear twice.
	more []any
	err  error
}

func (s *conversion) set(key string, v any) {
	s.to.Add(key, v)
}

// refer adds a reference to the schema at a pointer.
func (s *conversion) refer(pointer string, _ *resource, err error) {
	if err == nil {
		if v, _ := s.refs.at(pointer); !isSchema(v) {
			err = fmt.Errorf("a $ref leads to %s, which is not a schema", place(pointer))
		}
	}
	if err != nil {
		s.err = err
		return
	}
	ref := "#/$defs/" + s.define(pointer)
	if _, has := s.to.Find("$ref"); has {
		s.more = append(s.more, strictjson.New("$ref", ref))
		return
	}
	s.set("$ref", ref)
}

func isSchema(v any) bool {
	switch v.(type) {
	case *strictjson.Object, bool:
		return true
	}
	return false
}

// keyword converts one keyword; a keyword without meaning in the schema's draft is dropped if 2020-12 defines
// it.
func (s *conversion) keyword(key string, v any) {
	list, isList := v.([]any)
	object, isObject := v.(*strictjson.Object)
	_, isBool := v.(bool)
	switch key {
	case "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment":
		s.set(key, v)
		return
	}
	if _, refers := s.from.Get("$ref").(string); refers && s.draft < draft2019 {
		return // its siblings are ignored
	}
	switch key {
	case "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "definitions",
		"$defs", "additionalItems", "contentSchema": // converted where they apply
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
		if n := s.from.Get(bound); v == true && isNumber(n) {
			s.set(key, n)
		} else if !isBool {
			s.set(key, v)
		}
	case "minimum", "maximum":
		exclusive := map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}[key]
		if s.from.Get(exclusive) != true {
			s.set(key, v)
		}
	case "required":
		if !isBool { // draft 03, where the property itself has a boolean required
			s.set(key, v)
		}
	default:
		s.set(key, v)
	}
}

// reference adds a $ref. A reference to a meta-schema becomes a schema that accepts any schema: nothing is
// fetched, and whoever requested a schema validates it.
func (s *conversion) reference(ref string) {
	if _, meta := draftNamed(ref); meta {
		s.more = append(s.more, strictjson.New("type", []any{"object", "boolean"}))
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
	object, ok := v.(*strictjson.Object)
	if !ok {
		s.set(key, v) // invalid in every draft, which the validator reports
		return
	}
	out := &strictjson.Object{}
	for _, m := range object.Members {
		out.Add(m.Key, s.below(m.Value, key, m.Key))
	}
	s.set(key, out)
}

// items converts items, which in draft 2019-09 and before is a list or one schema; a list in a schema of
// 2020-12, which does not allow it, is read in the same way.
func (s *conversion) items(v any, list []any, isList bool) {
	if !isList {
		s.one("items", v)
		return
	}
	if _, has := s.from.Find("prefixItems"); has && s.draft == draft2020 {
		s.err = fmt.Errorf("items is a list beside prefixItems, at %s", place(s.pointer))
		return
	}
	if len(list) > 0 {
		s.set("prefixItems", s.list("items", list))
	}
	if further, ok := s.from.Find("additionalItems"); ok {
		s.set("items", s.below(further, "additionalItems"))
	}
}

// contains converts contains, which evaluates items in 2020-12 but not in 2019-09. Below not, nothing is
// evaluated.
func (s *conversion) contains(v any) {
	if s.draft < draft06 {
		return
	}
	if !s.unevaluatedItems {
		s.one("contains", v)
		return
	}
	alone := strictjson.New("contains", s.below(v, "contains"))
	for _, key := range []string{"minContains", "maxContains"} {
		if n, ok := s.from.Find(key); ok {
			alone.Add(key, n)
		}
	}
	not := func(v any) any { return strictjson.New("not", v) }
	s.more = append(s.more, not(not(alone)))
}

func (s *conversion) dependencies(object *strictjson.Object) {
	required, schemas := &strictjson.Object{}, &strictjson.Object{}
	for _, m := range object.Members {
		switch v := m.Value.(type) {
		case []any:
			required.Add(m.Key, v)
		case string: // draft 03
			required.Add(m.Key, []any{v})
		default:
			schemas.Add(m.Key, s.below(v, "dependencies", m.Key))
		}
	}
	if len(required.Members) > 0 {
		s.set("dependentRequired", required)
	}
	if len(schemas.Members) > 0 {
		s.set("dependentSchemas", schemas)
	}
}

// finish adds the schemas of more.
func (s *conversion) finish() {
	if len(s.more) == 0 {
		return
	}
	parts, _ := s.to.Get("allOf").([]any)
	s.to.Set("allOf", slices.Concat(parts, s.more))
}
