package dialect_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// generator writes values by a JSON Schema as a model would. What it writes need not be accepted by the
// schema (it does not solve not, oneOf or a pattern beside a length), so that the caller validates it.
type generator struct {
	*rand.Rand
	root anyMap
	// minimal leaves out what is not required, and takes the shortest of everything.
	minimal bool
}

const deepest = 6

// value is a value for all of the schemas together.
func (g *generator) value(schemas []any, depth int) any {
	if depth > 2*deepest {
		return nil // required recursion has no end
	}
	parts := g.parts(schemas, nil, 0)
	for _, p := range parts {
		if c, ok := p["const"]; ok {
			return c
		}
	}
	for _, p := range parts {
		if values, ok := p["enum"].([]any); ok && len(values) > 0 {
			return values[g.IntN(len(values))]
		}
	}
	switch g.kind(parts, depth) {
	case "null":
		return nil
	case "boolean":
		return g.IntN(2) == 0
	case "integer":
		return g.number(parts, true)
	case "number":
		return g.number(parts, g.IntN(2) == 0)
	case "array":
		return g.array(parts, depth)
	case "object":
		return g.object(parts, depth)
	}
	return g.text(parts)
}

// parts are the schemas without references and alternatives that a value is written by: of alternatives one
// is chosen.
func (g *generator) parts(schemas []any, out []anyMap, depth int) []anyMap {
	for _, s := range schemas {
		m, ok := s.(anyMap)
		if !ok || depth > 20 {
			continue
		}
		out = append(out, m)
		if ref, ok := m["$ref"].(string); ok {
			out = g.parts([]any{resolve(g.root, ref)}, out, depth+1)
		}
		if all, ok := m["allOf"].([]any); ok {
			out = g.parts(all, out, depth+1)
		}
		for _, key := range []string{"anyOf", "oneOf"} {
			if choices, ok := m[key].([]any); ok && len(choices) > 0 {
				out = g.parts([]any{choices[g.IntN(len(choices))]}, out, depth+1)
			}
		}
		if condition, ok := m["if"]; ok {
			if g.IntN(2) == 0 {
				out = g.parts([]any{condition, m["then"]}, out, depth+1)
			} else {
				out = g.parts([]any{m["else"]}, out, depth+1)
			}
		}
		if dependent, ok := m["dependentSchemas"].(anyMap); ok {
			for _, name := range slices.Sorted(maps.Keys(dependent)) {
				if g.IntN(2) == 0 {
					out = g.parts([]any{anyMap{"required": []any{name}}, dependent[name]}, out, depth+1)
				}
			}
		}
	}
	return out
}

func resolve(root anyMap, ref string) any {
	v := any(root)
	for _, step := range strings.Split(strings.TrimPrefix(ref, "#"), "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch parent := v.(type) {
		case anyMap:
			v = parent[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(parent) {
				return nil
			}
			v = parent[i]
		}
	}
	return v
}

func (g *generator) kind(parts []anyMap, depth int) string {
	kinds := []string{"string", "integer", "number", "boolean", "null", "array", "object"}
	typed := false
	for _, p := range parts {
		var own []string
		switch t := p["type"].(type) {
		case string:
			own = []string{t}
		case []any:
			for _, name := range t {
				own = append(own, fmt.Sprint(name))
			}
		default:
			continue
		}
		typed = true
		kinds = slices.DeleteFunc(kinds, func(k string) bool {
			return !slices.Contains(own, k) && (k != "integer" || !slices.Contains(own, "number"))
		})
	}
	for _, p := range parts {
		if !typed && (p["properties"] != nil || p["required"] != nil) {
			return "object"
		}
	}
	if len(kinds) == 0 {
		return "null"
	}
	if depth > deepest && slices.Contains(kinds, "null") {
		return "null"
	}
	return kinds[g.IntN(len(kinds))]
}

func (g *generator) number(parts []anyMap, whole bool) json.Number {
	low, high, step := -20.0, 20.0, 0.0
	seen := func(v any) (float64, bool) {
		n, ok := v.(json.Number)
		if !ok {
			return 0, false
		}
		f, err := n.Float64()
		return f, err == nil
	}
	bounded := false
	for _, p := range parts {
		for key, set := range map[string]func(float64){
			"minimum":          func(f float64) { low, high, bounded = max(low, f), max(high, f+40), true },
			"exclusiveMinimum": func(f float64) { low, high, bounded = max(low, f+1), max(high, f+40), true },
			"multipleOf":       func(f float64) { step = f },
		} {
			if f, ok := seen(p[key]); ok {
				set(f)
			}
		}
	}
	for _, p := range parts {
		if f, ok := seen(p["maximum"]); ok {
			high = min(high, f)
			if !bounded {
				low = min(low, f-10)
			}
		}
		if f, ok := seen(p["exclusiveMaximum"]); ok {
			if whole && f-1 >= low {
				f--
			} else if !whole || f-1 < low {
				f, low, whole = (f+low-1)/2, f-1, false
			}
			high = min(high, f)
		}
	}
	x := low + g.Float64()*(high-low)
	if g.IntN(4) == 0 {
		x = low
	}
	if whole {
		x = float64(int64(x))
	}
	if step > 0 {
		x = float64(int64(x/step)) * step
	}
	return json.Number(strconv.FormatFloat(x, 'f', -1, 64))
}

