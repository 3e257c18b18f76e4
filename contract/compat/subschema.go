package compat

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/internal/jsontype"
)

// subschema is what the keywords at one place in a document say. All of them hold together.
type subschema struct {
	doc     *document
	pointer string // in the document
	text    string // canonical, without annotations
	fills   bool   // defaults of its properties are filled in, so that none of these is required
	never   bool   // it is false
	// variant tells one that the prover made from the one at the same pointer; no validator knows a typesOnly
	// one, which says nothing but types.
	variant   string
	typesOnly bool
	rest      *subschema // memo of withoutAlternatives

	types  jsontype.Set
	finite bool // it has an enum or a const
	enum   []any
	equal  map[string]string // the keywords that are compared by their text alone
	opaque []string          // the keywords that are not compared

	ref                        *subschema
	allOf, anyOf, oneOf        []*subschema
	not, when, then, otherwise *subschema // when is if

	lower, upper         *bound
	multipleOf           *big.Rat
	minLength, maxLength int // a maximum of -1 is none

	minItems, maxItems int
	prefix             []*subschema // prefixItems
	items, contains    *subschema
	counted            bool // contains has a minContains or maxContains

	minProperties, maxProperties int
	required                     []string
	properties                   map[string]*subschema
	patterns                     map[pattern]*subschema // patternProperties
	matchers                     map[pattern]func(string) bool
	additional, names            *subschema // additionalProperties, propertyNames
	defaults                     map[string]any
}

// pattern is a key of patternProperties. The same text means different things in our schemas and in upstream
// ones.
type pattern struct {
	text     string
	upstream bool
}

// bound is one end of a range of numbers.
type bound struct {
	at        *big.Rat
	exclusive bool
}

func (d *document) read(pointer string, fills bool) *subschema {
	key := key{pointer, fills}
	if s := d.subschemas[key]; s != nil {
		return s
	}
	s := &subschema{
		doc: d, pointer: pointer, fills: fills, types: jsontype.All, maxLength: -1, maxItems: -1, maxProperties: -1,
		equal: map[string]string{},
	}
	d.subschemas[key] = s
	if len(d.subschemas) > maxSubschemas {
		panic(unreadable(fmt.Sprintf("it has more than %d schemas", maxSubschemas)))
	}
	switch schema := d.find(pointer).(type) {
	case bool:
		s.never = !schema
		s.text = strconv.FormatBool(schema)
	case map[string]any:
		s.text = canonical(withoutAnnotations(schema))
		for keyword, v := range schema {
			s.keyword(keyword, v, schema)
		}
		if s.fills {
			s.required = slices.DeleteFunc(s.required, func(name string) bool { _, ok := s.defaults[name]; return ok })
		}
	default:
		panic(unreadable("a schema is neither an object nor true or false"))
	}
	return s
}

// acceptsAll reports whether s has no keyword that refuses anything.
func (s *subschema) acceptsAll() bool { return s.text == "true" || s.text == "{}" }

// below is the subschema at a keyword of s, and at steps below that.
func (s *subschema) below(keyword string, steps ...string) *subschema {
	return s.at(s.fills, keyword, steps...)
}

// tested is one that a value is only tested against: it fills in no default.
func (s *subschema) tested(keyword string) *subschema { return s.at(false, keyword) }

func (s *subschema) at(fills bool, keyword string, steps ...string) *subschema {
	p := s.pointer + "/" + keyword
	for _, step := range steps {
		p += "/" + escape(step)
	}
	return s.doc.read(p, fills)
}

// keyword reads one keyword of the schema m.
func (s *subschema) keyword(keyword string, v any, m map[string]any) {
	switch keyword {
	case "type":
		s.types = 0
		for _, name := range sortedTexts(v) {
			s.types |= jsontype.Named(name)
		}
	case "enum":
		list, _ := v.([]any)
		s.values(list)
	case "const":
		s.values([]any{v})
	case "$ref":
		s.ref = s.referent(v)
	case "allOf":
		s.allOf = s.list(keyword, v)
	case "anyOf":
		s.anyOf = s.list(keyword, v)
	case "oneOf":
		s.oneOf = s.list(keyword, v)
	case "not":
		s.not = s.tested(keyword)
	case "if":
		s.when = s.tested(keyword)
		if _, ok := m["then"]; ok {
			s.then = s.below("then")
		}
		if _, ok := m["else"]; ok {
			s.otherwise = s.below("else")
		}
	case "minimum", "exclusiveMinimum":
		s.lower = stricter(s.lower, &bound{number(v), keyword == "exclusiveMinimum"}, 1)
	case "maximum", "exclusiveMaximum":
		s.upper = stricter(s.upper, &bound{number(v), keyword == "exclusiveMaximum"}, -1)
	case "multipleOf":
		if s.multipleOf = number(v); s.multipleOf.Sign() <= 0 {
			panic(unreadable("multipleOf is not above zero"))
		}
	case "minLength":
		s.minLength = size(v)
	case "maxLength":
		s.maxLength = size(v)
	case "format", "contentEncoding":
		if !s.doc.upstream { // where they are annotations
			s.equal[keyword] = word(v)
		}
	case "pattern", "dependentRequired":
		s.equal[keyword] = word(v)
	case "uniqueItems":
		if v == true {
			s.equal[keyword] = word(v)
		}
	case "prefixItems":
		s.prefix = s.list(keyword, v)
	case "items":
		if _, list := v.([]any); list {
			panic(unreadable("items is a list, which draft 2020-12 calls prefixItems"))
		}
		s.items = s.below(keyword)
	case "contains":
		s.contains = s.tested(keyword)
	case "minContains", "maxContains":
		s.counted = true
	case "minItems":
		s.minItems = size(v)
	case "maxItems":
		s.maxItems = size(v)
	case "minProperties":
		s.minProperties = size(v)
	case "maxProperties":
		s.maxProperties = size(v)
	case "required":
		s.required = sortedTexts(v)
	case "properties":
		s.readProperties(v)
	case "patternProperties":
		s.readPatterns(v)
	case "additionalProperties":
		s.additional = s.below(keyword)
	case "propertyNames":
		s.names = s.tested(keyword)
	case "contentMediaType", "contentSchema":
		if !s.doc.upstream {
			s.opaque = append(s.opaque, keyword)
		}
	case "dependencies", "dependentSchemas", "additionalItems", "unevaluatedItems", "unevaluatedProperties":
		s.opaque = append(s.opaque, keyword)
	case "$schema":
		if s.pointer != "" {
			panic(unreadable("a schema inside it has a $schema of its own"))
		}
	case "$id", "id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary":
		panic(unreadable("it uses " + keyword))
	}
}

