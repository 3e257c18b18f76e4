package contract

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// withoutRules takes out of a schema, as it is advertised, the rules that mention what is fixed in it: the
// contract still enforces them. here are the names of the members that are fixed directly, fixed those at any
// depth.
func (w *narrower) withoutRules(own *strictjson.Object, here, fixed []string, path string) {
	if len(fixed) == 0 {
		return
	}
	mentioned := func(v any) bool { return w.mentions(v, map[string]bool{}, fixed...) }
	lose := func(keyword string) {
		w.losses = append(w.losses, Loss{
			Kind: LossFixed, Path: strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "."),
			What: keyword + ": it is also about what the branch fixes",
		})
	}
	dropped := false
	drop := func(keywords ...string) {
		own.Remove(keywords...)
		lose(keywords[0])
		dropped = true
	}
	if list := own.List("allOf"); len(list) > 0 {
		kept := slices.DeleteFunc(slices.Clone(list), mentioned)
		switch {
		case len(kept) == 0:
			drop("allOf")
		case len(kept) < len(list):
			own.Set("allOf", kept)
			lose("allOf")
			dropped = true
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf", "not", "dependentSchemas", "const", "enum"} {
		if v, ok := own.Find(keyword); ok && mentioned(v) {
			drop(keyword)
		}
	}
	if own.Has("if") && (mentioned(own.Get("if")) || mentioned(own.Get("then")) || mentioned(own.Get("else"))) {
		drop("if", "then", "else")
	}
	w.dependencies(own, here, lose)
	if dropped && own.Has("unevaluatedProperties") {
		drop("unevaluatedProperties")
	}
	for _, keyword := range []string{"minProperties", "maxProperties"} {
		n, ok := own.Get(keyword).(json.Number)
		if !ok || len(here) == 0 {
			continue
		}
		if left := smallInt(string(Integer(n))) - len(here); left > 0 || keyword == "maxProperties" && left == 0 {
			own.Set(keyword, json.Number(itoa(left)))
		} else if own.Remove(keyword); left < 0 && keyword == "maxProperties" {
			w.fault(path, "the tool accepts at most %s arguments here, and %d are fixed", n, len(here))
		}
	}
}

// rulesAbout records the rules that mention arguments to which the narrowing gives a default: a call that leaves
// them out has them when the rule is checked.
func (w *narrower) rulesAbout(own *strictjson.Object, filled []string, path string) {
	if len(filled) == 0 {
		return
	}
	for _, keyword := range []string{
		"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependentRequired", "maxProperties",
	} {
		if v, ok := own.Find(keyword); ok && (keyword == "maxProperties" || w.mentions(v, map[string]bool{}, filled...)) {
			w.losses = append(w.losses, Loss{
				Kind: LossFixed, Path: strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "."),
				What: keyword + ": it is also about what the branch fills in",
			})
		}
	}
}

// dependencies writes dependentRequired without what is fixed, which is always there.
func (w *narrower) dependencies(own *strictjson.Object, here []string, lose func(string)) {
	rules := own.Object("dependentRequired")
	if rules == nil || len(here) == 0 {
		return
	}
	fixed := func(name any) bool { text, ok := name.(string); return ok && slices.Contains(here, text) }
	kept := &strictjson.Object{}
	for _, m := range rules.Members {
		list, _ := m.Value.([]any)
		if fixed(m.Key) {
			lose("dependentRequired")
			continue
		}
		if rest := slices.DeleteFunc(slices.Clone(list), fixed); len(rest) > 0 {
			kept.Add(m.Key, rest)
		}
	}
	if own.Remove("dependentRequired"); len(kept.Members) > 0 {
		own.Add("dependentRequired", kept)
	}
}

// mentions reports whether one of the names is a key or a text anywhere in a schema, or in what it refers to.
func (w *narrower) mentions(v any, seen map[string]bool, names ...string) bool {
	switch v := v.(type) {
	case *strictjson.Object:
		return slices.ContainsFunc(v.Members, func(m strictjson.Member) bool {
			if ref, ok := m.Value.(string); ok && m.Key == "$ref" {
				if seen[ref] {
					return false
				}
				seen[ref] = true
				return w.mentions(w.target(ref), seen, names...)
			}
			return slices.Contains(names, m.Key) || w.mentions(m.Value, seen, names...)
		})
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return w.mentions(item, seen, names...) })
	case string:
		return slices.Contains(names, v)
	}
	return false
}

// mentionsWord reports whether one of the names is a word of a text.
func mentionsWord(text string, names []string) bool {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }
	return slices.ContainsFunc(names, func(name string) bool {
		for at := 0; name != ""; {
			i := strings.Index(text[at:], name)
			if i < 0 {
				return false
			}
			before, _ := utf8.DecodeLastRuneInString(text[:at+i])
			after, _ := utf8.DecodeRuneInString(text[at+i+len(name):])
			if !inWord(before) && !inWord(after) {
				return true
			}
			at += i + len(name)
		}
		return false
	})
}
