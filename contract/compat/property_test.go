package compat_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/compat"
)

var (
	someKeys    = []string{"a", "b", "c"}
	someStrings = []any{"", "a", "ab", "b", "2024-01-02", "zzz"}
)

// drawSchema is a random schema of the given depth, written with most of the keywords there are.
func drawSchema(t *rapid.T, depth int) any {
	m := map[string]any{}
	maybe := func(keyword string, v func() any) {
		if rapid.IntRange(0, 3).Draw(t, keyword) == 0 {
			m[keyword] = v()
		}
	}
	small := func() any { return rapid.IntRange(0, 3).Draw(t, "small") }
	sub := func() any { return drawSchema(t, depth-1) }
	several := func() any {
		list := []any{}
		for range rapid.IntRange(1, 3).Draw(t, "branches") {
			list = append(list, sub())
		}
		return list
	}
	if rapid.IntRange(0, 12).Draw(t, "bool") == 0 {
		return rapid.Bool().Draw(t, "schema")
	}
	form := rapid.IntRange(0, 9).Draw(t, "form")
	if depth <= 0 && form > 4 {
		form -= 5
	}
	switch form {
	case 0:
		m["type"] = rapid.SampledFrom([]string{"integer", "number"}).Draw(t, "type")
		maybe("minimum", func() any { return rapid.SampledFrom([]any{-1, 0, 0.5, 2}).Draw(t, "minimum") })
		maybe("exclusiveMinimum", func() any { return rapid.SampledFrom([]any{-1, 0, 0.5, 2}).Draw(t, "minimum") })
		maybe("maximum", func() any { return rapid.SampledFrom([]any{1, 2.5, 3, 100}).Draw(t, "maximum") })
		maybe("exclusiveMaximum", func() any { return rapid.SampledFrom([]any{1, 2.5, 3, 100}).Draw(t, "maximum") })
		maybe("multipleOf", func() any { return rapid.SampledFrom([]any{1, 2, 0.5, 3}).Draw(t, "multiple") })
	case 1:
		m["type"] = "string"
		maybe("minLength", small)
		maybe("maxLength", small)
		maybe("pattern", func() any { return rapid.SampledFrom([]string{"^a", "b$", "^[a-z]+$"}).Draw(t, "pattern") })
		maybe("format", func() any { return rapid.SampledFrom([]string{"date", "unheard-of"}).Draw(t, "format") })
	case 2:
		m["enum"] = rapid.SliceOfNDistinct(rapid.SampledFrom(append([]any{0, 1, 2.5, nil, true}, someStrings...)), 1, 4, func(v any) string { return fmt.Sprint(v) }).Draw(t, "enum")
	case 3:
		m["type"] = rapid.SampledFrom([]any{"null", "boolean", []any{"string", "null"}, []any{"integer", "string", "boolean"}, "object", "array"}).Draw(t, "type")
	case 4:
		m["const"] = rapid.SampledFrom([]any{1, "a", nil, false}).Draw(t, "const")
	case 5, 6:
		m["type"] = "object"
		properties := map[string]any{}
		for _, name := range someKeys {
			if rapid.Bool().Draw(t, "property") {
				properties[name] = sub()
			}
		}
		m["properties"] = properties
		maybe("required", func() any {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(someKeys), 0, 2, rapid.ID).Draw(t, "required")
		})
		maybe("additionalProperties", func() any {
			if rapid.Bool().Draw(t, "closed") {
				return false
			}
			return sub()
		})
		maybe("patternProperties", func() any {
			return map[string]any{rapid.SampledFrom([]string{"^a", "b", ""}).Draw(t, "pattern"): sub()}
		})
		maybe("minProperties", small)
		maybe("maxProperties", small)
		maybe("propertyNames", func() any { return map[string]any{"enum": []any{"a", "b"}} })
		maybe("dependentRequired", func() any { return map[string]any{"a": []any{"b"}} })
	case 7:
		m["type"] = "array"
		maybe("items", sub)
		maybe("prefixItems", several)
		maybe("minItems", small)
		maybe("maxItems", small)
		maybe("uniqueItems", func() any { return true })
		maybe("contains", sub)
		if _, ok := m["contains"]; ok {
			maybe("minContains", small)
			maybe("maxContains", small)
		}
	case 8:
		m[rapid.SampledFrom([]string{"anyOf", "oneOf", "allOf"}).Draw(t, "several")] = several()
	case 9:
		switch rapid.IntRange(0, 2).Draw(t, "logic") {
		case 0:
			m["not"] = sub()
		case 1:
			m["if"], m["then"], m["else"] = sub(), sub(), sub()
		case 2:
			m["$ref"] = "#/$defs/" + rapid.SampledFrom([]string{"A", "B"}).Draw(t, "ref")
		}
	}
	return m
}

