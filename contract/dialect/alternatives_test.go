package dialect_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/contract/dialect"
)

// What stands at the root keeps the names of its arguments in every dialect, and in strict mode and Gemini
// what is shown is the schema that is wanted here, with the losses.
func TestRootAlternatives(t *testing.T) {
	t.Parallel()
	const (
		byName = `{"type":"object","properties":{"name":{"type":"string"},"exact":{"type":"boolean"}},"required":["name"],"additionalProperties":false}`
		byID   = `{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"],"additionalProperties":false}`
	)
	for _, test := range []struct {
		name, schema string
		names        []string
		strict       string // the parameters; empty where strict mode can't say it
		losses       []string
	}{
		{
			"anyOf of two closed objects", `{"type":"object","anyOf":[` + byName + `,` + byID + `]}`, []string{"name", "exact", "id"},
			`{"type":"object","description":"Arguments that go together: (name) or (id).","properties":{"name":{"type":["string","null"],"description":"Null leaves it out."},"exact":{"type":["boolean","null"],"description":"Null leaves it out."},"id":{"type":["integer","null"],"description":"Null leaves it out."}},"required":["name","exact","id"],"additionalProperties":false}`,
			[]string{"anyOf"},
		},
		{
			"oneOf, told apart by a constant", `{"type":"object","oneOf":[
				{"properties":{"kind":{"const":"card"},"number":{"type":"string"}},"required":["kind","number"],"additionalProperties":false},
				{"properties":{"kind":{"const":"cash"}},"required":["kind"],"additionalProperties":false}]}`, []string{"kind", "number"},
			`{"type":"object","description":"Arguments that go together: (kind: \"card\", number) or (kind: \"cash\").","properties":{"kind":{"enum":["card","cash"],"type":"string"},"number":{"type":["string","null"],"description":"Null leaves it out."}},"required":["kind","number"],"additionalProperties":false}`,
			[]string{"oneOf"},
		},
		{
			"beside properties", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}],"additionalProperties":false}`, []string{"a", "b"},
			`{"type":"object","properties":{"a":{"type":["string","null"],"description":"Null leaves it out."},"b":{"type":["string","null"],"description":"Null leaves it out."}},"required":["a","b"],"additionalProperties":false}`,
			[]string{"anyOf"},
		},
		{
			"allOf is joined exactly", `{"type":"object","allOf":[{"properties":{"a":{"type":"integer","minimum":1}},"required":["a"]},{"properties":{"a":{"maximum":9},"b":{"const":true}},"required":["b"]}],"unevaluatedProperties":false}`, []string{"a", "b"},
			`{"type":"object","properties":{"a":{"type":"integer","maximum":9,"minimum":1},"b":{"const":true,"type":"boolean"}},"required":["a","b"],"additionalProperties":false}`,
			nil,
		},
		{
			"a reference", `{"type":"object","$ref":"#/$defs/A","$defs":{"A":` + byID + `}}`, []string{"id"},
			`{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"],"additionalProperties":false}`, nil,
		},
		{
			"a condition", `{"type":"object","properties":{"kind":{"enum":["card","cash"]},"number":{"type":"string"}},"required":["kind"],"additionalProperties":false,
				"if":{"properties":{"kind":{"const":"card"}},"required":["kind"]},"then":{"required":["number"]},"else":{"properties":{"number":false}}}`, []string{"kind", "number"},
			`{"type":"object","properties":{"kind":{"enum":["card","cash"],"type":"string"},"number":{"type":["string","null"],"description":"Null leaves it out."}},"required":["kind","number"],"additionalProperties":false}`,
			[]string{"if"},
		},
		{
			"names that only required has", `{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}`, []string{"a", "b"}, "", nil,
		},
	} {
		for _, d := range dialect.All() {
			offer := d.Offer(dialect.Tool{Name: "t", Input: json.RawMessage(test.schema)})
			if offer.Refused != nil || rules[d](offer.Tool) != nil {
				t.Errorf("%s: %s: %v %v", test.name, d, offer.Refused, rules[d](offer.Tool))
				continue
			}
			shown := shownSchema(t, d, offer)
			if d != dialect.MCP {
				properties, _ := shown["properties"].(anyMap)
				for _, name := range test.names {
					if properties[name] == nil {
						t.Errorf("%s: %s lacks %s: %s", test.name, d, name, offer.Tool)
					}
				}
			}
			if d != dialect.OpenAIStrict {
				continue
			}
			if (offer.Fallback == nil) != (test.strict != "") {
				t.Errorf("%s: fallback %v", test.name, offer.Fallback)
			}
			if test.strict == "" {
				continue
			}
			if diff := cmp.Diff(canonical(t, json.RawMessage(test.strict)), canonical(t, parametersOf(t, offer.Tool))); diff != "" {
				t.Errorf("%s: %s", test.name, diff)
			}
			var lost []string
			for _, l := range offer.Losses {
				if !l.Narrows {
					lost = append(lost, l.Keyword)
				}
			}
			if !slices.Equal(lost, test.losses) {
				t.Errorf("%s: lost %v, want %v", test.name, offer.Losses, test.losses)
			}
		}
	}
}

