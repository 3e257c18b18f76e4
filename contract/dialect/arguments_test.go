package dialect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/registry"
)

// Null is the argument left out exactly where the contract has it as optional and doesn't take null. Everything else
// stays byte for byte.
func TestArguments(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","required":["r"],"properties":{
		"r":{"type":"string"},"o":{"type":"integer","default":1},"n":{"type":["string","null"]},"any":{},
		"s":{"type":"object","properties":{"o":{"type":"string"},"n":{"const":null}}},
		"l":{"type":"array","items":{"type":"object","properties":{"o":{"type":"string"}}}},
		"t":{"type":"array","prefixItems":[{"type":"object","properties":{"o":{"type":"string"}}},{"type":"object","properties":{"o":{"type":["string","null"]}}}],"items":false},
		"u":{"anyOf":[
			{"type":"object","required":["kind"],"properties":{"kind":{"const":"a"},"x":{"type":"integer"}},"additionalProperties":false},
			{"type":"object","required":["kind"],"properties":{"kind":{"const":"b"},"x":{"type":["integer","null"]}},"additionalProperties":false}]},
		"e":{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false},
			{"type":"object","properties":{"b":{"type":"string"},"o":{"type":"string"}},"required":["b"],"additionalProperties":false}]},
		"node":{"$ref":"#/$defs/Node"}
	},"$defs":{"Node":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/Node"}}}}}`
	for _, test := range []struct{ in, want string }{
		{`{"r":"x","o":null}`, `{"r":"x"}`},
		{`{"r":null,"o":null}`, `{"r":null}`},
		{`{"r":"x","n":null,"any":null}`, ``},
		{`{"r":"x","s":{"o":null,"n":null}}`, `{"r":"x","s":{"n":null}}`},
		{`{"r":"x","l":[{"o":null},null,{"o":"y"}]}`, `{"r":"x","l":[{},null,{"o":"y"}]}`},
		{`{"r":"x","t":[{"o":null},{"o":null}]}`, `{"r":"x","t":[{},{"o":null}]}`},
		{`{"r":"x","u":{"kind":"a","x":null}}`, `{"r":"x","u":{"kind":"a"}}`},
		{`{"r":"x","u":{"kind":"b","x":null}}`, ``},
		{`{"r":"x","u":{"kind":"c","x":null}}`, ``}, // meant by neither: the alternatives differ, so that it stays
		{`{"r":"x","e":{"a":"x"}}`, ``},
		{`{"r":"x","e":{"b":"x","o":null}}`, `{"r":"x","e":{"b":"x"}}`},
		{`{"r":"x","e":{"a":null,"b":"x","o":"y"}}`, `{"r":"x","e":{"b":"x","o":"y"}}`},
		{`{"r":"x","node":{"v":null,"next":{"v":1,"next":null}}}`, `{"r":"x","node":{"next":{"v":1}}}`},
		{`{"r":"x","unknown":null}`, ``},
		{`{"r":"\u00e4\ud800","big":123456789012345678901234567890.10e2,"o" : null , "r":2}`, `{"r":"\u00e4\ud800","big":123456789012345678901234567890.10e2 , "r":2}`},
		{`{"r":"the word null"}`, ``},
		{`{"o":null`, ``},
		{`null`, ``},
		{`[null]`, ``},
		{`{"o":null}{}`, ``},
		{strings.Repeat(`[`, 100_000) + `null`, ``},
	} {
		want := test.want
		if want == "" {
			want = test.in
		}
		if got := string(dialect.OpenAIStrict.Arguments(json.RawMessage(schema), json.RawMessage(test.in))); got != want {
			t.Errorf("%.200s: got %.200s, want %.200s", test.in, got, want)
		}
		for _, d := range dialect.All() {
			if got := string(d.Arguments(json.RawMessage(schema), json.RawMessage(test.in))); d != dialect.OpenAIStrict && got != test.in {
				t.Errorf("%s changes %.200s to %.200s", d, test.in, got)
			}
		}
	}
}

// What a model that is held to the strict schema writes, the contract accepts, once null is read as left out: for every
// tool whose schema doesn't widen.
func TestStrictIsAccepted(t *testing.T) {
	t.Parallel()
	c := shapes(t)
	tools, err := c.Branch("default").Tools()
	if err != nil {
		t.Fatal(err)
	}
	held := 0
	for _, tool := range tools {
		offer := dialect.OpenAIStrict.Offer(dialect.Tool{Name: tool.Name, Description: tool.Description, Input: tool.Args.Schema})
		if offer.Refused != nil || widens(offer) || tool.Args.Remainder != nil || bytes.Contains(tool.Args.Schema, []byte(`"pattern"`)) {
			continue
		}
		held++
		t.Run(tool.Name, func(t *testing.T) { strictIsAccepted(t, tool, offer) })
	}
	if held < 25 {
		t.Errorf("only %d tools are held to it", held)
	}
}

func widens(o dialect.Offer) bool {
	return slices.ContainsFunc(o.Losses, func(l dialect.Loss) bool { return !l.Narrows })
}

func strictIsAccepted(t *testing.T, tool registry.Tool, offer dialect.Offer) {
	accepts, err := contract.New(tool.Args, nil)
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Function struct{ Parameters map[string]any }
	}
	d := json.NewDecoder(bytes.NewReader(offer.Tool))
	d.UseNumber()
	if err := d.Decode(&said); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		value, err := json.Marshal(draw(t, said.Function.Parameters, said.Function.Parameters, 0))
		if err != nil {
			t.Fatal(err)
		}
		read := dialect.OpenAIStrict.Arguments(tool.Args.Schema, value)
		if _, found, err := accepts.Check(context.Background(), read); err != nil || found != nil {
			t.Fatalf("the model may write %s, which is read as %s and refused: %v %v", value, read, found, err)
		}
	})
}