// drawWhole is a schema with its definitions, of which A is recursive. Its arguments may have defaults.
func drawWhole(t *rapid.T) map[string]any {
	properties := map[string]any{}
	for _, name := range someKeys {
		if s := drawSchema(t, 2); rapid.IntRange(0, 2).Draw(t, "declared") > 0 {
			if m, ok := s.(map[string]any); ok && rapid.IntRange(0, 5).Draw(t, "default") == 0 {
				m["default"] = rapid.SampledFrom([]any{1, "a", nil, map[string]any{}}).Draw(t, "value")
			}
			properties[name] = s
		}
	}
	whole := map[string]any{"type": "object", "properties": properties, "$defs": map[string]any{
		"A": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"$ref": "#/$defs/A"}, "b": drawSchema(t, 0)}},
		"B": drawSchema(t, 1),
	}}
	if rapid.Bool().Draw(t, "closed") {
		whole["additionalProperties"] = false
	}
	var required []any
	for name := range properties {
		required = append(required, name)
	}
	slices.SortFunc(required, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	if n := rapid.IntRange(0, len(required)).Draw(t, "required"); n > 0 {
		whole["required"] = required[:n]
	}
	return whole
}

// mutate changes one keyword somewhere in a schema, or a few.
func mutate(t *rapid.T, schema any) any {
	var places []func()
	var walk func(m map[string]any)
	walk = func(m map[string]any) {
		for keyword, v := range m {
			switch v := v.(type) {
			case map[string]any:
				if keyword == "properties" {
					for name, p := range v {
						places = append(places, func() { delete(v, name) })
						if p, ok := p.(map[string]any); ok {
							walk(p)
						}
					}
					places = append(places, func() { v["new"] = map[string]any{"type": "string"} })
				} else {
					walk(v)
				}
			case float64:
				places = append(places, func() { m[keyword] = v + 1 })
				if v > 0 {
					places = append(places, func() { m[keyword] = v - 1 })
				}
			case []any:
				if len(v) > 1 {
					places = append(places, func() { m[keyword] = v[1:] })
				}
				if keyword == "enum" {
					places = append(places, func() { m[keyword] = append(slices.Clone(v), "one more") })
				}
				for _, item := range v {
					if item, ok := item.(map[string]any); ok {
						walk(item)
					}
				}
			case string:
				switch keyword {
				case "type":
					places = append(places, func() { m["type"] = "integer" }, func() { m["type"] = []any{v, "null"} }, func() {
						m["anyOf"] = []any{map[string]any{"type": v}, map[string]any{"type": "null"}}
						delete(m, "type")
					})
				case "description":
					places = append(places, func() { m["description"] = "another" })
				case "pattern":
					places = append(places, func() { delete(m, "pattern") })
				}
			}
			if keyword == "type" && v == "string" {
				places = append(places, func() { m["maxLength"] = 40 }, func() { m["pattern"] = "^[a-z]*$" }, func() { m["enum"] = []any{"a", "b"} })
			}
			if keyword == "additionalProperties" || keyword == "default" {
				places = append(places, func() { delete(m, keyword) })
			}
		}
	}
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	for range rapid.IntRange(1, 2).Draw(t, "mutations") {
		places = nil
		walk(out)
		if len(places) > 0 {
			places[rapid.IntRange(0, len(places)-1).Draw(t, "place")]()
		}
	}
	out["type"] = "object"
	return out
}

func drawValue(t *rapid.T, depth int) any {
	form := rapid.IntRange(0, 9).Draw(t, "value")
	switch {
	case form < 3:
		return rapid.SampledFrom(someStrings).Draw(t, "string")
	case form < 5:
		return rapid.SampledFrom([]any{-1, 0, 0.5, 1, 2, 2.5, 3, 4, 6}).Draw(t, "number")
	case form < 6 || depth <= 0:
		return rapid.SampledFrom([]any{nil, true, false}).Draw(t, "plain")
	case form < 8:
		return drawObject(t, depth)
	}
	list := []any{}
	for range rapid.IntRange(0, 3).Draw(t, "items") {
		list = append(list, drawValue(t, depth-1))
	}
	return list
}

