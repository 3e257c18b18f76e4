package contract

import (
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// fastPath accepts valid values much faster than the validator. It accepts only values that the validator
// accepts, but may reject valid ones, on which the validator then decides. A nil fastPath accepts nothing.
type fastPath struct {
	types              []string
	enum               []any // strings, booleans and null
	minLength          int
	maxLength          int // -1: none
	minimum, maximum   int64
	bounded            bool
	properties         map[string]*fastPath
	required           []string
	closed             bool
	items              *fastPath
	anything           bool // of items
	minItems, maxItems int  // maxItems -1: none
	pattern            jsonschema.Regexp
	multipleOf         int64 // 0: none
	anyOf, allOf       []*fastPath
	when               *predicate
	then, otherwise    *fastPath
	hasThen, hasElse   bool // the schema has the keyword
}

// readFastPath compiles a schema; it returns nil for one with a keyword that it doesn't support.
func readFastPath(schema any, upstream bool) *fastPath {
	m, ok := schema.(map[string]any)
	if !ok {
		if schema == true {
			return &fastPath{maxLength: -1, maxItems: -1, minimum: minInt, maximum: maxInt, anything: true}
		}
		return nil
	}
	if _, conditional := m["if"]; !conditional && (m["then"] != nil || m["else"] != nil) {
		return nil
	}
	s := &fastPath{maxLength: -1, maxItems: -1, minimum: minInt, maximum: maxInt, anything: true}
	for keyword, v := range m {
		if !s.understand(keyword, v, upstream) {
			return nil
		}
	}
	return s
}

const (
	minInt = -1 << 63
	maxInt = 1<<63 - 1
)

func (s *fastPath) understand(keyword string, v any, upstream bool) (ok bool) {
	switch keyword {
	case "description", "title", "default", "examples", "deprecated", "writeOnly", "readOnly", "$comment":
		return true
	case "pattern":
		text, _ := v.(string)
		patterns := engine{ecma: upstream}
		var err error
		s.pattern, err = patterns.compile(text)
		return err == nil && !patterns.slow
	case "format", "contentEncoding", "contentMediaType":
		return upstream
	case "multipleOf":
		s.multipleOf, ok = whole(v)
		return ok && s.multipleOf > 0
	case "anyOf":
		list, _ := v.([]any)
		for _, item := range list {
			if b := readFastPath(item, upstream); b != nil { // the others are left to the validator
				s.anyOf = append(s.anyOf, b)
			}
		}
		return len(s.anyOf) > 0
	case "allOf":
		list, ok := v.([]any)
		for _, item := range list {
			part := readFastPath(item, upstream)
			s.allOf, ok = append(s.allOf, part), ok && part != nil
		}
		return ok
	case "if":
		s.when = readPredicate(v)
		return s.when != nil
	case "then":
		s.then, s.hasThen = readFastPath(v, upstream), true
		return true
	case "else":
		s.otherwise, s.hasElse = readFastPath(v, upstream), true
		return true
	case "type":
		name, ok := v.(string)
		s.types = []string{name}
		return ok
	case "const":
		alone := s.enum == nil // const together with enum is left to the validator
		s.enum = []any{v}
		return alone && simple(v)
	case "enum":
		alone := s.enum == nil
		s.enum, ok = v.([]any)
		return alone && ok && len(s.enum) > 0 && !slices.ContainsFunc(s.enum, func(v any) bool { return !simple(v) })
	case "minLength":
		s.minLength, ok = small(v)
		return ok
	case "maxLength":
		s.maxLength, ok = small(v)
		return ok
	case "minItems":
		s.minItems, ok = small(v)
		return ok
	case "maxItems":
		s.maxItems, ok = small(v)
		return ok
	case "minimum":
		s.minimum, ok = whole(v)
		s.bounded = true
		return ok
	case "maximum":
		s.maximum, ok = whole(v)
		s.bounded = true
		return ok
	case "properties":
		properties, ok := v.(map[string]any)
		s.properties = make(map[string]*fastPath, len(properties))
		for name, p := range properties {
			s.properties[name] = readFastPath(p, upstream) // nil: calls with it are left to the validator
		}
		return ok
	case "required":
		list, ok := v.([]any)
		for _, name := range list {
			text, isText := name.(string)
			s.required, ok = append(s.required, text), ok && isText
		}
		return ok
	case "additionalProperties":
		open, ok := v.(bool)
		s.closed = !open
		return ok
	case "items":
		s.items, s.anything = readFastPath(v, upstream), false
		return s.items != nil
	}
	return false
}

// simple reports whether values of v's type can be compared with ==. Numbers can't: 1 equals 1.0.
func simple(v any) bool {
	switch v.(type) {
	case nil, bool, string:
		return true
	}
	return false
}

func small(v any) (int, bool) {
	n, ok := whole(v)
	return int(n), ok && n >= 0 && n < 1<<31
}

// whole returns a number that is written as an integer, without fraction and exponent.
func whole(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseInt(string(n), 10, 64)
	return i, err == nil
}

func (s *fastPath) accepts(v any) bool {
	if s == nil || s.enum != nil && !(simple(v) && slices.Contains(s.enum, v)) {
		return false
	}
	if s.anyOf != nil && !slices.ContainsFunc(s.anyOf, func(b *fastPath) bool { return b.accepts(v) }) {
		return false
	}
	for _, part := range s.allOf {
		if !part.accepts(v) {
			return false
		}
	}
	if s.when != nil {
		holds := s.when.holds(v)
		if holds && s.hasThen && !s.then.accepts(v) || !holds && s.hasElse && !s.otherwise.accepts(v) {
			return false
		}
	}
	switch v := v.(type) {
	case nil:
		return s.takes("null")
	case bool:
		return s.takes("boolean")
	case json.Number:
		n, ok := whole(v)
		return ok && (s.takes("integer") || s.takes("number")) && (!s.bounded || n >= s.minimum && n <= s.maximum) && (s.multipleOf == 0 || n%s.multipleOf == 0)
	case string:
		if s.minLength > 0 || s.maxLength >= 0 {
			n := utf8.RuneCountInString(v)
			if n < s.minLength || s.maxLength >= 0 && n > s.maxLength {
				return false
			}
		}
		return s.takes("string") && (s.pattern == nil || s.pattern.MatchString(v))
	case []any:
		return s.takes("array") && s.list(v)
	case map[string]any:
		return s.takes("object") && s.object(v)
	}
	return false
}

func (s *fastPath) takes(kind string) bool { return len(s.types) == 0 || s.types[0] == kind }

func (s *fastPath) list(v []any) bool {
	if len(v) < s.minItems || s.maxItems >= 0 && len(v) > s.maxItems {
		return false
	}
	if s.anything {
		return true
	}
	for _, item := range v {
		if !s.items.accepts(item) {
			return false
		}
	}
	return true
}

func (s *fastPath) object(v map[string]any) bool {
	for _, name := range s.required {
		if _, ok := v[name]; !ok {
			return false
		}
	}
	for name, value := range v {
		p, declared := s.properties[name]
		if declared && !p.accepts(value) || !declared && s.closed {
			return false
		}
	}
	return true
}