// draw is a random value that a strict schema accepts.
func draw(t *rapid.T, schema, top map[string]any, depth int) any {
	if ref, ok := schema["$ref"].(string); ok {
		defs := top["$defs"].(map[string]any)
		return draw(t, defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any), top, depth+1)
	}
	if choices, ok := schema["anyOf"].([]any); ok {
		if depth > 6 { // recursion ends in null, which strict mode writes last
			return draw(t, choices[len(choices)-1].(map[string]any), top, depth+1)
		}
		return draw(t, rapid.SampledFrom(choices).Draw(t, "choice").(map[string]any), top, depth+1)
	}
	if values, ok := schema["enum"].([]any); ok {
		return rapid.SampledFrom(values).Draw(t, "value")
	}
	if value, ok := schema["const"]; ok {
		return value
	}
	kind, ok := schema["type"].(string)
	if !ok {
		kind = rapid.SampledFrom(schema["type"].([]any)).Draw(t, "type").(string)
	}
	switch kind {
	case "null":
		return nil
	case "boolean":
		return rapid.Bool().Draw(t, "flag")
	case "string":
		return rapid.StringN(0, 5, -1).Draw(t, "text")
	case "integer":
		low, high := bound(schema, "inimum", 1, -1000), bound(schema, "aximum", -1, 1000)
		return rapid.Int64Range(low, max(low, high)).Draw(t, "whole")
	case "number":
		if _, small := schema["exclusiveMaximum"]; small {
			return json.Number("0.5")
		}
		return json.Number(fmt.Sprintf("%d.25", rapid.IntRange(0, 99).Draw(t, "real")))
	case "array":
		low, high := bound(schema, "inItems", 0, 0), bound(schema, "axItems", 0, 3)
		out := []any{}
		for range rapid.Int64Range(low, high).Draw(t, "items") {
			out = append(out, draw(t, schema["items"].(map[string]any), top, depth+1))
		}
		return out
	}
	out := map[string]any{}
	for name, property := range schema["properties"].(map[string]any) {
		out[name] = draw(t, property.(map[string]any), top, depth+1)
	}
	return out
}

// bound is a bound of a schema, the exclusive one moved inwards by step, or otherwise.
func bound(schema map[string]any, name string, step, otherwise int64) int64 {
	for _, key := range []string{"m" + name, "exclusiveM" + name} {
		n, ok := schema[key].(json.Number)
		if !ok {
			continue
		}
		i, err := n.Int64()
		if err != nil {
			return otherwise
		}
		if strings.HasPrefix(key, "exclusive") {
			return i + step
		}
		return i
	}
	return otherwise
}

// What stands beside alternatives, references and conditions is kept or told, and never dropped in silence.
func TestNothingIsLostInSilence(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		schema string
		lost   map[dialect.Dialect][]string // by keyword, in order
	}{
		{`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"],"additionalProperties":false,"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			map[dialect.Dialect][]string{dialect.OpenAIStrict: {"anyOf"}, dialect.Gemini: {"anyOf"}}},
		{`{"type":"string","anyOf":[{"minLength":3},{"pattern":"^a"}]}`, map[dialect.Dialect][]string{dialect.OpenAIStrict: {"minLength"}}},
		{`{"type":"string","oneOf":[{"const":"a"},{"const":"b"}]}`, nil},
		{`{"oneOf":[{"type":"integer"},{"type":"number","minimum":5}]}`, map[dialect.Dialect][]string{dialect.OpenAIStrict: {"oneOf"}, dialect.Gemini: {"oneOf"}}},
		{`{"$ref":"#/$defs/R","required":["x"]}`, nil},
		{`{"$ref":"#/$defs/R","minProperties":1}`, map[dialect.Dialect][]string{dialect.OpenAIStrict: {"minProperties"}}},
		{`{"type":"string","allOf":[{"pattern":"^a"}]}`, nil},
		{`{"type":"string","pattern":"b$","allOf":[{"pattern":"^a"}]}`, map[dialect.Dialect][]string{dialect.OpenAIStrict: {"pattern"}, dialect.Gemini: {"pattern"}}},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false,"allOf":[{"properties":{"b":{"type":"string"}}}]}`,
			nil}, // no call can have b
		{`{"type":"integer","not":{"const":3},"contains":{}}`, map[dialect.Dialect][]string{dialect.OpenAIStrict: {"not", "contains"}, dialect.Gemini: {"not", "contains"}}},
		{`{"type":"string","if":{"minLength":3},"then":{"pattern":"^a"}}`, map[dialect.Dialect][]string{dialect.OpenAIStrict: {"if"}, dialect.Gemini: {"if"}}},
	} {
		in := tool(`"x":`+test.schema, `,"required":["x"],"$defs":{"R":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"],"additionalProperties":false}}`)
		for _, d := range dialect.All() {
			offer := d.Offer(in)
			var lost []string
			for _, l := range offer.Losses {
				lost = append(lost, l.Keyword)
			}
			if offer.Refused != nil || !slices.Equal(lost, test.lost[d]) || rules[d](offer.Tool) != nil {
				t.Errorf("%s: %s: lost %v, want %v; %v; %s %v", d, test.schema, lost, test.lost[d], offer.Refused, offer.Tool, rules[d](offer.Tool))
			}
		}
	}
}