func drawObject(t *rapid.T, depth int) map[string]any {
	m := map[string]any{}
	for _, name := range append(slices.Clone(someKeys), "new", "other") {
		if rapid.IntRange(0, 1).Draw(t, "key") == 0 {
			m[name] = drawValue(t, depth-1)
		}
	}
	return m
}

// holdsTrue fails where a value that a validator was asked about contradicts what a comparison says.
func holdsTrue(t *rapid.T, old, new string, c compat.Comparison, values [][]byte) {
	witness(t, old, new, c)
	for _, v := range values {
		before, after := takes(old, v), takes(new, v)
		contradicted := false
		switch c.Verdict {
		case compat.Identical:
			contradicted = before != after
		case compat.Widened:
			contradicted = before && !after
		case compat.Narrowed:
			contradicted = after && !before
		}
		if contradicted {
			t.Fatalf("%s, but %s: before %t, now %t, between\n%s\n%s\n%v", c.Verdict, v, before, after, old, new, c.Differences)
		}
	}
}

// TestCompareIsNeverContradicted compares random schemas, and schemas with random changes of them, and tries random
// values on both.
func TestCompareIsNeverContradicted(t *testing.T) {
	t.Parallel()
	verdicts := map[compat.Verdict]int{}
	rapid.Check(t, func(t *rapid.T) {
		oldSchema := drawWhole(t)
		var newSchema any = drawWhole(t)
		if rapid.IntRange(0, 3).Draw(t, "mutated") > 0 {
			newSchema = mutate(t, oldSchema)
		}
		old, new := jsonText(t, oldSchema), jsonText(t, newSchema)
		there, back := compat.Compare(spec(old), spec(new)), compat.Compare(spec(new), spec(old))
		verdicts[there.Verdict]++
		swapped := map[compat.Verdict]compat.Verdict{compat.Widened: compat.Narrowed, compat.Narrowed: compat.Widened}
		if want := swapped[there.Verdict]; want != "" && back.Verdict != want || want == "" && back.Verdict != there.Verdict {
			t.Fatalf("%s, and the other way round %s", there.Verdict, back.Verdict)
		}
		for _, s := range []string{old, new} {
			if self := compat.Compare(spec(s), spec(s)); self.Verdict != compat.Identical || len(self.Differences) > 0 {
				t.Fatalf("%s differs from itself: %v", s, self)
			}
		}
		var values [][]byte
		for range 20 {
			values = append(values, []byte(jsonText(t, drawObject(t, 3))))
		}
		for _, d := range there.Differences {
			for _, w := range []json.RawMessage{d.Refused, d.Added} {
				if w != nil {
					values = append(values, w)
				}
			}
		}
		holdsTrue(t, old, new, there, values)
	})
	t.Logf("verdicts: %v", verdicts)
}

// TestCompareRealSchemas changes the schemas of public MCP servers at random, and holds the share of what stays undecided,
// and of differences without a witness, to a bound.
func TestCompareRealSchemas(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/compare.json")
	if err != nil {
		t.Fatal(err)
	}
	var tools []struct {
		Tool        string
		InputSchema map[string]any
	}
	if err := json.Unmarshal(text, &tools); err != nil {
		t.Fatal(err)
	}
	verdicts := map[compat.Verdict]int{}
	compared, differences, witnessed := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		schema := rapid.SampledFrom(tools).Draw(t, "tool").InputSchema
		old, new := jsonText(t, schema), jsonText(t, mutate(t, schema))
		c := compat.Compare(spec(old), spec(new))
		compared++
		verdicts[c.Verdict]++
		for _, d := range c.Differences {
			if d.Kind != "default" {
				differences++
			}
			if d.Refused != nil || d.Added != nil {
				witnessed++
			}
		}
		var values [][]byte
		for range 5 {
			values = append(values, []byte(jsonText(t, drawObject(t, 2))))
		}
		holdsTrue(t, old, new, c, values)
	})
	t.Logf("%d compared: %v; %d differences, %d with a witness", compared, verdicts, differences, witnessed)
	// 15 of 100 are; the draws of one run are alike.
	if undecided := verdicts[compat.Undecided]; undecided*5 > compared*2 && compared >= 100 {
		t.Errorf("%d of %d are undecided", undecided, compared)
	}
	if witnessed*2 < differences && compared >= 100 {
		t.Errorf("%d of %d differences have a witness", witnessed, differences)
	}
}

