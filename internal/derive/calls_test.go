package derive_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// drawer draws calls, right and wrong, along a schema. Scalars come from the CUE that it was made of, so that what the
// schema has lost is tried, too.
type drawer struct {
	*rand.Rand
	wrong          float64 // how often a place gets something else than what belongs there
	defs           map[string]any
	texts, numbers []string
	names          []string // of fields
}

var (
	literalText   = regexp.MustCompile(`"[^"\\]*"`)
	literalNumber = regexp.MustCompile(`-?\b\d+(?:\.\d+)?\b`)
	fieldName     = regexp.MustCompile(`\b([a-z]\w*)[!?]?:|"([a-z][a-z-]*)"`)
)

// drawnCalls are n different calls of arguments at most, always the same ones.
func drawnCalls(d *declared, cue string, n int) []string {
	var schema map[string]any
	if err := json.Unmarshal(d.spec.Schema, &schema); err != nil {
		panic(err)
	}
	g := &drawer{Rand: rand.New(rand.NewPCG(1, 2)), texts: []string{`"a"`, `"x"`, `"ab"`, `""`, `"ab\t,"`}, numbers: []string{"0", "1", "3", "2.0", "1.5"}}
	g.names = []string{"zz", "x-1", "ab"}
	for _, m := range fieldName.FindAllStringSubmatch(cue, -1) {
		g.names = append(g.names, m[1]+m[2])
	}
	g.defs, _ = schema["$defs"].(map[string]any)
	g.texts = append(g.texts, literalText.FindAllString(cue, -1)...)
	for _, digits := range literalNumber.FindAllString(cue, -1) {
		r, _ := new(big.Rat).SetString(digits)
		prec, _ := r.FloatPrec()
		for _, step := range []int64{-1, 0, 1} {
			g.numbers = append(g.numbers, new(big.Rat).Add(r, big.NewRat(step, 1)).FloatString(prec))
		}
	}
	seen := map[string]bool{"{}": true}
	for i := range 3 * n {
		g.wrong = []float64{0, 0, 0.05, 0.15, 0.3}[i%5]
		if call := g.object(schema, 0); len(seen) < n {
			seen[call] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func (g *drawer) chance(p float64) bool { return g.Float64() < p }

func (g *drawer) pick(texts []string) string { return texts[g.IntN(len(texts))] }

func (g *drawer) value(schema any, depth int) string {
	s, _ := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		s, _ = g.defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	if alternatives, ok := s["anyOf"].([]any); ok {
		s, _ = alternatives[g.IntN(len(alternatives))].(map[string]any)
	}
	if _, again := s["$ref"]; again && depth < 6 {
		return g.value(s, depth+1)
	}
	if g.chance(g.wrong) || depth > 6 {
		return g.pick(odd)
	}
	if c, ok := s["const"]; ok {
		return jsonOf(c)
	}
	if all, ok := s["enum"].([]any); ok {
		return jsonOf(all[g.IntN(len(all))])
	}
	types, _ := s["type"].([]any)
	if one, ok := s["type"]; ok && types == nil {
		types = []any{one}
	}
	if len(types) == 0 {
		switch n := g.IntN(10); {
		case n < 3 && depth < 4:
			return g.object(nil, depth)
		case n < 6:
			return g.pick(g.numbers)
		case n < 8:
			return g.pick(g.texts)
		}
		return g.pick(odd)
	}
	switch types[g.IntN(len(types))] {
	case "object":
		return g.object(s, depth)
	case "array":
		return g.array(s, depth)
	case "string":
		return g.pick(g.texts)
	case "integer", "number":
		return g.pick(g.numbers)
	case "boolean":
		return g.pick([]string{"true", "false"})
	}
	return "null"
}

func (g *drawer) object(s map[string]any, depth int) string {
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	var members []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		often := 0.5
		if slices.Contains(required, any(name)) {
			often = 1
		}
		if g.chance(often - g.wrong/2) {
			members = append(members, fmt.Sprintf("%q:%s", name, g.value(properties[name], depth+1)))
		}
	}
	others := []any{s["additionalProperties"]}
	for _, name := range slices.Sorted(maps.Keys(mapOf(s["patternProperties"]))) {
		others = append(others, mapOf(s["patternProperties"])[name])
	}
	seen := maps.Clone(properties)
	if seen == nil {
		seen = map[string]any{}
	}
	for _, other := range others {
		for range g.IntN(4) {
			name := g.pick(g.names)
			if _, has := seen[name]; has || other == false && !g.chance(g.wrong) {
				continue
			}
			seen[name] = true
			members = append(members, fmt.Sprintf("%q:%s", name, g.value(other, depth+1)))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func mapOf(v any) map[string]any { m, _ := v.(map[string]any); return m }

func (g *drawer) array(s map[string]any, depth int) string {
	prefix, _ := s["prefixItems"].([]any)
	n := len(prefix)
	if s["items"] != false {
		n += g.IntN(3)
	}
	if g.chance(g.wrong) {
		n = g.IntN(4)
	}
	items := make([]string, n)
	for i := range items {
		if i < len(prefix) {
			items[i] = g.value(prefix[i], depth+1)
		} else {
			items[i] = g.value(s["items"], depth+1)
		}
	}
	return "[" + strings.Join(items, ",") + "]"
}
