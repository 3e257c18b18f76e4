package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract/internal/quote"
)

// plain describes what a schema accepts in words for models and people: "an integer, at least 1, at most
// 100".
func (s *shape) plain() string { return inWords([]*shape{s}, true, 0) }

// inWords describes what shapes that apply at one position accept together. Alternatives are described if
// they are shapes from which the list does not choose; with whole, always.
func inWords(here []*shape, whole bool, depth int) string {
	const deepest = 4 // of definitions that refer to each other
	var words []string
	add := func(w string) {
		if w != "" && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	for _, s := range here {
		for _, w := range s.own() {
			add(w)
		}
		chosen := slices.ContainsFunc(s.anyOf, func(b *shape) bool { return slices.Contains(here, b) })
		if len(s.anyOf) > 0 && len(s.enum) == 0 && (whole || !chosen) && depth < deepest {
			var branches []string
			for _, b := range s.anyOf {
				if w := inWords(b.always(nil), true, depth+1); !b.never && !slices.Contains(branches, w) {
					branches = append(branches, w)
				}
			}
			add(strings.Join(branches, " or "))
		}
	}
	switch {
	case slices.Contains(words, "nothing"):
		return "nothing"
	case len(words) == 0:
		return "any value"
	}
	return strings.Join(words, ", ")
}

// always appends the shapes that apply at a position whatever the value there: s, what it refers to, and its
// parts.
func (s *shape) always(out []*shape) []*shape {
	if s == nil || slices.Contains(out, s) {
		return out
	}
	out = append(out, s)
	out = s.target.always(out)
	for _, part := range s.allOf {
		out = part.always(out)
	}
	return out
}

// own describes what s itself requires, without alternatives, parts and references.
func (s *shape) own() (words []string) {
	switch {
	case s.never:
		return []string{"nothing"}
	case len(s.enum) == 1:
		words = append(words, "exactly "+quote.Clip(text(s.enum[0])))
	case len(s.enum) > 0:
		words = append(words, "one of "+enumeration(s.enum))
	case len(s.types) > 0:
		words = append(words, typeWords(s.types))
	}
	for _, k := range keywordWords {
		if v, ok := s.schema[k.keyword]; ok {
			switch {
			case k.keyword == "pattern" && patternWords[plainText(v)] != "":
				words = append(words, patternWords[plainText(v)])
			case k.keyword == "pattern":
				words = append(words, fmt.Sprintf(k.words, quote.ClipTo(plainText(v), 200)))
			case k.keyword == "format" && formatWords[plainText(v)] != "":
				words = append(words, formatWords[plainText(v)])
			case v == true:
				words = append(words, k.words)
			case v == false:
			case v == json.Number("1"):
				words = append(words, singular.Replace(fmt.Sprintf(k.words, "1")))
			default:
				words = append(words, fmt.Sprintf(k.words, quote.Clip(plainText(v))))
			}
		}
	}
	switch not, _ := s.schema["not"].(map[string]any); {
	case not == nil:
	case len(not) == 1 && not["required"] != nil:
		if names, _ := not["required"].([]any); len(names) > 1 {
			words = append(words, "not with "+quote.Clip(list(not["required"]))+" together")
		} else {
			words = append(words, "without "+quote.Clip(list(not["required"])))
		}
	default:
		words = append(words, "but not "+quote.Clip(plainText(not)))
	}
	if s.names != nil {
		words = append(words, "each key "+s.names.plain())
	}
	if len(s.each) > 0 && s.each[0] != nil {
		words = append(words, s.containing())
	}
	return words
}

// containing describes contains with its bounds.
func (s *shape) containing() string {
	item := s.each[0].plain()
	low, most := "1", ""
	if v, ok := s.schema["minContains"].(json.Number); ok {
		low = string(v)
	}
	if v, ok := s.schema["maxContains"].(json.Number); ok {
		most = ", at most " + string(v)
	}
	if low == "1" {
		return "at least 1 item that is " + item + most
	}
	return "at least " + low + " items that are " + item + most
}

// list formats a keyword's list of names.
func list(v any) string {
	items, _ := v.([]any)
	var names []string
	for _, item := range items {
		names = append(names, plainText(item))
	}
	return strings.Join(names, ", ")
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
	{"contentEncoding", "in %s"},
	{"minItems", "at least %s items"},
	{"maxItems", "at most %s items"},
	{"uniqueItems", "no item twice"},
	{"minProperties", "at least %s keys"},
	{"maxProperties", "at most %s keys"},
}

// singular corrects "at least 1 characters long".
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
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = text(v)
	}
	return quote.List(words)
}

// text returns a value as JSON.
func text(v any) string { return string(appendJSON(nil, v)) }

// plainText formats a keyword's value for a reader.
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
		if t, ok := v["type"].(string); ok && len(v) == 1 {
			return typeWords([]string{t})
		}
	}
	return text(v)
}

// describe briefly describes a received value.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return text(v)
	case json.Number:
		return "the number " + quote.Clip(string(v))
	case string:
		return "the string " + quote.Clip(text(v))
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

// kindOf returns the JSON type of a decoded value; every number is a "number".
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
		quoted[i] = quote.Clip(n)
	}
	return strings.Join(quoted, ", ")
}

// describeSecret describes a secret value by its type only.
func describeSecret(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any, []any:
		return describe(v)
	}
	return "a " + kindOf(v) + " that is not shown, as it is or may be a secret"
}

// Describe describes a value in the words of a Violation's Got; with secret it gives only the type. v is
// decoded JSON.
func Describe(v any, secret bool) string {
	if secret {
		return describeSecret(v)
	}
	return describe(v)
}