// BenchmarkCompare compares each of the real schemas with one that has an argument less.
func BenchmarkCompare(b *testing.B) {
	text, err := os.ReadFile("testdata/compare.json")
	if err != nil {
		b.Fatal(err)
	}
	var tools []struct{ InputSchema map[string]any }
	if err := json.Unmarshal(text, &tools); err != nil {
		b.Fatal(err)
	}
	var pairs [][2]contract.Spec
	for _, tool := range tools {
		old, err := json.Marshal(tool.InputSchema)
		if err != nil {
			b.Fatal(err)
		}
		properties, _ := tool.InputSchema["properties"].(map[string]any)
		for name := range properties {
			delete(properties, name)
			break
		}
		delete(tool.InputSchema, "required")
		new, err := json.Marshal(tool.InputSchema)
		if err != nil {
			b.Fatal(err)
		}
		pairs = append(pairs, [2]contract.Spec{spec(string(old)), spec(string(new))})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		pair := pairs[i%len(pairs)]
		compat.Compare(pair[0], pair[1])
	}
}

func jsonText(t *rapid.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestCompareEnds compares schemas that were made to keep a reader busy.
func TestCompareEnds(t *testing.T) {
	t.Parallel()
	chain := func(link string) string {
		var defs []string
		for i := range 60 {
			defs = append(defs, fmt.Sprintf(`"d%d":%s`, i, strings.ReplaceAll(link, "NEXT", fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1))))
		}
		return `{"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{` + strings.Join(defs, ",") + `,"d60":{"type":"integer"}}}`
	}
	for _, c := range []struct {
		name, schema string
		refused      bool // it multiplies at one place, and is undecided by the name of a definition
	}{
		{"allOf doubled", chain(`{"allOf":[NEXT,NEXT]}`), true},
		{"anyOf doubled", chain(`{"anyOf":[NEXT,NEXT]}`), true},
		{"conditions doubled", chain(`{"not":NEXT,"if":NEXT}`), true},
		{"dependentSchemas doubled", chain(`{"dependentSchemas":{"x":NEXT,"y":NEXT}}`), true},
		{"a circle", `{"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{"d0":{"allOf":[{"$ref":"#/$defs/d0"}]}}}`, true},
		{"properties doubled", chain(`{"type":"object","properties":{"l":NEXT,"r":NEXT},"required":["l","r"]}`), false},
		{"tuples doubled", chain(`{"type":"array","prefixItems":[NEXT,NEXT],"minItems":2}`), false},
		{"unions doubled", chain(`{"anyOf":[{"type":"array","items":NEXT},{"type":"object","additionalProperties":NEXT}]}`), false},
		{"itself", `{"type":"object","properties":{"x":{"$ref":"#/$defs/A"}},"$defs":{"A":{"$ref":"#/$defs/A"}}}`, false},
		{"endless", `{"type":"object","properties":{"x":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"object","properties":{"x":{"$ref":"#/$defs/A"}},"required":["x"]}}}`, false},
		{"wide", `{"type":"object","properties":{"x":{"enum":[` + strings.Repeat(`1,`, 20000) + `1]}}}`, false},
		{"deep", strings.Repeat(`{"items":`, 500) + `true` + strings.Repeat(`}`, 500), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan compat.Comparison, 1)
			other := strings.ReplaceAll(c.schema, `"integer"`, `"number"`)
			other = strings.TrimSuffix(other, "}") + `,"minProperties":1}`
			go func() { ended <- compat.Compare(spec(c.schema), spec(other)) }()
			select {
			case got := <-ended:
				t.Log(got.Verdict, len(got.Differences))
				if got.Verdict == compat.Identical {
					t.Error("got identical, want another verdict: the second schema refuses {}")
				}
				if c.refused && (got.Verdict != compat.Undecided || !strings.Contains(got.Differences[0].What, "/d")) {
					t.Errorf("got %+v, want undecided by the name of a definition", got)
				}
			case <-time.After(time.Minute):
				t.Fatal("no end")
			}
		})
	}
}
