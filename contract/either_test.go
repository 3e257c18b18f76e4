package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/catalogd/catalogd/contract"
)

const other = `{"type":"object","properties":{"other":{"type":"string"}},"required":["other"],"additionalProperties":false}`

// A schema means as an alternative what it means alone, whatever its references are and in whichever draft it is.
func TestEither(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		schema string
		// want is the whole outcome; of what is said anew, that it is right is enough.
		want        string
		good, wrong []string
	}{
		"no reference": {
			`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`,
			`{"type":"object","anyOf":[{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false},` + other + `]}`,
			[]string{`{"n":1}`}, []string{`{"n":"x"}`, `{"n":1,"other":"x"}`, `{}`},
		},
		"definitions": {
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"],"$defs":{"A":{"type":"integer"}}}`,
			`{"type":"object","anyOf":[{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"]},` + other + `],"$defs":{"A":{"type":"integer"}}}`,
			[]string{`{"a":1}`}, []string{`{"a":"x"}`},
		},
		"recursion": {
			`{"type":"object","properties":{"next":{"$ref":"#"},"n":{"type":"integer"}},"required":["n"]}`,
			`{"type":"object","anyOf":[{"type":"object","properties":{"next":{"$ref":"#/anyOf/0"},"n":{"type":"integer"}},"required":["n"]},` + other + `]}`,
			[]string{`{"n":1,"next":{"n":2}}`}, []string{`{"n":1,"next":{"n":"x"}}`, `{"n":1,"next":{"other":"x"}}`},
		},
		"a place": {
			`{"type":"object","properties":{"a b":{"type":"integer"},"c":{"$ref":"#/properties/a%20b"}},"required":["c"]}`,
			`{"type":"object","anyOf":[{"type":"object","properties":{"a b":{"type":"integer"},"c":{"$ref":"#/anyOf/0/properties/a%20b"}},"required":["c"]},` + other + `]}`,
			[]string{`{"c":1}`}, []string{`{"c":"x"}`},
		},
		"a place from a definition": {
			`{"type":"object","properties":{"a":{"type":"integer"},"b":{"$ref":"#/$defs/B"}},"required":["b"],"$defs":{"B":{"type":"array","items":{"$ref":"#/properties/a"}}}}`, "",
			[]string{`{"b":[1]}`}, []string{`{"b":["x"]}`},
		},
		"draft 07": {
			`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"t":{"$ref":"#/definitions/T"}},"required":["t"],"definitions":{"T":{"type":"array","items":[{"type":"integer"}],"additionalItems":false}}}`,
			`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","anyOf":[{"type":"object","properties":{"t":{"$ref":"#/definitions/T"}},"required":["t"]},` + other + `],"definitions":{"T":{"type":"array","items":[{"type":"integer"}],"additionalItems":false}}}`,
			[]string{`{"t":[1]}`}, []string{`{"t":["x"]}`, `{"t":[1,2]}`},
		},
		"draft 04": {
			`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"n":{"type":"integer","minimum":0,"exclusiveMinimum":true}},"required":["n"]}`, "",
			[]string{`{"n":1}`}, []string{`{"n":0}`},
		},
		"an identifier": {
			`{"$id":"https://example.com/a","type":"object","properties":{"a":{"$ref":"https://example.com/a#/$defs/A"}},"required":["a"],"$defs":{"A":{"type":"integer"}}}`,
			`{"type":"object","anyOf":[{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"]},` + other + `],"$defs":{"A":{"type":"integer"}}}`,
			[]string{`{"a":1}`}, []string{`{"a":"x"}`},
		},
		"an anchor": {
			`{"type":"object","properties":{"a":{"$ref":"#A"}},"required":["a"],"$defs":{"X":{"$anchor":"A","type":"integer"}}}`, "",
			[]string{`{"a":1}`}, []string{`{"a":"x"}`},
		},
		"a dynamic reference": {
			`{"$dynamicAnchor":"node","type":"object","properties":{"next":{"$dynamicRef":"#node"},"n":{"type":"integer"}},"required":["n"]}`, "",
			[]string{`{"n":1,"next":{"n":2}}`}, []string{`{"n":1,"next":{}}`, `{"n":1,"next":{"other":"x"}}`},
		},
		"a place of no draft": {
			`{"type":"object","properties":{"a":{"$ref":"#/components/A"}},"required":["a"],"components":{"A":{"type":"array","items":{"$ref":"#/components/B"}},"B":{"type":"integer"}}}`, "",
			[]string{`{"a":[1]}`}, []string{`{"a":["x"]}`},
		},
		"what only looks like a reference": {
			`{"type":"object","properties":{"$ref":{"const":{"$ref":"#/properties/a"}},"$defs":{"type":"integer"}},"required":["$ref"]}`,
			`{"type":"object","anyOf":[{"type":"object","properties":{"$ref":{"const":{"$ref":"#/properties/a"}},"$defs":{"type":"integer"}},"required":["$ref"]},` + other + `]}`,
			[]string{`{"$ref":{"$ref":"#/properties/a"}}`}, []string{`{"$ref":1}`, `{"$ref":{"$ref":"#/properties/a"},"$defs":"x"}`},
		},
		"a meta-schema": {
			`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"s":{"$ref":"http://json-schema.org/draft-07/schema#"}},"required":["s"]}`, "",
			[]string{`{"s":{"type":"object"}}`, `{"s":true}`}, []string{`{"s":1}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := contract.Either(json.RawMessage(tc.schema), json.RawMessage(other), true)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); tc.want != "" && diff != "" {
				t.Error(diff)
			}
			alone, either := validator(t, tc.schema), validator(t, string(got))
			for _, values := range []struct {
				list []string
				ok   bool
			}{{tc.good, true}, {tc.wrong, false}} {
				for _, v := range values.list {
					if valid(t, alone, v) != values.ok {
						t.Errorf("%s: the schema alone decides otherwise about it", v)
					}
					if valid(t, either, v) != values.ok {
						t.Errorf("%s: got %v of %s", v, !values.ok, got)
					}
				}
			}
			if !valid(t, either, `{"other":"x"}`) {
				t.Errorf("the other is refused by %s", got)
			}
		})
	}
	if got, err := contract.Either(json.RawMessage(`{"type":"array"}`), json.RawMessage(other), false); err != nil || string(got) != `{"anyOf":[{"type":"array"},`+other+`]}` {
		t.Errorf("of no object: %s %v", got, err)
	}
	if got, err := contract.Either(json.RawMessage(`true`), json.RawMessage(other), false); err != nil || string(got) != `{"anyOf":[true,`+other+`]}` {
		t.Errorf("of anything: %s %v", got, err)
	}
}

func validator(t *testing.T, schema string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///schema", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:///schema")
	if err != nil {
		t.Fatalf("%v in %s", err, schema)
	}
	return s
}

func valid(t *testing.T, s *jsonschema.Schema, value string) bool {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v) == nil
}