// values reads an enum. Where there is a const beside it, both hold.
func (s *subschema) values(list []any) {
	if s.finite {
		s.opaque = append(s.opaque, "enum")
	}
	s.finite, s.enum = true, list
}

// referent is what a $ref leads to.
func (s *subschema) referent(v any) *subschema {
	ref, _ := v.(string)
	fragment, ok := strings.CutPrefix(ref, "#")
	if pointer, err := url.PathUnescape(fragment); ok && err == nil && (pointer == "" || pointer[0] == '/') {
		return s.doc.read(pointer, s.fills)
	}
	panic(unreadable("a $ref leads out of it"))
}

func (s *subschema) list(keyword string, v any) (out []*subschema) {
	list, _ := v.([]any)
	for i := range list {
		out = append(out, s.below(keyword, strconv.Itoa(i)))
	}
	return out
}

func (s *subschema) readProperties(v any) {
	m, _ := v.(map[string]any)
	s.properties, s.defaults = make(map[string]*subschema, len(m)), map[string]any{}
	for name, p := range m {
		s.properties[name] = s.below("properties", name)
		schema, _ := p.(map[string]any)
		if value, ok := schema["default"]; ok && s.fills {
			s.defaults[name] = value
		}
	}
}

func (s *subschema) readPatterns(v any) {
	m, _ := v.(map[string]any)
	s.patterns, s.matchers = make(map[pattern]*subschema, len(m)), make(map[pattern]func(string) bool, len(m))
	for text := range m {
		matcher, err := s.doc.validator.Matcher(text)
		if err != nil {
			panic(unreadable(err.Error()))
		}
		p := pattern{text, s.doc.upstream}
		s.patterns[p], s.matchers[p] = s.below("patternProperties", text), matcher
	}
}

// inPlace are the subschemas that are applied to the same value as s.
func (s *subschema) inPlace() (out []*subschema) {
	out = slices.Concat(s.allOf, s.anyOf, s.oneOf)
	for _, c := range []*subschema{s.ref, s.not, s.when, s.then, s.otherwise} {
		if c != nil {
			out = append(out, c)
		}
	}
	return out
}

// member are the subschemas of s for the value of a key.
func (s *subschema) member(name string) (out []*subschema) {
	if p := s.properties[name]; p != nil {
		out = append(out, p)
	}
	for pattern, matches := range s.matchers {
		if matches(name) {
			out = append(out, s.patterns[pattern])
		}
	}
	if out == nil && s.additional != nil {
		out = append(out, s.additional)
	}
	return out
}

// item is the subschema of s for an item; nil where there is none.
func (s *subschema) item(i int) *subschema {
	if i < len(s.prefix) {
		return s.prefix[i]
	}
	return s.items
}

// stricter is the bound of two that excludes more; sign is 1 for lower bounds and -1 for upper ones. Either
// may be nil.
func stricter(a, b *bound, sign int) *bound {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	if c := a.at.Cmp(b.at) * sign; c > 0 || c == 0 && a.exclusive {
		return a
	}
	return b
}

func number(v any) *big.Rat {
	if n, ok := v.(json.Number); ok {
		if r, ok := new(big.Rat).SetString(string(n)); ok {
			return r
		}
	}
	panic(unreadable("a bound is no number"))
}

func size(v any) int {
	if n, ok := v.(json.Number); ok {
		if i, err := strconv.ParseInt(string(contract.Integer(n)), 10, 32); err == nil && i >= 0 {
			return int(i)
		}
	}
	panic(unreadable("a size is no whole number below 2147483648"))
}

// word is a keyword's value as it is shown: a string as it is, all else as JSON.
func word(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return canonical(v)
}

// escape is a step of a JSON pointer.
func escape(step string) string {
	return strings.ReplaceAll(strings.ReplaceAll(step, "~", "~0"), "/", "~1")
}