var formatSamples = map[string][]string{
	"date-time": {"2026-11-30T05:00:00Z"}, "date": {"2026-11-30"}, "time": {"05:00:00Z"}, "duration": {"P1DT2H"},
	"email": {"a@example.com"}, "hostname": {"example.com"}, "ipv4": {"192.0.2.1"}, "ipv6": {"2001:db8::1"},
	"uuid": {"123e4567-e89b-12d3-a456-426614174000"}, "uri": {"https://example.com/a"}, "uri-reference": {"a/b"}, "regex": {"^a$"},
	"json-pointer": {"/a"}, "iri": {"https://example.com/ä"},
}

func (g *generator) text(parts []anyMap) string {
	low, high := 0, 12
	for _, p := range parts {
		if n, ok := p["minLength"].(json.Number); ok {
			i, _ := n.Int64()
			low = max(low, int(i))
			high = max(high, low)
		}
		if n, ok := p["maxLength"].(json.Number); ok {
			i, _ := n.Int64()
			high = min(high, int(i))
		}
	}
	for _, p := range parts {
		if samples := formatSamples[fmt.Sprint(p["format"])]; samples != nil {
			return samples[g.IntN(len(samples))]
		}
		if p["contentEncoding"] == "base64" {
			return "YQ=="
		}
		if pattern, ok := p["pattern"].(string); ok {
			if re, err := regexp.Compile(pattern); err == nil {
				return fitted(re, rapid.StringMatching(pattern).Example(g.IntN(1000)), low, high)
			}
		}
	}
	n := low
	if !g.minimal && high > low {
		n += g.IntN(high - low + 1)
	}
	out := make([]rune, n)
	for i := range out {
		out[i] = []rune("abcxyz019 -_ä世")[g.IntN(14)]
	}
	return string(out)
}

// fitted is a text that matches, repeated or cut to a length where it then still matches.
func fitted(re *regexp.Regexp, text string, low, high int) string {
	if n := utf8.RuneCountInString(text); n >= low && n <= high || text == "" {
		return text
	}
	runes := []rune(strings.Repeat(text, low/len(text)+1))
	if cut := string(runes[:min(max(low, 1), len(runes))]); re.MatchString(cut) {
		return cut
	}
	return text
}

func (g *generator) array(parts []anyMap, depth int) any {
	low, high := 0, 3
	var prefix []any
	for _, p := range parts {
		if n, ok := p["minItems"].(json.Number); ok {
			i, _ := n.Int64()
			low = max(low, int(i))
			high = max(high, low)
		}
		if n, ok := p["maxItems"].(json.Number); ok {
			i, _ := n.Int64()
			high = min(high, int(i))
		}
		if list, ok := p["prefixItems"].([]any); ok {
			prefix = list
			high = max(high, len(list))
			if p["items"] == false {
				high = min(high, len(list))
			}
		}
	}
	n := low
	if !g.minimal && high > low {
		n += g.IntN(high - low + 1)
	}
	if depth > deepest {
		n = low
	}
	out := []any{}
	for i := range n {
		var schemas []any
		for _, p := range parts {
			if i < len(prefix) && p["prefixItems"] != nil {
				schemas = append(schemas, prefix[i])
			} else if items, ok := p["items"]; ok {
				schemas = append(schemas, items)
			}
			if contains, ok := p["contains"]; ok && i == 0 {
				schemas = append(schemas, contains)
			}
		}
		out = append(out, g.value(schemas, depth+1))
	}
	return out
}

func (g *generator) object(parts []anyMap, depth int) any {
	out := anyMap{}
	var names, required []string
	extra := true
	for _, p := range parts {
		properties, _ := p["properties"].(anyMap)
		names = slices.AppendSeq(names, maps.Keys(properties))
		list, _ := p["required"].([]any)
		for _, name := range list {
			required = append(required, fmt.Sprint(name))
		}
		if p["additionalProperties"] == false || p["unevaluatedProperties"] == false {
			extra = false
		}
	}
	slices.Sort(names)
	for _, p := range parts {
		patterns, _ := p["patternProperties"].(anyMap)
		for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
			if _, err := regexp.Compile(pattern); err == nil && !g.minimal && g.IntN(2) == 0 {
				names = append(names, rapid.StringMatching(pattern).Example(g.IntN(100)))
			}
		}
		if p["minProperties"] != nil && extra {
			names = append(names, "extra1", "extra2")
		}
	}
	if extra && !g.minimal && g.IntN(6) == 0 {
		names = append(names, []string{"zz", "extra", "x-y"}[g.IntN(3)])
	}
	names = append(names, required...)
	slices.Sort(names)
	chance := 2 + g.IntN(3)
	for _, name := range slices.Compact(names) {
		if !slices.Contains(required, name) && (g.minimal && g.IntN(8) > 0 || depth > deepest || g.IntN(chance) == 0) {
			continue
		}
		var schemas []any
		for _, p := range parts {
			properties, _ := p["properties"].(anyMap)
			found := false
			if s, ok := properties[name]; ok {
				schemas, found = append(schemas, s), true
			}
			patterns, _ := p["patternProperties"].(anyMap)
			for pattern, s := range patterns {
				if re, err := regexp.Compile(pattern); err == nil && re.MatchString(name) {
					schemas, found = append(schemas, s), true
				}
			}
			if s, ok := p["additionalProperties"]; ok && !found {
				schemas = append(schemas, s)
			}
		}
		if slices.Contains(schemas, any(false)) {
			continue
		}
		out[name] = g.value(schemas, depth+1)
	}
	return out
}