func parametersOf(t *testing.T, tool json.RawMessage) json.RawMessage {
	t.Helper()
	var said struct {
		Function struct{ Parameters json.RawMessage }
	}
	if err := json.Unmarshal(tool, &said); err != nil {
		t.Fatal(err)
	}
	return said.Function.Parameters
}

// A reference may lead anywhere in the document; recursion by one is recursion.
func TestReferences(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, schema, strict, gemini string }{
		{
			"definitions", `{"type":"object","properties":{"a":{"$ref":"#/definitions/A"}},"required":["a"],"additionalProperties":false,"definitions":{"A":{"type":"string"}}}`,
			`{"$ref":"#/$defs/A"}`, `{"type":"STRING"}`,
		},
		{
			"a property", `{"type":"object","properties":{"a":{"$ref":"#/properties/b"},"b":{"type":"integer"}},"required":["a"],"additionalProperties":false}`,
			`{"$ref":"#/$defs/b"}`, `{"type":"INTEGER"}`,
		},
		{
			"an anchor", `{"type":"object","properties":{"a":{"$ref":"#text"}},"required":["a"],"additionalProperties":false,"$defs":{"T":{"$anchor":"text","type":"string"}}}`,
			`{"$ref":"#/$defs/T"}`, `{"type":"STRING"}`,
		},
		{
			"the document", `{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#"}}},"required":["a"],"additionalProperties":false}`,
			`{"type":"array","items":{"$ref":"#/$defs/root"}}`, "",
		},
		{
			"recursion beside what narrows it", `{"type":"object","properties":{"a":{"$ref":"#/$defs/N"}},"required":["a"],"additionalProperties":false,
				"$defs":{"N":{"type":"object","properties":{"next":{"$ref":"#/$defs/N","minProperties":1}},"additionalProperties":false}}}`,
			`{"$ref":"#/$defs/N"}`, "",
		},
	} {
		for d, want := range map[dialect.Dialect]string{dialect.OpenAIStrict: test.strict, dialect.Gemini: test.gemini} {
			offer := d.Offer(dialect.Tool{Name: "t", Input: json.RawMessage(test.schema)})
			if want == "" {
				if len(offer.Refused) != 1 || offer.Refused[0].Code != dialect.Recursion {
					t.Errorf("%s: %s: %v, want %s", test.name, d, offer.Refused, dialect.Recursion)
				}
				continue
			}
			var said struct {
				Function, Parameters struct {
					Parameters struct{ Properties map[string]json.RawMessage }
					Properties map[string]json.RawMessage
				}
			}
			if err := json.Unmarshal(offer.Tool, &said); err != nil {
				t.Errorf("%s: %s: %v: %v", test.name, d, err, offer.Refused)
				continue
			}
			got := said.Parameters.Properties["a"]
			if d == dialect.OpenAIStrict {
				got = said.Function.Parameters.Properties["a"]
			}
			if string(got) != want || rules[d](offer.Tool) != nil || offer.Fallback != nil {
				t.Errorf("%s: %s: got %s, want %s: %v %v", test.name, d, got, want, offer.Fallback, rules[d](offer.Tool))
			}
		}
	}
}

// Definitions that name the next one twice, and alternatives in alternatives, cost no more than is shown of
// them.
func TestWritingOutIsBounded(t *testing.T) {
	t.Parallel()
	var defs []string
	for i := range 40 {
		defs = append(defs, fmt.Sprintf(`"D%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/D%d"},"b":{"$ref":"#/$defs/D%d"}},"additionalProperties":false}`, i, i+1, i+1))
	}
	doubled := `{"type":"object","properties":{"a":{"$ref":"#/$defs/D0"}},"required":["a"],"$defs":{` + strings.Join(defs, ",") + `,"D40":{"type":"string"}}}`
	nested := `{"type":"string"}`
	for range 9 {
		var each []string
		for i := range 12 {
			each = append(each, fmt.Sprintf(`{"properties":{"k":{"const":%d},"next":%s}}`, i, nested))
		}
		if len(nested) > 200_000 {
			break
		}
		nested = `{"type":"object","properties":{"id":{"type":"string"}},"anyOf":[` + strings.Join(each, ",") + `]}`
	}
	multiplied := `{"type":"object","properties":{"a":` + nested + `},"required":["a"]}`
	var all []string
	for i := range 30 {
		all = append(all, fmt.Sprintf(`{"anyOf":[{"properties":{"a%d":{"const":1}}},{"properties":{"a%d":{"const":2}}}]}`, i, i))
	}
	product := `{"type":"object","allOf":[` + strings.Join(all, ",") + `]}`
	for name, schema := range map[string]string{"definitions": doubled, "alternatives": multiplied, "a product": product} {
		for _, d := range dialect.All() {
			offer := d.Offer(dialect.Tool{Name: "t", Input: json.RawMessage(schema)})
			if len(offer.Tool) > 20*len(schema)+1_000_000 {
				t.Errorf("%s: %s: %d bytes become %d", name, d, len(schema), len(offer.Tool))
			}
		}
	}
	offer := dialect.Gemini.Offer(dialect.Tool{Name: "t", Input: json.RawMessage(doubled)})
	if len(offer.Refused) == 0 || offer.Refused[0].Code != dialect.TooLong {
		t.Errorf("got %v, want %s", offer.Refused, dialect.TooLong)
	}
}
