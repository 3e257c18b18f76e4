package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// describe says what a schema accepts in words that a model or a person acts on: "an integer, at least 1, at most 100".
func (s *shape) describe(m map[string]any) string {
	if s.ref != "" {
		return ""
	}
	var words []string
	switch {
	case len(s.enum) == 1:
		words = append(words, "exactly "+clip(text(s.enum[0])))
	case len(s.enum) > 0:
		words = append(words, "one of "+enumeration(s.enum))
	case len(s.anyOf) > 0:
		var branches []string
		for _, b := range s.anyOf {
			branches = append(branches, b.plain())
		}
		words = append(words, strings.Join(branches, " or "))
	case len(s.types) > 0:
		words = append(words, typeWords(s.types))
	default:
		words = append(words, "any value")
	}
	for _, k := range keywordWords {
		if v, ok := m[k.keyword]; ok {
			switch {
			case v == true:
				words = append(words, k.words)
			case v == json.Number("1"):
				words = append(words, singular.Replace(fmt.Sprintf(k.words, "1")))
			default:
				words = append(words, fmt.Sprintf(k.words, clip(plainText(v))))
			}
		}
	}
	for _, part := range s.allOf {
		words = append(words, part.plain())
	}
	return strings.Join(words, ", ")
}

// plain is the words of s, through a reference.
func (s *shape) plain() string {
	for s != nil && s.target != nil {
		s = s.target
	}
	if s == nil {
		return "nothing"
	}
	if s.words == "" {
		return "a value of its definition" // a reference that is read before its target is
	}
	return s.words
}

var keywordWords = []struct{ keyword, words string }{
	{"minimum", "at least %s"},
	{"exclusiveMinimum", "greater than %s"},
	{"maximum", "at most %s"},
	{"exclusiveMaximum", "less than %s"},
	{"multipleOf", "a multiple of %s"},
	{"minLength", "at least %s characters long"},
	{"maxLength", "at most %s characters long"},
	{"pattern", "matching %s"},
	{"format", "in the format %s"},
	{"minItems", "at least %s items"},
	{"maxItems", "at most %s items"},
	{"uniqueItems", "no item twice"},
	{"minProperties", "at least %s keys"},
	{"maxProperties", "at most %s keys"},
	{"not", "but not %s"},
}

// singular mends "at least 1 characters long".
var singular = strings.NewReplacer(" 1 characters", " 1 character", " 1 items", " 1 item", " 1 keys", " 1 key")

func typeWords(types []string) string {
	var words []string
	for _, t := range types {
		switch t {
		case "null":
			words = append(words, "null")
		case "boolean":
			words = append(words, "true or false")
		case "integer", "array", "object":
			words = append(words, "an "+t)
		default:
			words = append(words, "a "+t)
		}
	}
	return strings.Join(words, " or ")
}

func enumeration(values []any) string {
	const most = 20
	var words []string
	for i, v := range values {
		if i == most {
			return strings.Join(words, ", ") + fmt.Sprintf(" and %d more", len(values)-most)
		}
		words = append(words, clip(text(v)))
	}
	return strings.Join(words, ", ")
}

// text is a value as JSON.
func text(v any) string { return string(appendJSON(nil, v)) }

// plainText is a keyword's value as a reader expects it.
func plainText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		if pattern, ok := v["pattern"].(string); ok {
			return "matching " + pattern
		}
		if c, ok := v["const"]; ok {
			return text(c)
		}
		if e, ok := v["enum"].([]any); ok {
			return "one of " + enumeration(e)
		}
	}
	return text(v)
}

// describe says in a few words what came.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return text(v)
	case json.Number:
		return "the number " + clip(string(v))
	case string:
		return "the string " + clip(text(v))
	case []any:
		return fmt.Sprintf("an array of %s", count(len(v), "item"))
	case map[string]any:
		return fmt.Sprintf("an object of %s", count(len(v), "key"))
	}
	return "something that is not JSON"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// kindOf is the JSON type of a decoded value; every number is a "number".
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

func quoteAll(names []string) string {
	quoted := slices.Clone(names)
	for i, n := range quoted {
		quoted[i] = clip(n)
	}
	return strings.Join(quoted, ", ")
}
