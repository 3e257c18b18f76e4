package contract

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract/internal/quote"
)

// If a condition forbids or requires an argument, the violation states the condition.

// forbidden reports a value where the schema is false, and why it must be left out.
func (e *explainer) forbidden(at []string, location string) {
	parent, keyword := cutLast(location)
	switch {
	case len(at) > 0 && (keyword == "unevaluatedProperties" || keyword == "additionalProperties"):
		e.unexpected(at[:len(at)-1], at[len(at)-1:])
		return
	case keyword == "items" || keyword == "unevaluatedItems" || keyword == "contains":
		e.add(Violation{Pointer: pointer(at), Got: e.got(at), Expected: "no further item"})
		return
	}
	expected := "it to be left out"
	switch around, container := cutLast(parent); container {
	case "properties":
		if condition := e.condition(around); condition != "" {
			expected += ": it is an argument only " + condition
		}
	case "patternProperties":
		expected += ": no key may match " + quote.Clip(unescapePointer(keyword))
	case "prefixItems":
		expected = "no item at this place"
	}
	e.add(Violation{Pointer: pointer(at), Got: e.got(at), Expected: quote.ClipTo(expected, maxExpected)})
}

func (e *explainer) got(at []string) string {
	_, v := e.at(at)
	return e.describe(v, at)
}

// cutLast splits a location into its last step and the rest.
func cutLast(location string) (rest, step string) {
	i := strings.LastIndexByte(location, '/')
	if i < 0 {
		return location, ""
	}
	return location[:i], location[i+1:]
}

// condition describes when the value that the schema at a location forbids would be allowed: `where kind is
// "card"` for an else, `unless ...` for a then. It returns "" if the schema is not part of a condition.
func (e *explainer) condition(location string) string {
	return e.branchOf(location, "else", "then")
}

// needed describes when the key that the schema at a location requires is required.
func (e *explainer) needed(location string) string {
	if rest, name := cutLast(location); strings.HasSuffix(rest, "/dependentSchemas") {
		return "where " + quote.Clip(unescapePointer(name)) + " is given"
	}
	return e.branchOf(location, "then", "else")
}

func (e *explainer) branchOf(location, where, unless string) string {
	around, keyword := cutLast(location)
	if keyword != where && keyword != unless {
		return ""
	}
	s := e.shapeAt(around)
	if s == nil || s.when == nil {
		return ""
	}
	words := "where "
	if keyword == unless {
		words = "unless "
	}
	return quote.ClipTo(words+conditionWords(s.when.schema, "", 0), 200)
}

// conditionWords describes what a schema requires of arguments, as far as guards use it: constants, presence,
// and combinations of these.
func conditionWords(schema map[string]any, of string, depth int) string {
	const deepest = 6
	if schema == nil || depth > deepest {
		return "its condition holds"
	}
	name := func(key string) string {
		if of == "" {
			return quote.Clip(key)
		}
		return of + "." + quote.Clip(key)
	}
	var each []string
	properties, _ := schema["properties"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if p, ok := properties[key].(map[string]any); ok {
			each = append(each, conditionWords(p, name(key), depth+1))
		}
	}
	required, _ := schema["required"].([]any)
	for _, v := range required {
		if key, ok := v.(string); ok && properties[key] == nil {
			each = append(each, name(key)+" is given")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(schema)) {
		v := schema[key]
		switch list, _ := v.([]any); key {
		case "const":
			each = append(each, orThis(of)+" is "+quote.Clip(text(v)))
		case "enum":
			each = append(each, orThis(of)+" is one of "+enumeration(list))
		case "not":
			if not, ok := v.(map[string]any); ok {
				each = append(each, negated(conditionWords(not, of, depth+1)))
			}
		case "anyOf", "allOf":
			var parts []string
			for _, item := range list {
				if m, ok := item.(map[string]any); ok {
					parts = append(parts, conditionWords(m, of, depth+1))
				}
			}
			each = append(each, strings.Join(parts, map[string]string{"anyOf": " or ", "allOf": " and "}[key]))
		case "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "type":
			if key == "type" && (v == "object" || len(schema) > 1) {
				continue
			}
			s := &shape{schema: map[string]any{key: v}}
			if t, ok := v.(string); ok && key == "type" {
				s.types = []string{t}
			}
			each = append(each, orThis(of)+" is "+strings.Join(s.own(), ", "))
		case "properties", "required", "title", "description", "$comment":
		default:
			each = append(each, fmt.Sprintf("%s has %s %s", orThis(of), key, quote.Clip(text(v))))
		}
	}
	if len(each) == 0 {
		return orThis(of) + " is given"
	}
	return strings.Join(each, " and ")
}

func orThis(of string) string {
	if of == "" {
		return "the value"
	}
	return of
}

// negated negates one simple clause, and prefixes others with a phrase of negation.
func negated(words string) string {
	if !strings.Contains(words, " and ") && !strings.Contains(words, " or ") && strings.Count(words, " is ") == 1 {
		return strings.Replace(words, " is ", " is not ", 1)
	}
	return "not (" + words + ")"
}

// unescapePointer decodes a step of a validator's location.
func unescapePointer(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		s = plain
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
}
